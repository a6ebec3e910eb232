"""A shared semijoin: rows of a base table, filtered by some neighbours, sent once for all forms that need the same semijoin.

A row is sent to the subscriptions that select it and have a partner for it in every filter; when a row gets its first partner,
it is sent late. So a client holds all rows of its answer and some others, all of them current: the join of the rows it holds
is exact. Rows that change or are deleted must therefore be dropped by every client that may hold them; rows whose last
partner is deleted may be kept.

A shared semijoin has a form of its own, with only its tables. Its messages are addressed in the space of that form, whatever
other tables the forms that share it have.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from research.servers.message import MessageBatch
from research.strategies.join.boxes import Boxes, intersect
from research.strategies.join.payload import GONE, PLACED, told_rows
from research.strategies.join.relations.graph import JoinGraph
from research.strategies.join.relations.relation import Relation
from research.strategies.join.relations.store import RelationChange
from research.strategies.join.relations.tombstones import past_partners
from research.strategies.join.semijoin.decomposition import Filters
from research.strategies.join.semijoin.first_partners import FirstPartners
from research.strategies.join.semijoin.skylines import Question, Skyline
from research.strategies.join.space import Space
from research.strategies.join.subscriber_index import SubscriberIndex
from tidings.families.spec import Form
from tidings.kernels.rows import NONE
from tidings.model.codes import Int64Array
from tidings.model.region import Regions
from tidings.sql.shape import ColumnRef, JoinEdge, Shape

_PAIRS_AT_ONCE = 262_144


def semijoin_form(space: Space, base: int, filters: tuple[int, ...]) -> Form:
    """The form of a shared semijoin: equal for spaces whose base and filters have the same predicates, edges and payload."""
    sides = sorted((space.sides[number] for number in (base, *filters)), key=lambda side: side.table.name)
    edges = []
    for (one, two), columns in space.join_columns.items():
        if base in (one, two) and {one, two} <= {base, *filters}:
            ends = sorted(zip((space.sides[n].table.name for n in (one, two)), columns, strict=True))
            edges.append(JoinEdge(ends[0][0], ends[0][1], ends[1][0], ends[1][1], using=False))
    pinned: list[ColumnRef] = []
    ranged: list[ColumnRef] = []
    for side in sides:
        for number, column in enumerate(side.columns):
            (pinned if number in side.pinned else ranged).append(ColumnRef(side.table.name, column.name))
    of = space.sides[base]
    shape = Shape(
        tables=tuple(side.table.name for side in sides),
        joins=tuple(sorted(edges)),
        equalities=tuple(pinned),
        ranges=tuple(ranged),
        projection=tuple(ColumnRef(of.table.name, name) for name in of.payload),
    )
    return Form("join", shape, of.table.name)


@dataclass(eq=False)
class SharedSemijoin:
    """Sends rows of side `base` of a graph, filtered by all other sides, to the subscriptions of some forms."""

    graph: JoinGraph
    base: int
    index: SubscriberIndex
    """A superset of this semijoin's subscribers; may cause messages that nobody hears."""
    skyline: Skyline
    to: list[str] = field(default_factory=list)
    """Keys of the forms that share this semijoin."""

    @property
    def space(self) -> Space:
        return self.graph.space

    @property
    def relation(self) -> Relation:
        """The rows of the base."""
        return self.graph.relations[self.base]

    @property
    def filters(self) -> Filters:
        return tuple(number for number in range(len(self.space.sides)) if number != self.base)

    def change(self, change: RelationChange, sure_since: int) -> Iterator[MessageBatch]:
        """Messages for changes of the base or of a filter. sure_since: see `JoinServer`."""
        if self.relation is change.relation:
            yield from self._changed(change, sure_since)
        for by in self.filters:
            if self.graph.relations[by] is change.relation:
                yield from self._joined_late(by, change)

    def all_rows(self, seq: int) -> Iterator[MessageBatch]:
        """Messages with all rows, each for the subscriptions that select it and have partners for it."""
        entries = self.relation.current()
        owner, boxes = self._reached(entries, self.filters)
        if len(owner):
            yield self._placed(entries, np.full(len(entries), seq), owner, boxes)

    def _changed(self, change: RelationChange, sure_since: int) -> Iterator[MessageBatch]:
        """Messages for changed rows of the base.

        Addressed to subscriptions that select the new row and have partners for it, and to all that may hold the old row.
        """
        changes, moves = change.changes, change.moves
        at = np.flatnonzero(moves.new != NONE)
        owner, boxes = self._reached(moves.new[at], self.filters)
        gone = np.flatnonzero(moves.old != NONE)
        place, old_boxes = self._holding(moves.old[gone], moves.old_codes[gone], sure_since)
        come, gone = at[owner], gone[place]
        is_placed = np.zeros(len(changes), np.bool_)
        is_placed[come] = True
        new, old = (come, boxes, PLACED), (gone, old_boxes, GONE)
        # If no change has boxes of both kinds, they need not be sorted together.
        for parts in [(new, old)] if is_placed[gone].any() else [(new,), (old,)]:
            told, regions = regions_of(*parts)
            if len(told):
                rows = told_rows(self.relation.side, changes, told, is_placed)
                yield self._message(changes.seq[told], regions, rows)

    def _joined_late(self, by: int, change: RelationChange) -> Iterator[MessageBatch]:
        """Messages with rows of the base for which a new row of filter `by` is the first partner of some subscription."""
        edge = self.graph.edge(self.base, by)
        came, moves = change.of_index[edge.index(by)], change.moves
        first = FirstPartners(self.space, self.index, self.base, by, edge, change.relation.codes)
        at, gaps = first.gaps(came.at, moves, came.gap, came.cell[came.at])
        starts, entries = edge.index(self.base).entries_at(came.value[at])
        others = tuple(one for one in self.filters if one != by)
        for begin, stop in _portions(starts):
            part_starts, of = starts[begin : stop + 1] - starts[begin], np.arange(begin, stop)
            found = entries[starts[begin] : starts[stop]]
            row, boxes = first.wanted(gaps, of, part_starts, self.relation.codes[found])
            of = np.repeat(of, np.diff(part_starts))
            if others and len(row):
                # Only subscriptions that have partners in all other filters as well.
                narrowed, boxes = intersect((np.arange(len(row)), boxes), self._reached(found[row], others))
                kept = np.flatnonzero(self.index.any(boxes.lo, boxes.hi))
                row, boxes = row[narrowed[kept]], boxes.take(kept)
            if len(row):
                yield self._placed(found, change.changes.seq[at[of]], row, boxes)

    def _reached(self, entries: Int64Array, filters: Filters) -> tuple[Int64Array, Boxes]:
        """(row, box) of the subscriptions that select rows `entries` of the base and have a partner in each of `filters`."""
        codes = self.relation.codes[entries]
        found = None
        for by in filters:
            edge = self.graph.edge(self.base, by)
            others = self.graph.relations[by].codes
            question = Question(self.space, self.index, self.base, codes, by, edge.index(by), others)
            part = self.skyline.draw(question, edge.index(self.base).value_of(entries))
            found = part if found is None else intersect(found, part)
        if found is None:
            return np.arange(len(codes)), Boxes.all(self.space, len(codes)).hold(self.base, codes)
        return found

    def _holding(self, entries: Int64Array, codes: Int64Array, sure_since: int) -> tuple[Int64Array, Boxes]:
        """(row, box) of the subscriptions that may hold removed rows: that selected them and, if known, had a partner."""
        found = np.arange(len(entries)), Boxes.all(self.space, len(entries)).hold(self.base, codes)
        arrived = self.relation.arrived[entries]
        # A row with too many boxes for all filters was sent by the first filter alone, so drops use that filter too.
        for by in self.filters[:1]:
            edge = self.graph.edge(self.base, by)
            values, index = edge.index(self.base).value_of(entries), edge.index(by)
            is_sure = arrived > np.maximum(index.tombstones.known_since(values), sure_since)
            if is_sure.any():
                had = past_partners(index, self.graph.relations[by].codes, values, is_sure, arrived)
                boxes = Boxes.all(self.space, len(had.row))
                at = np.flatnonzero(had.is_known)
                narrowed = boxes.take(at).hold(by, had.codes[at])
                boxes.lo[at], boxes.hi[at] = narrowed.lo, narrowed.hi
                found = intersect(found, (had.row, boxes))
        return found

    def _placed(self, entries: Int64Array, seq: Int64Array, owner: Int64Array, boxes: Boxes) -> MessageBatch:
        """A message for each of the rows `entries` that owns a box. seq: [entries]; owner: [boxes]."""
        told, regions = regions_of((owner, boxes, PLACED))
        return self._message(seq[told], regions, self.relation.rows(entries[told]))

    def _message(self, seq: Int64Array, regions: Regions, rows: pa.RecordBatch) -> MessageBatch:
        return MessageBatch(self.space.key, seq, (), regions, rows, None, tuple(self.to), self.space.axes)


def regions_of(*parts: tuple[Int64Array, Boxes, int]) -> tuple[Int64Array, Regions]:
    """(distinct changes, the region of each). parts: (change of each box, boxes, tag of all), in the order of changes."""
    tags = np.repeat(np.array([tag for *_, tag in parts], np.uint8), [len(change) for change, _, _ in parts])
    if len(parts) == 1:
        ((owner, boxes, _),) = parts
        return Regions.grouped(owner, boxes.lo, boxes.hi, tags)
    owner = np.concatenate([change for change, _, _ in parts])
    order = np.argsort(owner, kind="stable")
    lo, hi = (np.concatenate([getattr(boxes, end) for _, boxes, _ in parts])[order] for end in ("lo", "hi"))
    return Regions.grouped(owner[order], lo, hi, tags[order])


def _portions(starts: Int64Array) -> Iterator[tuple[int, int]]:
    """(first, stop) of consecutive lists that together have at most _PAIRS_AT_ONCE members, or of one longer list."""
    first = 0
    while first < len(starts) - 1:
        stop = max(first + 1, int(np.searchsorted(starts, starts[first] + _PAIRS_AT_ONCE, "right")) - 1)
        yield first, stop
        first = stop
