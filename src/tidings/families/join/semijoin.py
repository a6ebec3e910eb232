"""Semijoins: a row goes to those who select it and have a partner for it; a row that gets its first partner goes out late.

Every table of the join is filtered by neighbours, most often one. A client then holds all rows that are in its answer, some
that are not, and only rows as they are now: what it joins of these is exact. Rows that change or go are therefore dropped by
everyone who selected them, and rows whose last partner goes may stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tidings.families.base import Created, Rows, Server
from tidings.families.join.audience import Audience
from tidings.families.join.boxes import Boxes, both
from tidings.families.join.decomposition import Estimate, Filters, Sample, Traffic, cheapest, combinations_of
from tidings.families.join.exposure import Exposure
from tidings.families.join.first import first_rows
from tidings.families.join.interleave import interleaved
from tidings.families.join.junction import End, Junction
from tidings.families.join.relation import NONE, Moves, Relation
from tidings.families.join.rows import GONE, PLACED, carried, keys_of
from tidings.families.join.skylines import Question, Skyline
from tidings.families.join.subscription import Space
from tidings.kernels.ladders import Neighbours
from tidings.model.change import TableChanges, concat_batches, null_rows
from tidings.model.codes import BoolArray, Int64Array
from tidings.model.message import MessageBatch, SnapshotBatch
from tidings.model.points import PointBatch
from tidings.model.region import Regions

_PAIRS_AT_ONCE = 262_144
_RECONSIDER_AFTER, _RECONSIDER_AT_LAST = 4_096, 1_048_576
"""Changes."""
_SAMPLE = 64
_MUCH_CHEAPER = 0.8
"""Sending a whole table again should pay."""


class SemijoinServer(Server):
    """Rows of all tables of a join, met at its junctions, and the points of everyone who listens."""

    remembers_changes = True

    def __init__(self, space: Space, skyline: Skyline, *, is_free: bool = False) -> None:
        """`is_free`: tables may be filtered by several neighbours or by none, where that pays."""
        self.space = space
        self._skyline = skyline
        self.relations = [Relation(space, number) for number in range(len(space.sides))]
        self.junctions = {sides: Junction(space, sides, columns) for sides, columns in space.junctions.items()}
        self.audience = Audience(space)
        neighbours = [self._neighbours(number) for number in range(len(space.sides))]
        self.filters: list[Filters] = [(min(around),) for around in neighbours]
        """The neighbours by which each side is filtered."""
        self._choices = [combinations_of(some) if is_free else [(one,) for one in some] for some in neighbours]
        self._changes = [0.0] * len(space.sides)
        """Of each side, those long ago counted less."""
        self._reconsider_after = _RECONSIDER_AFTER
        self._is_filled = False

    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        number = self.space.side_of(changes.table)
        moves = self.relations[number].change(changes)
        steps = {
            sides: self._step(j.end(number), changes, moves) for sides, j in self.junctions.items() if number in sides
        }
        if len(self.audience):
            yield from self._messages(number, changes, moves, steps)

    def stretch(self, changes: Sequence[TableChanges]) -> Iterable[MessageBatch]:
        for batch in interleaved(self.space, list(self.junctions.values()), changes) if len(changes) > 1 else changes:
            yield from self.change(batch)

    def _messages(
        self, number: int, changes: TableChanges, moves: Moves, steps: dict[tuple[int, int], Step]
    ) -> Iterator[MessageBatch]:
        self._changes[number] += len(changes)
        yield from self._base(number, changes, moves)
        for other in self._neighbours(number):
            if number in self.filters[other]:
                yield from self._exposed(other, number, changes.seq, moves, steps[_pair(number, other)])

    def decide(self) -> Any:
        """Which sides are to be filtered otherwise, because it has become much cheaper."""
        if sum(self._changes) < self._reconsider_after or all(len(choices) == 1 for choices in self._choices):
            return None
        estimate = self.estimate()
        decided = {}
        for number, (now, choices) in enumerate(zip(self.filters, self._choices, strict=True)):
            best = cheapest(estimate, number, choices)
            if estimate.cost(number, best) < _MUCH_CHEAPER * estimate.cost(number, now):
                decided[str(number)] = list(best)
        self._changes = [count / 2 for count in self._changes]
        # Looking costs something as well: where all is as it should be, the next time can wait.
        self._reconsider_after = _RECONSIDER_AFTER if decided else min(2 * self._reconsider_after, _RECONSIDER_AT_LAST)
        return decided or None

    def follow(self, decision: Any, seq: int) -> Iterator[MessageBatch]:
        for number, by in decision.items():
            self.filters[int(number)] = tuple(by)
            yield from self._again(int(number), seq)

    def estimate(self) -> Estimate:
        """What filters cost, as far as can be told now."""
        sizes = [len(relation) for relation in self.relations]
        per_value = {
            (number, j.other(number)): sizes[number] / max(1, j.values)
            for sides, j in self.junctions.items()
            for number in sides
        }
        traffic = Traffic(tuple(self._changes), per_value)
        some = self.audience.some(_SAMPLE)
        if not len(some) or not all(sizes):
            return traffic
        return Sample(self.space, traffic, self.relations, self.junctions, some)

    def _again(self, number: int, seq: int) -> Iterator[MessageBatch]:
        """All rows of a side that has a new filter, to those who have a partner by it: some may have had none by the old."""
        entries = self.relations[number].current()
        owner, boxes = self._reached(number, entries, self.filters[number])
        if len(owner):
            yield self._placed(number, entries, np.full(len(entries), seq), owner, boxes)

    def _placed(
        self, number: int, entries: Int64Array, seq: Int64Array, owner: Int64Array, boxes: Boxes
    ) -> MessageBatch:
        """A message for each row of a side, given by entries, that has any of the boxes; seq: by row."""
        told, starts = np.unique(owner, return_index=True)
        tags = np.full(len(owner), PLACED, np.uint8)
        regions = Regions(boxes.lo, boxes.hi, tags, np.append(starts, len(owner)))
        payload = carried(self.space, number, self.relations[number].rows(entries[told]))
        return MessageBatch(self.space.key, seq[told], (), regions, payload)

    def _neighbours(self, number: int) -> list[int]:
        return [j.other(number) for sides, j in self.junctions.items() if number in sides]

    def _junction(self, number: int, other: int) -> Junction:
        return self.junctions[_pair(number, other)]

    def _step(self, end: End, changes: TableChanges, moves: Moves) -> Step:
        """Lets rows come and go at one end of a junction."""
        is_new, is_old = moves.new != NONE, moves.old != NONE
        value, cell = end.locate(changes.after, moves.new_codes, is_new)
        end.put_values(moves.new[is_new], value[is_new])
        _, old_cell = end.locate(changes.before, moves.old_codes, is_old)
        # The new row comes before the old one goes: who has a partner in the one needs no other.
        at = np.concatenate([np.flatnonzero(is_new), np.flatnonzero(is_old)])
        is_present = np.arange(len(at)) < is_new.sum()
        order = np.lexsort((~is_present, at))
        at, is_present = at[order], is_present[order]
        neighbours = end.change(
            np.where(is_present, cell[at], old_cell[at]),
            np.where(is_present, moves.new[at], moves.old[at]),
            np.where(is_present[:, None], moves.new_codes[at], moves.old_codes[at]),
            is_present,
        )
        gap = (neighbours.lo_from[is_present], neighbours.hi_to[is_present], neighbours.has_twin[is_present])
        return Step(value, cell, at[is_present], Neighbours(*gap))

    def _base(self, number: int, changes: TableChanges, moves: Moves) -> Iterator[MessageBatch]:
        """The changed rows themselves: to those who select and have a partner for the new, and to all who selected the old."""
        at = np.flatnonzero(moves.new != NONE)
        owner, boxes = self._reached(number, moves.new[at], self.filters[number])
        gone = np.flatnonzero(moves.old != NONE)
        old_boxes = Boxes.all(self.space, len(gone)).hold(number, moves.old_codes[gone])
        owner = np.concatenate([at[owner], gone])
        if len(owner) == 0:
            return
        order = np.argsort(owner, kind="stable")
        tags = np.repeat(np.array([PLACED, GONE], np.uint8), [len(boxes), len(gone)])
        lo, hi = np.concatenate([boxes.lo, old_boxes.lo]), np.concatenate([boxes.hi, old_boxes.hi])
        told, starts = np.unique(owner[order], return_index=True)
        regions = Regions(lo[order], hi[order], tags[order], np.append(starts, len(owner)))
        is_placed = np.zeros(len(changes), np.bool_)
        is_placed[owner[: len(boxes)]] = True
        yield MessageBatch(
            self.space.key, changes.seq[told], (), regions, self._payload(number, changes, told, is_placed)
        )

    def _reached(self, number: int, entries: Int64Array, filters: Filters) -> tuple[Int64Array, Boxes]:
        """(row, box) for all who select rows of a side, given by entries, and have a partner for them in each filter."""
        codes = self.relations[number].codes[entries]
        found = None
        for by in filters:
            junction = self._junction(number, by)
            question = Question(self.space, self.audience, number, codes, by, junction.end(by))
            part = self._skyline.draw(question, junction.end(number).value_of(entries))
            found = part if found is None else both(found, part)
        return (
            (np.arange(len(codes)), Boxes.all(self.space, len(codes)).hold(number, codes)) if found is None else found
        )

    def _payload(self, number: int, changes: TableChanges, told: Int64Array, is_placed: BoolArray) -> pa.RecordBatch:
        """New rows where somebody gets them, else no more than the key."""
        side = self.space.sides[number]
        after = changes.after.select(side.payload)
        if is_placed[told].all():
            return carried(self.space, number, after.take(pa.array(told)))
        rows = concat_batches([after, keys_of(side, changes.before.select(side.payload))])
        return carried(self.space, number, rows.take(pa.array(np.where(is_placed[told], told, told + len(changes)))))

    def _exposed(self, number: int, by: int, seq: Int64Array, moves: Moves, step: Step) -> Iterator[MessageBatch]:
        """Rows of a side that have found their first partner, for some, in a row of the side that filters it."""
        junction = self._junction(number, by)
        exposure = Exposure(self.space, self.audience, number, by, junction, self.relations[by].codes)
        at, gaps = exposure.gaps(step.at, moves, step.gap, step.cell[step.at])
        starts, entries = junction.end(number).entries_at(step.value[at])
        for first, last in _portions(starts):
            of = np.repeat(np.arange(first, last), np.diff(starts[first : last + 1]))
            found = entries[starts[first] : starts[last]]
            row, boxes = self._wanted(
                np.arange(len(found)), exposure.boxes(gaps, of, self.relations[number].codes[found])
            )
            others = tuple(one for one in self.filters[number] if one != by)
            if others and len(row):
                # Only for those who have partners in all other filters as well.
                has_others = self._reached(number, found[row], others)
                narrowed, boxes = self._wanted(*both((np.arange(len(row)), boxes), has_others))
                row = row[narrowed]
            if len(row):
                yield self._placed(number, found, seq[at[of]], row, boxes)

    def _wanted(self, row: Int64Array, boxes: Boxes) -> tuple[Int64Array, Boxes]:
        """Those boxes with somebody in them."""
        kept = np.flatnonzero(self.audience.any(boxes.lo, boxes.hi))
        return row[kept], boxes.take(kept)

    def create(self, points: PointBatch, tables: dict[str, Rows], *, wants_snapshots: bool) -> Created:
        if not self._is_filled:
            self._fill([tables[side.table.name].rows() for side in self.space.sides])
        self.audience.add(points)
        return Created(points, list(self._first_rows(points)) if wants_snapshots else [])

    def _first_rows(self, points: PointBatch) -> Iterator[SnapshotBatch]:
        filtered = [[self._junction(number, by) for by in filters] for number, filters in enumerate(self.filters)]
        return first_rows(self.space, points, self.relations, filtered)

    def _fill(self, rows: Sequence[pa.RecordBatch]) -> None:
        """Takes in the rows that came before the server did."""
        self._is_filled = True
        for side, present in zip(self.space.sides, rows, strict=True):
            there = np.ones(present.num_rows, np.bool_)
            seq = np.zeros(present.num_rows, np.int64)
            changes = TableChanges(side.table.name, seq, ~there, null_rows(present), there, present)
            # For its effect on what is known: nobody listens yet.
            for _ in self.change(changes):
                pass

    def drop(self, points: PointBatch) -> None:
        self.audience.remove(points)

    def dump(self) -> Any:
        rows = [relation.rows(relation.current()) for relation in self.relations]
        return {
            "is_filled": self._is_filled,
            "rows": rows,
            "audience": self.audience.dump(()),
            "filters": self.filters,
            "changes": self._changes,
        }

    def load(self, state: Any) -> None:
        if state["is_filled"]:
            self._fill(state["rows"])
        self.filters, self._changes = [tuple(some) for some in state["filters"]], state["changes"]
        self.audience.load(state["audience"])


class Step(NamedTuple):
    """What happened at one end of a junction."""

    value: Int64Array
    """Number of the new row's join value, by change."""
    cell: Int64Array
    """Its cell."""
    at: Int64Array
    """Changes that bring a row."""
    gap: Neighbours
    """Where each of these found its neighbours."""


def _pair(one: int, other: int) -> tuple[int, int]:
    return (one, other) if one < other else (other, one)


def _portions(starts: Int64Array) -> Iterator[tuple[int, int]]:
    """Cuts of a list of lists, so that no portion is much too large."""
    first = 0
    while first < len(starts) - 1:
        last = int(np.searchsorted(starts, starts[first] + _PAIRS_AT_ONCE, "right")) - 1
        last = max(first + 1, last)
        yield first, last
        first = last
