"""The definition of a top-k subscription's answer: the first k rows that satisfy the predicates, cut to the shown columns.

Rows are ranked by the ORDER BY column, ties by the primary key, ascending. A row whose ranking column is null has no rank.
"""

from __future__ import annotations

from typing import Any

from tidings.families.optional import PlacedReference
from tidings.families.protocols import PlainTables
from tidings.model.catalog import Catalog
from tidings.sql.constants import Constants
from tidings.sql.shape import Shape

Row = dict[str, Any]


class TopkReference(PlacedReference):
    def placed(
        self, shape: Shape, constants: Constants, catalog: Catalog, tables: PlainTables
    ) -> dict[tuple[Any, ...], Row]:
        order = shape.order
        assert order is not None
        table = catalog.table(shape.tables[0])
        rows = tables[table.name].values()

        def _key(row: Row) -> tuple[Any, ...]:
            return tuple(row[name] for name in table.key)

        ranked = [row for row in rows if row[order.column.column] is not None and _satisfies(shape, constants, row)]
        ranked.sort(key=_key)
        # Sorting is stable, also in reverse: ties stay in the order of the key.
        ranked.sort(key=lambda row: row[order.column.column], reverse=order.descending)
        shown = None if shape.projection is None else [ref.column for ref in shape.projection]
        return {
            _key(row): row if shown is None else {name: row[name] for name in shown} for row in ranked[: order.limit]
        }


def _satisfies(shape: Shape, constants: Constants, row: Row) -> bool:
    pinned = zip(shape.equalities, constants.equalities, strict=True)
    if not all(row[ref.column] is not None and row[ref.column] in values for ref, values in pinned):
        return False
    ranges = zip(shape.ranges, constants.intervals, strict=True)
    return all(interval.holds(row[ref.column]) for ref, interval in ranges)
