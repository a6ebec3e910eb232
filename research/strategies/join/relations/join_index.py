"""Join index: the rows of one side of a join by the values they are joined by (as the hash tables of a symmetric hash join).

The rows of a join value are in cells, one for each combination of values in the columns that predicates pin by = or IN. Only
rows of one cell are interchangeable as partners. A cell is a list of its rows, sorted by the first range column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from research.strategies.join.kernels.sorted_lists import Neighbours, SortedLists
from research.strategies.join.relations.tombstones import FEW, Tombstones
from research.strategies.join.space import Side
from tidings.kernels.arrays import covering
from tidings.kernels.rows import NONE
from tidings.model.catalog import Column
from tidings.model.channel import ChannelKey, channel_column, group_channels
from tidings.model.codes import BoolArray, Int64Array

Lists = tuple[Int64Array, Int64Array]
"""(starts, members) of several lists: list i is members[starts[i]:starts[i + 1]]."""


@dataclass(frozen=True)
class IndexedEdge:
    """Two sides of a join with equal columns, and the index of each. Joins share indexes but number their own sides."""

    sides: tuple[int, int]
    indexes: tuple[JoinIndex, JoinIndex]

    def index(self, number: int) -> JoinIndex:
        return self.indexes[self.sides.index(number)]

    def other(self, number: int) -> int:
        first, second = self.sides
        return second if number == first else first

    @property
    def values(self) -> int:
        """Number of join values so far."""
        return self.indexes[0].values


class JoinIndex:
    """The rows of one side of an edge, without those that have null in a join column."""

    def __init__(self, side: Side, columns: Sequence[str], values: dict[ChannelKey, int]) -> None:
        self.side = side
        self._values = values
        self._joined = [side.table.column(name) for name in columns]
        self._pinned = [side.columns[i] for i in side.pinned]
        self.lists = SortedLists()
        self._cells: dict[tuple[int, ChannelKey], int] = {}
        self._at_value: dict[int, list[int]] = {}
        self._pins = np.empty((0, len(side.pinned)), np.int64)
        self._value = np.empty(0, np.int64)
        self.tombstones = Tombstones()

    @property
    def values(self) -> int:
        """Number of join values so far, on both sides of the edge."""
        return len(self._values)

    def value_of(self, entries: Int64Array) -> Int64Array:
        """Numbers of the join values of rows, [entries]; NONE for rows with a null."""
        return self._value[entries]

    def number(self, rows: pa.RecordBatch, is_there: BoolArray) -> Int64Array:
        """Numbers of the join values of rows, [rows]; new values get new numbers. NONE if not `is_there`, or for a null."""
        at, group, keys = _grouped(rows, self._joined, is_there & self._can_join(rows))
        numbers = [self._values.setdefault(key, len(self._values)) for key in keys]
        found = np.full(len(is_there), NONE, np.int64)
        if len(at):
            found[at] = np.array(numbers, np.int64)[group]
        return found

    def locate(self, rows: pa.RecordBatch, codes: Int64Array, is_there: BoolArray) -> tuple[Int64Array, Int64Array]:
        """(number of the join value, cell) of each row, both [rows], made if new. NONE if not `is_there`, or for a null."""
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
        """Whether each row has no null in the join columns, [rows]."""
        valid = np.ones(rows.num_rows, np.bool_)
        for column in self._joined:
            if rows.column(column.name).null_count:
                valid &= np.asarray(rows.column(column.name).is_valid())
        return valid

    def put_values(self, entries: Int64Array, values: Int64Array) -> None:
        """Sets the join values of new rows."""
        self._value = covering(self._value, entries)
        self._value[entries] = values

    def change(self, cells: Int64Array, entries: Int64Array, codes: Int64Array, is_present: BoolArray) -> Neighbours:
        """Adds rows to cells (`is_present`) or removes them. codes: [rows, columns with a predicate]."""
        at = self.side.ranged
        order = np.ascontiguousarray(codes[:, at[0]]) if at else np.zeros(len(codes), np.int64)
        return self.lists.change(cells, entries, order, is_present)

    def cells_at(self, values: Int64Array) -> Lists:
        """The non-empty cells of each join value."""
        lists = [self._at_value.get(value, ()) for value in values.tolist()]
        members = np.array([cell for cells in lists for cell in cells], np.int64)
        owner = np.repeat(np.arange(len(lists)), [len(cells) for cells in lists])
        kept = self.lists.sizes(members) > 0 if len(members) else np.zeros(0, np.bool_)
        counts = np.bincount(owner[kept], minlength=len(lists))
        return np.concatenate([[0], np.cumsum(counts)]), members[kept]

    def entries_at(self, values: Int64Array) -> Lists:
        """Entries of all rows at each join value."""
        starts, cells = self.cells_at(values)
        inner, entries, _ = self.lists.gather(cells)
        return inner[starts], entries

    def counts_at(self, values: Int64Array) -> Int64Array:
        """Number of rows of each join value, [values]."""
        distinct, of = np.unique(values, return_inverse=True)
        starts, cells = self.cells_at(distinct)
        sizes = np.concatenate([[0], np.cumsum(self.lists.sizes(cells) if len(cells) else cells)])
        counts: Int64Array = (sizes[starts[1:]] - sizes[starts[:-1]])[of]
        return counts

    def bury(self, entries: Int64Array, codes: Int64Array, clock: int) -> None:
        """Adds tombstones of rows that have just been removed."""
        values = self._value[entries]
        gone = np.flatnonzero(values != NONE)
        if len(gone):
            values = values[gone]
            self.tombstones.add(values, codes[gone], self.counts_at(values) < FEW, clock)

    def pins(self, cells: Int64Array) -> Int64Array:
        """Codes of the pinned columns of cells, [cells, pinned columns]."""
        return self._pins[cells]

    def _cell(self, value: int, pins: ChannelKey, codes: Int64Array) -> int:
        cell = self._cells.get((value, pins))
        if cell is None:
            cell = self._cells[value, pins] = self.lists.new(1)
            self._at_value.setdefault(value, []).append(cell)
            self._pins = covering(self._pins, cell)
            self._pins[cell] = codes[list(self.side.pinned)]
        return cell


def _grouped(
    rows: pa.RecordBatch, columns: Sequence[Column], is_there: BoolArray
) -> tuple[Int64Array, Int64Array, list[ChannelKey]]:
    """(places of rows with `is_there`, index of each one's value in these columns, the distinct values)."""
    at = np.flatnonzero(is_there)
    values = [channel_column(column.type, rows.column(column.name))[0].take(pa.array(at)) for column in columns]
    return at, *group_channels(values, len(at))


def expand(lists: Lists, of: Int64Array) -> Lists:
    """(i, member) for every member of list of[i], for all i."""
    starts, members = lists
    sizes = np.diff(starts)[of]
    owner = np.repeat(np.arange(len(of)), sizes)
    first = np.cumsum(sizes) - sizes
    places = np.arange(len(owner)) - first[owner] + starts[of][owner]
    return owner, members[places]
