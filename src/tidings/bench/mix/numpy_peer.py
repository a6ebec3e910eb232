"""A simple engine for selections: rows in a dict, and a numpy scan of each shape per change."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np

from tidings.bench.mix.cases import MixData
from tidings.bench.mix.peers import MixPeer
from tidings.bench.mix.selections import CurrentRows, Row, Selection, Value, Writer, read_queries
from tidings.model.codes import BoolArray, Int64Array
from tidings.sql import parse_catalog


class NumpyShapes(MixPeer):
    """Numbers of equal constants and ends of ranges as arrays, for each set of columns compared and shown."""

    is_per_change = True

    def __init__(self, data: MixData) -> None:
        catalog = parse_catalog(data.catalog_sql)
        found = (Selection.parse(id, sql, catalog) for id, sql in read_queries(data.first))
        selections = [selection for selection in found if selection is not None]
        self.expressed = len(selections)
        self._rows = CurrentRows(catalog)
        self._writer = Writer(selections)
        self._numbers: dict[Value, int] = {}
        """Constant of an equality -> its number."""
        groups: dict[tuple[object, ...], list[int]] = {}
        for number, s in enumerate(selections):
            groups.setdefault((s.table, tuple(s.equal), tuple(s.ranges), s.shown), []).append(number)
        self._shapes: dict[str, list[_Shape]] = {table.name: [] for table in catalog.tables}
        for members in groups.values():
            shape = _Shape(selections, members, self._numbers)
            self._shapes[shape.table].append(shape)

    def fill(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            self._rows.apply(line)

    def notifications(self, lines: Sequence[bytes]) -> bytes:
        out: list[str] = []
        for line in lines:
            change = self._rows.apply(line)
            before: set[int] = set()
            after: set[int] = set()
            for shape in self._shapes[change.table]:
                if change.old and change.new and shape.sees_no_difference(change.old, change.new):
                    continue
                before.update(shape.matches(change.old, self._numbers))
                after.update(shape.matches(change.new, self._numbers))
            out += self._writer.lines(change, before, after)
        return "".join(f"{line}\n" for line in out).encode()


class _Shape:
    """Selections that compare and show the same columns. One with an IN list stands in the arrays several times."""

    def __init__(self, selections: Sequence[Selection], members: Sequence[int], numbers: dict[Value, int]) -> None:
        one = selections[members[0]]
        self.table = one.table
        self._equal, self._ranged = tuple(one.equal), tuple(one.ranges)
        self._columns = {*self._equal, *self._ranged, *one.shown}
        points = [(member, values) for member in members for values in product(*selections[member].equal.values())]
        self._member = np.array([member for member, _ in points], np.int64)
        self._codes = [
            np.array([numbers.setdefault(values[i], len(numbers)) for _, values in points], np.int64)
            for i in range(len(self._equal))
        ]
        ranges = [[selections[member].ranges[column] for member, _ in points] for column in self._ranged]
        self._low = [np.array([-math.inf if r.low is None else r.low for r in column], np.float64) for column in ranges]
        self._high = [
            np.array([math.inf if r.high is None else r.high for r in column], np.float64) for column in ranges
        ]

    def sees_no_difference(self, old: Row, new: Row) -> bool:
        return all(old[column] == new[column] for column in self._columns)

    def matches(self, row: Row | None, numbers: dict[Value, int]) -> list[int]:
        """Numbers of the subscriptions that select the row."""
        if row is None:
            return []
        tests: list[BoolArray] = []
        for column, codes in zip(self._equal, self._codes, strict=True):
            tests.append(codes == numbers.get(row[column], -1))
        for column, low, high in zip(self._ranged, self._low, self._high, strict=True):
            value = row[column]
            if value is None:
                return []
            tests += (low <= value, value <= high)
        is_hit = np.logical_and.reduce(tests) if tests else np.ones(len(self._member), np.bool_)
        found: Int64Array = self._member[is_hit]
        members: list[int] = found.tolist()
        return members
