"""The door: compiles subscriptions from SQL to points (`PointBatch`), or refuses them with a reason and changes no state."""

from __future__ import annotations

import gc
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import pyarrow as pa

from tidings.families.protocols import Family
from tidings.families.registry import classify, family_of, spec_of
from tidings.model.catalog import Catalog
from tidings.model.change import SEQ_MAX
from tidings.model.channel import channel_columns
from tidings.model.errors import RecordError, TidingsError
from tidings.model.points import Event, Placement, PointBatch
from tidings.model.quarantine import Quarantined, raw_text
from tidings.sql.compiler import Compiler, Statement
from tidings.sql.shape import Shape

ID_CHARACTERS_MAX = 1_000
ID_BYTES_MAX = 1 << 20
"""Bytes of a subscription's id in all its points: each point has it."""
_FAMILIES_MAX = 4_096
"""So many shapes are known with the family that serves them; with more, all are forgotten and found again."""
_LATEST_MIN = 1_024
_FIELDS = 8
_OBJECTS_PER_COLLECTION = 100_000
_LIVE_BYTES, _ENTRY_BYTES = 600, 200
"""Approximate bytes of a living subscription, and of an entry of a small dictionary."""


Id = Annotated[str, msgspec.Meta(min_length=1, max_length=ID_CHARACTERS_MAX)]
"""Of a subscription."""
After = Annotated[int, msgspec.Meta(ge=0, le=SEQ_MAX)]
"""The seq after which an event happens."""


class _Record(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    id: Id
    sql: str | None = None
    after: After = 0
    drop: bool = False
    option: Literal["net"] | None = None
    place: str | None = None
    """For live jobs with gateways; elsewhere of no effect."""


class Door:
    """Compiles and registers subscriptions. Refuses an id that is in use. `len()` is the number of living subscriptions.

    Of ids that are dropped nothing is kept once `forget` says that their time has passed. Templates and families of shapes are
    caches of limited size.
    """

    def __init__(self, catalog: Catalog, *, keeps_queries: bool = False) -> None:
        """keeps_queries: keep family, compiled statement and form of each creation in `queries`, unless one has an option."""
        self._catalog = catalog
        self.queries: dict[int, tuple[Family, Statement, str]] | None = {} if keeps_queries else None
        """`PointBatch.order` of a creation -> its family, statement and form; None unless asked for."""
        self._compiler = Compiler(catalog)
        self._families: dict[Shape, Family] = {}
        self._live: dict[str, Placement] = {}
        self._latest: dict[str, int] = {}
        """Id -> moment of its latest event, where that is after `_passed`, and some others."""
        self._latest_max = _LATEST_MIN
        self._passed = 0
        self._gathered: dict[str, list[Any]] = {}
        """Form -> flat list with _FIELDS entries per row: a tuple per row would cost allocation and garbage collection."""
        self._order = 0

    def __len__(self) -> int:
        return len(self._live)

    def read(self, lines: Iterable[bytes], on_progress: Callable[[int], None] | None = None) -> list[Quarantined]:
        """Handles all lines of a `subscriptions.jsonl`, sorted by `after`. Returns the refused lines, sorted by position.

        on_progress: called now and then with the number of lines handled so far.
        """
        with rare_collections():
            return self._read(lines, on_progress)

    def _read(self, lines: Iterable[bytes], on_progress: Callable[[int], None] | None) -> list[Quarantined]:
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
        """Registers a subscription whose snapshot is taken after sequence number `after`. Returns its placement.

        is_net: the subscriber wants only the net effect of each micro-batch. Raises RecordError or SqlError, and registers
        nothing, if the id is taken or no family serves the query.
        """
        if id in self._live:
            raise RecordError(f"subscription id {id!r} is taken; drop it first or choose another")
        family, statement = self._compile(sql)
        placement = self._place(family, statement, is_net=is_net)
        _check_id(id, placement)
        if is_net:
            self.queries = None
        if self.queries is not None:
            self.queries[self._order] = (family, statement, placement.form)
        self._live[id] = placement
        self.gather(Event.CREATE, id, after, placement)
        return placement

    def drop(self, id: str, after: int) -> None:
        placement = self._live.pop(id, None)
        if placement is None:
            raise RecordError(f"there is no subscription {id!r} to drop")
        self.gather(Event.DROP, id, after, placement)

    def place(self, sql: str, *, is_net: bool = False, id: str = "") -> Placement:
        """The placement (form and points) that `create` would give to a subscription `id`. Registers nothing."""
        placement = self._place(*self._compile(sql), is_net=is_net)
        _check_id(id, placement)
        return placement

    def forget(self, passed: int) -> None:
        """Says that all events up to seq `passed` have happened, and that whoever takes later ones lets none happen before.

        Then ids without a later event are forgotten: not at once, but when there are as many as all others.
        """
        if passed > self._passed:
            self._passed = passed
        if len(self._latest) > self._latest_max:
            self._latest = {id: after for id, after in self._latest.items() if after > self._passed}
            self._latest_max = 2 * len(self._latest) + _LATEST_MIN

    @property
    def nbytes(self) -> int:
        """Approximate bytes of templates, living subscriptions and ids. Takes no time per subscription."""
        entries = _LIVE_BYTES * len(self._live) + _ENTRY_BYTES * (len(self._latest) + len(self._families))
        return self._compiler.nbytes + entries

    def _compile(self, sql: str) -> tuple[Family, Statement]:
        statement = self._compiler.compile(sql)
        family = self._families.get(statement.shape)
        if family is None:
            if len(self._families) >= _FAMILIES_MAX:
                self._families.clear()
            family = self._families[statement.shape] = classify(statement, self._catalog)
        return family, statement

    def _place(self, family: Family, statement: Statement, *, is_net: bool) -> Placement:
        placement = family.place(statement.shape, statement.constants, self._catalog)
        return _net(placement) if is_net else placement

    def take(self) -> list[PointBatch]:
        """Returns the events since the last call, one batch per form, and forgets them."""
        if not self._gathered:
            return []
        gathered, self._gathered = self._gathered, {}
        return [self._batch(form, entries) for form, entries in gathered.items()]

    def nowhere(self, form: str) -> Placement:
        """A placement in a form that is on no channel: for drops."""
        return Placement(form, (), (0,) * spec_of(form, self._catalog).space.dims)

    def gather(self, event: Event, id: str, after: int, placement: Placement) -> None:
        """Adds an event to those that `take` gives, whoever keeps the subscriptions."""
        # Events of one id keep their order of arrival: an event's `after` is raised to that of the id's previous event.
        latest = self._latest.get(id, 0)
        if after <= latest:
            after = latest
        elif after > self._passed:
            self._latest[id] = after
        is_home = True
        others = placement[4]
        for form, channels, coords, details, _ in (placement, *others) if others else (placement,):
            gathered = self._gathered.get(form)
            if gathered is None:
                gathered = self._gathered[form] = []
            for channel in channels or (None,):
                gathered += (event, after, self._order, id, channel, coords, is_home, details)
                is_home, details = False, b""
        self._order += 1

    def _batch(self, form_key: str, gathered: list[Any]) -> PointBatch:
        space = spec_of(form_key, self._catalog).space
        types = space.channel_types
        event, after, order, id, channel, coords, home, details = (gathered[i::_FIELDS] for i in range(_FIELDS))
        # A placement without channels (a contradictory IN) gets a channel of nulls, which no message matches.
        nowhere: Any = (None,) * len(types)
        return PointBatch(
            form_key,
            np.array(event, np.int8),
            np.array(after, np.int64),
            np.array(order, np.int64),
            pa.array(id, pa.string()),
            tuple(channel_columns(types, [nowhere if key is None else key for key in channel])),
            np.fromiter(chain.from_iterable(coords), np.int64).reshape(len(id), space.dims),
            np.array(home, np.bool_),
            pa.array(details, pa.binary()),
        )


def _check_id(id: str, placement: Placement) -> None:
    if len(placement[1]) < 2 and not placement[4]:
        return
    points = sum(len(one.channels) for one in (placement, *placement.others))
    if points * len(id.encode()) > ID_BYTES_MAX:
        raise RecordError(
            f"the id of a subscription with {points:,} points has {len(id.encode()):,} bytes; "
            "choose a shorter one, or give IN fewer values"
        )


def _net(placement: Placement) -> Placement:
    return placement._replace(form=replace(family_of(placement.form)[1], is_net=True).key)


@contextmanager
def rare_collections() -> Iterator[None]:
    """Context in which Python collects cyclic garbage less often, since nearly all objects made at the door live on.

    Collection is not switched off: refused statements leave some garbage.
    """
    first, *others = gc.get_threshold()
    gc.set_threshold(first and max(first, _OBJECTS_PER_COLLECTION), *others)
    try:
        yield
    finally:
        gc.set_threshold(first, *others)


def _refusal(position: int, after: int | None, reason: str, line: bytes) -> Quarantined:
    return Quarantined("subscriptions", position, after, reason, raw_text(line))


def lives(catalog: Catalog, lines: Iterable[bytes], id: str) -> Iterator[tuple[str, int, int | None]]:
    """(SQL, created after, dropped after or None) of every life of subscription `id` in the lines of a subscription file."""
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
