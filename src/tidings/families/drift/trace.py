"""Explains why one drift subscription was notified or not, by applying the definition to every change."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from tidings.families.drift.movement import interval_around, roundest_between
from tidings.families.drift.reference import Row, clock_time, hold
from tidings.families.optional import Trace
from tidings.model.catalog import Table
from tidings.model.change import TableChanges
from tidings.model.codes import CODE_MAX, DAY_US, code_of, value_of
from tidings.model.types import ColumnType
from tidings.sql.constants import Constants
from tidings.sql.shape import Shape

_SHOWN_MAX = 20
_LAST_DAY = code_of(ColumnType.DATE, dt.date.max)
_LAST = {
    ColumnType.DATE: _LAST_DAY,
    ColumnType.TIMESTAMP: _LAST_DAY + DAY_US - 1,
    ColumnType.BIGINT: CODE_MAX - 1,
    ColumnType.INT: 2**31 - 1,
}
"""The highest time, in ticks, that a clock column of each type can have."""


class DriftTrace(Trace):
    def __init__(self, shape: Shape, constants: Constants, table: Table, born: int) -> None:
        self._shape = shape
        self._constants = constants
        self._table = table
        self._born = born
        assert shape.movement is not None
        self._column = shape.movement.column.column
        self._now: dict[Any, tuple[int, Row]] = {}
        """Key -> (seq since which the row has its value, the current row)."""
        self._told: dict[Any, tuple[int, Row]] = {}
        """Key -> (seq of the last notification, the row in it)."""
        self._times: dict[Any, int] = {}
        self._is_alive = False

    def change(self, changes: TableChanges) -> None:
        if changes.table != self._table.name:
            return
        seqs, has = changes.seq.tolist(), changes.has.tolist()
        rows = [
            after if there else before
            for there, after, before in zip(has, changes.after.to_pylist(), changes.before.to_pylist(), strict=True)
        ]
        for seq, is_there, row in zip(seqs, has, rows, strict=True):
            if seq > self._born:
                self._begin()
            key = tuple(row[name] for name in self._table.key)
            if is_there:
                column = self._column
                known = self._now.get(key)
                since = known[0] if known is not None and known[1][column] == row[column] else seq
                self._now[key] = since, row
            else:
                self._now.pop(key, None)
            if self._is_alive:
                self._tell(key, seq)

    def lines(self) -> Sequence[tuple[str, str]]:
        self._begin()
        if not self._told:
            return [("holds", "nothing: no row that it follows has a value")]
        found = [line for key in list(self._told)[:_SHOWN_MAX] for line in self._standing(key)]
        left = len(self._told) - _SHOWN_MAX
        return [*found, ("and", f"{left:,} more rows")] if left > 0 else found

    def _begin(self) -> None:
        """Creates the subscription: its snapshot has all current rows."""
        if not self._is_alive:
            self._is_alive = True
            for key in self._now:
                self._tell(key, self._born)

    def _tell(self, key: Any, seq: int) -> None:
        """Applies the definition to one row; other rows do not matter to it."""
        rows = {key: self._now[key][1]} if key in self._now else {}
        held = {key: self._told[key][1]} if key in self._told else {}
        after = hold(self._shape, self._constants, self._table, rows, held).get(key)
        if after is None:
            self._told.pop(key, None)
        elif after is not held.get(key):
            self._told[key] = seq, after
            self._times[key] = self._times.get(key, 0) + 1

    def _standing(self, key: Any) -> Sequence[tuple[str, str]]:
        movement = self._shape.movement
        assert movement is not None
        column = movement.column.column
        (told_at, told), (seen_at, row) = self._told[key], self._now[key]
        least = roundest_between(self._constants.movement[0], self._constants.movement[-1])
        was, now = float(told[column]), float(row[column])
        low, high = interval_around(movement.kind, was, least)
        name = ", ".join(f"{name} = {part!r}" for name, part in zip(self._table.key, key, strict=True))
        word = "time" if self._times[key] == 1 else "times"
        lines = [
            ("row", name),
            ("  last told", f"{column} = {was!r} at seq {told_at:,} (told {self._times[key]:,} {word} in all)"),
            ("  now", f"{column} = {now!r} since seq {seen_at:,}, moved by {now - was:+.6g}"),
            (
                "  told again",
                f"at {high!r} or above ({high - now:.6g} to go), at {low!r} or below ({now - low:.6g} to go)",
            ),
        ]
        if movement.silence is not None:
            clock = self._table.column(movement.silence.column.column)
            time = clock_time(clock, told)
            if time is None:
                text = f"not counted: {clock.name} was null when it was last told"
            elif time + movement.silence.ticks > _LAST[clock.type]:
                text = f"never told again for it: {clock.name} cannot advance that far"
            else:
                text = (
                    f"told again anyway once {clock.name} reaches {value_of(clock.type, time + movement.silence.ticks)}"
                )
            lines.append(("  silence", text))
        return lines
