"""Which capacities a column uses, and how many units of each; and the inverse, who might use a capacity."""

from __future__ import annotations

import numpy as np

from tidings.kernels.arrays import I32, I64, Bools, Int
from tidings.kernels.jit import kernel


@kernel
def uses_of_columns(
    first_column: I64, first_source: I64, sources: I32, is_published: Bools, pool: I32, site: I32, publisher: Int,
    sent: I32, has_bandwidth: Int,
) -> tuple[I64, I32, I32]:  # fmt: skip
    """first_use[columns + 1], then the pool and the units of each use. `publisher` is the number of the publisher's pool.

    sent: bytes per document of each node's message. If there are bandwidths, that of pool p has the number publisher + 1 + p.
    """
    first_use = np.empty(len(first_source), np.int64)
    rows = np.empty(len(sources) * (2 if has_bandwidth else 1) + is_published.sum(), np.int32)
    units = np.empty(len(rows), np.int32)
    top = 0
    for node in range(len(first_column) - 1):
        for column in range(first_column[node], first_column[node + 1]):
            first_use[column] = top
            if is_published[column]:
                rows[top] = publisher
                units[top] = 1
                top += 1
            for place in range(first_source[column], first_source[column + 1]):
                source = sources[place]
                if site[source] >= 0 and site[source] == site[node]:
                    continue
                top = _use(rows, units, first_use[column], top, pool[source], 1)
                if has_bandwidth:
                    top = _use(rows, units, first_use[column], top, publisher + 1 + pool[source], sent[source])
    first_use[len(first_source) - 1] = top
    return first_use, rows[:top], units[:top]


@kernel
def _use(rows: I32, units: I32, start: Int, top: Int, row: Int, more: Int) -> Int:
    """Adds to what a column uses of a row; where its uses end then."""
    at = start
    while at < top and rows[at] != row:
        at += 1
    if at == top:
        rows[top] = row
        units[top] = 0
        top += 1
    units[at] += more
    return top


@kernel
def most_units(first_column: I64, first_use: I64, rows: I32, units: I32, rows_count: Int) -> I64:
    """Per row, the units that are used if each node takes the column that uses the row most."""
    most = np.zeros(rows_count, np.int64)
    last_node = np.full(rows_count, -1, np.int64)
    of_node = np.zeros(rows_count, np.int64)
    for node in range(len(first_column) - 1):
        for use in range(first_use[first_column[node]], first_use[first_column[node + 1]]):
            row = rows[use]
            if last_node[row] != node:
                last_node[row] = node
                of_node[row] = 0
            if units[use] > of_node[row]:
                most[row] += units[use] - of_node[row]
                of_node[row] = units[use]
    return most


@kernel
def only_rows(first_use: I64, rows: I32, units: I32, new_number: I32) -> tuple[I64, I32, I32]:
    """The uses of rows that have a new number, not -1, under that number."""
    kept = 0
    for row in rows:
        kept += new_number[row] >= 0
    new_first = np.empty_like(first_use)
    new_rows = np.empty(kept, np.int32)
    new_units = np.empty(kept, np.int32)
    top = 0
    for column in range(len(first_use) - 1):
        new_first[column] = top
        for use in range(first_use[column], first_use[column + 1]):
            if new_number[rows[use]] >= 0:
                new_rows[top] = new_number[rows[use]]
                new_units[top] = units[use]
                top += 1
    new_first[len(first_use) - 1] = top
    return new_first, new_rows, new_units


@kernel
def users_of_rows(first_use: I64, rows: I32, units: I32, rows_count: Int) -> tuple[I64, I32, I32]:
    """first_user[rows + 1], then the column, ascending within a row, and the units of each use."""
    first_user = np.zeros(rows_count + 1, np.int64)
    for row in rows:
        first_user[row + 1] += 1
    for row in range(rows_count):
        first_user[row + 1] += first_user[row]
    top = first_user[:-1].copy()
    columns = np.empty(len(rows), np.int32)
    user_units = np.empty(len(rows), np.int32)
    for column in range(len(first_use) - 1):
        for use in range(first_use[column], first_use[column + 1]):
            place = top[rows[use]]
            top[rows[use]] += 1
            columns[place] = column
            user_units[place] = units[use]
    return first_user, columns, user_units
