"""Passes over a plan that trade use for latency."""

from __future__ import annotations

from tidings.kernels.arrays import F64, I64, Float
from tidings.kernels.jit import kernel
from tidings.relay.planning.kernels.layout import Places, Rows
from tidings.relay.planning.kernels.moves import fits, put
from tidings.relay.planning.kernels.paths import column_latency

GAIN_MIN = 1e-12


@kernel
def subtree_weights(order: I64, critical: I64, weight: I64) -> I64:
    """Per node, the views that wait for it: its own, and those of nodes whose critical source it is, directly or not."""
    total = weight.copy()
    for place in range(len(order) - 1, -1, -1):
        node = order[place]
        if critical[node] >= 0:
            total[critical[node]] += total[node]
    return total


@kernel
def hasten_each(
    rows: Rows,
    places: Places,
    cost: F64,
    order: I64,
    weights: I64,
    alpha: Float,
    beta: Float,
    budget: Float,
    columns: I64,
    load: I64,
    latency: F64,
) -> Float:
    """Moves nodes that the publisher does not feed, each to the column of most gain that fits; returns what budget is left.

    The gain of a column is alpha * use saved + beta * latency saved, the latter times the views that wait for the node.
    Columns that would take more use than the budget has are left.
    """
    for node in order:
        old = columns[node]
        now, _ = column_latency(places, latency, node, old)
        latency[node] = now
        if old == rows.first_column[node]:
            continue
        put(rows, load, old, -1)
        best_gain = GAIN_MIN * (alpha * cost[old] + beta * weights[node] * now)
        for column in range(rows.first_column[node] + 1, rows.first_column[node + 1]):
            if cost[column] - cost[old] > budget or not fits(rows, load, column):
                continue
            then, _ = column_latency(places, latency, node, column)
            gain = alpha * (cost[old] - cost[column]) + beta * weights[node] * (now - then)
            if gain > best_gain:
                best_gain = gain
                columns[node] = column
                latency[node] = then
        budget -= cost[columns[node]] - cost[old]
        put(rows, load, columns[node], 1)
    return budget
