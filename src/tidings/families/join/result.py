"""Columns of a joined row: those of all tables in order, USING columns once. Names that would clash get the table's name."""

from __future__ import annotations

from collections import Counter

from tidings.model.catalog import Catalog
from tidings.sql.shape import ColumnRef, Shape


def shown_columns(shape: Shape, catalog: Catalog) -> tuple[ColumnRef, ...]:
    """The columns of a joined row."""
    if shape.projection is not None:
        return shape.projection
    merged = {ColumnRef(edge.right, column) for edge in shape.joins if edge.using for column in edge.right_columns}
    every = [ColumnRef(table, name) for table in shape.tables for name in catalog.table(table).column_names]
    return tuple(ref for ref in every if ref not in merged)


def shown_names(columns: tuple[ColumnRef, ...]) -> tuple[str, ...]:
    """The name of each column in a joined row."""
    counts = Counter(ref.column for ref in columns)
    return tuple(ref.column if counts[ref.column] == 1 else f"{ref.table}.{ref.column}" for ref in columns)
