"""A live plan as an instance: what a new full plan is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tidings.kernels.arrays import I64
from tidings.relay.planning.instance import UNLIMITED, Columns, Instance


class Column(NamedTuple):
    """A way to feed a node: by the publisher if it has no sources."""

    cost: float
    sources: tuple[int, ...] = ()
    delay: float = 0.0


@dataclass(frozen=True, eq=False)
class Snapshot:
    """An instance of the nodes there are, without columns that have removed sources; pools keep their numbers.

    columns: the plan.
    node: of each node of the instance, its number in the live plan.
    index: of each column of the instance, which of its node's columns it is in the live plan.
    """

    instance: Instance
    columns: Columns
    node: I64
    index: I64


def snapshot_of(
    base: Instance,
    more: Mapping[int, Sequence[Column]],
    is_alive: Sequence[bool],
    chosen: Sequence[int],
    site: Sequence[int],
    pool: Sequence[int],
    weight: Sequence[int],
    position: Sequence[tuple[float, float]],
    capacity: Sequence[int],
) -> Snapshot:
    """`more`: columns of nodes beyond those of the base. All else is per node, of the base and beyond, and per pool."""
    alive = np.array(is_alive, bool)
    node, index, cost, delay, lengths, sources = _all_columns(base, more)
    first = np.append(0, np.cumsum(lengths))
    dead_before = np.append(0, np.cumsum(~alive[sources]))
    kept = np.flatnonzero(alive[node] & (dead_before[first[1:]] == dead_before[first[:-1]]))
    kept = kept[np.lexsort((index[kept], node[kept]))]
    first_source = np.append(0, np.cumsum(lengths[kept]))
    places = np.repeat(first[kept] - first_source[:-1], lengths[kept]) + np.arange(first_source[-1])
    live = np.flatnonzero(alive)
    number = np.cumsum(alive) - 1
    first_column = np.append(0, np.cumsum(np.bincount(number[node[kept]], minlength=len(live))))
    instance = Instance(
        first_column=first_column.astype(np.int64),
        cost=cost[kept],
        first_source=first_source.astype(np.int64),
        sources=number[sources[places]].astype(np.int32),
        pool=np.array(pool, np.int32)[live],
        capacity=np.array(capacity, np.int64),
        site=np.array(site, np.int32)[live],
        publisher_capacity=base.publisher_capacity,
        is_published=lengths[kept] == 0,
        sent=np.zeros(len(live), np.int32),
        bandwidth=np.full(len(capacity), UNLIMITED),
        delay=delay[kept],
        position=np.array(position, np.float64).reshape(-1, 2)[live],
        publisher_position=base.publisher_position,
        weight=np.array(weight, np.int64)[live],
    )
    is_chosen = index[kept] == np.array(chosen, np.int64)[node[kept]]
    return Snapshot(instance, np.flatnonzero(is_chosen), live, index[kept])


def _all_columns(base: Instance, more: Mapping[int, Sequence[Column]]) -> tuple[np.ndarray, ...]:
    """Of each column its node, index in the node, cost, delay, and number of sources; then all sources."""
    counts = np.diff(base.first_column)
    node = np.repeat(np.arange(base.nodes), counts)
    index = np.arange(len(base.cost)) - np.repeat(base.first_column[:-1], counts)
    others = [
        (owner, place + (int(counts[owner]) if owner < base.nodes else 0), column)
        for owner, columns in more.items()
        for place, column in enumerate(columns)
    ]
    return (
        np.append(node, np.array([owner for owner, _, _ in others], np.int64)),
        np.append(index, np.array([place for _, place, _ in others], np.int64)),
        np.append(base.cost, [column.cost for _, _, column in others]),
        np.append(base.delay, [column.delay for _, _, column in others]),
        np.append(np.diff(base.first_source), np.array([len(column.sources) for _, _, column in others], np.int64)),
        np.append(base.sources, np.array([source for _, _, column in others for source in column.sources], np.int64)),
    )
