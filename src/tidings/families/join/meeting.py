"""The rows of all tables of some joins, met wherever they are joined; joins of different tables share what they can."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidings.families.join.junction import End, Junction
from tidings.families.join.relation import NONE, Moves, Relation
from tidings.families.join.subscription import Space, Wanted
from tidings.families.protocols import Rows
from tidings.kernels.ladders import Neighbours
from tidings.model.change import TableChanges, null_rows
from tidings.model.channel import ChannelKey
from tidings.model.codes import Int64Array

Joint = tuple[tuple[Wanted, tuple[str, ...]], tuple[Wanted, tuple[str, ...]]]
"""Two sides, each with the columns it is joined by."""


@dataclass(frozen=True)
class Setting:
    """A space with the rows of its sides, and where they meet."""

    space: Space
    relations: tuple[Relation, ...]
    junctions: Mapping[tuple[int, int], Junction]

    def junction(self, one: int, other: int) -> Junction:
        return self.junctions[(one, other) if one < other else (other, one)]

    def neighbours(self, number: int) -> list[int]:
        """Sides that a side is joined to."""
        return [junction.other(number) for sides, junction in self.junctions.items() if number in sides]

    def first_filters(self) -> list[tuple[int, ...]]:
        """A neighbour of each side, the same for all spaces that have the like."""
        names = [side.table.name for side in self.space.sides]
        return [(min(self.neighbours(number), key=names.__getitem__),) for number in range(len(names))]

    def within(self, space: Space) -> Setting:
        """Some of the sides, as another space knows them."""
        numbers = [self.space.side_of(side.table.name) for side in space.sides]
        junctions = {
            (one, two): Junction((one, two), (self._end(numbers, one, two), self._end(numbers, two, one)))
            for one, two in space.junctions
        }
        return Setting(space, tuple(self.relations[number] for number in numbers), junctions)

    def _end(self, numbers: list[int], at: int, by: int) -> End:
        return self.junction(numbers[at], numbers[by]).end(numbers[at])


class Step(NamedTuple):
    """What happened at one end of a junction."""

    value: Int64Array
    """Number of the new row's join value, by change."""
    cell: Int64Array
    """Its cell."""
    at: Int64Array
    """Changes that bring a row."""
    gap: Neighbours
    """Where each of these found its neighbours."""


class Arrival(NamedTuple):
    """Changes as one relation and its ends have taken them."""

    relation: Relation
    changes: TableChanges
    moves: Moves
    steps: Mapping[End, Step]


class Meeting:
    """Relations, each with its ends."""

    def __init__(self) -> None:
        self._relations: dict[Wanted, Relation] = {}
        self._ends: dict[Wanted, list[End]] = {}
        self._joints: dict[Joint, tuple[End, End]] = {}
        self.clock = 0
        """Goes forward with every batch of changes."""

    @property
    def relations(self) -> Mapping[Wanted, Relation]:
        return self._relations

    def joints(self) -> list[dict[str, End]]:
        """The ends of every pair of tables that are joined, by table."""
        return [{end.side.table.name: end for end in ends} for ends in self._joints.values()]

    def setting(self, space: Space, tables: Mapping[str, Rows]) -> Setting:
        """What there is for a space; what there is not yet is made, with the rows of `tables`."""
        new = []
        for side in space.sides:
            if side.rows not in self._relations:
                self._relations[side.rows], self._ends[side.rows] = Relation(side), []
                new.append(side)
        junctions = {
            sides: Junction(sides, self._joint(space, sides, columns)) for sides, columns in space.junctions.items()
        }
        for side in new:
            rows = tables[side.table.name].rows() if side.table.name in tables else None
            if rows is not None and rows.num_rows:
                self._arrive(side.rows, _inserts(side.table.name, rows))
        return Setting(space, tuple(self._relations[side.rows] for side in space.sides), junctions)

    def fill(self, wanted: Wanted, rows: pa.RecordBatch) -> None:
        """Lets the rows of a relation come."""
        self._arrive(wanted, _inserts(wanted[0], rows))

    def change(self, changes: TableChanges) -> list[Arrival]:
        self.clock += 1
        return [self._arrive(wanted, changes) for wanted in self._relations if wanted[0] == changes.table]

    def _joint(
        self, space: Space, sides: tuple[int, int], columns: tuple[tuple[str, ...], tuple[str, ...]]
    ) -> tuple[End, End]:
        """The ends where two sides meet, in the order of the sides."""
        of = [(space.sides[number].rows, names) for number, names in zip(sides, columns, strict=True)]
        first, second = sorted(of, key=lambda one: one[0][0])
        if (first, second) not in self._joints:
            values: dict[ChannelKey, int] = {}
            ends = [End(self._relations[wanted].side, names, values) for wanted, names in (first, second)]
            for end, (wanted, _) in zip(ends, (first, second), strict=True):
                self._ends[wanted].append(end)
                self._catch_up(self._relations[wanted], end)
            self._joints[first, second] = ends[0], ends[1]
        found = self._joints[first, second]
        return found if of[0] == first else (found[1], found[0])

    def _catch_up(self, relation: Relation, end: End) -> None:
        """Lets the rows there are come to a new end."""
        entries = relation.current()
        if len(entries):
            codes = relation.codes[entries]
            moves = Moves(np.full(len(entries), NONE), entries, codes, codes)
            _step(end, _inserts(relation.side.table.name, relation.rows(entries)), moves, self.clock)

    def _arrive(self, wanted: Wanted, changes: TableChanges) -> Arrival:
        relation = self._relations[wanted]
        moves = relation.change(changes, self.clock)
        steps = {end: _step(end, changes, moves, self.clock) for end in self._ends[wanted]}
        return Arrival(relation, changes, moves, steps)


def _inserts(table: str, rows: pa.RecordBatch) -> TableChanges:
    there = np.ones(rows.num_rows, np.bool_)
    return TableChanges(table, np.zeros(rows.num_rows, np.int64), ~there, null_rows(rows), there, rows)


def _step(end: End, changes: TableChanges, moves: Moves, clock: int) -> Step:
    """Lets rows come and go at one end of a junction."""
    value, cell = end.locate(changes.after, moves.new_codes, moves.new != NONE)
    _, old_cell = end.locate(changes.before, moves.old_codes, moves.old != NONE)
    end.put_values(moves.new[moves.new != NONE], value[moves.new != NONE])
    is_new, is_old = cell != NONE, old_cell != NONE
    # The new row comes before the old one goes: who has a partner in the one needs no other.
    at = np.concatenate([np.flatnonzero(is_new), np.flatnonzero(is_old)])
    is_present = np.arange(len(at)) < is_new.sum()
    order = np.lexsort((~is_present, at))
    at, is_present = at[order], is_present[order]
    neighbours = end.change(
        np.where(is_present, cell[at], old_cell[at]),
        np.where(is_present, moves.new[at], moves.old[at]),
        np.where(is_present[:, None], moves.new_codes[at], moves.old_codes[at]),
        is_present,
    )
    gone = moves.old != NONE
    end.depart(moves.old[gone], moves.old_codes[gone], clock)
    gap = (neighbours.lo_from[is_present], neighbours.hi_to[is_present], neighbours.has_twin[is_present])
    return Step(value, cell, at[is_present], Neighbours(*gap))
