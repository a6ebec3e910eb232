"""Building a plan within capacities, and making it cheaper one node or two at a time.

`columns` is the plan, `load` what it uses of each row; every function keeps the two together. The publisher's row alone may be
overloaded while a plan is built: `penalty` is what a node too many there costs, more than all else.
"""

from __future__ import annotations

import heapq

import numpy as np

from tidings.kernels.arrays import F64, I32, I64, Float, Int
from tidings.kernels.jit import kernel
from tidings.relay.planning.kernels.plan_layout import Rows

GAIN_MIN = 1e-9
"""Less than this, of a column's cost, is rounding."""


@kernel
def put(rows: Rows, load: I64, column: Int, sign: Int) -> None:
    for use in range(rows.first_use[column], rows.first_use[column + 1]):
        load[rows.use_row[use]] += sign * rows.use_units[use]


@kernel
def units_in(rows: Rows, column: Int, row: Int) -> Int:
    for use in range(rows.first_use[column], rows.first_use[column + 1]):
        if rows.use_row[use] == row:
            return rows.use_units[use]
    return 0


@kernel
def fits(rows: Rows, load: I64, column: Int) -> Int:
    for use in range(rows.first_use[column], rows.first_use[column + 1]):
        row = rows.use_row[use]
        if load[row] + rows.use_units[use] > rows.capacity[row]:
            return False
    return True


@kernel
def only_blocked_row(rows: Rows, load: I64, column: Int) -> tuple[Int, Int]:
    """The row that has too few units left for a column, and how many too few: 0 if there is none. -1 if there are several."""
    blocked = -1
    lacking = 0
    for use in range(rows.first_use[column], rows.first_use[column + 1]):
        row = rows.use_row[use]
        beyond = load[row] + rows.use_units[use] - rows.capacity[row]
        if beyond > 0:
            if lacking > 0:
                return -1, beyond
            blocked = row
            lacking = beyond
    return blocked, lacking


@kernel
def forget(rows: Rows, leaving: F64, column: Int) -> None:
    """What it takes to leave the rows of a column is not known any more."""
    for use in range(rows.first_use[column], rows.first_use[column + 1]):
        leaving[rows.use_row[use]] = -np.inf


@kernel
def cheapest_fitting(rows: Rows, cost: F64, load: I64, node: Int, other_than: Int) -> tuple[Int, Float]:
    """The node's cheapest column that fits and does not use row `other_than`, -1 if there is none; and the next one's cost."""
    found = -1
    lowest = np.inf
    following = np.inf
    for column in range(rows.first_column[node], rows.first_column[node + 1]):
        if cost[column] >= following or not fits(rows, load, column):
            continue
        if other_than >= 0 and units_in(rows, column, other_than) > 0:
            continue
        if cost[column] < lowest:
            following = lowest
            lowest = cost[column]
            found = column
        else:
            following = cost[column]
    return found, following


@kernel
def place_by_regret(rows: Rows, cost: F64, columns: I64, load: I64) -> None:
    """Places the nodes that have no column, -1. First the one that would lose most if it had to take its second best.

    What a node would lose changes while others are placed: it is computed anew when its turn comes. A node that fits nowhere
    goes to the publisher, its first column.
    """
    waiting = [(0.0, 0) for _ in range(0)]
    for node in range(len(columns)):
        if columns[node] < 0:
            column, following = cheapest_fitting(rows, cost, load, node, -1)
            waiting.append((cost[column] - following if column >= 0 else -np.inf, node))
    heapq.heapify(waiting)
    while len(waiting) > 0:
        regret, node = heapq.heappop(waiting)
        column, following = cheapest_fitting(rows, cost, load, node, -1)
        if column < 0:
            column = rows.first_column[node]
        elif len(waiting) > 0 and cost[column] - following > regret and cost[column] - following > waiting[0][0]:
            heapq.heappush(waiting, (cost[column] - following, node))
            continue
        columns[node] = column
        put(rows, load, column, 1)


@kernel
def move_each(rows: Rows, cost: F64, publisher: Int, penalty: Float, columns: I64, load: I64) -> Float:
    """Moves each node to its cheapest column that fits, once over all; returns what was gained."""
    gained = 0.0
    for node in range(len(columns)):
        old = columns[node]
        excess = publisher >= 0 and load[publisher] > rows.capacity[publisher] and units_in(rows, old, publisher) > 0
        put(rows, load, old, -1)
        column, _ = cheapest_fitting(rows, cost, load, node, -1)
        gain = -np.inf
        if column >= 0:
            gain = cost[old] - cost[column] + (penalty if excess else 0.0)
        if gain > GAIN_MIN * cost[old]:
            columns[node] = column
            gained += gain
        put(rows, load, columns[node], 1)
    return gained


@kernel
def members_of_rows(rows: Rows, columns: I64) -> tuple[I64, I32]:
    """Per row, the nodes that use it in this plan: first_member[rows + 1], then nodes."""
    first_member = np.zeros(len(rows.capacity) + 1, np.int64)
    for column in columns:
        for use in range(rows.first_use[column], rows.first_use[column + 1]):
            first_member[rows.use_row[use] + 1] += 1
    for row in range(len(rows.capacity)):
        first_member[row + 1] += first_member[row]
    members = np.empty(first_member[len(rows.capacity)], np.int32)
    top = first_member[:-1].copy()
    for node in range(len(columns)):
        for use in range(rows.first_use[columns[node]], rows.first_use[columns[node] + 1]):
            row = rows.use_row[use]
            members[top[row]] = node
            top[row] += 1
    return first_member, members


@kernel
def cheapest_leaver(
    rows: Rows, cost: F64, columns: I64, load: I64, first_member: I64, members: I32, row: Int, units: Int, limit: Float
) -> tuple[Int, Int, Float]:
    """The node that gives up at least some units of a row at least cost, below a limit; its new column, and that cost."""
    leaver = -1
    target = -1
    for place in range(first_member[row], first_member[row + 1]):
        node = members[place]
        old = columns[node]
        # The lists are as old as the pass: the node may have gone elsewhere since, or be out while this is asked.
        if old < 0 or units_in(rows, old, row) < units:
            continue
        put(rows, load, old, -1)
        column, _ = cheapest_fitting(rows, cost, load, node, row)
        put(rows, load, old, 1)
        if column >= 0 and cost[column] - cost[old] < limit:
            limit = cost[column] - cost[old]
            leaver = node
            target = column
    return leaver, target, limit


@kernel
def swap_each(rows: Rows, cost: F64, publisher: Int, penalty: Float, columns: I64, load: I64) -> Float:
    """Moves a node to a column that one full row forbids, if another node leaves that row for less than is gained."""
    gained = 0.0
    first_member, members = members_of_rows(rows, columns)
    # What it cost to leave a row when somebody last looked; rows where that is too much are not looked at again.
    leaving = np.full(len(rows.capacity), -np.inf)
    for node in range(len(columns)):
        old = columns[node]
        excess = publisher >= 0 and load[publisher] > rows.capacity[publisher] and units_in(rows, old, publisher) > 0
        now = cost[old] + (penalty if excess else 0.0)
        put(rows, load, old, -1)
        columns[node] = -1
        target, leaver, new_place = old, -1, -1
        best_gain = GAIN_MIN * cost[old]
        for column in range(rows.first_column[node], rows.first_column[node + 1]):
            gain = now - cost[column]
            if gain <= best_gain:
                continue
            blocked, lacking = only_blocked_row(rows, load, column)
            if lacking == 0:
                best_gain, target, leaver = gain, column, -1
                continue
            if blocked < 0 or gain - leaving[blocked] <= best_gain:
                continue
            put(rows, load, column, 1)
            who, where, price = cheapest_leaver(
                rows, cost, columns, load, first_member, members, blocked, lacking, np.inf
            )
            put(rows, load, column, -1)
            leaving[blocked] = price
            if who >= 0 and gain - price > best_gain:
                best_gain, target, leaver, new_place = gain - price, column, who, where
        columns[node] = target
        put(rows, load, target, 1)
        if target == old:
            continue
        gained += best_gain
        if leaver >= 0:
            put(rows, load, columns[leaver], -1)
            put(rows, load, new_place, 1)
            columns[leaver] = new_place
            forget(rows, leaving, new_place)
        forget(rows, leaving, old)
        forget(rows, leaving, target)
    return gained
