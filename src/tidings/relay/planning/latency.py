"""Less latency for a little more use: passes over a plan, sources first, and plans with latency among the costs.

The latency of a node is that of its slowest source, with the way from there, and the computation. Total latency never rises
when that of a node falls. So a pass in topological order takes, for each node, the best of the columns that fit by
`alpha * use + beta * latency`: latency alone takes far more use for little. A node that others wait for counts as many times.

The first pass takes what fits. By then the sources near the publisher are full, often with nodes that gain little from it:
later passes let two nodes change at once, one that leaves such a source and one that takes its place.

Where capacities are scarce this is not enough. Then all nodes are placed anew by prices, as if latency were a cost, and passes
follow again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tidings.kernels.arrays import F64, I64
from tidings.relay.planning.core import load_of
from tidings.relay.planning.instance import HOP, NO_SITE, Columns, Instance
from tidings.relay.planning.kernels.latency import Task, hasten_by_swaps, hasten_each, subtree_weights
from tidings.relay.planning.kernels.layout import Places
from tidings.relay.planning.kernels.paths import measure, topological_order
from tidings.relay.planning.model import model_of
from tidings.relay.planning.solve import place_by_prices

PASSES = 3
"""More gain little: of 100,000 views the third saves 1% of the latency."""
ROUNDS = 1
"""Times that all nodes are placed anew."""
USE_SLACK = 0.07
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Paths:
    """Of each node: its latency; the source it waits for longest, -1: the publisher; its level, 1: fed by the publisher."""

    latency: F64
    critical: I64
    level: I64


def order_of(instance: Instance) -> I64:
    """All nodes, each behind everything that could feed it."""
    order: I64 = topological_order(instance.first_column, instance.first_source, instance.sources)
    if len(order) < instance.nodes:
        raise ValueError("sources form a cycle")
    return order


def paths_of(instance: Instance, columns: Columns, order: I64 | None = None) -> Paths:
    """Latencies and levels of a plan. `order`: of `order_of`, if it is at hand."""
    return _measured(_places_of(instance), order_of(instance) if order is None else order, columns)


def total_latency(instance: Instance, columns: Columns) -> float:
    """The sum over all views."""
    return float(paths_of(instance, columns).latency @ instance.weight)


def default_beta(instance: Instance, columns: Columns) -> float:
    """For alpha = 1: to halve all latencies is worth as much as to halve all use."""
    latency = total_latency(instance, columns)
    return instance.use(columns) / latency if latency > 0 else 1.0


def reduce_latency(
    instance: Instance,
    columns: Columns,
    alpha: float = 1.0,
    beta: float | None = None,
    passes: int = PASSES,
    use_slack: float = USE_SLACK,
) -> Columns:
    """A plan with no more `alpha * use + beta * latency` than the valid one given; latency is the sum over all views.

    What the publisher feeds stays the same, no capacity is exceeded, and use rises by no more than the part `use_slack`.
    Passes end when one with swaps gains nothing.
    """
    if beta is None:
        beta = alpha * default_beta(instance, columns)
    reduction = _Reduction(instance, alpha, beta, instance.use(columns) * (1 + use_slack), passes)
    best = reduction.by_passes(columns)
    weight = 1.0
    for _ in range(ROUNDS):
        faster = reduction.by_passes(reduction.by_prices(best, weight))
        if instance.use(faster) > reduction.use_max * (1 + ROUNDING):
            weight /= 2  # latency bought too much use
        elif reduction.total(faster) < reduction.total(best):
            best = faster
        else:
            break
    return best


class _Reduction:
    """Two ways to reduce `alpha * use + beta * latency`."""

    def __init__(self, instance: Instance, alpha: float, beta: float, use_max: float, passes: int) -> None:
        self.use_max = use_max
        self._instance, self._alpha, self._beta, self._passes = instance, alpha, beta, passes
        self._model = model_of(instance)
        self._places = _places_of(instance)
        self._order = order_of(instance)

    def total(self, columns: Columns) -> float:
        return self._total(columns, self._paths(columns))

    def _paths(self, columns: Columns) -> Paths:
        return _measured(self._places, self._order, columns)

    def _total(self, columns: Columns, paths: Paths) -> float:
        latency = float(paths.latency @ self._instance.weight)
        return self._alpha * self._instance.use(columns) + self._beta * latency

    def by_passes(self, columns: Columns) -> Columns:
        """Nodes move to better columns, in topological order: where there is room at first, then also by swaps."""
        instance, order = self._instance, self._order
        best, paths = columns, self._paths(columns)
        lowest = self._total(best, paths)
        use_max = max(self.use_max, instance.use(columns))
        for number in range(self._passes):
            plan = best.copy()
            weights = subtree_weights(order, paths.critical, instance.weight)
            task = Task(self._model.rows, self._places, instance.cost, weights, self._alpha, self._beta)
            hasten = hasten_each if number == 0 else hasten_by_swaps
            load = load_of(self._model, plan)
            hasten(task, order, use_max - instance.use(plan), plan, load, paths.latency.copy())
            found = self._paths(plan)
            total = self._total(plan, found)
            # Sums of costs in another order differ by rounding errors.
            if total < lowest and instance.use(plan) <= use_max * (1 + ROUNDING):
                best, paths, lowest = plan, found, total
            elif number > 0:
                break
        return best

    def by_prices(self, columns: Columns, weight: float) -> Columns:
        """All nodes are placed anew, with the latency that each column would have now in its cost: many want the same sources,
        those near the publisher, and prices give them to whom they are worth most. May be worse than what is given, as
        latencies and what waits for whom change."""
        instance = self._instance
        paths = self._paths(columns)
        waiting = subtree_weights(self._order, paths.critical, instance.weight)
        owner = np.repeat(np.arange(instance.nodes), np.diff(instance.first_column))
        latency = waiting[owner] * _column_latencies(instance, owner, paths.latency)
        cost = self._alpha * instance.cost + self._beta * weight * latency
        return place_by_prices(replace(instance, cost=cost), columns)


def _column_latencies(instance: Instance, owner: I64, latency: F64) -> F64:
    """Of each column that has sources, when its node would have its result; of the publisher's, its computation alone."""
    lengths = np.diff(instance.first_source)
    user = np.repeat(owner, lengths)
    sources = instance.sources
    way = np.hypot(*(instance.position[sources] - instance.position[user]).T)
    way[np.isnan(way)] = HOP
    way[(instance.site[user] == instance.site[sources]) & (instance.site[user] != NO_SITE)] = 0.0
    found = instance.delay.copy()
    has_sources = lengths > 0
    if len(sources):
        starts = instance.first_source[:-1][has_sources]
        found[has_sources] += np.maximum.reduceat(latency[sources] + way, starts)
    return found


def _places_of(instance: Instance) -> Places:
    away = instance.position - np.array(instance.publisher_position)
    length = np.hypot(away[:, 0], away[:, 1])
    return Places(
        instance.first_source,
        instance.sources,
        instance.site,
        instance.position,
        np.where(np.isnan(length), HOP, length),
        instance.delay,
        HOP,
    )


def _measured(places: Places, order: I64, columns: Columns) -> Paths:
    nodes = len(columns)
    paths = Paths(np.empty(nodes), np.empty(nodes, np.int64), np.empty(nodes, np.int64))
    measure(places, order, columns, paths.latency, paths.critical, paths.level)
    return paths
