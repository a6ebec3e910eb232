"""Starts an engine process. Imports little, so that it can be started before anything else."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import NamedTuple


class Spawned(NamedTuple):
    process: subprocess.Popen[bytes]
    connection: socket.socket


_MODULES = {
    "inline": "tidings.server.engine.process",
    "spark": "tidings.server.engine.spark_process",
    "gateway": "tidings.server.engine.gateway_process",
}


def spawn(engine: str) -> Spawned:
    """An engine process of a kind, inline, spark or gateway, that waits for its settings at the other end of the connection."""
    ours, its = socket.socketpair()
    with its:
        process = subprocess.Popen(
            [sys.executable, "-m", _MODULES[engine], str(its.fileno())],
            pass_fds=[its.fileno()],
            stdin=subprocess.DEVNULL,
            # Nothing but the address of the service goes to stdout.
            stdout=2,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    return Spawned(process, ours)
