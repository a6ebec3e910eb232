"""The definition of an offers subscription's answer: every publication whose constraint matches, best first where asked for."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tidings.families.offers.constraint import Box, boxes_of
from tidings.families.offers.matching import attained, matching_disjuncts
from tidings.families.optional import PlacedReference
from tidings.families.protocols import PlainTables
from tidings.model.catalog import Catalog, Table
from tidings.sql.conditions import compile_condition
from tidings.sql.constants import Constants
from tidings.sql.shape import Shape


class OffersReference(PlacedReference):
    def placed(
        self, shape: Shape, constants: Constants, catalog: Catalog, tables: PlainTables
    ) -> dict[Any, dict[str, Any]]:
        table = catalog.table(shape.tables[0])
        own, is_classic = boxes_of(shape, constants, table), table.constraints.is_classic
        found: list[tuple[int, Any]] = []
        for key, row in tables[table.name].items():
            theirs = _publication(row["where"], table, catalog)
            if shape.order is None:
                if any(True for _ in matching_disjuncts(theirs, own, is_classic=is_classic)):
                    found.append((0, key))
                continue
            axis, is_highest = table.axis_numbers[shape.order.column.column], shape.order.descending
            best = attained(theirs, own, axis, is_highest=is_highest, is_classic=is_classic)
            if best is not None:
                found.append((-best if is_highest else best, key))
        found.sort(key=lambda entry: (entry[0], *entry[1]))
        kept = found if shape.order is None else found[: shape.order.limit]
        names = ("id", "where") if shape.projection is None else [ref.column for ref in shape.projection]
        rows = tables[table.name]
        return {key: {name: rows[key][name] for name in names} for _, key in kept}


@lru_cache(maxsize=4096)
def _publication(where: str, table: Table, catalog: Catalog) -> tuple[Box, ...]:
    statement = compile_condition(catalog, table, where)
    return boxes_of(statement.shape, statement.constants, table)
