"""A join graph: the relations of one join and the indexed edges between them. Joined rows are found by following the edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tidings.families.join.relations.join_index import IndexedEdge, JoinIndex, expand
from tidings.families.join.relations.relation import Relation
from tidings.families.join.subscription import Space
from tidings.kernels.rows import NONE
from tidings.model.codes import BoolArray, Int64Array


class Combined:
    """Joined rows, maybe partial: joined row i comes from the row at owner[i] and has entry entries[side][i] of each side."""

    def __init__(self, owner: Int64Array, entries: dict[int, Int64Array]) -> None:
        self.owner, self.entries = owner, entries

    def __len__(self) -> int:
        return len(self.owner)

    def take(self, at: Int64Array | BoolArray) -> Combined:
        return Combined(self.owner[at], {side: some[at] for side, some in self.entries.items()})

    def concat(self, other: Combined) -> Combined:
        entries = {side: np.concatenate([some, other.entries[side]]) for side, some in self.entries.items()}
        return Combined(np.concatenate([self.owner, other.owner]), entries)


@dataclass(frozen=True)
class JoinGraph:
    """A space, the relation of each side, and the edge of each joined pair of sides (smaller number first)."""

    space: Space
    relations: tuple[Relation, ...]
    edges: Mapping[tuple[int, int], IndexedEdge]

    def edge(self, one: int, other: int) -> IndexedEdge:
        return self.edges[(one, other) if one < other else (other, one)]

    def neighbours(self, number: int) -> list[int]:
        """The sides that side `number` is joined to."""
        return [edge.other(number) for sides, edge in self.edges.items() if number in sides]

    def default_filters(self) -> list[tuple[int, ...]]:
        """[sides]: one neighbour as filter, the first by table name, so that joins of the same tables have the same filters."""
        names = [side.table.name for side in self.space.sides]
        return [(min(self.neighbours(number), key=names.__getitem__),) for number in range(len(names))]

    def within(self, space: Space) -> JoinGraph:
        """The part of this graph that belongs to another space, which has some of the tables."""
        numbers = [self.space.side_of(side.table.name) for side in space.sides]

        def index(at: int, by: int) -> JoinIndex:
            return self.edge(numbers[at], numbers[by]).index(numbers[at])

        edges = {
            (one, two): IndexedEdge((one, two), (index(one, two), index(two, one))) for one, two in space.join_columns
        }
        return JoinGraph(space, tuple(self.relations[number] for number in numbers), edges)

    def combine(self, number: int, entries: Int64Array, allowed: Sequence[BoolArray] | None = None) -> Combined:
        """All joined rows of the rows `entries` of side `number`. allowed: [sides], whether each entry may take part."""
        found = Combined(np.arange(len(entries)), {number: entries})
        while len(found.entries) < len(self.relations):
            side, edges = self._next(found)
            known = edges[0].other(side)
            values = edges[0].index(known).value_of(found.entries[known])
            distinct, of = np.unique(values, return_inverse=True)
            place, partner = expand(edges[0].index(side).entries_at(distinct), of)
            found = found.take(place)
            found.entries[side] = partner
            fits = np.ones(len(found), np.bool_) if allowed is None else allowed[side][partner]
            for edge in edges[1:]:
                other = edge.other(side)
                value = edge.index(side).value_of(partner)
                fits &= (value != NONE) & (value == edge.index(other).value_of(found.entries[other]))
            found = found.take(fits)
        return found

    def _next(self, found: Combined) -> tuple[int, list[IndexedEdge]]:
        """A side not yet in `found` that is joined to sides in it, and the edges to these."""
        for pair in self.edges:
            for side, other in (pair, pair[::-1]):
                if side not in found.entries and other in found.entries:
                    own = [
                        edge
                        for sides, edge in self.edges.items()
                        if side in sides and edge.other(side) in found.entries
                    ]
                    return side, own
        raise AssertionError("the tables of a join are connected")
