"""Subscriptions of the mix bench as tables, for peers that join changes with them.

Selections on the same table that compare the same columns by = are one table: it has a column for each of these, which an
engine can hash, and two for the ends of every range that any of them has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import pyarrow as pa

from tidings.bench.mix.selections import Change, Selection
from tidings.model.catalog import Catalog, Table
from tidings.model.types import ColumnType

_ARROW = {ColumnType.BIGINT: pa.int64(), ColumnType.INT: pa.int64(), ColumnType.DOUBLE: pa.float64()}


def arrow_type(table: Table, column: str) -> pa.DataType:
    """Numbers as such, everything else as its text, which for times has the same order."""
    return _ARROW.get(table.column(column).type, pa.string())


@dataclass(frozen=True)
class Group:
    name: str
    table: Table
    equal: tuple[str, ...]
    ranged: tuple[str, ...]
    """Columns that some of them compare by range."""
    members: tuple[int, ...]
    selections: Sequence[Selection]

    def rows(self) -> pa.Table:
        """(number, COLUMN_is .., COLUMN_low, COLUMN_high ..): no ends where a selection has no range."""
        points = [(n, values) for n in self.members for values in product(*self.selections[n].equal.values())]
        columns: dict[str, Any] = {"number": pa.array([n for n, _ in points], pa.int64())}
        for i, column in enumerate(self.equal):
            columns[f"{column}_is"] = pa.array([values[i] for _, values in points], arrow_type(self.table, column))
        for column in self.ranged:
            kind = arrow_type(self.table, column)
            kind = pa.float64() if kind == pa.int64() else kind
            ends = [self.selections[n].ranges.get(column) for n, _ in points]
            columns[f"{column}_low"] = pa.array([None if r is None else r.low for r in ends], kind)
            columns[f"{column}_high"] = pa.array([None if r is None else r.high for r in ends], kind)
        return pa.table(columns)

    @cached_property
    def on(self) -> str:
        """The condition that joins a row `c` with a selection `s`."""
        tests = [f"c.{column} = s.{column}_is" for column in self.equal]
        for column in self.ranged:
            ends = [self.selections[n].ranges.get(column) for n in self.members]
            for end, op in (("low", ">="), ("high", "<=")):
                values = [None if r is None else getattr(r, end) for r in ends]
                if any(value is not None for value in values):
                    test = f"c.{column} {op} s.{column}_{end}"
                    tests.append(f"(s.{column}_{end} IS NULL OR {test})" if None in values else test)
        return " AND ".join(tests) or "TRUE"


def grouped(selections: Sequence[Selection], catalog: Catalog) -> list[Group]:
    found: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for number, selection in enumerate(selections):
        found.setdefault((selection.table, tuple(selection.equal)), []).append(number)
    return [
        Group(
            f"selections_{i}",
            catalog.table(table),
            equal,
            tuple(dict.fromkeys(column for n in members for column in selections[n].ranges)),
            tuple(members),
            selections,
        )
        for i, ((table, equal), members) in enumerate(found.items())
    ]


def images(changes: Sequence[Change], table: Table) -> pa.Table:
    """(n, seq, is_new, columns ..): the rows of a table before and after each change, n being its place in the batch."""
    rows = list(_images(changes, table.name))
    columns: dict[str, Any] = {
        "n": pa.array([n for n, _, _ in rows], pa.int64()),
        "seq": pa.array([changes[n].seq for n, _, _ in rows], pa.int64()),
        "is_new": pa.array([is_new for _, is_new, _ in rows], pa.bool_()),
    }
    for name in table.column_names:
        columns[name] = pa.array([row[name] for _, _, row in rows], arrow_type(table, name))
    return pa.table(columns)


def _images(changes: Sequence[Change], table: str) -> Iterator[tuple[int, bool, dict[str, Any]]]:
    for n, change in enumerate(changes):
        if change.table == table:
            if change.old is not None:
                yield n, False, change.old
            if change.new is not None:
                yield n, True, change.new
