"""Where the nodes of a layered graph stand, so that few edges cross: barycentre sweeps, as Sugiyama has them.

Edges go from one layer to the next. The nodes of each layer are ordered by the mean place of their neighbours, layer after
layer, forth and back, and the order with fewest crossings is kept. Then each node moves as close to the mean height of its
neighbours as the room that others take allows.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right, insort
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)
Layers = list[list[Node]]

_SWEEPS = 16
_MOVES = 12


def order_layers(layers: Sequence[Sequence[Node]], edges: Iterable[tuple[Node, Node]]) -> Layers[Node]:
    """The layers, each in an order with few crossings."""
    before, after = _neighbours(edges)
    current = [list(layer) for layer in layers]
    best, fewest = current, crossings(current, after)
    for sweep in range(_SWEEPS):
        if fewest == 0:
            break
        current = [list(layer) for layer in current]
        forth = sweep % 2 == 0
        for number in range(1, len(current)) if forth else range(len(current) - 2, -1, -1):
            fixed = {node: place for place, node in enumerate(current[number - 1 if forth else number + 1])}
            neighbours = before if forth else after
            means = {
                node: _mean([fixed[other] for other in neighbours.get(node, ())], place)
                for place, node in enumerate(current[number])
            }
            current[number].sort(key=means.__getitem__)
        found = crossings(current, after)
        if found < fewest:
            best, fewest = current, found
    return best


def crossings(layers: Layers[Node], after: Mapping[Node, Sequence[Node]]) -> int:
    """Pairs of edges between the same layers that cross. after: per node, its neighbours in the next layer."""
    total = 0
    for layer, following in itertools.pairwise(layers):
        places = {node: place for place, node in enumerate(following)}
        ends: list[int] = []
        for node in layer:
            own = [places[other] for other in after.get(node, ())]
            total += sum(len(ends) - bisect_right(ends, end) for end in own)
            for end in own:
                insort(ends, end)
    return total


def place_layers(
    layers: Layers[Node], edges: Iterable[tuple[Node, Node]], room: Mapping[Node, float], height: float
) -> dict[Node, float]:
    """The middle of each node, from 0 to `height`, which has room for every layer. room: what a node needs."""
    before, after = _neighbours(edges)
    found: dict[Node, float] = {}
    for layer in layers:
        total, at = sum(room[node] for node in layer), 0.0
        for node in layer:
            found[node] = (height - total) / 2 + at + room[node] / 2
            at += room[node]
    for move in range(_MOVES):
        forth = move % 2 == 0
        for layer in layers if forth else reversed(layers):
            neighbours = before if forth else after
            wanted = [_mean([found[other] for other in neighbours.get(node, ())], found[node]) for node in layer]
            found.update(zip(layer, _apart(wanted, [room[node] for node in layer], height), strict=True))
    return found


def _apart(wanted: Sequence[float], room: Sequence[float], height: float) -> list[float]:
    """The heights nearest to those wanted (least squares) at which nobody takes another's room: isotonic regression."""
    if not room:
        return []
    least = []
    at = 0.0
    for need in room:
        least.append(at + need / 2)
        at += need
    # Blocks of neighbours that touch: sum of their wishes, and how many.
    blocks: list[tuple[float, int]] = []
    for wish, start in zip(wanted, least, strict=True):
        total, count = wish - start, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            earlier = blocks.pop()
            total, count = total + earlier[0], count + earlier[1]
        blocks.append((total, count))
    shifts = [min(max(total / count, 0.0), max(0.0, height - at)) for total, count in blocks for _ in range(count)]
    return [start + shift for start, shift in zip(least, shifts, strict=True)]


def _neighbours(edges: Iterable[tuple[Node, Node]]) -> tuple[dict[Node, list[Node]], dict[Node, list[Node]]]:
    before: dict[Node, list[Node]] = {}
    after: dict[Node, list[Node]] = {}
    for one, other in edges:
        after.setdefault(one, []).append(other)
        before.setdefault(other, []).append(one)
    return before, after


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
