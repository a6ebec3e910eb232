"""Join results as messages: every joined row that comes or goes is sent whole.

`ref-j` sends each to all whose predicates hold it, `ref-j+` only if there are any, `enum-j` to each of them on its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.families.base import Server
from tidings.families.join.boxes import Boxes
from tidings.families.join.combine import Combined, combine
from tidings.families.join.relation import NONE, Moves
from tidings.families.join.rows import GONE, PLACED, carried_whole, fits, keys_of
from tidings.families.join.semijoin import SemijoinServer, Step
from tidings.families.join.skylines import Tuples
from tidings.families.join.subscription import Space
from tidings.model.change import TableChanges
from tidings.model.codes import BoolArray, Int64Array
from tidings.model.message import MessageBatch, SnapshotBatch
from tidings.model.points import PointBatch
from tidings.model.region import Regions

_AT_A_TIME = 1_024
"""Changes; each may have many joined rows."""


class ResultServer(SemijoinServer):
    """Whole joined rows, to a region."""

    def __init__(self, space: Space, *, is_checked: bool) -> None:
        super().__init__(space, Tuples())
        self._is_checked = is_checked

    def stretch(self, changes: Sequence[TableChanges]) -> Iterable[MessageBatch]:
        # A joined row has rows of all tables, also of those that the changed one has no value in common with.
        return Server.stretch(self, changes)

    def _messages(
        self, number: int, changes: TableChanges, moves: Moves, steps: dict[tuple[int, int], Step]
    ) -> Iterator[MessageBatch]:
        for start in range(0, len(changes), _AT_A_TIME):
            yield from self._tell(number, changes, moves, np.arange(start, min(len(changes), start + _AT_A_TIME)))

    def _tell(self, number: int, changes: TableChanges, moves: Moves, at: Int64Array) -> Iterator[MessageBatch]:
        new, old = at[moves.new[at] != NONE], at[moves.old[at] != NONE]
        come, gone = combine(self.junctions, number, moves.new[new]), combine(self.junctions, number, moves.old[old])
        come.owner, gone.owner = new[come.owner], old[gone.owner]
        boxes = [self._boxes(some, number, codes) for some, codes in ((come, moves.new_codes), (gone, moves.old_codes))]
        lo, hi = (np.concatenate([getattr(part, name) for part in boxes]) for name in ("lo", "hi"))
        tags = np.repeat(np.array([PLACED, GONE], np.uint8), [len(come), len(gone)])
        everything = _joined(come, gone)
        if self._is_checked:
            wanted = np.flatnonzero(self.audience.any(lo, hi))
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
        payload = self._whole(number, changes, everything.take(first), tags[first] == PLACED)
        messages = MessageBatch(self.space.key, changes.seq[everything.owner[first]], (), regions, payload)
        yield messages.take(np.argsort(messages.seq, kind="stable").astype(np.int64))

    def _boxes(self, some: Combined, number: int, codes: Int64Array) -> Boxes:
        """All whose predicates hold every part."""
        boxes = Boxes.all(self.space, len(some))
        for side, entries in some.entries.items():
            boxes.hold(side, codes[some.owner] if side == number else self.relations[side].codes[entries])
        return boxes

    def _whole(self, number: int, changes: TableChanges, some: Combined, is_placed: BoolArray) -> pa.RecordBatch:
        parts = []
        for side, known in enumerate(self.space.sides):
            if side == number:
                after = changes.after.select(known.payload).take(pa.array(some.owner))
                before = changes.before.select(known.payload).take(pa.array(some.owner))
            else:
                after = before = self.relations[side].rows(some.entries[side])
            if not is_placed.all():
                count = len(some)
                both = pa.Table.from_batches([after, keys_of(known, before)]).combine_chunks().to_batches()[0]
                after = both.take(pa.array(np.where(is_placed, 0, count) + np.arange(count)))
            parts.append(after)
        return carried_whole(self.space, parts)

    def _first_rows(self, points: PointBatch) -> Iterator[SnapshotBatch]:
        sizes = [int(relation.current().max(initial=NONE)) + 1 for relation in self.relations]
        for i, coords in enumerate(points.coords):
            allowed = [np.zeros(size, np.bool_) for size in sizes]
            for mask, side, relation in zip(allowed, self.space.sides, self.relations, strict=True):
                entries = relation.current()
                mask[entries] = fits(side, relation.codes[entries], coords)
            found = combine(self.junctions, 0, np.flatnonzero(allowed[0]), allowed)
            if len(found):
                rows = [self.relations[side].rows(found.entries[side]) for side in range(len(self.space.sides))]
                at = np.full(len(found), i)
                yield SnapshotBatch(
                    self.space.key, points.after[at], points.id.take(pa.array(at)), carried_whole(self.space, rows)
                )


def _joined(one: Combined, other: Combined) -> Combined:
    owner = np.concatenate([one.owner, other.owner])
    return Combined(owner, {side: np.concatenate([some, other.entries[side]]) for side, some in one.entries.items()})
