"""A sender with region servers: changes become messages, and rows go where the region of a message meets points.

Which subscriptions are told is found out where they are. Those that have no region server (OR, IS NULL, option `net`, and the
like) are evaluated at the centre, as by the product's senders. The product's sender `regions` is the same idea for families
whose regions need neither other rows nor points.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from research.servers.changes import known_rows
from research.servers.forms import PLACED_TAGS, gathered, has_server, spec_of
from research.servers.host import Host, Sent
from research.servers.message import MessageBatch, SnapshotBatch
from research.servers.router import Router
from research.servers.table_rows import rows_at
from research.strategies.join.payload import ALL_SIDES, SIDE
from tidings.families.registry import family_of
from tidings.kernels.events import CHANGE, Events, Told
from tidings.kernels.rows import I64, NONE
from tidings.model.catalog import Catalog, Table
from tidings.model.change import SEQ_MAX, TableChanges
from tidings.model.points import PointBatch
from tidings.pipeline.edge.holders import Entered
from tidings.pipeline.edge.sender import Sender
from tidings.pipeline.replica.batch import Batch
from tidings.pipeline.table_changes import changes_at, changes_of

Key = tuple[Any, ...]
_AXES_MAX = 24
"""Columns of a table that an index of points can tell apart."""
_Need = tuple[int, int, I64]
"""Event, version, places."""


class MessageSender(Sender):
    """Rows at the centre, region servers, and a router from regions to places."""

    def __init__(
        self,
        catalog: Catalog,
        places: int,
        place_of: Callable[[str], int],
        strategies: Mapping[str, str] | None = None,
        *,
        by_commit: bool = True,
    ) -> None:
        """strategies: family -> name of a strategy that makes messages; those that are not named have their first one."""
        super().__init__(catalog, places, place_of, by_commit=by_commit)
        self._catalog = catalog
        self._host = Host(catalog, strategies or {})
        self._router = Router(catalog, place_of, self.holders.words)
        self._moved: list[PointBatch] = []
        self._decisions: dict[str, Any] = {}
        self.messages: Counter[str] = Counter()
        """Messages so far, by family."""
        self._bytes: Counter[str] = Counter()
        self.on_messages: Callable[[MessageBatch], object] = _ignore
        """Called with what region servers send."""
        self.on_points: Callable[[PointBatch], object] = _ignore
        """Called with creations and drops of the subscriptions they serve, with the coordinates they have given them."""

    def traffic(self) -> tuple[Counter[str], Counter[str]]:
        messages, sizes = super().traffic()
        return Counter({**messages, **self.messages}), Counter({**sizes, **self._bytes})

    def evaluates(self, form_key: str) -> bool:
        return not is_routed(form_key, self._catalog)

    def moved(self, points: PointBatch, slots: I64) -> None:
        super().moved(points, slots)
        if not self.evaluates(points.form):
            self._moved.append(points)

    def _entered(self, batch: Batch, told: Sequence[tuple[str, Told]]) -> list[Entered]:
        found = self._evaluated(told)
        assert batch.events is not None
        needs = list(self._needs(batch.events))
        if needs:
            event, version, places = zip(*needs, strict=True)
            found.append((np.array(event, np.int64), np.array(version, np.int64), np.array(places, np.int64)))
        return found

    def _needs(self, events: Events) -> Iterator[_Need]:
        """The rows that places need, by what region servers send."""
        moved, self._moved = self._moved, []
        moments = PointBatch.by_moment(points.in_order() for points in gathered(moved, self._catalog))
        changes, past = self._changes(events), _Past(self, events)
        for table, batch in changes.items():
            past.enter(self._catalog.table(table), batch)
        given = dict.fromkeys(changes, 0)
        for moment, due in [*moments, (SEQ_MAX, [])]:
            stretch = []
            for table, batch in changes.items():
                stop = int(np.searchsorted(batch.seq, moment, "right"))
                if stop > given[table]:
                    stretch.append(batch.slice(given[table], stop))
                    given[table] = stop
            if stretch:
                yield from self._change(stretch, past)
            # The first event of the moment that is no change: all of it see the same rows.
            first = int(np.searchsorted(events.seq, moment))
            while first < len(events.seq) and events.kind[first] == CHANGE and events.seq[first] == moment:
                first += 1
            for points in due:
                yield from self._release(points, first, past)
        self._host.settle()
        if changes:
            self._decisions = self._host.decide()

    def _changes(self, events: Events) -> dict[str, TableChanges]:
        """The changes of each table that has some, with both images."""
        own = events.table[events.kind == CHANGE]
        tables = [self._catalog.tables[number] for number in np.unique(own).tolist()]
        return {table.name: changes_of(self.replica.store, table, events) for table in tables}

    def _change(self, stretch: Sequence[TableChanges], past: _Past) -> Iterator[_Need]:
        messages = list(self._host.change_many(stretch, is_wanted=True))
        if self._decisions:
            messages += self._host.follow(self._decisions, max(int(changes.seq[-1]) for changes in stretch))
            self._decisions = {}
        for batch in messages:
            self.on_messages(batch)
            family = family_of(batch.form)[0].name
            self.messages[family] += len(batch)
            self._bytes[family] += batch.payload.nbytes
            yield from self._addressed(batch, past)

    def _addressed(self, messages: MessageBatch, past: _Past) -> Iterator[_Need]:
        family, form = family_of(messages.form)
        places = self._router.places(messages, PLACED_TAGS.get(family.name, 1))
        reached = np.flatnonzero(places.any(axis=1))
        if not len(reached):
            return
        payload = messages.payload.take(pa.array(reached))
        if SIDE in payload.schema.names:
            for table, key, row in _row_keys(payload, messages.form, self._catalog):
                for event, version in past.at(table, key, int(messages.seq[reached[row]])):
                    yield event, version, places[reached[row]]
            return
        # A message of a shared semijoin has rows of one of its tables, which its form names.
        table = self._catalog.table(form.variant if len(form.shape.tables) > 1 else form.shape.tables[0])
        keys = _keys(payload, table, "")
        for i, seq in zip(reached.tolist(), messages.seq[reached].tolist(), strict=True):
            own = past.changed_at(table, seq) if keys is None else past.at(table, next(keys), seq)
            for event, version in own:
                yield event, version, places[i]

    def _release(self, points: PointBatch, event: int, past: _Past) -> Iterator[_Need]:
        """event: number of the first creation or drop of the moment."""
        names = spec_of(points.form, self._catalog).tables
        tables: Any = {name: rows_at(self.replica.store, self._catalog.table(name), event) for name in names}
        sent = Sent()
        placed = self._host.release(points, tables, sent)
        moved = self._host.moved(points.form)
        for each in [placed] if moved is None else [placed, moved]:
            self.on_points(each)
            self._router.move(each)
        for batch in sent.snapshots:
            yield from self._first_rows(batch, event, past)

    def _first_rows(self, batch: SnapshotBatch, event: int, past: _Past) -> Iterator[_Need]:
        targets = [self._place_of(id) for id in batch.target.to_pylist()]
        for table, key, row in _row_keys(batch.payload, batch.form, self._catalog):
            mask = np.zeros(self.holders.words, np.int64)
            mask[targets[row] >> 6] = np.int64(1) << np.int64(targets[row] & 63)
            version = past.version(table, key, int(batch.seq[row]))
            assert version != NONE, "a snapshot has a row that is not there"
            yield event, version, mask


def _ignore(_: object) -> None:
    pass


class _Past:
    """Versions of rows as of a seq of the micro-batch."""

    def __init__(self, sender: MessageSender, events: Events) -> None:
        self._store = sender.replica.store
        self._events = events
        self._changes: dict[tuple[str, Key], list[int]] = {}
        """Table and key -> events that change the row, in order."""
        self._by_seq: dict[tuple[str, int], list[int]] = {}

    def enter(self, table: Table, changes: TableChanges) -> None:
        """Takes all changes of a table."""
        known = known_rows(changes, list(table.key))
        at = changes_at(self._store, table, self._events).tolist()
        for key, event, seq in zip(_tuples(known, table.key), at, changes.seq.tolist(), strict=True):
            self._changes.setdefault((table.name, key), []).append(event)
            self._by_seq.setdefault((table.name, seq), []).append(event)

    def version(self, table: Table, key: Key, seq: int) -> int:
        """The version of a row just after a seq; NONE if there is no such row then."""
        changes = self._changes.get((table.name, key))
        if changes is None:
            return self._store.current_with(table, key)
        before = [event for event in changes if self._events.seq[event] <= seq]
        return int(self._events.new[before[-1]] if before else self._events.old[changes[0]])

    def at(self, table: Table, key: Key, seq: int) -> Iterator[tuple[int, int]]:
        version = self.version(table, key, seq)
        if version != NONE:
            yield int(np.searchsorted(self._events.seq, seq)), version

    def changed_at(self, table: Table, seq: int) -> Iterator[tuple[int, int]]:
        """The rows of a table that a seq has changed: more than one, if it is that of a commit."""
        for event in self._by_seq.get((table.name, seq), ()):
            if self._events.new[event] != NONE:
                yield event, int(self._events.new[event])


@lru_cache(maxsize=4096)
def is_routed(form_key: str, catalog: Catalog) -> bool:
    """Whether region servers serve a form."""
    tables = spec_of(form_key, catalog).tables
    return has_server(form_key) and all(len(catalog.table(name).axes) <= _AXES_MAX for name in tables)


def _tuples(rows: pa.RecordBatch, names: Sequence[str]) -> Iterator[Key]:
    return zip(*(rows.column(name).to_pylist() for name in names), strict=True)


def _keys(rows: pa.RecordBatch, table: Table, prefix: str) -> Iterator[Key] | None:
    """Primary keys of rows whose columns have names with a prefix; None if they are not there."""
    names = [prefix + name for name in table.key]
    return _tuples(rows, names) if set(names) <= set(rows.schema.names) else None


def _row_keys(payload: pa.RecordBatch, form_key: str, catalog: Catalog) -> Iterator[tuple[Table, Key, int]]:
    """(table, primary key, number in the payload) of each row that snapshots or messages have, or that joined rows are of."""
    tables = [catalog.table(name) for name in spec_of(form_key, catalog).tables]
    if SIDE in payload.schema.names:
        every = [list(_keys(payload, table, f"{number}.") or ()) for number, table in enumerate(tables)]
        for row, side in enumerate(payload.column(SIDE).to_pylist()):
            for number in range(len(tables)) if side == ALL_SIDES else (side,):
                yield tables[number], every[number][row], row
        return
    keys = _keys(payload, tables[0], "key.") or _keys(payload, tables[0], "")
    assert keys is not None
    for row, key in enumerate(keys):
        yield tables[0], key, row
