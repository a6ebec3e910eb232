"""What Ctrl-C and SIGTERM do to a command: they end it at once, or, where work has begun, when that is finished."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """A signal has ended the work."""


class Stop:
    """Within its `with` a signal raises `Interrupted`, which ends the process; after `finish_first` only the second one does.

    asked: set by the first signal. code: exit code of the first signal; None, and of the second one: 128 + its number.
    """

    def __init__(self, code: int | None = None) -> None:
        self.asked = threading.Event()
        self._code = code
        self._last = signal.SIGINT
        self._finishes = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Stop:
        self._before = {number: signal.signal(number, self._take) for number in _NUMBERS}
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        # Not `Interrupted` alone: while a session of Spark is made, PySpark's own handler stands in for a moment.
        if isinstance(error, KeyboardInterrupt):
            raise SystemExit(128 + self._last if self._finishes or self._code is None else self._code) from None

    def finish_first(self) -> None:
        """From now on the first signal only sets `asked`: what has begun is to be finished."""
        self._finishes = True

    def _take(self, number: int, frame: FrameType | None) -> None:
        self._last = signal.Signals(number)
        is_first = not self.asked.is_set()
        self.asked.set()
        if not (self._finishes and is_first):
            raise Interrupted
        # Not through sys.stderr, which may be in the middle of a line.
        os.write(2, b"stopping when the micro-batch that has begun is finished; again to stop at once\n")


def aside(work: Callable[[], T]) -> Future[T]:
    """Work in another thread, for which an interrupted process does not wait."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


@contextmanager
def shielding() -> Iterator[None]:
    """Processes that are started meanwhile never get these signals; this one gets them afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _NUMBERS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
