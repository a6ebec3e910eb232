"""Passes over a plan that trade use for latency."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.kernels.arrays import F64, I32, I64, Float, Int
from tidings.kernels.jit import kernel
from tidings.relay.planning.kernels.moves import fits, forget, members_of_rows, only_blocked_row, put, units_in
from tidings.relay.planning.kernels.paths import column_latency
from tidings.relay.planning.kernels.plan_layout import Places, Rows

GAIN_MIN = 1e-12


class Task(NamedTuple):
    """What is to be gained: alpha * use + beta * latency, within the capacities of the rows."""

    rows: Rows
    places: Places
    cost: F64
    """[columns]"""
    weights: I64
    """[nodes]: the views that wait for a node."""
    alpha: Float
    beta: Float


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
def worth(task: Task, latency: F64, node: Int, column: Int) -> Float:
    """What is to be small: use, and latency times the views that wait for the node."""
    then, _ = column_latency(task.places, latency, node, column)
    return task.alpha * task.cost[column] + task.beta * task.weights[node] * then


@kernel
def is_back_to_publisher(task: Task, old: Int, column: Int) -> Int:
    """Whether the publisher would feed a node, in part, that it does not feed now."""
    return task.places.is_published[column] and not task.places.is_published[old]


@kernel
def fastest_fitting(
    task: Task, load: I64, latency: F64, node: Int, old: Int, other_than: Int, budget: Float
) -> tuple[Int, Float]:
    """The column of least worth that fits, does not use row `other_than` and takes no more use than the budget, -1: none."""
    found = -1
    lowest = np.inf
    for column in range(task.rows.first_column[node] + 1, task.rows.first_column[node + 1]):
        if column == old or task.cost[column] - task.cost[old] > budget or not fits(task.rows, load, column):
            continue
        if is_back_to_publisher(task, old, column):
            continue
        if other_than >= 0 and units_in(task.rows, column, other_than) > 0:
            continue
        value = worth(task, latency, node, column)
        if value < lowest:
            lowest = value
            found = column
    return found, lowest


@kernel
def hasten_each(task: Task, order: I64, budget: Float, columns: I64, load: I64, latency: F64) -> Float:
    """Moves nodes that others feed, each to the column of most gain that fits; returns what budget is left."""
    for node in order:
        old = columns[node]
        latency[node], _ = column_latency(task.places, latency, node, old)
        if old == task.rows.first_column[node]:
            continue
        put(task.rows, load, old, -1)
        column, value = fastest_fitting(task, load, latency, node, old, -1, budget)
        now = worth(task, latency, node, old)
        if now - value > GAIN_MIN * now:
            columns[node] = column
            latency[node], _ = column_latency(task.places, latency, node, column)
            budget -= task.cost[column] - task.cost[old]
        put(task.rows, load, columns[node], 1)
    return budget


@kernel
def least_harmed(
    task: Task,
    columns: I64,
    load: I64,
    latency: F64,
    first_member: I64,
    members: I32,
    row: Int,
    units: Int,
    budget: Float,
) -> tuple[Int, Int, Float]:
    """The node that gives up at least some units of a row at least loss; its new column, and that loss."""
    leaver = -1
    target = -1
    least = np.inf
    for place in range(first_member[row], first_member[row + 1]):
        node = members[place]
        old = columns[node]
        # The lists are as old as the pass: the node may have gone elsewhere since, or be out while this is asked.
        if old < 0 or units_in(task.rows, old, row) < units:
            continue
        put(task.rows, load, old, -1)
        column, value = fastest_fitting(task, load, latency, node, old, row, budget)
        put(task.rows, load, old, 1)
        loss = value - worth(task, latency, node, old)
        if column >= 0 and loss < least:
            least = loss
            leaver = node
            target = column
    return leaver, target, least


@kernel
def hasten_by_swaps(task: Task, order: I64, budget: Float, columns: I64, load: I64, latency: F64) -> Float:
    """The same, and a node may take a column that one full row forbids, if another leaves that row for less than is gained."""
    rows, cost = task.rows, task.cost
    first_member, members = members_of_rows(rows, columns)
    # What it took to leave a row when somebody last looked; rows where that is too much are not looked at again.
    leaving = np.full(len(rows.capacity), -np.inf)
    for node in order:
        old = columns[node]
        latency[node], _ = column_latency(task.places, latency, node, old)
        if old == rows.first_column[node]:
            continue
        now = worth(task, latency, node, old)
        put(rows, load, old, -1)
        columns[node] = -1
        target, leaver, new_place = old, -1, -1
        best_gain = GAIN_MIN * now
        for column in range(rows.first_column[node] + 1, rows.first_column[node + 1]):
            dearer = cost[column] - cost[old]
            if column == old or dearer > budget or is_back_to_publisher(task, old, column):
                continue
            gain = now - worth(task, latency, node, column)
            if gain <= best_gain:
                continue
            blocked, lacking = only_blocked_row(rows, load, column)
            if lacking == 0:
                best_gain, target, leaver = gain, column, -1
                continue
            if blocked < 0 or gain - leaving[blocked] <= best_gain:
                continue
            put(rows, load, column, 1)
            who, where, loss = least_harmed(
                task, columns, load, latency, first_member, members, blocked, lacking, budget - dearer
            )
            put(rows, load, column, -1)
            leaving[blocked] = loss
            if who >= 0 and gain - loss > best_gain:
                best_gain, target, leaver, new_place = gain - loss, column, who, where
        columns[node] = target
        put(rows, load, target, 1)
        if target == old:
            continue
        latency[node], _ = column_latency(task.places, latency, node, target)
        budget -= cost[target] - cost[old]
        if leaver >= 0:
            put(rows, load, columns[leaver], -1)
            put(rows, load, new_place, 1)
            budget -= cost[new_place] - cost[columns[leaver]]
            columns[leaver] = new_place
            latency[leaver], _ = column_latency(task.places, latency, leaver, new_place)
            forget(rows, leaving, new_place)
        forget(rows, leaving, old)
        forget(rows, leaving, target)
    return budget
