"""Overlays: which brokers a message passes, and in what order, by the zone map of its version.

Every broker can work this out for itself from the map and the region. `can`: brokers whose cells touch are neighbours; the
server starts a copy in every connected component of the zones that a region meets, at its zone nearest to the server, and
each zone is told by the neighbour that is nearest to that. `tree`: brokers form a tree over the order of their cells; a link
has a cover, a few boxes around all points beyond it. `btree`: the same in one dimension, with intervals of keys instead
(a distributed B-tree). `unicast`: from the server to each point, for comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.arrays import I64, runs_of
from tidings.network.kernels import descend, mark_meetings, mark_touching, spread
from tidings.network.messages import SERVER, Event, Route
from tidings.network.zones import ZoneMap

FANOUT = 8
"""Children of a broker in a tree."""
COVER_BOXES = 8
"""Boxes of the cover of a link, at most."""
Boxes = tuple[I64, I64]
"""Closed ends lo, hi: [D] of one box, [b, D] of several."""


class Overlay(Protocol):
    def routes(self, events: Sequence[Event]) -> list[Route]:
        """The way of each event, by the map's version."""
        ...


class Can:
    """A content-addressable network: neighbours share a face."""

    def __init__(self, zone_map: ZoneMap, brokers: int, distance: I64) -> None:
        """distance [brokers]: from the server."""
        self._map, self._brokers, self._distance = zone_map, brokers, distance
        touching = np.zeros((brokers, brokers), np.bool_)
        mark_touching(zone_map.lo, zone_map.hi, zone_map.owner, touching)
        starts = np.concatenate([[0], np.cumsum(touching.sum(axis=1))]).astype(np.int64)
        self.beside = starts, np.nonzero(touching)[1].astype(np.int64)
        """Neighbours of all brokers: those of broker b from starts[b] to starts[b + 1]."""

    def routes(self, events: Sequence[Event]) -> list[Route]:
        met = meetings(self._map, self._brokers, events)
        order, parent = np.empty(self._brokers, np.int64), np.empty(self._brokers, np.int64)
        found = []
        for of_message in met:
            size = spread(of_message, *self.beside, self._distance, order, parent)
            found.append(route_of(order[:size], parent[:size]))
        return found


class Tree:
    """A tree over brokers in the order of their first cells, with covers along links.

    The first broker of a run of brokers heads it; the others form at most `FANOUT` runs below it.
    """

    def __init__(self, zone_map: ZoneMap, brokers: int, bounds: Mapping[int, Boxes] | None = None) -> None:
        """`bounds` has a box around the points of each cell that has points; without, covers are made of cells."""
        self._order = _in_order(zone_map, brokers)
        self._child_starts, self._child, ends = runs_of_tree(brokers)
        boxes = _boxes(zone_map, self._order, bounds)
        parts = [_merged(boxes[node:end]) for node, end in enumerate(ends)]
        self._starts = np.concatenate([[0], np.cumsum([len(lo) for lo, _ in parts])]).astype(np.int64)
        self._lo = np.concatenate([lo for lo, _ in parts])
        self._hi = np.concatenate([hi for _, hi in parts])

    def routes(self, events: Sequence[Event]) -> list[Route]:
        order, parent = np.empty(len(self._order), np.int64), np.empty(len(self._order), np.int64)
        names = np.append(self._order, SERVER)
        found = []
        for event in events:
            tree = (self._child_starts, self._child, self._starts, self._lo, self._hi)
            size = descend(event.lo, event.hi, *tree, order, parent)
            found.append(route_of(names[order[:size]], names[parent[:size]]))
        return found


class Unicast:
    """No overlay: the server sends a message for each point to the broker that has it."""

    def __init__(self, count: Callable[[Event], dict[int, int]]) -> None:
        """`count` gives the brokers that have points in an event's region, and how many."""
        self._count = count

    def routes(self, events: Sequence[Event]) -> list[Route]:
        counts = map(self._count, events)
        return [Route({SERVER: tuple(found)}, found) for found in counts]


def meetings(zone_map: ZoneMap, brokers: int, events: Sequence[Event]) -> NDArray[np.bool_]:
    """bool [events, brokers]: who owns a cell that an event's region meets."""
    met = np.zeros((len(events), brokers), np.bool_)
    if events:
        starts = np.concatenate([[0], np.cumsum([len(event.lo) for event in events])]).astype(np.int64)
        lo, hi = np.concatenate([event.lo for event in events]), np.concatenate([event.hi for event in events])
        mark_meetings(lo, hi, starts, zone_map.lo, zone_map.hi, zone_map.owner, met)
    return met


def route_of(order: I64, parent: I64) -> Route:
    """A tree from its nodes, parents first and children of a node together, each with its parent; roots have `SERVER`."""
    by_parent = np.argsort(parent, kind="stable")
    grouped, children = parent[by_parent], order[by_parent].tolist()
    first, last = runs_of(grouped)
    runs = zip(grouped[first].tolist(), first.tolist(), last.tolist(), strict=True)
    return Route({node: tuple(children[start:stop]) for node, start, stop in runs}, {})


def _boxes(zone_map: ZoneMap, brokers: I64, bounds: Mapping[int, Boxes] | None) -> list[Boxes]:
    """Boxes around all that each of these brokers answers for."""
    found: dict[int, list[Boxes]] = {broker: [] for broker in brokers.tolist()}
    for cell, owner, lo, hi in zip(
        zone_map.cell.tolist(), zone_map.owner.tolist(), zone_map.lo, zone_map.hi, strict=True
    ):
        box = (lo, hi) if bounds is None else bounds.get(cell)
        if box is not None:
            found[owner].append(box)
    shape = (-1, zone_map.lo.shape[1])
    return [
        (
            np.array([lo for lo, _ in own], np.int64).reshape(shape),
            np.array([hi for _, hi in own], np.int64).reshape(shape),
        )
        for own in found.values()
    ]


def _in_order(zone_map: ZoneMap, brokers: int) -> I64:
    """Brokers by their lowest cell, dimension by dimension; those without any come last."""
    order = np.lexsort(zone_map.lo.T[::-1]) if zone_map.lo.shape[1] == 1 else np.argsort(zone_map.cell)
    _, first = np.unique(zone_map.owner[order], return_index=True)
    owners = zone_map.owner[order][np.sort(first)]
    return np.concatenate([owners, np.setdiff1d(np.arange(brokers), owners)])


def runs_of_tree(count: int) -> tuple[I64, I64, list[int]]:
    """Of the nodes 0 .. count - 1 of a tree, each of which heads a run: its children as CSR, and the end of its run."""
    children: list[list[int]] = [[] for _ in range(count)]
    ends = [0] * count
    todo = [(0, count)]
    while todo:
        head, end = todo.pop()
        ends[head] = end
        rest = end - head - 1
        runs = min(rest, FANOUT)
        cuts = [head + 1 + rest * i // runs for i in range(runs + 1)] if runs else []
        for start, stop in pairwise(cuts):
            children[head].append(start)
            todo.append((start, stop))
    starts = np.concatenate([[0], np.cumsum([len(own) for own in children])]).astype(np.int64)
    return starts, np.array([child for own in children for child in own], np.int64), ends


def _merged(boxes: Sequence[Boxes]) -> Boxes:
    """At most `COVER_BOXES` boxes around all of these, which are in an order in which neighbours lie close."""
    lo, hi = (np.concatenate(ends) for ends in zip(*boxes, strict=True))
    if len(lo) <= COVER_BOXES:
        return lo, hi
    cuts = len(lo) * np.arange(COVER_BOXES) // COVER_BOXES
    return np.minimum.reduceat(lo, cuts, axis=0), np.maximum.reduceat(hi, cuts, axis=0)
