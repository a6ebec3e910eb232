"""Sources of changes and of subscription events: files, PostgreSQL and NATS, one a file or folder. No Spark.

A source is a sequence of records between offsets. Whoever reads it keeps offsets: what lies between two of them is the same
whenever it is read again, until the later one is committed. Each module has `check`, which raises UsageError for what can be
found wrong before anything begins and changes nothing, and `open_source`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from tidings.endpoint import Endpoint
from tidings.model.errors import UsageError

FORMATS = ("files", "nats", "postgres")

Offset = dict[str, Any]
"""A place between records, as a value of JSON."""


class Record(NamedTuple):
    """A record, or lines of records. place: in its partition, as `pipeline.stream_lines` has it. time: in microseconds."""

    partition: str
    place: bytes
    time: int
    value: bytes


class Source(Protocol):
    def first(self) -> Offset:
        """Where a new reader begins."""
        ...

    def latest(self, start: Offset) -> Offset:
        """How far a micro-batch from `start` on goes, in whole transactions; `start` if there is nothing."""
        ...

    def stop_at_present(self) -> None:
        """Lets the source end with what is there now."""
        ...

    def records(self, start: Offset, end: Offset) -> Iterator[Record]: ...

    def commit(self, end: Offset) -> None:
        """Gives up what is before `end`: it will not be asked for again."""
        ...

    def close(self) -> None: ...


def check(source: Endpoint, start: str = "") -> None:
    """UsageError for what is wrong with a source. start: as in `open_source`."""
    _module(source).check(source, start)


def begun(source: Endpoint, start: str = "") -> AbstractContextManager[object]:
    """Makes what a checked source needs on its server. It is removed again if the context ends with an error."""
    if source.format != "postgres":
        return nullcontext()
    from tidings.sources import postgres

    return postgres.begun(source, start)


def open_source(source: Endpoint, start: str = "") -> Source:
    """A source that was checked. start: where a new reader begins: earliest, latest or a position of the source; empty: as
    the source does by default.
    """
    found: Source = _module(source).open_source(source, start)
    return found


def _module(source: Endpoint) -> Any:
    if source.format not in FORMATS:
        raise UsageError(f"there is no source {source.format!r} without Spark: {', '.join(FORMATS)}, or --engine spark")
    return import_module(f"{__name__}.{source.format}")
