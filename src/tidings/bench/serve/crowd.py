"""The clients' side as the bench sees it: a process with all who read, and sockets that nobody reads."""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from tidings.bench.serve.clients import SSE, Settings, opening, subscribing
from tidings.bench.serve.service import Service
from tidings.model.codes import Int64Array
from tidings.model.errors import RunError

_STOP_SECONDS = 60.0
_SPARE_FILES = 200
_SMALL_BYTES = 1 << 12


def raise_file_limit(needed: int) -> str | None:
    """Lets this process, and those it starts, open as many files as the system allows. A sentence if that is too few."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard != resource.RLIM_INFINITY and hard < needed + _SPARE_FILES:
        return f"only {hard:,} files can be open, too few for {needed:,} connections: raise the hard limit (ulimit -Hn)"
    return None


@dataclass(frozen=True)
class Received:
    """What all clients received. begun: by client, seq of its snapshot. Of each change: client, seq, moment, net_from or -1."""

    begun: Int64Array
    client: Int64Array
    seq: Int64Array
    at_ns: Int64Array
    net_from: Int64Array
    lost: int
    """Connections that the service closed."""
    resets: int
    """Clients that had to begin anew."""


class ClientProcess:
    """A process in which clients connect when they are told to, each following a subscription."""

    def __init__(self, process: subprocess.Popen[bytes], out: Path) -> None:
        self._process = process
        self._out = out

    @property
    def pid(self) -> int:
        return self._process.pid

    def connect(self, count: int) -> None:
        """Returns when so many more have their snapshots."""
        self._say(str(count))
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"connected\n":
            raise RunError("the process of the clients has ended")

    def stop(self) -> Received:
        self._say("stop")
        if self._process.wait(_STOP_SECONDS):
            raise RunError("the process of the clients has failed")
        with np.load(self._out) as found:
            client, seq, at_ns, net_from = found["received"].T
            return Received(found["begun"], client, seq, at_ns, net_from, int(found["lost"]), int(found["resets"]))

    def _say(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n".encode())
        self._process.stdin.flush()


@contextmanager
def client_process(
    service: Service, folder: Path, ids: Sequence[str], transports: Sequence[str]
) -> Iterator[ClientProcess]:
    """A process with a client for each id; none is connected yet."""
    out, path = folder / "received.npz", folder / "clients.json"
    path.write_bytes(msgspec.json.encode(Settings(service.host, service.port, list(ids), list(transports), str(out))))
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from tidings.bench.serve.clients import main; main(sys.argv[1])",
            str(path),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        yield ClientProcess(process, out)
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


def connect_deaf(stack: ExitStack, service: Service, ids: Sequence[str], transports: Sequence[str]) -> None:
    """Connects clients that never read; they stay until the stack is closed. Their own buffers are as small as can be."""
    for id, transport in zip(ids, transports, strict=True):
        client = stack.enter_context(socket.socket())
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL_BYTES)
        client.connect((service.host, service.port))
        client.sendall(opening(service.host, id, transport))
        if transport != SSE:
            client.recv(_SMALL_BYTES)
            client.sendall(subscribing(id))
