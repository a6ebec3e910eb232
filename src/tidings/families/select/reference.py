"""The definition of a select subscription's answer: every row that satisfies a disjunct, cut to the shown columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tidings.families.optional import RowReference
from tidings.families.protocols import PlainTables
from tidings.model.catalog import Catalog
from tidings.sql.constants import Constants
from tidings.sql.shape import Shape


class SelectReference(RowReference):
    def answer(
        self, shape: Shape, constants: Constants, catalog: Catalog, tables: PlainTables, held: Any
    ) -> list[dict[str, Any]]:
        return answer(shape, constants, tables[shape.tables[0]].values())


def answer(shape: Shape, constants: Constants, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The answer over plain rows, as a multiset (a list in any order)."""
    shown = None if shape.projection is None else [ref.column for ref in shape.projection]
    matching = (row for row in rows if _satisfies(shape, constants, row))
    return [dict(row) if shown is None else {name: row[name] for name in shown} for row in matching]


def _satisfies(shape: Shape, constants: Constants, row: dict[str, Any]) -> bool:
    """Whether all predicates of some disjunct are true; with null only IS NULL is."""
    if shape.disjuncts:
        disjuncts = zip(shape.disjuncts, constants.disjuncts, strict=True)
        return any(_satisfies(one, own, row) for one, own in disjuncts)
    for ref, values in zip(shape.equalities, constants.equalities, strict=True):
        if row[ref.column] is None or row[ref.column] not in values:
            return False
    if any(row[ref.column] is not None for ref in shape.nulls):
        return False
    return all(interval.holds(row[ref.column]) for ref, interval in zip(shape.ranges, constants.intervals, strict=True))
