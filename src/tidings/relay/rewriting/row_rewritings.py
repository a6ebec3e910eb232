"""Ways to compute each row query of a set from others: the first k minimal rewritings of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tidings.kernels.arrays import F64, I64
from tidings.relay.rewriting.kernels.covers import DEPTH_MAX
from tidings.relay.rewriting.kernels.row_search import rewrite_rows
from tidings.relay.rewriting.rewritings import REWRITINGS_MAX, Rewritings, found_in_portions
from tidings.relay.rewriting.row_table import RowTable
from tidings.relay.row_views.query import RowQuery


def find_row_rewritings(
    queries: Sequence[RowQuery],
    cost: F64,
    k: int = REWRITINGS_MAX,
    *,
    threads: int = 2,
    on_progress: Callable[[int], None] = lambda count: None,
) -> Rewritings:
    """Rewritings of all queries. cost: of using a query as a source; cheap ones are tried first.

    Of queries with the same conditions those that carry more feed the others, then the earlier ones the later.
    """
    table = RowTable(queries)
    return found_in_portions(
        len(table), lambda targets: row_rewritings_of(table, targets, cost, k), threads, on_progress
    )


def row_rewritings_of(
    table: RowTable, targets: I64, cost: F64, k: int, *, ordered: bool = True, partial: bool = False
) -> Rewritings:
    """Rewritings of some queries: those of the i-th target are `of(i)`.

    ordered: of queries with the same conditions only one may feed the other. False for a single query that came last.
    partial: ways to compute what others know of them.
    """
    counts = np.empty(len(targets), np.int64)
    ends = np.empty(len(targets) * k, np.int64)
    members = np.empty(len(targets) * k * DEPTH_MAX, np.int32)
    embedded, dropped = rewrite_rows(
        (table.starts, table.stops, table.carries), (table.lead, table.lead_starts, table.lead_tops), table.groups,
        table.number, table.place, table.needs, table.full, (table.first_need, table.need_kinds, table.need_slots), cost,
        targets, table.table_of[targets], k, ordered, partial, counts, ends, members,
    )  # fmt: skip
    return Rewritings.of_kernel(counts, ends, members, embedded, dropped)
