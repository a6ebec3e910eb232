"""Joined rows, found by following the edges of a join graph."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from research.strategies.join.payload import fits
from research.strategies.join.relations.graph import JoinGraph
from research.strategies.join.relations.join_index import IndexedEdge, expand
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


def combine(
    graph: JoinGraph,
    number: int,
    entries: Int64Array,
    allowed: Sequence[BoolArray] | None = None,
    among: Collection[int] | None = None,
) -> Combined:
    """All joined rows of the rows `entries` of side `number`.

    allowed: [sides], whether each entry may take part; among: sides that are connected, `number` one of them (default: all).
    """
    sides = range(len(graph.relations)) if among is None else among
    found = Combined(np.arange(len(entries)), {number: entries})
    while len(found.entries) < len(sides):
        side, edges = _next(graph, found, sides)
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


def selected(graph: JoinGraph, coords: Int64Array) -> list[BoolArray]:
    """For each side, whether each entry is a row that a subscription selects."""
    found = []
    for side, relation in zip(graph.space.sides, graph.relations, strict=True):
        entries = relation.current()
        mask = np.zeros(int(entries.max(initial=NONE)) + 1, np.bool_)
        mask[entries] = fits(side, relation.codes[entries], coords)
        found.append(mask)
    return found


def _next(graph: JoinGraph, found: Combined, among: Collection[int]) -> tuple[int, list[IndexedEdge]]:
    """A side of `among` not yet in `found` that is joined to sides in it, and the edges to these."""
    for pair in graph.edges:
        for side, other in (pair, pair[::-1]):
            if side in among and side not in found.entries and other in found.entries:
                own = [
                    edge for sides, edge in graph.edges.items() if side in sides and edge.other(side) in found.entries
                ]
                return side, own
    raise AssertionError("the tables of a join are connected")
