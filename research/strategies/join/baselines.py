"""Servers of joins to compare semijoins with.

`rel-sel`: a row is sent to all subscriptions that select it, with or without a partner (`RelaxedServer`). `ref-j`: every joined
row that appears or goes is sent whole, to the region of predicates that contain it; `ref-j+`: only if a subscription is in the
region (`ResultServer`). `enum-sj`, `enum-j`: unicast messages of semijoins and of joined rows (`EnumeratedSemijoins`,
`EnumeratedResults`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from research.servers.forms import spec_of
from research.servers.message import MessageBatch, SnapshotBatch
from research.servers.protocols import ColumnarRows, Created, FamilyServer, Memory, Remembering
from research.strategies.join.boxes import Boxes
from research.strategies.join.join_server import JoinServer, Member, Subscribers
from research.strategies.join.joined_rows import Combined, combine, selected
from research.strategies.join.payload import (
    ALL_SIDES,
    GONE,
    PLACED,
    codes_in,
    fits,
    keys_of,
    payload_of,
    project,
    schema_of,
    told_rows,
)
from research.strategies.join.relations.store import RelationChange
from research.strategies.join.semijoin.server import SemijoinServer
from research.strategies.join.semijoin.shared import semijoin_form
from research.strategies.join.skylines import Tuples
from research.strategies.join.space import Space, space_of
from research.strategies.join.subscriber_index import SubscriberIndex
from research.strategies.targets import one_each
from tidings.families.spec import Form
from tidings.kernels.rows import NONE
from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges, concat_batches
from tidings.model.codes import BoolArray, Int64Array
from tidings.model.points import PointBatch
from tidings.model.region import Regions, TagArray


class RelaxedServer(FamilyServer, Remembering):
    """One message per change, to all subscriptions whose predicates on the table contain the old or the new row."""

    memory = Memory.NOTHING

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._listeners: Counter[str] = Counter()
        """Form -> number of its subscriptions."""

    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        for semijoin, to in self._semijoins(changes.table).items():
            yield from self._messages(semijoin, to, changes)

    def _semijoins(self, table: str) -> dict[Space, list[str]]:
        """Space of a semijoin without filters -> forms that share it."""
        found: dict[Space, list[str]] = {}
        for form in self._listeners:
            space = space_of(Form.from_key(form), self._catalog)
            if table in (side.table.name for side in space.sides):
                semijoin = space_of(semijoin_form(space, space.side_of(table), ()), self._catalog)
                found.setdefault(semijoin, []).append(form)
        return found

    def _messages(self, semijoin: Space, to: list[str], changes: TableChanges) -> Iterator[MessageBatch]:
        side = semijoin.sides[0]
        old = codes_in(side, changes.before, changes.had)
        new = codes_in(side, changes.after, changes.has)
        at = np.flatnonzero(old.counts | new.counts)
        if len(at) == 0:
            return
        # For each change the box of the new row, if there is one, then that of the old row.
        is_box = np.stack([new.counts[at], old.counts[at]], axis=1)
        codes = np.stack([new.codes[at], old.codes[at]], axis=1)[is_box]
        boxes = Boxes.all(semijoin, len(codes)).hold(0, codes)
        tags = np.broadcast_to(np.array([PLACED, GONE], np.uint8), is_box.shape)[is_box]
        starts = np.concatenate([[0], np.cumsum(is_box.sum(axis=1))])
        rows = told_rows(side, changes, at, new.counts)
        regions = Regions(boxes.lo, boxes.hi, tags, starts)
        yield MessageBatch(semijoin.key, changes.seq[at], (), regions, rows, None, tuple(to), semijoin.axes)

    def create(self, points: PointBatch, tables: dict[str, ColumnarRows], *, wants_snapshots: bool) -> Created:
        self._listeners[points.form] += len(points)
        return Created(points, list(self._snapshots(points, tables)) if wants_snapshots else [])

    def _snapshots(self, points: PointBatch, tables: dict[str, ColumnarRows]) -> Iterator[SnapshotBatch]:
        space = space_of(Form.from_key(points.form), self._catalog)
        for number, side in enumerate(space.sides):
            rows = tables[side.table.name].rows()
            known = codes_in(side, rows, np.ones(rows.num_rows, np.bool_))
            found = [np.flatnonzero(known.counts & fits(side, known.codes, coords)) for coords in points.coords]
            owner = np.repeat(np.arange(len(points)), [len(at) for at in found])
            if len(owner):
                payload = project(space, number, rows.take(pa.array(np.concatenate(found))))
                yield SnapshotBatch(points.form, points.after[owner], points.id.take(pa.array(owner)), payload)

    def drop(self, points: PointBatch) -> None:
        self._listeners[points.form] -= len(points)
        self._listeners = +self._listeners

    def dump(self) -> Any:
        return dict(self._listeners)

    def load(self, state: Any) -> None:
        self._listeners = Counter(state)


_AT_A_TIME = 1_024
"""Changes handled at a time, since each may have many joined rows."""


class ResultServer(JoinServer):
    """Sends whole joined rows, each to a region.

    A joined row has rows of all tables, also of tables that share no join value with the changed row. So, unlike with
    semijoins, changes of several tables cannot be reordered (`relations/schedule.py`).
    """

    def __init__(self, catalog: Catalog, *, is_checked: bool) -> None:
        super().__init__(catalog)
        self._is_checked = is_checked
        self.indexes: dict[str, SubscriberIndex] = {}

    def _messages(self, change: RelationChange) -> Iterator[MessageBatch]:
        for member in self.members.values():
            if change.relation in member.graph.relations:
                number = member.graph.relations.index(change.relation)
                count = len(change.changes)
                for start in range(0, count, _AT_A_TIME):
                    at = np.arange(start, min(count, start + _AT_A_TIME))
                    yield from self._tell(member, number, change, at)

    def _tell(self, member: Member, number: int, change: RelationChange, at: Int64Array) -> Iterator[MessageBatch]:
        changes, moves, graph = change.changes, change.moves, member.graph
        new, old = at[moves.new[at] != NONE], at[moves.old[at] != NONE]
        come, gone = combine(graph, number, moves.new[new]), combine(graph, number, moves.old[old])
        come.owner, gone.owner = new[come.owner], old[gone.owner]
        boxes = [
            _boxes(member, some, number, codes) for some, codes in ((come, moves.new_codes), (gone, moves.old_codes))
        ]
        lo, hi = (np.concatenate([getattr(part, name) for part in boxes]) for name in ("lo", "hi"))
        tags = np.repeat(np.array([PLACED, GONE], np.uint8), [len(come), len(gone)])
        everything = come.concat(gone)
        if self._is_checked:
            wanted = np.flatnonzero(self.indexes[member.space.key].any(lo, hi))
            everything, lo, hi, tags = everything.take(wanted), lo[wanted], hi[wanted], tags[wanted]
        if len(everything) == 0:
            return
        # A joined row before and after a change differs only in the row of this side.
        names: list[Int64Array] = [
            everything.owner,
            *(some for side, some in everything.entries.items() if side != number),
        ]
        keys: Any = (tags, *names[::-1])
        order = np.lexsort(keys)
        is_next = np.ones(len(order), np.bool_)
        is_next[1:] = np.any([np.diff(name[order]) != 0 for name in names], axis=0)
        starts = np.append(np.flatnonzero(is_next), len(order))
        first = order[starts[:-1]]
        regions = Regions(lo[order], hi[order], tags[order], starts)
        payload = _whole(member, number, changes, everything.take(first), tags[first] == PLACED)
        messages = MessageBatch(member.space.key, changes.seq[everything.owner[first]], (), regions, payload)
        yield messages.take(np.argsort(messages.seq, kind="stable").astype(np.int64))

    def _welcome(self, member: Member) -> None:
        self.indexes[member.space.key] = SubscriberIndex(member.space)

    def _listen(self, member: Member, slots: Int64Array) -> None:
        self.indexes[member.space.key].add(slots, self.subscribers.coords(slots, member.space.dims))

    def _leave(self, member: Member, slots: Int64Array) -> None:
        self.indexes[member.space.key].remove(slots)

    def _first_rows(self, member: Member, points: PointBatch) -> Iterator[SnapshotBatch]:
        space, relations = member.space, member.graph.relations
        for i, coords in enumerate(points.coords):
            allowed = selected(member.graph, coords)
            found = combine(member.graph, 0, np.flatnonzero(allowed[0]), allowed)
            if len(found):
                rows = [relation.rows(found.entries[side]) for side, relation in enumerate(relations)]
                at = np.full(len(found), i)
                yield SnapshotBatch(
                    space.key, points.after[at], points.id.take(pa.array(at)), _project_joined(space, rows)
                )


def _boxes(member: Member, some: Combined, number: int, codes: Int64Array) -> Boxes:
    """Boxes of the subscriptions whose predicates contain all parts of each joined row."""
    boxes = Boxes.all(member.space, len(some))
    for side, entries in some.entries.items():
        own = codes[some.owner] if side == number else member.graph.relations[side].codes[entries]
        boxes.hold(side, own)
    return boxes


def _project_joined(space: Space, rows: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Whole joined rows as a payload. rows: [sides], the parts of the joined rows."""
    count = rows[0].num_rows
    columns: list[pa.Array] = [pa.array(np.full(count, ALL_SIDES, np.int8))]
    for side, part in zip(space.sides, rows, strict=True):
        columns.extend(part.column(name) for name in side.payload)
    return pa.RecordBatch.from_arrays(columns, schema=schema_of(space))


def _whole(member: Member, number: int, changes: TableChanges, some: Combined, is_placed: BoolArray) -> pa.RecordBatch:
    parts = []
    for side, known in enumerate(member.space.sides):
        if side == number:
            after = changes.after.select(known.payload).take(pa.array(some.owner))
            before = changes.before.select(known.payload).take(pa.array(some.owner))
        else:
            after = before = member.graph.relations[side].rows(some.entries[side])
        if not is_placed.all():
            count = len(some)
            both = concat_batches([after, keys_of(known, before)])
            after = both.take(pa.array(np.where(is_placed, 0, count) + np.arange(count)))
        parts.append(after)
    return _project_joined(member.space, parts)


class EnumeratedSemijoins(SemijoinServer):
    """One message per affected subscription, where there would be one to a region."""

    def __init__(self, catalog: Catalog) -> None:
        super().__init__(catalog, Tuples())

    def _messages(self, change: RelationChange) -> Iterator[MessageBatch]:
        for messages in super()._messages(change):
            # Servers that enumerate have one form only.
            form = Form.from_key(messages.to[0])
            space, payload = spec_of(form.key, self._catalog).space, payload_of(form, messages, self._catalog)
            own = messages.project(form.key, space, payload)
            affected = self.semijoins[messages.form].index.affected(messages.regions)
            addressed = _addressed(self.subscribers, own, affected)
            if addressed is not None:
                yield addressed


class EnumeratedResults(ResultServer):
    """One message per affected subscription, where there would be one to a region."""

    def __init__(self, catalog: Catalog) -> None:
        super().__init__(catalog, is_checked=False)

    def _messages(self, change: RelationChange) -> Iterator[MessageBatch]:
        for messages in super()._messages(change):
            addressed = _addressed(self.subscribers, messages, self.indexes[messages.form].affected(messages.regions))
            if addressed is not None:
                yield addressed


def _addressed(
    subscribers: Subscribers, messages: MessageBatch, affected: tuple[Int64Array, Int64Array, TagArray]
) -> MessageBatch | None:
    """Messages of a form as unicast messages, one for every affected point; None if there is none."""
    message, slot, tags = affected
    points = subscribers.coords(slot, messages.regions.dims)
    return one_each(messages, message, points, subscribers.ids(slot), tags)
