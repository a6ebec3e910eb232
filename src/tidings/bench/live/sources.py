"""What the live bench asks of a source of changes, and the sources there are."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from tidings.bench.live.workload import Row
from tidings.model.errors import UsageError

_SOURCES: dict[str, tuple[str, dict[str, int]]] = {
    "kafka": ("kafka", {}),
    "kafka-4": ("kafka", {"partitions": 4}),
    "nats": ("nats", {}),
    "postgres": ("postgres", {}),
}
"""Name of a source -> its module, and what `opened` is called with."""


class Written(NamedTuple):
    """A record as it came into the source, in the source's order, and when."""

    line: bytes
    time: dt.datetime


class LiveSource(Protocol):
    """A service that is started for the bench, is written to, and knows in the end what is right."""

    @property
    def is_ordered(self) -> bool:
        """Whether `written` has records in the order in which the job numbers them."""
        ...

    def options(self) -> list[str]:
        """Words of `tidings run` that name the source."""
        ...

    def load(self, tables: dict[str, list[Row]]) -> None:
        """Makes the tables with their first rows, before the job starts."""
        ...

    def write(self, seed: int, rate: float, statements: int, is_over: threading.Event) -> int:
        """Writes so many changes a second until it is over, in transactions of so many at most; gives how many there were.

        Called in a thread of its own.
        """
        ...

    def written(self) -> list[Written]:
        """All records that the job must have taken in, first rows included, as a replay takes them but for their seq."""
        ...

    def answers(self, queries: Iterable[str]) -> Iterable[list[tuple[Any, ...]]]:
        """The rows of queries over the tables as they are in the end."""
        ...


def open_source(name: str) -> AbstractContextManager[LiveSource]:
    """Starts the service; it is stopped when the context ends."""
    if name not in _SOURCES:
        raise UsageError(f"unknown source {name!r} of the live bench; there are: {', '.join(_SOURCES)}")
    module, options = _SOURCES[name]
    opened: Callable[..., AbstractContextManager[LiveSource]] = import_module(f"tidings.bench.live.{module}").opened
    return opened(**options)
