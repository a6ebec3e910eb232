"""The definition of a drift subscription's content: every row it follows, as it was when last told.

A row is told when it appears, and again when its value has moved far enough from the one last told. A row without a value
counts as absent.
"""

from __future__ import annotations

from typing import Any

from tidings.families.drift.threshold import has_been_silent, has_moved, roundest_between
from tidings.model.catalog import Table
from tidings.model.codes import code_of
from tidings.sql.constants import Constants
from tidings.sql.shape import Movement, Shape

Row = dict[str, Any]
Held = dict[Any, Row]
"""Primary key -> the row as last told."""


def hold(shape: Shape, constants: Constants, table: Table, rows: dict[Any, Row], held: Held | None) -> Held:
    """What the subscription holds now that the table has these rows."""
    movement = shape.movement
    assert movement is not None
    now: Held = {}
    for key, row in rows.items():
        if row[movement.column.column] is None or not _follows(shape, constants, row):
            continue
        told = None if held is None else held.get(key)
        is_told = told is None or _is_due(movement, constants, table, told, row)
        now[key] = row if is_told or told is None else told
    return now


def answer(shape: Shape, held: Held) -> list[Row]:
    """The shown columns of what is held."""
    if shape.projection is None:
        return list(held.values())
    return [{ref.column: row[ref.column] for ref in shape.projection} for row in held.values()]


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
    before, after = (None if r[clock.name] is None else code_of(clock.type, r[clock.name]) for r in (told, row))
    return has_been_silent(before, after, movement.silence.ticks)
