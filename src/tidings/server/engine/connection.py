"""What engine processes of all kinds have in common: the connection to the front, and the lock on the data folder."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from socket import AF_UNIX, SOCK_STREAM, socket
from typing import Any

from tidings.files import only_one
from tidings.model.errors import TidingsError, UsageError
from tidings.server.engine.frames import Broken, Report, Settings, frame, requests
from tidings.server.engine.inbox import Inbox

_LOCK_SECONDS = 10.0
"""So long an engine waits for the one before it, whose front was killed, to end."""


def main(handle: int, serve: Callable[[Settings, Inbox, Sender], None]) -> int:
    """Serves the front at the other end of a socket. handle: number of the inherited file. serve: the engine's work."""
    # Signals to the group are the front's to handle: it closes the connection when all is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    connection = socket(AF_UNIX, SOCK_STREAM, fileno=handle)
    front = requests(connection)
    settings = next(front, None)
    if not isinstance(settings, Settings):
        return 1
    send = Sender(connection)
    inbox = Inbox()

    def receive() -> None:
        for request in front:
            assert not isinstance(request, Settings)
            inbox.put(request)
        inbox.close()

    threading.Thread(target=receive, daemon=True).start()
    try:
        with _locked(Path(settings.data)):
            serve(settings, inbox, send)
    except TidingsError as error:
        send(Broken(str(error), isinstance(error, UsageError)))
        return 2 if isinstance(error, UsageError) else 1
    except Exception as error:
        send(Broken(f"{type(error).__name__}: {error}", False))
        raise
    return 0


class Sender:
    """Reports to the front, from any thread."""

    def __init__(self, connection: socket) -> None:
        self._connection = connection
        self._lock = threading.Lock()

    def __call__(self, report: Report) -> None:
        try:
            with self._lock:
                self._connection.sendall(frame(report))
        except OSError:
            # The front is gone. What was being done is finished: the inbox says that it is closed.
            return


def _locked(data: Path) -> Any:
    until = time.monotonic() + _LOCK_SECONDS
    while True:
        lock = only_one(data / "engine-process")
        try:
            lock.__enter__()
            break
        except UsageError:
            if time.monotonic() > until:
                raise UsageError(f"the data folder {data} is in use by another service") from None
            time.sleep(0.05)
    return _Held(lock)


class _Held:
    """A lock that was taken already."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        self._lock.__exit__(None, None, None)
