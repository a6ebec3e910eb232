"""The definition of a drift subscription's content: every row it follows, as it was when last told.

A row is notified when it appears, and again when its value has moved far enough from the last notified value. A row whose value
is null counts as absent.
"""

from __future__ import annotations

from typing import Any

from tidings.families.drift.movement import has_been_silent, has_moved, roundest_between
from tidings.families.optional import HoldingReference, RowReference
from tidings.families.protocols import PlainTables
from tidings.model.catalog import Catalog, Column, Table
from tidings.model.codes import CODE_MIN, code_of
from tidings.sql.constants import Constants
from tidings.sql.shape import Movement, Shape

Row = dict[str, Any]
Held = dict[Any, Row]
"""Primary key -> the row as last told."""


class DriftReference(HoldingReference, RowReference):
    def hold(self, shape: Shape, constants: Constants, catalog: Catalog, tables: PlainTables, held: Any) -> Held:
        table = catalog.table(shape.tables[0])
        return hold(shape, constants, table, tables[table.name], held)

    def answer(self, shape: Shape, constants: Constants, catalog: Catalog, tables: PlainTables, held: Any) -> list[Row]:
        """The shown columns of the held rows."""
        if shape.projection is None:
            return list(held.values())
        return [{ref.column: row[ref.column] for ref in shape.projection} for row in held.values()]


def hold(shape: Shape, constants: Constants, table: Table, rows: dict[Any, Row], held: Held | None) -> Held:
    """New state of the subscription when the table has `rows`. held: its state before; None if it is new."""
    movement = shape.movement
    assert movement is not None
    now: Held = {}
    for key, row in rows.items():
        if row[movement.column.column] is None or not _follows(shape, constants, row):
            continue
        told = None if held is None else held.get(key)
        now[key] = row if told is None or _is_due(movement, constants, table, told, row) else told
    return now


def _follows(shape: Shape, constants: Constants, row: Row) -> bool:
    pinned = zip(shape.equalities, constants.equalities, strict=True)
    return all(row[ref.column] in values for ref, values in pinned)


def _is_due(movement: Movement, constants: Constants, table: Table, told: Row, row: Row) -> bool:
    column = movement.column.column
    least = roundest_between(constants.movement[0], constants.movement[-1])
    if has_moved(movement.kind, float(told[column]), float(row[column]), least):
        return True
    if movement.silence is None:
        return False
    clock = table.column(movement.silence.column.column)
    return has_been_silent(clock_time(clock, told), clock_time(clock, row), movement.silence.ticks)


def clock_time(clock: Column, row: Row) -> int | None:
    """A row's time by its clock column, in ticks; None if null. The least int64, which means "no time", counts as the next."""
    value = row[clock.name]
    return None if value is None else max(code_of(clock.type, value), CODE_MIN + 1)
