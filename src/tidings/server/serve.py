"""Runs the service: sockets, signals and the order in which things begin and end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import uvicorn

from tidings.files import write_text
from tidings.model.errors import UsageError
from tidings.server.api.app import App
from tidings.server.engine.spawn import Spawned
from tidings.server.front import Front, ServiceOptions
from tidings.server.protocol import config
from tidings.terminal import say

_DRAIN_SECONDS = 3
_SEND_BYTES = 1 << 16


def listen(host: str, port: int) -> socket.socket:
    """A socket. UsageError if the address cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections inherit it. By itself the system keeps megabytes for each client that does not read, and lets us write them.
    found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BYTES)
    try:
        found.bind((host, port))
    except OSError as error:
        found.close()
        raise UsageError(f"cannot listen at {host}:{port}: {error.strerror}") from None
    found.setblocking(False)
    return found


def serve(options: ServiceOptions, bound: socket.socket, ready_file: Path | None, spawned: Spawned) -> None:
    """Serves until SIGTERM or SIGINT. spawned: the engine process."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(options, bound, ready_file, spawned))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _serve(options: ServiceOptions, bound: socket.socket, ready_file: Path | None, spawned: Spawned) -> None:
    front = Front(options, spawned)
    server = uvicorn.Server(uvicorn.Config(App(front), **config(timeout_graceful_shutdown=_DRAIN_SECONDS)))
    server.config.load()
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, asked.set)
    starting = asyncio.ensure_future(front.start())
    serving = asyncio.ensure_future(server._serve([bound]))
    stopping = asyncio.ensure_future(asked.wait())
    try:
        await asyncio.wait([starting, stopping, serving], return_when=asyncio.FIRST_COMPLETED)
        if starting.done() and not stopping.done():
            starting.result()
            host, port = bound.getsockname()[:2]
            url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
            sys.stdout.write(f"serving {url}\n")
            sys.stdout.flush()
            if ready_file is not None:
                ready = {"url": url, "pid": os.getpid(), "engine_pid": front.link.pid, "epoch": front.hub.log.epoch}
                write_text(ready_file, json.dumps(ready))
            await asyncio.wait([stopping, serving], return_when=asyncio.FIRST_COMPLETED)
            say("stopping: streams are ended")
    finally:
        starting.cancel()
        stopping.cancel()
        front.end_streams()
        server.should_exit = True
        await asyncio.wait([serving], timeout=_DRAIN_SECONDS + 2)
        await front.close()
        if ready_file is not None:
            ready_file.unlink(missing_ok=True)
    if serving.done() and not serving.cancelled() and serving.exception() is not None:
        serving.result()
