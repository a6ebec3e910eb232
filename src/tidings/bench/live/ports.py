"""Ports of servers that a bench starts for itself."""

from __future__ import annotations

import socket
import subprocess
import time
from contextlib import suppress


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def await_port(port: int, process: subprocess.Popen[bytes], seconds: float = 60) -> None:
    """Waits until somebody listens on a port. RuntimeError if the process that should ends, or takes too long."""
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"{process.args!r} did not begin to listen (exit code {process.poll()})")
