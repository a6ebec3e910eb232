"""Join results as messages: every joined row that comes or goes is sent whole.

`ref-j` sends each to all whose predicates hold it, `ref-j+` only if there are any, `enum-j` to each of them on its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.families.join.audience import Audience
from tidings.families.join.boxes import Boxes
from tidings.families.join.combine import Combined, combine
from tidings.families.join.meeting import Arrival
from tidings.families.join.relation import NONE
from tidings.families.join.rows import GONE, PLACED, carried_whole, fits, keys_of
from tidings.families.join.server import JoinServer, Member
from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges, concat_batches
from tidings.model.codes import BoolArray, Int64Array
from tidings.model.message import MessageBatch, SnapshotBatch
from tidings.model.points import PointBatch
from tidings.model.region import Regions

_AT_A_TIME = 1_024
"""Changes; each may have many joined rows."""


class ResultServer(JoinServer):
    """Whole joined rows, to a region.

    A joined row has rows of all tables, also of those that the changed one has no value in common with: changes of several
    tables cannot be interleaved.
    """

    def __init__(self, catalog: Catalog, *, is_checked: bool) -> None:
        super().__init__(catalog)
        self._is_checked = is_checked
        self.audiences: dict[str, Audience] = {}

    def _messages(self, arrival: Arrival) -> Iterator[MessageBatch]:
        for member in self.members.values():
            if arrival.relation in member.setting.relations:
                number = member.setting.relations.index(arrival.relation)
                count = len(arrival.changes)
                for start in range(0, count, _AT_A_TIME):
                    at = np.arange(start, min(count, start + _AT_A_TIME))
                    yield from self._tell(member, number, arrival, at)

    def _tell(self, member: Member, number: int, arrival: Arrival, at: Int64Array) -> Iterator[MessageBatch]:
        changes, moves, junctions = arrival.changes, arrival.moves, member.setting.junctions
        new, old = at[moves.new[at] != NONE], at[moves.old[at] != NONE]
        come, gone = combine(junctions, number, moves.new[new]), combine(junctions, number, moves.old[old])
        come.owner, gone.owner = new[come.owner], old[gone.owner]
        boxes = [
            _boxes(member, some, number, codes) for some, codes in ((come, moves.new_codes), (gone, moves.old_codes))
        ]
        lo, hi = (np.concatenate([getattr(part, name) for part in boxes]) for name in ("lo", "hi"))
        tags = np.repeat(np.array([PLACED, GONE], np.uint8), [len(come), len(gone)])
        everything = _joined(come, gone)
        if self._is_checked:
            wanted = np.flatnonzero(self.audiences[member.space.key].any(lo, hi))
            everything, lo, hi, tags = everything.take(wanted), lo[wanted], hi[wanted], tags[wanted]
        if len(everything) == 0:
            return
        # A joined row that changes is the same before and after but for the row of this side.
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
        self.audiences[member.space.key] = Audience(member.space)

    def _listen(self, member: Member, slots: Int64Array) -> None:
        self.audiences[member.space.key].add(slots, self.roster.coords(slots, member.space.dims))

    def _leave(self, member: Member, slots: Int64Array) -> None:
        self.audiences[member.space.key].remove(slots)

    def _first_rows(self, member: Member, points: PointBatch) -> Iterator[SnapshotBatch]:
        space, relations = member.space, member.setting.relations
        sizes = [int(relation.current().max(initial=NONE)) + 1 for relation in relations]
        for i, coords in enumerate(points.coords):
            allowed = [np.zeros(size, np.bool_) for size in sizes]
            for mask, side, relation in zip(allowed, space.sides, relations, strict=True):
                entries = relation.current()
                mask[entries] = fits(side, relation.codes[entries], coords)
            found = combine(member.setting.junctions, 0, np.flatnonzero(allowed[0]), allowed)
            if len(found):
                rows = [relation.rows(found.entries[side]) for side, relation in enumerate(relations)]
                at = np.full(len(found), i)
                yield SnapshotBatch(
                    space.key, points.after[at], points.id.take(pa.array(at)), carried_whole(space, rows)
                )


def _boxes(member: Member, some: Combined, number: int, codes: Int64Array) -> Boxes:
    """All whose predicates hold every part."""
    boxes = Boxes.all(member.space, len(some))
    for side, entries in some.entries.items():
        own = codes[some.owner] if side == number else member.setting.relations[side].codes[entries]
        boxes.hold(side, own)
    return boxes


def _whole(member: Member, number: int, changes: TableChanges, some: Combined, is_placed: BoolArray) -> pa.RecordBatch:
    parts = []
    for side, known in enumerate(member.space.sides):
        if side == number:
            after = changes.after.select(known.payload).take(pa.array(some.owner))
            before = changes.before.select(known.payload).take(pa.array(some.owner))
        else:
            after = before = member.setting.relations[side].rows(some.entries[side])
        if not is_placed.all():
            count = len(some)
            both = concat_batches([after, keys_of(known, before)])
            after = both.take(pa.array(np.where(is_placed, 0, count) + np.arange(count)))
        parts.append(after)
    return carried_whole(member.space, parts)


def _joined(one: Combined, other: Combined) -> Combined:
    owner = np.concatenate([one.owner, other.owner])
    return Combined(owner, {side: np.concatenate([some, other.entries[side]]) for side, some in one.entries.items()})
