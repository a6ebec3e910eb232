"""Dual coordinate ascent on the prices of capacities.

With a price per unit, capacities are no limits any more: each node takes the column of least reduced cost, cost + price of
the units it uses. The sum of these, less price times capacity, is at most the cost of any plan (Lagrange). As a function of
one price it is concave and piecewise linear: its slope is the demand at this price, less the capacity. Each node contributes
thresholds, the prices at which it would rather use a unit less. The best price is between the B-th and (B+1)-th largest.
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.arrays import F64, I32, I64, Float, Int
from tidings.kernels.jit import kernel
from tidings.relay.planning.kernels.plan_layout import Rows

INFEASIBLE = -1.0


@kernel
def reduce_costs(rows: Rows, cost: F64, price: F64, reduced: F64, best: I64, load: I64) -> Float:
    """Sets reduced costs, each node's best column and the load of rows by the prices; returns the dual value."""
    first_column, first_use, use_row, use_units = rows.first_column, rows.first_use, rows.use_row, rows.use_units
    load[:] = 0
    value = 0.0
    for node in range(len(first_column) - 1):
        at = first_column[node]
        for column in range(first_column[node], first_column[node + 1]):
            total = cost[column]
            for use in range(first_use[column], first_use[column + 1]):
                total += use_units[use] * price[use_row[use]]
            reduced[column] = total
            if total < reduced[at]:
                at = column
        best[node] = at
        value += reduced[at]
        for use in range(first_use[at], first_use[at + 1]):
            load[use_row[use]] += use_units[use]
    for row in range(len(price)):
        value -= price[row] * rows.capacity[row]
    return value


@kernel
def thresholds_of_row(rows: Rows, row: Int, price: Float, reduced: F64, found: F64, weight: I64) -> tuple[Int, Int]:
    """Writes the thresholds of a row to `found`, with the units that are given up at each; returns their number, and the units
    used at any price."""
    first_column, user_column, user_units = rows.first_column, rows.user_column, rows.user_units
    # Of one node: different numbers of units, and the least cost of a column with so many.
    taken = np.empty(rows.columns_max + 1, np.int64)
    lowest = np.empty(rows.columns_max + 1)
    count = 0
    always = 0
    at = rows.first_user[row]
    stop = rows.first_user[row + 1]
    while at < stop:
        node = rows.node_of[user_column[at]]
        taken[0] = 0
        lowest[0] = np.inf
        kinds = 1
        for column in range(first_column[node], first_column[node + 1]):
            units = np.int64(0)
            if at < stop and user_column[at] == column:
                units = np.int64(user_units[at])
                at += 1
            kind = 0
            while kind < kinds and taken[kind] != units:
                kind += 1
            if kind == kinds:
                taken[kind] = units
                lowest[kind] = np.inf
                kinds += 1
            lowest[kind] = min(lowest[kind], reduced[column] - units * price)
        # The lower envelope of the lines lowest + taken * price, from price 0 on.
        now = 0
        for kind in range(1, kinds):
            if lowest[kind] < lowest[now] or (lowest[kind] == lowest[now] and taken[kind] < taken[now]):
                now = kind
        while taken[now] > 0:
            following = -1
            threshold = np.inf
            for kind in range(kinds):
                if taken[kind] >= taken[now] or lowest[kind] == np.inf:
                    continue
                crossing = (lowest[kind] - lowest[now]) / (taken[now] - taken[kind])
                if crossing < threshold or (crossing == threshold and taken[kind] < taken[following]):
                    threshold = crossing
                    following = kind
            if following < 0:
                always += taken[now]
                break
            found[count] = threshold
            weight[count] = taken[now] - taken[following]
            count += 1
            now = following
    return count, always


@kernel
def best_price(found: F64, weight: I64, count: Int, spare: Int, share: Float) -> Float:
    """A price at which units of at most `spare` have their thresholds above it: where there are just so many, at `share` of the
    way between the two thresholds that bound it."""
    order = np.argsort(-found[:count])
    above = 0
    for place in range(count):
        low = found[order[place]]
        if above + weight[order[place]] > spare:
            if place == 0 or above < spare:
                return low
            return low + share * (found[order[place - 1]] - low)
        above += weight[order[place]]
    return 0.0


@kernel
def ascend(rows: Rows, order: I32, share: Float, price: F64, reduced: F64, best: I64, load: I64) -> Float:
    """One sweep over the rows in some order. Returns the dual value, or INFEASIBLE if a row is used too much at any price."""
    first_column, first_use, use_row, use_units = rows.first_column, rows.first_use, rows.use_row, rows.use_units
    # Each column of a node is one of its thresholds, at most.
    most = np.diff(rows.first_user).max()
    found = np.empty(most)
    weight = np.empty(most, np.int64)
    for row in order:
        if price[row] == 0.0 and load[row] <= rows.capacity[row]:
            continue
        count, always = thresholds_of_row(rows, row, price[row], reduced, found, weight)
        if always > rows.capacity[row]:
            return INFEASIBLE
        rise = best_price(found, weight, count, rows.capacity[row] - always, share) - price[row]
        if rise == 0.0:
            continue
        price[row] += rise
        at = rows.first_user[row]
        stop = rows.first_user[row + 1]
        while at < stop:
            node = rows.node_of[rows.user_column[at]]
            while at < stop and rows.user_column[at] < first_column[node + 1]:
                reduced[rows.user_column[at]] += rows.user_units[at] * rise
                at += 1
            chosen = best[node]
            for column in range(first_column[node], first_column[node + 1]):
                if reduced[column] < reduced[chosen]:
                    chosen = column
            if chosen != best[node]:
                old = best[node]
                for use in range(first_use[old], first_use[old + 1]):
                    load[use_row[use]] -= use_units[use]
                for use in range(first_use[chosen], first_use[chosen + 1]):
                    load[use_row[use]] += use_units[use]
                best[node] = chosen
    value = 0.0
    for node in range(len(first_column) - 1):
        value += reduced[best[node]]
    for row in range(len(price)):
        value -= price[row] * rows.capacity[row]
    return value
