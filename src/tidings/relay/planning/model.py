"""The integer program of an instance: one variable per column, one row per capacity that could be exceeded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidings.kernels.arrays import F64, I64
from tidings.relay.planning.instance import UNLIMITED, Instance
from tidings.relay.planning.kernels.plan_layout import Rows
from tidings.relay.planning.kernels.uses import most_units, only_rows, users_of_rows, uses_of_columns

NO_ROW = -1


@dataclass(frozen=True, eq=False)
class Model:
    """Minimise the cost of one column per node, such that no row is used more than its capacity.

    rows: contested capacities. One that suffices even if each node took the column that uses it most has no row.
    cost: of each column.
    pool_of_row: the publisher's is the number of pools; the bandwidths of pools have the numbers behind it.
    publisher_row: NO_ROW if the publisher can feed all.
    """

    rows: Rows
    cost: F64
    pool_of_row: I64
    publisher_row: int

    @property
    def nodes(self) -> int:
        return len(self.rows.first_column) - 1

    @property
    def capacity(self) -> I64:
        return self.rows.capacity


def model_of(instance: Instance) -> Model:
    publisher = instance.pools
    has_bandwidth = bool((instance.bandwidth < UNLIMITED).any())
    first_use, rows, units = uses_of_columns(
        instance.first_column, instance.first_source, instance.sources, instance.is_published, instance.pool,
        instance.site, publisher, instance.sent, has_bandwidth,
    )  # fmt: skip
    capacity = np.append(instance.capacity, instance.publisher_capacity)
    if has_bandwidth:
        capacity = np.append(capacity, instance.bandwidth)
    contested = np.flatnonzero(most_units(instance.first_column, first_use, rows, units, len(capacity)) > capacity)
    new_number = np.full(len(capacity), NO_ROW, np.int32)
    new_number[contested] = np.arange(len(contested))
    first_use, rows, units = only_rows(first_use, rows, units, new_number)
    first_user, user_column, user_units = users_of_rows(first_use, rows, units, len(contested))
    node_of = np.repeat(np.arange(instance.nodes, dtype=np.int32), np.diff(instance.first_column))
    layout = Rows(
        instance.first_column,
        node_of,
        first_use,
        rows,
        units,
        first_user,
        user_column,
        user_units,
        capacity[contested],
        int(np.diff(instance.first_column).max(initial=0)),
    )
    return Model(layout, instance.cost, contested, int(new_number[publisher]))
