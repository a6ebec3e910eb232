"""The definition of a join's answer: rows of each table that satisfy its predicates, joined, cut to what is shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidings.families.join.result import shown_columns, shown_names
from tidings.families.optional import PlacedReference
from tidings.families.protocols import PlainTables
from tidings.model.catalog import Catalog
from tidings.sql.constants import Constants
from tidings.sql.shape import Shape

Row = dict[str, Any]


class JoinReference(PlacedReference):
    def placed(
        self, shape: Shape, constants: Constants, catalog: Catalog, tables: PlainTables
    ) -> dict[tuple[Any, ...], Row]:
        return dict(sorted(placed(shape, constants, catalog, tables).items(), key=lambda entry: entry[0]))


def answer(shape: Shape, constants: Constants, catalog: Catalog, tables: PlainTables) -> list[Row]:
    """The answer over plain rows."""
    return list(placed(shape, constants, catalog, tables).values())


def placed(shape: Shape, constants: Constants, catalog: Catalog, tables: PlainTables) -> dict[tuple[Any, ...], Row]:
    """The joined rows by the primary keys of their parts."""
    columns = shown_columns(shape, catalog)
    names = shown_names(columns)
    alternatives = list(zip(shape.conjunctions, constants.disjuncts or (constants,), strict=True))
    selected = {
        table: [row for row in tables[table].values() if any(_satisfies(*one, table, row) for one in alternatives)]
        for table in shape.tables
    }
    keys = {table: catalog.table(table).key for table in shape.tables}
    return {
        tuple(tuple(row[name] for name in keys[table]) for table, row in joined.items()): {
            name: joined[ref.table][ref.column] for name, ref in zip(names, columns, strict=True)
        }
        for joined in _combinations(shape, selected, {})
        if any(all(_satisfies(*one, table, row) for table, row in joined.items()) for one in alternatives)
    }


def _combinations(shape: Shape, selected: dict[str, list[Row]], joined: dict[str, Row]) -> Iterator[dict[str, Row]]:
    """One row of every table, such that all joins hold."""
    if len(joined) == len(shape.tables):
        yield joined
        return
    table = shape.tables[len(joined)]
    for row in selected[table]:
        extended = {**joined, table: row}
        if _joins(shape, extended, table):
            yield from _combinations(shape, selected, extended)


def _joins(shape: Shape, joined: dict[str, Row], table: str) -> bool:
    """Whether the row of a table fits those joined so far."""
    for edge in shape.joins:
        if table in (edge.left, edge.right) and edge.left in joined and edge.right in joined:
            left = [joined[edge.left][name] for name in edge.left_columns]
            right = [joined[edge.right][name] for name in edge.right_columns]
            if None in left or left != right:
                return False
    return True


def _satisfies(shape: Shape, constants: Constants, table: str, row: Row) -> bool:
    for ref, values in zip(shape.equalities, constants.equalities, strict=True):
        if ref.table == table and (row[ref.column] is None or row[ref.column] not in values):
            return False
    if any(ref.table == table and row[ref.column] is not None for ref in shape.nulls):
        return False
    return all(
        interval.holds(row[ref.column])
        for ref, interval in zip(shape.ranges, constants.intervals, strict=True)
        if ref.table == table
    )
