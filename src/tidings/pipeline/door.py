"""The door: subscriptions come in as SQL and leave as points, or are refused with a reason and leave no trace."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Literal

import msgspec
import numpy as np
import pyarrow as pa

from tidings.families.base import Family
from tidings.families.registry import classify, family_of
from tidings.model.catalog import Catalog
from tidings.model.change import SEQ_MAX
from tidings.model.channel import ChannelKey, channel_columns
from tidings.model.errors import RecordError, TidingsError
from tidings.model.points import Event, Placement, PointBatch
from tidings.model.quarantine import Quarantined, raw_text
from tidings.sql.compiler import Compiler
from tidings.sql.shape import Shape

ID_CHARACTERS_MAX = 1_000


class _Record(msgspec.Struct, forbid_unknown_fields=True):
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=ID_CHARACTERS_MAX)]
    sql: str | None = None
    after: Annotated[int, msgspec.Meta(ge=0, le=SEQ_MAX)] = 0
    drop: bool = False
    option: Literal["net"] | None = None


@dataclass
class _Columns:
    """Events of one form, gathered before they become a batch."""

    event: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    id: list[str] = field(default_factory=list)
    channel: list[ChannelKey] = field(default_factory=list)
    coords: list[tuple[int, ...]] = field(default_factory=list)
    home: list[bool] = field(default_factory=list)
    details: list[bytes] = field(default_factory=list)


class Door:
    """Compiles and registers subscriptions; knows which ids are taken."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._compiler = Compiler(catalog)
        self._families: dict[Shape, Family] = {}
        self._live: dict[str, Placement] = {}
        self._latest: dict[str, int] = {}
        self._gathered: dict[str, _Columns] = {}
        self._order = 0

    def __len__(self) -> int:
        return len(self._live)

    def read(self, lines: Iterable[bytes], on_progress: Callable[[int], None] | None = None) -> list[Quarantined]:
        """Takes all lines of a `subscriptions.jsonl`, in order of `after`; gives those refused."""
        decoder = msgspec.json.Decoder(_Record)
        refused: list[Quarantined] = []
        records: list[tuple[int, int, _Record, bytes]] = []
        for position, line in enumerate(lines):
            if position == 0:
                line = line.removeprefix(BOM_UTF8)
            if not line or line.isspace():
                continue
            try:
                record = decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                refused.append(_refusal(position, None, f"not a usable subscription: {error}", line))
                continue
            records.append((record.after, position, record, line))
        records.sort(key=lambda entry: entry[0])
        for done, (after, position, record, line) in enumerate(records):
            try:
                self._handle(record)
            except TidingsError as error:
                refused.append(_refusal(position, after, str(error), line))
            if on_progress is not None and done % 10_000 == 0:
                on_progress(done)
        return sorted(refused, key=lambda entry: entry.position)

    def _handle(self, record: _Record) -> None:
        if record.drop:
            if record.sql is not None or record.option is not None:
                raise RecordError("a drop carries no 'sql' and no 'option'")
            self.drop(record.id, record.after)
        elif record.sql is None:
            raise RecordError("neither 'sql' nor 'drop': true")
        else:
            self.create(record.id, record.sql, record.after, is_net=record.option == "net")

    def create(self, id: str, sql: str, after: int, *, is_net: bool = False) -> Placement:
        """Registers a subscription that exists after the sequence number."""
        if id in self._live:
            raise RecordError(f"subscription id {id!r} is taken; drop it first or choose another")
        placement = self.place(sql, is_net=is_net)
        self._live[id] = placement
        self._gather(Event.CREATE, id, after, placement)
        return placement

    def drop(self, id: str, after: int) -> None:
        placement = self._live.pop(id, None)
        if placement is None:
            raise RecordError(f"there is no subscription {id!r} to drop")
        self._gather(Event.DROP, id, after, placement)

    def place(self, sql: str, *, is_net: bool = False) -> Placement:
        """Form and points of a query, without registering anything."""
        statement = self._compiler.compile(sql)
        family = self._families.get(statement.shape)
        if family is None:
            family = self._families[statement.shape] = classify(statement, self._catalog)
        placement = family.place(statement.shape, statement.constants, self._catalog)
        return _net(family, placement) if is_net else placement

    def take(self) -> list[PointBatch]:
        """The events gathered since the last call, one batch per form."""
        gathered, self._gathered = self._gathered, {}
        return [self._batch(form, columns) for form, columns in gathered.items()]

    def _gather(self, event: Event, id: str, after: int, placement: Placement) -> None:
        # Events of one id happen in the order they came in: none before the one before it.
        after = max(after, self._latest.get(id, 0))
        if after:
            self._latest[id] = after
        columns = self._gathered.setdefault(placement.form, _Columns())
        channels = placement.channels or (None,)
        for i, channel in enumerate(channels):
            columns.event.append(event)
            columns.after.append(after)
            columns.order.append(self._order)
            columns.id.append(id)
            columns.channel.append(channel)  # type: ignore[arg-type]
            columns.coords.append(placement.coords)
            columns.home.append(i == 0)
            columns.details.append(placement.details)
        self._order += 1

    def _batch(self, form_key: str, columns: _Columns) -> PointBatch:
        family, form = family_of(form_key)
        types = family.channel_types(form, self._catalog)
        # No channel at all (a contradictory IN): nulls, which no message ever matches.
        keys = [channel if channel is not None else (None,) * len(types) for channel in columns.channel]
        dims = family.dims(form)
        return PointBatch(
            form_key,
            np.array(columns.event, np.int8),
            np.array(columns.after, np.int64),
            np.array(columns.order, np.int64),
            pa.array(columns.id, pa.string()),
            tuple(channel_columns(types, keys)),
            np.array(columns.coords, np.int64).reshape(len(columns.id), dims),
            np.array(columns.home, np.bool_),
            pa.array(columns.details, pa.binary()),
        )


def _net(family: Family, placement: Placement) -> Placement:
    form = family.net(family_of(placement.form)[1])
    if form is None:
        raise RecordError("option 'net' is for ORDER BY .. LIMIT with at most one range, not for this query")
    return placement._replace(form=form.key)


def _refusal(position: int, after: int | None, reason: str, line: bytes) -> Quarantined:
    return Quarantined("subscriptions", position, after, reason, raw_text(line))


def lives(catalog: Catalog, lines: Iterable[bytes], id: str) -> Iterator[tuple[str, int, int | None]]:
    """(SQL, created after, dropped after or None) of every life of one subscription among the lines of a file."""
    door, decoder = Door(catalog), msgspec.json.Decoder(_Record)
    records = []
    for position, line in enumerate(lines):
        try:
            record = decoder.decode(line if position else line.removeprefix(BOM_UTF8))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        if record.id == id:
            records.append(record)
    life: tuple[str, int] | None = None
    for record in sorted(records, key=lambda record: record.after):
        try:
            door._handle(record)
        except TidingsError:
            continue
        if life is not None:
            yield *life, record.after
        life = None if record.sql is None else (record.sql, record.after)
    if life is not None:
        yield *life, None
