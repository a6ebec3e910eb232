"""Which points messages of joins may reach besides those that they concern."""

from __future__ import annotations

from tidings.model.catalog import Catalog
from tidings.sql import Statement
from tidings.testing.workload import Record


def selects_either(statement: Statement, catalog: Catalog, table: str, old: Record | None, new: Record | None) -> bool:
    """Bound on superfluous join messages: they reach only points that select the old or the new row of the changed table.

    IN counts as a range from the least to the greatest value, and any text matches, since regions do not express them exactly.
    """
    return any(row is not None and _selects(statement, catalog, table, row) for row in (old, new))


def _selects(statement: Statement, catalog: Catalog, table: str, row: Record) -> bool:
    shape, constants = statement.shape, statement.constants
    for ref, values in zip(shape.equalities, constants.equalities, strict=True):
        if ref.table == table:
            value, is_lossy = row[ref.column], catalog.table(table).column(ref.column).type.is_lossy
            if value is None or not values or not (is_lossy or min(values) <= value <= max(values)):
                return False
    for ref, interval in zip(shape.ranges, constants.intervals, strict=True):
        if ref.table == table:
            value, is_lossy = row[ref.column], catalog.table(table).column(ref.column).type.is_lossy
            if value is None or not (is_lossy or interval.holds(value)):
                return False
    return True
