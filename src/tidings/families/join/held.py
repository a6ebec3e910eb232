"""What one join subscription holds: rows of each table, found by their key and by what they are joined by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tidings.families.join.subscription import Space
from tidings.model.channel import ChannelKey

Joined = tuple["Row", ...]
"""A row of every side."""


class Row(NamedTuple):
    """A row of one side, shared by all who hold it."""

    side: int
    key: ChannelKey
    links: tuple[ChannelKey | None, ...]
    """By edge: what the row is joined by there; None where the edge is not of its side."""
    cells: tuple[str, ...]
    """What it contributes to a joined row, as text."""
    same: tuple[str, ...]
    """The same to compare by."""


class Held:
    """Rows of each side."""

    def __init__(self, orders: list[list[tuple[int, list[tuple[int, int]]]]]) -> None:
        """`orders`: of `orders_of`, shared by all."""
        self._orders = orders
        self.rows: list[dict[ChannelKey, Row]] = [{} for _ in orders]
        self._by_link: dict[tuple[int, int, ChannelKey], dict[ChannelKey, Row]] = {}
        self.whole: dict[tuple[ChannelKey, ...], Joined] = {}
        """Joined rows that came as such, by the keys of their parts."""

    def put(self, row: Row) -> None:
        self.remove(row.side, row.key)
        self.rows[row.side][row.key] = row
        for edge, link in enumerate(row.links):
            if link is not None and None not in link:
                self._by_link.setdefault((row.side, edge, link), {})[row.key] = row

    def remove(self, side: int, key: ChannelKey) -> None:
        row = self.rows[side].pop(key, None)
        if row is None:
            return
        for edge, link in enumerate(row.links):
            if link is not None and None not in link:
                linked = self._by_link[side, edge, link]
                del linked[key]
                if not linked:
                    del self._by_link[side, edge, link]

    def every(self) -> list[Joined]:
        """All joined rows."""
        return [*self.whole.values(), *(joined for key in self.rows[0] for joined in self.joined(0, key))]

    def joined(self, side: int, key: ChannelKey) -> Iterator[Joined]:
        """All joined rows in which this row is."""
        row = self.rows[side].get(key)
        if row is not None:
            yield from self._extend({side: row}, self._orders[side], 0)

    def _extend(
        self, placed: dict[int, Row], order: list[tuple[int, list[tuple[int, int]]]], at: int
    ) -> Iterator[Joined]:
        if at == len(order):
            yield tuple(placed[side] for side in range(len(order) + 1))
            return
        side, edges = order[at]
        edge, other = edges[0]
        link = placed[other].links[edge]
        assert link is not None
        for row in self._by_link.get((side, edge, link), {}).values():
            if all(row.links[e] == placed[o].links[e] and None not in row.links[e] for e, o in edges[1:]):
                yield from self._extend({**placed, side: row}, order, at + 1)


def orders_of(space: Space) -> list[list[tuple[int, list[tuple[int, int]]]]]:
    """For each side to begin with, in which order to join the others."""
    return [_order(space, side) for side in range(len(space.sides))]


def _order(space: Space, first: int) -> list[tuple[int, list[tuple[int, int]]]]:
    """The other sides in an order in which each is joined to one before it: (side, [(edge, side it leads to)])."""
    placed = [first]
    order: list[tuple[int, list[tuple[int, int]]]] = []
    while len(placed) < len(space.sides):
        for side in range(len(space.sides)):
            edges = [
                (number, other)
                for number, edge in enumerate(space.edges)
                for own, other in (edge.sides, edge.sides[::-1])
                if own == side and other in placed
            ]
            if side not in placed and edges:
                placed.append(side)
                order.append((side, edges))
    return order
