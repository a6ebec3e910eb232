"""The plain engine: every query is asked again at each change of its tables, by its family's reference, in Python.

For replays so small that loading compiled code, or even compiling it, would take longer than all the rest. Its output is that
of `tidings.engine.Engine`, byte for byte. Where answers can be found row by row, the query is asked about the changed row
only; else its whole answer is computed again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field, replace
from json.encoder import encode_basestring
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.families.optional import HoldingReference, PlacedReference, RowReference
from tidings.families.protocols import Family
from tidings.families.registry import spec_of
from tidings.model.catalog import Catalog, Table
from tidings.model.change import SEQ_MAX, SEQ_NEXT, Op
from tidings.model.codes import plain_key
from tidings.model.notification import (
    BatchResult,
    NotificationBatch,
    change_tail,
    delete_change,
    insert_change,
    net_changes,
    snapshot_tail,
    update_change,
)
from tidings.model.points import Event
from tidings.model.quarantine import Quarantined, contradiction, out_of_order, raw_text
from tidings.model.render import kept_text, value_text
from tidings.model.types import ColumnType
from tidings.pipeline.door import Door
from tidings.pipeline.expiry import TIME, Expiry
from tidings.pipeline.ingest import LOAD_END, TOLD, UNREADABLE, Ingest, Record, tx_of
from tidings.pipeline.recorded import RecordedEngine
from tidings.pipeline.stats import Stats
from tidings.sql.compiler import Statement

Row = dict[str, Any]

_WHOLE_MAX = 50_000
"""Bound of what answers that are computed as a whole may cost: queries times changes (as often as that) times rows."""


def serves(door: Door, changes: int) -> bool:
    """Whether the queries that have come in are soon asked about about so many changes."""
    if door.queries is None:
        return False
    references = [family.reference for family, _, _ in door.queries.values()]
    if not all(isinstance(reference, RowReference | PlacedReference) for reference in references):
        return False
    whole = sum(isinstance(reference, PlacedReference) for reference in references)
    return whole * changes**2 <= _WHOLE_MAX


@dataclass
class _Subscription:
    id: str
    family: Family
    statement: Statement
    types: dict[str, ColumnType]
    """Of the columns shown, by name."""
    held: dict[Any, Any] = field(default_factory=dict)
    """Primary key -> what the family remembers of the row."""
    shown: dict[Any, Row] = field(default_factory=dict)
    """The answer: primary key, or place, -> row."""


class PlainEngine(RecordedEngine):
    """Asks every query again at each change."""

    def __init__(self, catalog: Catalog, door: Door, *, by_commit: bool = True) -> None:
        """by_commit: as in `Engine`."""
        super().__init__(catalog, door)
        self._by_commit = by_commit
        self._ingest = Ingest(catalog)
        self._expiry = Expiry()
        self._tables: dict[str, dict[Any, Row]] = {table.name: {} for table in catalog.tables}
        self._pending: list[tuple[int, int, Event, str]] = []
        """Events of subscriptions that are still to happen: after, order, event, id."""
        self._live: dict[str, _Subscription] = {}
        self._told: dict[tuple[int, str, bool], tuple[str, str | None]] = {}
        """Notifications of this micro-batch by seq, id and whether it is a snapshot."""
        self._is_loading = self._has_begun = False
        """Whether the rows of a first load are not complete; whether there was another record."""
        self._passed = 0
        self._counts = Stats()
        self._changes: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._used: dict[str, set[str]] = {}
        """Family -> tables that its subscriptions read."""

    @property
    def stats(self) -> Stats:
        """Every change of a table is a message to each family that reads it."""
        counts = self._counts
        counts.quarantined = self._refused
        for name, tables in self._used.items():
            counts.messages[name] = sum(self._changes[table] for table in tables)
            counts.message_bytes[name] = sum(self._bytes[table] for table in tables)
        return counts

    def _load(self, records: list[bytes], position: int) -> list[Quarantined]:
        loader, refused = Ingest(self.catalog, needs_seq=False), list[Quarantined]()
        for place, line in enumerate(records, position):
            record = loader.read(line, place, refused)
            reason = None
            if record is not None and record.load != LOAD_END:
                reason = self._apply(self.catalog.table(record.table), record.op, record.values)
            if reason is not None:
                refused.append(Quarantined("changes", place, None, reason, raw_text(line)))
        return [replace(entry, source="load", seq=None) for entry in refused]

    def _flow(self, records: list[bytes], position: int, *, is_end: bool = False) -> BatchResult:
        self._gather()
        refused: list[Quarantined] = []
        commit: list[tuple[int, bytes, Record]] = []
        open_tx: str | None = None
        for place, line in enumerate(records, position):
            record = self._ingest.read(line, place, refused)
            tx = record.tx if record is not None else tx_of(line)
            if not self._by_commit:
                tx = None
            if tx is not UNREADABLE:
                if tx is None or tx != open_tx:
                    self._commit(commit, open_tx, refused)
                    commit = []
                open_tx = tx
            if record is not None and record.load != LOAD_END:
                if record.load == TOLD:
                    if self._is_loading:
                        self._commit(commit, open_tx, refused)
                        commit = []
                        self._end_load()
                    self._has_begun = True
                elif not self._has_begun:
                    self._is_loading = True
                commit.append((place, line, record))
        self._commit(commit, open_tx, refused)
        if is_end:
            self._end_load()
        if not self._is_loading:
            self._happen(SEQ_MAX if is_end else self._passed)
        refused.sort(key=lambda entry: entry.position)
        return self._result(refused)

    def _result(self, refused: list[Quarantined]) -> BatchResult:
        told, self._told = self._told, {}
        keys = sorted(told)
        notifications = NotificationBatch.of(
            np.array([seq for seq, _, _ in keys], np.int64),
            pa.array([id for _, id, _ in keys], pa.string()),
            np.arange(len(keys)),
            [told[key][0] for key in keys],
            np.array([is_snapshot for _, _, is_snapshot in keys], np.bool_),
            [told[key][1] for key in keys],
        )
        return BatchResult(notifications, refused)

    def _gather(self) -> None:
        for points in self.door.take():
            events = zip(
                points.after.tolist(), points.order.tolist(), points.event.tolist(), points.id.to_pylist(), strict=True
            )
            # An event for a moment that is over happens now.
            self._pending += [
                (max(after, self._passed), order, Event(event), id)
                for (after, order, event, id), is_home in zip(events, points.home.tolist(), strict=True)
                if is_home
            ]
        self._pending.sort(key=lambda entry: entry[:2])

    def _happen(self, up_to: int) -> None:
        """Subscriptions come and go after sequence numbers up to this one."""
        count = bisect_right(self._pending, up_to, key=lambda entry: entry[0])
        due, self._pending = self._pending[:count], self._pending[count:]
        # Of several lives that begin at one moment only the last is heard of.
        heard = {(after, id): order for after, order, event, id in due if event is Event.CREATE}
        for after, order, event, id in due:
            if event is Event.DROP:
                self._live.pop(id, None)
                continue
            assert self.door.queries is not None
            family, statement, form = self.door.queries.pop(order)
            if heard[after, id] == order:
                shown = spec_of(form, self.catalog).shown
                types = {name: self.catalog.table(ref.table).column(ref.column).type for ref, name in shown}
                self._create(_Subscription(id, family, statement, types), after)

    def _create(self, created: _Subscription, after: int) -> None:
        """A subscription comes, and gets its snapshot."""
        self._live[created.id] = created
        shape = created.statement.shape
        self._used.setdefault(created.family.name, set()).update(shape.tables)
        if isinstance(created.family.reference, PlacedReference):
            created.shown = self._placed(created)
        else:
            for key, row in self._tables[shape.tables[0]].items():
                self._ask(created, key, row)
        texts = sorted(_text(created, row) for row in created.shown.values())
        self._told[after, created.id, True] = snapshot_tail(after, texts), None
        self._count(created.family)

    def _end_load(self) -> None:
        """Whoever came before the rows of a first load were complete comes now."""
        self._is_loading = False
        moved = [(max(after, self._passed), order, event, id) for after, order, event, id in self._pending]
        self._pending = sorted(moved, key=lambda entry: entry[:2])

    def _commit(self, records: list[tuple[int, bytes, Record]], tx: str | None, refused: list[Quarantined]) -> None:
        """Applies the records (position, line, record) of one commit, and tells what it comes to."""
        before: dict[tuple[str, Any], Row | None] = {}
        """Rows that the commit changes, as they were before it."""
        last: dict[tuple[str, Any], tuple[Any, ...]] = {}
        """Values of the last record about each of them."""
        first = 0
        for position, line, record in records:
            seq = self._passed + 1 if record.seq == SEQ_NEXT else record.seq
            if not self._passed < seq <= SEQ_MAX:
                refused.append(Quarantined("changes", position, seq, out_of_order(seq), raw_text(line)))
                continue
            if not first:
                first = seq
                if not self._is_loading:
                    self._happen(seq - 1)
            self._passed = seq
            table = self.catalog.table(record.table)
            for other, id in self._expiry.due(seq, record.values[TIME] if table.has_constraints else None):
                expired = self.catalog.table(other)
                before.setdefault((other, (id,)), self._tables[other][(id,)])
                last[other, (id,)] = (id, *([None] * (len(expired.columns) - 1)))
                del self._tables[other][(id,)]
                self._counts.changes += 1
            key = _key(table, record.values)
            was = self._tables[table.name].get(key)
            reason = self._apply(table, record.op, record.values)
            if reason is not None:
                refused.append(Quarantined("changes", position, seq, reason, raw_text(line)))
                continue
            before.setdefault((table.name, key), was)
            last[table.name, key] = record.values
            self._counts.changes += 1
        # What would happen within the transaction happens after it.
        moved = [
            (self._passed if first <= after < self._passed else after, order, event, id)
            for after, order, event, id in self._pending
        ]
        self._pending = sorted(moved, key=lambda entry: entry[:2])
        changed = [place for place, was in before.items() if was is not None or place[1] in self._tables[place[0]]]
        for name, key in changed:
            self._count_traffic(self.catalog.table(name), last[name, key])
        if changed:
            self._tell(changed, tx, is_net=tx is not None and len(changed) > 1)
        for table in self.catalog.tables:
            if not table.constraints.is_kept:
                self._tables[table.name].clear()

    def _apply(self, table: Table, op: int, values: tuple[Any, ...]) -> str | None:
        """Changes a row. Returns the reason if the change contradicts the rows."""
        name = table.name
        rows, key = self._tables[name], _key(table, values)
        if (key in rows and table.constraints.is_kept) == (op == Op.INSERT) and op != Op.UPSERT:
            return contradiction(op, name, plain_key(table, values))
        if op == Op.DELETE:
            del rows[key]
        else:
            rows[key] = dict(zip(table.column_names, values, strict=True))
        if table.has_constraints:
            if op == Op.DELETE:
                self._expiry.leave(name, values[0])
            else:
                self._expiry.enter(name, values)
        return None

    def _count_traffic(self, table: Table, values: tuple[Any, ...]) -> None:
        self._changes[table.name] += 1
        texts = (kept_text(column, value) for column, value in zip(table.columns, values, strict=True))
        self._bytes[table.name] += sum(map(len, texts))

    def _tell(self, changed: list[tuple[str, Any]], tx: str | None, *, is_net: bool) -> None:
        """Tells subscriptions on tables with rows that have changed, given as (table, key)."""
        for subscription in self._live.values():
            own = [key for name, key in changed if name in subscription.statement.shape.tables]
            if own:
                change = self._change(subscription, own, is_net=is_net)
                if change:
                    self._told[self._passed, subscription.id, False] = change_tail(self._passed, change, tx), tx
                    self._count(subscription.family)

    def _placed(self, subscription: _Subscription) -> dict[Any, Row]:
        """The answer as a whole."""
        reference, statement = subscription.family.reference, subscription.statement
        assert isinstance(reference, PlacedReference)
        return reference.placed(statement.shape, statement.constants, self.catalog, self._tables)

    def _ask(self, subscription: _Subscription, key: Any, row: Row | None) -> None:
        """Finds what the subscription shows of a row."""
        shape, constants = subscription.statement.shape, subscription.statement.constants
        reference = subscription.family.reference
        alone = {shape.tables[0]: {} if row is None else {key: row}}
        held: Any = None
        if isinstance(reference, HoldingReference):
            before = subscription.held.pop(key, None)
            held = reference.hold(shape, constants, self.catalog, alone, before)
            subscription.held[key] = held
        answer = reference.answer(shape, constants, self.catalog, alone, held)
        subscription.shown.pop(key, None)
        if answer:
            subscription.shown[key] = answer[0]

    def _change(self, subscription: _Subscription, keys: list[Any], *, is_net: bool) -> str:
        """What the subscription is told when rows with these keys have changed; empty if that is nothing."""
        if isinstance(subscription.family.reference, PlacedReference):
            before, after = subscription.shown, self._placed(subscription)
            is_kept = self.catalog.table(subscription.statement.shape.tables[0]).constraints.is_kept
            subscription.shown = after if is_kept else {}
        else:
            before = {key: subscription.shown[key] for key in keys if key in subscription.shown}
            rows = self._tables[subscription.statement.shape.tables[0]]
            for key in keys:
                self._ask(subscription, key, rows.get(key))
            after = {key: subscription.shown[key] for key in keys if key in subscription.shown}
        if is_net:
            texts = [{key: _text(subscription, row) for key, row in rows.items()} for rows in (before, after)]
            return ", ".join(net_changes(*texts))
        return _difference(replace(subscription, shown=after), before)

    def _count(self, family: Family) -> None:
        self._counts.deliveries[family.name] += 1
        self._counts.notifications[family.name] += 1


def _difference(subscription: _Subscription, old: dict[Any, Row]) -> str:
    """Changes from an answer to that of the subscription, as multisets of what is shown; empty if there are none.

    A row that takes the place of another is an update; the rest goes, or comes.
    """
    new = subscription.shown
    had, has = (Counter(map(_look, rows.values())) for rows in (old, new))
    gone, come = had - has, has - had
    changes = []
    for place in new:
        if place in old and gone[_look(old[place])] > 0 and come[_look(new[place])] > 0:
            gone[_look(old[place])] -= 1
            come[_look(new[place])] -= 1
            changes.append(update_change(_text(subscription, old[place]), _text(subscription, new[place])))
    for rows, others, left, change in ((old, new, gone, delete_change), (new, old, come, insert_change)):
        # Of rows that look alike, those that are in one of the answers alone are told, at their places.
        told: dict[Any, Row] = {}
        for is_alone in (True, False):
            for place, row in rows.items():
                if left[_look(row)] > 0 and (place not in others) == is_alone:
                    left[_look(row)] -= 1
                    told[place] = row
        changes += [change(_text(subscription, row)) for place, row in rows.items() if place in told]
    return ", ".join(changes)


def _key(table: Table, values: tuple[Any, ...]) -> tuple[Any, ...]:
    row = dict(zip(table.column_names, values, strict=True))
    return tuple(row[column] for column in table.key)


def _look(row: Row) -> tuple[Any, ...]:
    """What two rows that look the same have in common."""
    return tuple(tuple(value) if isinstance(value, list) else value for value in row.values())


def _text(subscription: _Subscription, row: Row) -> str:
    cells = (f"{encode_basestring(name)}: {value_text(subscription.types[name], value)}" for name, value in row.items())
    return "{" + ", ".join(cells) + "}"
