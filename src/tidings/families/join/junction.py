"""Where two tables of a join meet: their rows by the values they are joined by.

Within a join value the rows of a side lie in cells, one for each combination of values in the columns that predicates pin
by = or IN: only rows of one cell can stand in for each other. A cell has its rows in the order of the first range column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidings.families.join.departures import FEW, Departures
from tidings.families.join.relation import NONE
from tidings.families.join.subscription import Side
from tidings.kernels.ladders import Ladders, Neighbours
from tidings.model.catalog import Column
from tidings.model.channel import ChannelKey, channel_column, group_channels
from tidings.model.codes import BoolArray, Int64Array

Lists = tuple[Int64Array, Int64Array]
"""(starts, members) of several lists."""


@dataclass(frozen=True)
class Junction:
    """Two sides of a space that are joined by equal columns; spaces may share the ends, and number them otherwise."""

    sides: tuple[int, int]
    ends: tuple[End, End]

    def end(self, number: int) -> End:
        return self.ends[self.sides.index(number)]

    def other(self, number: int) -> int:
        first, second = self.sides
        return second if number == first else first

    @property
    def values(self) -> int:
        """How many join values there have been."""
        return self.ends[0].values


class End:
    """The rows of one side at a junction; a row with a null in what it is joined by is not among them."""

    def __init__(self, side: Side, columns: Sequence[str], values: dict[ChannelKey, int]) -> None:
        self.side = side
        self._values = values
        self._joined = [side.table.column(name) for name in columns]
        self._pinned = [side.columns[i] for i in side.pinned]
        self.ladders = Ladders()
        self._cells: dict[tuple[int, ChannelKey], int] = {}
        self._at_value: dict[int, list[int]] = {}
        self._pins = np.empty((0, len(side.pinned)), np.int64)
        self._value = np.empty(0, np.int64)
        self.departures = Departures()

    @property
    def values(self) -> int:
        """How many join values there have been, at either end."""
        return len(self._values)

    def value_of(self, entries: Int64Array) -> Int64Array:
        """Numbers of the join values of rows; NONE for those with a null."""
        return self._value[entries]

    def number(self, rows: pa.RecordBatch, is_there: BoolArray) -> Int64Array:
        """Numbers of the join values of rows, made where they are new; NONE for rows that are not there."""
        at, group, keys = _grouped(rows, self._joined, is_there & self._can_join(rows))
        numbers = [self._values.setdefault(key, len(self._values)) for key in keys]
        found = np.full(len(is_there), NONE, np.int64)
        if len(at):
            found[at] = np.array(numbers, np.int64)[group]
        return found

    def locate(self, rows: pa.RecordBatch, codes: Int64Array, is_there: BoolArray) -> tuple[Int64Array, Int64Array]:
        """(number of the join value, cell) of each row that counts, NONE for others; both are made where they are new."""
        width = len(self._joined)
        at, group, keys = _grouped(rows, [*self._joined, *self._pinned], is_there & self._can_join(rows))
        example = np.empty(len(keys), np.int64)
        example[group] = at
        values = [self._values.setdefault(key[:width], len(self._values)) for key in keys]
        names = zip(values, keys, example.tolist(), strict=True)
        cells = [self._cell(value, key[width:], codes[i]) for value, key, i in names]
        value_of, cell_of = np.full(len(is_there), NONE, np.int64), np.full(len(is_there), NONE, np.int64)
        if len(at):
            value_of[at], cell_of[at] = np.array(values, np.int64)[group], np.array(cells, np.int64)[group]
        return value_of, cell_of

    def _can_join(self, rows: pa.RecordBatch) -> BoolArray:
        """Which rows have no null in what they are joined by."""
        valid = np.ones(rows.num_rows, np.bool_)
        for column in self._joined:
            if rows.column(column.name).null_count:
                valid &= np.asarray(rows.column(column.name).is_valid())
        return valid

    def put_values(self, entries: Int64Array, values: Int64Array) -> None:
        """Notes the join values of new rows."""
        top = int(entries.max(initial=NONE)) + 1
        if top > len(self._value):
            self._value = np.resize(self._value, max(top, 2 * len(self._value)))
        self._value[entries] = values

    def change(self, cells: Int64Array, entries: Int64Array, codes: Int64Array, is_present: BoolArray) -> Neighbours:
        """Rows come and go; codes: of all columns with a predicate."""
        return self.ladders.change(cells, entries, self.rungs(codes), is_present)

    def rungs(self, codes: Int64Array) -> Int64Array:
        """Where rows stand in the order of their cells."""
        at = self.side.ranged
        return np.ascontiguousarray(codes[:, at[0]]) if at else np.zeros(len(codes), np.int64)

    def cells_at(self, values: Int64Array) -> Lists:
        """The cells with rows at each join value."""
        lists = [self._at_value.get(value, ()) for value in values.tolist()]
        members = np.array([cell for cells in lists for cell in cells], np.int64)
        owner = np.repeat(np.arange(len(lists)), [len(cells) for cells in lists])
        kept = self.ladders.sizes(members) > 0 if len(members) else np.zeros(0, np.bool_)
        counts = np.bincount(owner[kept], minlength=len(lists))
        return np.concatenate([[0], np.cumsum(counts)]), members[kept]

    def entries_at(self, values: Int64Array) -> Lists:
        """Entries of all rows at each join value."""
        starts, cells = self.cells_at(values)
        inner, entries, _ = self.ladders.gather(cells)
        return inner[starts], entries

    def counts_at(self, values: Int64Array) -> Int64Array:
        """How many rows there are at each join value."""
        distinct, of = np.unique(values, return_inverse=True)
        starts, cells = self.cells_at(distinct)
        sizes = np.concatenate([[0], np.cumsum(self.ladders.sizes(cells) if len(cells) else cells)])
        counts: Int64Array = (sizes[starts[1:]] - sizes[starts[:-1]])[of]
        return counts

    def depart(self, entries: Int64Array, codes: Int64Array, clock: int) -> None:
        """Notes rows that have just gone."""
        values = self._value[entries]
        gone = np.flatnonzero(values != NONE)
        if len(gone):
            values = values[gone]
            self.departures.note(values, codes[gone], self.counts_at(values) < FEW, clock)

    def pins(self, cells: Int64Array) -> Int64Array:
        """Codes of the pinned columns of cells."""
        return self._pins[cells]

    def _cell(self, value: int, pins: ChannelKey, codes: Int64Array) -> int:
        cell = self._cells.get((value, pins))
        if cell is None:
            cell = self._cells[value, pins] = self.ladders.new(1)
            self._at_value.setdefault(value, []).append(cell)
            if cell >= len(self._pins):
                self._pins = np.resize(self._pins, (max(16, 2 * cell), self._pins.shape[1]))
            self._pins[cell] = codes[list(self.side.pinned)]
        return cell


def _grouped(
    rows: pa.RecordBatch, columns: Sequence[Column], is_there: BoolArray
) -> tuple[Int64Array, Int64Array, list[ChannelKey]]:
    """(places of the rows that are there, which of the distinct values in these columns each has, those values)."""
    at = np.flatnonzero(is_there)
    values = [channel_column(column.type, rows.column(column.name))[0].take(pa.array(at)) for column in columns]
    return at, *group_channels(values, len(at))
