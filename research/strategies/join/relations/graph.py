"""A join graph: the relations of one join and the indexed edges between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from research.strategies.join.relations.join_index import IndexedEdge, JoinIndex
from research.strategies.join.relations.relation import Relation
from research.strategies.join.space import Space


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

    def remainders(self, number: int) -> list[tuple[int, ...]]:
        """The parts that the join falls into without side `number`."""
        left, found = set(range(len(self.relations))) - {number}, []
        while left:
            part, new = set[int](), {min(left)}
            while new:
                part |= new
                new = {side for known in new for side in self.neighbours(known)} & left - part
            left -= part
            found.append(tuple(sorted(part)))
        return found

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
