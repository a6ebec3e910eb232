"""Less latency for a little more use: passes over a plan, sources first.

The latency of a node is that of its slowest source, with the way from there, and the computation. Total latency never rises
when that of a node falls. So a pass in topological order takes, for each node, the best of the columns that fit by
`alpha * use + beta * latency`: latency alone takes far more use for little. A node that others wait for counts as many times.

The first pass takes what fits. By then the sources near the publisher are full, often with nodes that gain little from it:
later passes let two nodes change at once, one that leaves such a source and one that takes its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tidings.kernels.arrays import F64, I64
from tidings.relay.planning.core import load_of
from tidings.relay.planning.instance import HOP, Columns, Instance
from tidings.relay.planning.kernels.latency import Task, hasten_by_swaps, hasten_each, subtree_weights
from tidings.relay.planning.kernels.paths import measure, topological_order
from tidings.relay.planning.kernels.plan_layout import Places
from tidings.relay.planning.model import model_of

PASSES = 6
"""More gain little: of 100,000 views the sixth saves less than 1% of the latency."""
USE_SLACK = 0.07
ROUNDING = 1e-12


@dataclass(frozen=True)
class Haste:
    """How latency is reduced: whatever makes alpha * use + beta * latency less is taken.

    beta: bytes that a hop less for one view is worth, if alpha is 1; None: see `default_beta`. slack: how many times its
    capacity a site may use for that. In a plan of least use, those that feed many are at their capacity, which leaves little
    room; with slack they have some.
    """

    alpha: float = 1.0
    beta: float | None = None
    slack: float = 1.0


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
    on_pass: Callable[[Columns], object] = lambda columns: None,
) -> Columns:
    """A plan with no more `alpha * use + beta * latency` than the valid one given; latency is the sum over all views.

    The publisher feeds no other nodes than before, no capacity is exceeded, and use rises by no more than the part `use_slack`.
    Passes end when one with swaps gains nothing. on_pass: called with the plan after each that gains.
    """
    if beta is None:
        beta = alpha * default_beta(instance, columns)
    model = model_of(instance)
    places = _places_of(instance)
    order = order_of(instance)
    use_max = instance.use(columns) * (1 + use_slack)
    best = columns
    paths = _measured(places, order, best)
    lowest = alpha * instance.use(best) + beta * float(paths.latency @ instance.weight)
    for number in range(passes):
        plan = best.copy()
        weights = subtree_weights(order, paths.critical, instance.weight)
        task = Task(model.rows, places, instance.cost, weights, alpha, beta)
        hasten = hasten_each if number == 0 else hasten_by_swaps
        hasten(task, order, use_max - instance.use(plan), plan, load_of(model, plan), paths.latency.copy())
        found = _measured(places, order, plan)
        total = alpha * instance.use(plan) + beta * float(found.latency @ instance.weight)
        # Sums of costs in another order differ by rounding errors.
        if total < lowest and instance.use(plan) <= use_max * (1 + ROUNDING):
            best, paths, lowest = plan, found, total
            on_pass(best)
        elif number > 0:
            break
    return best


def _places_of(instance: Instance) -> Places:
    away = instance.position - np.array(instance.publisher_position)
    length = np.hypot(away[:, 0], away[:, 1])
    return Places(
        instance.first_source,
        instance.sources,
        instance.is_published,
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
