"""PostgreSQL as a source: a snapshot of the tables, then every committed change, by logical replication.

    settings -> begin (publication, slot, snapshot) -> ChangeStream

Nothing is installed on the server; a slot keeps its log until a micro-batch is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager

from tidings.endpoint import Endpoint
from tidings.model.change import micros_of
from tidings.pipeline.stream_lines import place_of
from tidings.sources import Offset, Record
from tidings.sources.postgres import reader
from tidings.sources.postgres.position import Position
from tidings.sources.postgres.reader import ChangeStream
from tidings.sources.postgres.server import driver
from tidings.sources.postgres.settings import Settings


def check(source: Endpoint, start: str = "") -> None:
    """UsageError if something is wrong with the options or the server."""
    driver()
    reader.check(Settings.of(options_of(source, start)))


def begun(source: Endpoint, start: str = "") -> AbstractContextManager[object]:
    """Makes publication, slot and snapshot of a new run. They are removed if the context ends with an error."""
    return reader.begun(Settings.of(options_of(source, start)))


def open_source(source: Endpoint, start: str = "") -> PostgresSource:
    return PostgresSource(Settings.of(options_of(source, start)))


def options_of(source: Endpoint, start: str) -> dict[str, str]:
    """The options for `Settings`. The path of an endpoint is a connection string."""
    path = source.required_path("connection")
    options = {**source.options, "dsn": f"postgresql:{path}" if path.startswith("//") else path}
    return {**options, "start": start} if start else options


class PostgresSource:
    """A stream of changes, as a `Source`: its one partition is the slot."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stream = ChangeStream(settings)

    def first(self) -> Offset:
        return self._stream.first().as_json()

    def latest(self, start: Offset) -> Offset:
        return self._stream.latest(Position.of(start), self._settings.max_rows).as_json()

    def stop_at_present(self) -> None:
        self._stream.stop_at_present()

    def records(self, start: Offset, end: Offset) -> Iterator[Record]:
        for part in self._stream.parts(Position.of(start), Position.of(end)):
            for row in self._stream.rows(part):
                yield Record(
                    self._settings.slot, place_of(row.lsn, row.number), micros_of(row.time), row.value.encode()
                )

    def commit(self, end: Offset) -> None:
        self._stream.commit(Position.of(end))

    def close(self) -> None:
        self._stream.close()
