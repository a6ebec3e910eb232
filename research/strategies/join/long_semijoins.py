"""Semijoins over more than two tables (the alternative of the paper's appendix F): `long-sj`.

A row goes to those subscriptions in whose answer it takes part, which is more than having a partner in a neighbouring table.
Without the row's table, the join falls into *remainders*; a row takes part if, in each of them, rows that it joins with satisfy
the subscription's predicates together. Joined rows of a remainder are points in the space of its columns:

    r - s - t      a row of r: points (s, t)       a row of s: points (r), and points (t)

The ranges of all who select a row are looked at. So a message describes its region by few corners, but making it takes time in
proportion to those ranges and to the joined rows. Each form is by itself: joins over other tables share no messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from research.servers.message import MessageBatch, SnapshotBatch
from research.strategies.join.boxes import Boxes
from research.strategies.join.join_server import JoinServer, Member
from research.strategies.join.joined_rows import Combined, combine, selected
from research.strategies.join.kernels.cover import corners, holding
from research.strategies.join.payload import GONE, PLACED, project, told_rows
from research.strategies.join.relations.store import RelationChange
from research.strategies.join.semijoin.shared import regions_of
from research.strategies.join.space import Space
from research.strategies.join.subscriber_index import SubscriberIndex
from tidings.kernels.rows import NONE
from tidings.model.catalog import Catalog
from tidings.model.codes import BoolArray, Int64Array
from tidings.model.points import PointBatch


class Points(NamedTuple):
    """Joined rows of a remainder as points: those of row i are points[starts[i]:starts[i + 1]]."""

    ends: Int64Array
    """[2 * columns]: places of the columns' ends among the coordinates of a subscription."""
    starts: Int64Array
    points: Int64Array

    def held(self, i: int, coords: Int64Array) -> BoolArray:
        """Whether each subscription has a joined row of row i. coords: [subscriptions, dims]."""
        own = self.points[self.starts[i] : self.starts[i + 1]]
        if not len(self.ends):
            return np.full(len(coords), len(own) > 0)
        return holding(coords[:, self.ends], own)


class LongSemijoins(JoinServer):
    """Sends rows to the subscriptions in whose answers they take part, and late if that begins by rows of other tables."""

    def __init__(self, catalog: Catalog) -> None:
        super().__init__(catalog)
        self._indexes: dict[str, SubscriberIndex] = {}

    def _messages(self, change: RelationChange) -> Iterator[MessageBatch]:
        for member in self.members.values():
            if change.relation in member.graph.relations:
                number = member.graph.relations.index(change.relation)
                yield from self._changed(member, number, change)
                for base in range(len(member.space.sides)):
                    if base != number:
                        yield from self._joined_late(member, base, number, change)

    def _changed(self, member: Member, number: int, change: RelationChange) -> Iterator[MessageBatch]:
        """Messages for changed rows of side `number`: they are dropped by all who selected them."""
        changes, moves, space = change.changes, change.moves, member.space
        at, gone = (np.flatnonzero(entries != NONE) for entries in (moves.new, moves.old))
        wholes = [_points(member, part, number, moves.new[at]) for part in member.graph.remainders(number)]
        owner, found = [], [Boxes.all(space, 0)]
        ends = _ends(space, [side for side in range(len(space.sides)) if side != number])
        turn = np.tile([0, -1], len(ends) // 2)
        for i, (codes, coords) in enumerate(self._selecting(member, number, moves.new_codes[at])):
            takes_part = np.logical_and.reduce([whole.held(i, coords) for whole in wholes])
            turned = coords[:, ends] ^ turn
            furthest = corners(turned[takes_part], turned[~takes_part]) ^ turn
            boxes = Boxes.all(space, len(furthest)).hold(number, np.broadcast_to(codes, (len(furthest), len(codes))))
            boxes.hi[:, ends[0::2]], boxes.lo[:, ends[1::2]] = furthest[:, 0::2], furthest[:, 1::2]
            owner += [i] * len(boxes)
            found.append(boxes)
        come = at[np.array(owner, np.int64)]
        is_placed = np.zeros(len(changes), np.bool_)
        is_placed[come] = True
        old = Boxes.all(space, len(gone)).hold(number, moves.old_codes[gone])
        told, regions = regions_of((come, _concat(found), PLACED), (gone, old, GONE))
        if len(told):
            rows = project(space, number, told_rows(space.sides[number], changes, told, is_placed))
            yield MessageBatch(space.key, changes.seq[told], (), regions, rows)

    def _joined_late(self, member: Member, base: int, by: int, change: RelationChange) -> Iterator[MessageBatch]:
        """Messages with rows of side `base` that take part in some answer because of new rows of side `by`."""
        moves, graph, space = change.moves, member.graph, member.space
        at = np.flatnonzero(moves.new != NONE)
        parts = graph.remainders(base)
        (part,) = (part for part in parts if by in part)
        came = combine(graph, by, moves.new[at], among=(*part, base))
        # Entries of `base` that a new row brings, by new row.
        pairs, pair = np.unique(np.stack([came.owner, came.entries[base]], axis=1), axis=0, return_inverse=True)
        if not len(pairs):
            return
        bases, of = np.unique(pairs[:, 1], return_inverse=True)
        brought = _grouped(member, part, came, pair.ravel(), len(pairs))
        had = _points(member, part, base, bases, without=(by, moves.new))
        replaced = _replaced(member, part, base, by, moves.old[at], pairs)
        wholes = [_points(member, other, base, bases) for other in parts if other != part]
        selecting = list(self._selecting(member, base, graph.relations[base].codes[bases]))
        ends = _ends(space, [side for side in range(len(space.sides)) if side != base])
        owner, found = [], [Boxes.all(space, 0)]
        for i, which in enumerate(of.tolist()):
            codes, coords = selecting[which]
            is_new = brought.held(i, coords) & ~had.held(which, coords) & ~replaced.held(i, coords)
            for whole in wholes:
                is_new &= whole.held(which, coords)
            # A box around the ranges of some: their ends both bounded from below and from above.
            turned = np.concatenate([coords[:, ends], ~coords[:, ends]], axis=1)
            around = corners(turned[is_new], turned[~is_new])
            boxes = Boxes.all(space, len(around)).hold(base, np.broadcast_to(codes, (len(around), len(codes))))
            boxes.hi[:, ends], boxes.lo[:, ends] = around[:, : len(ends)], ~around[:, len(ends) :]
            owner += [i] * len(boxes)
            found.append(boxes)
        told, regions = regions_of((np.array(owner, np.int64), _concat(found), PLACED))
        if len(told):
            rows = project(space, base, graph.relations[base].rows(pairs[told, 1]))
            yield MessageBatch(space.key, change.changes.seq[at[pairs[told, 0]]], (), regions, rows)

    def _selecting(self, member: Member, number: int, codes: Int64Array) -> Iterator[tuple[Int64Array, Int64Array]]:
        """For each row of a side its codes, and the coordinates of the subscriptions that select it."""
        index = self._indexes[member.space.key]
        boxes = Boxes.all(member.space, len(codes)).hold(number, codes)
        starts, slots = index.found(boxes.lo, boxes.hi)
        for i, (start, stop) in enumerate(pairwise(starts.tolist())):
            yield codes[i], index.coords(slots[start:stop])

    def _welcome(self, member: Member) -> None:
        self._indexes[member.space.key] = SubscriberIndex(member.space)

    def _listen(self, member: Member, slots: Int64Array) -> None:
        self._indexes[member.space.key].add(slots, self.subscribers.coords(slots, member.space.dims))

    def _leave(self, member: Member, slots: Int64Array) -> None:
        self._indexes[member.space.key].remove(slots)

    def _first_rows(self, member: Member, points: PointBatch) -> Iterator[SnapshotBatch]:
        """The rows that take part in the answer of each subscription."""
        space, relations = member.space, member.graph.relations
        for i, coords in enumerate(points.coords):
            allowed = selected(member.graph, coords)
            found = combine(member.graph, 0, np.flatnonzero(allowed[0]), allowed)
            for number, relation in enumerate(relations):
                entries = np.unique(found.entries[number])
                if len(entries):
                    at, payload = np.full(len(entries), i), project(space, number, relation.rows(entries))
                    yield SnapshotBatch(space.key, points.after[at], points.id.take(pa.array(at)), payload)


def _ends(space: Space, sides: list[int] | tuple[int, ...]) -> Int64Array:
    """Places of the ends of all predicates on some sides: lower and upper ones in turn."""
    return np.array([at for side in sides for at in range(*space.sides[side].coords.indices(space.dims))], np.int64)


def _points(
    member: Member, part: tuple[int, ...], base: int, entries: Int64Array, without: tuple[int, Int64Array] | None = None
) -> Points:
    """The joined rows of a remainder for rows of side `base`, but for those with some entries of a side (`without`)."""
    found = combine(member.graph, base, entries, among=(*part, base))
    if without is not None:
        found = found.take(~np.isin(found.entries[without[0]], without[1]))
    return _grouped(member, part, found, found.owner, len(entries))


def _replaced(member: Member, part: tuple[int, ...], base: int, by: int, old: Int64Array, pairs: Int64Array) -> Points:
    """The joined rows that each pair (new row, entry of `base`) had by the row that the new one replaces. old: [new rows]."""
    at = np.flatnonzero(old != NONE)
    had = combine(member.graph, by, old[at], among=(*part, base))
    width = int(max(pairs[:, 1].max(), had.entries[base].max(initial=0))) + 1
    keys, wanted = pairs @ (width, 1), at[had.owner] * width + had.entries[base]
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    is_pair = keys[place] == wanted
    return _grouped(member, part, had.take(is_pair), place[is_pair], len(pairs))


def _grouped(member: Member, part: tuple[int, ...], rows: Combined, owner: Int64Array, count: int) -> Points:
    """Joined rows as points, by owners 0 .. count - 1."""
    order = np.argsort(owner, kind="stable")
    codes = [member.graph.relations[side].codes[rows.entries[side][order]] for side in part]
    starts = np.searchsorted(owner[order], np.arange(count + 1))
    return Points(_ends(member.space, part), starts, np.concatenate(codes, axis=1))


def _concat(boxes: list[Boxes]) -> Boxes:
    return Boxes(boxes[0].space, *(np.concatenate([getattr(some, end) for some in boxes]) for end in ("lo", "hi")))
