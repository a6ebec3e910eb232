"""Relation store: the relations of all joins of a server, each with its indexes. Joins share equal relations and indexes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from research.servers.changes import null_rows
from research.servers.protocols import ColumnarRows
from research.strategies.join.kernels.sorted_lists import Neighbours
from research.strategies.join.relations.graph import JoinGraph
from research.strategies.join.relations.join_index import IndexedEdge, JoinIndex
from research.strategies.join.relations.relation import Moves, Relation
from research.strategies.join.space import Space, Wanted
from tidings.kernels.rows import NONE
from tidings.model.change import TableChanges
from tidings.model.channel import ChannelKey
from tidings.model.codes import Int64Array

EdgeKey = tuple[tuple[Wanted, tuple[str, ...]], tuple[Wanted, tuple[str, ...]]]
"""Two relations, each with its join columns."""


class IndexChange(NamedTuple):
    """Changes of a relation, as applied to one of its indexes."""

    value: Int64Array
    """[changes]: number of the new row's join value."""
    cell: Int64Array
    """[changes]: cell of the new row."""
    at: Int64Array
    """Places of the changes that add a row."""
    gap: Neighbours
    """[at]: the neighbours between which the row was added."""


class RelationChange(NamedTuple):
    """Changes of a table, as applied to one relation and its indexes."""

    relation: Relation
    changes: TableChanges
    moves: Moves
    of_index: Mapping[JoinIndex, IndexChange]


class RelationStore:
    """Relations by `Side.rows` (which columns of a table they have), and the indexes of each."""

    def __init__(self) -> None:
        self._relations: dict[Wanted, Relation] = {}
        self._indexes: dict[Wanted, list[JoinIndex]] = {}
        self._edges: dict[EdgeKey, tuple[JoinIndex, JoinIndex]] = {}
        self.clock = 0
        """Increases with every batch of changes."""

    @property
    def relations(self) -> Mapping[Wanted, Relation]:
        return self._relations

    def edges(self) -> list[dict[str, JoinIndex]]:
        """For each edge: table -> its index."""
        return [{index.side.table.name: index for index in indexes} for indexes in self._edges.values()]

    def graph(self, space: Space, tables: Mapping[str, ColumnarRows]) -> JoinGraph:
        """The graph of a space's join. Missing relations and indexes are made from the rows of `tables`."""
        new = []
        for side in space.sides:
            if side.rows not in self._relations:
                self._relations[side.rows], self._indexes[side.rows] = Relation(side), []
                new.append(side)
        edges = {
            sides: IndexedEdge(sides, self._edge(space, sides, columns))
            for sides, columns in space.join_columns.items()
        }
        for side in new:
            rows = tables[side.table.name].rows() if side.table.name in tables else None
            if rows is not None and rows.num_rows:
                self._take(side.rows, _inserts(side.table.name, rows))
        return JoinGraph(space, tuple(self._relations[side.rows] for side in space.sides), edges)

    def fill(self, wanted: Wanted, rows: pa.RecordBatch) -> None:
        """Adds rows to a relation."""
        self._take(wanted, _inserts(wanted[0], rows))

    def change(self, changes: TableChanges) -> list[RelationChange]:
        """Applies changes of a table to all its relations and their indexes."""
        self.clock += 1
        return [self._take(wanted, changes) for wanted in self._relations if wanted[0] == changes.table]

    def _edge(
        self, space: Space, sides: tuple[int, int], columns: tuple[tuple[str, ...], tuple[str, ...]]
    ) -> tuple[JoinIndex, JoinIndex]:
        """The indexes of the edge between two sides, in the order of the sides."""
        of = [(space.sides[number].rows, names) for number, names in zip(sides, columns, strict=True)]
        first, second = sorted(of, key=lambda one: one[0][0])
        if (first, second) not in self._edges:
            values: dict[ChannelKey, int] = {}
            indexes = [JoinIndex(self._relations[wanted].side, names, values) for wanted, names in (first, second)]
            for index, (wanted, _) in zip(indexes, (first, second), strict=True):
                self._indexes[wanted].append(index)
                self._catch_up(self._relations[wanted], index)
            self._edges[first, second] = indexes[0], indexes[1]
        found = self._edges[first, second]
        return found if of[0] == first else (found[1], found[0])

    def _catch_up(self, relation: Relation, index: JoinIndex) -> None:
        """Adds the rows of a relation to a new index."""
        entries = relation.current()
        if len(entries):
            codes = relation.codes[entries]
            moves = Moves(np.full(len(entries), NONE), entries, codes, codes)
            _change_index(index, _inserts(relation.side.table.name, relation.rows(entries)), moves, self.clock)

    def _take(self, wanted: Wanted, changes: TableChanges) -> RelationChange:
        relation = self._relations[wanted]
        moves = relation.change(changes, self.clock)
        of_index = {index: _change_index(index, changes, moves, self.clock) for index in self._indexes[wanted]}
        return RelationChange(relation, changes, moves, of_index)


def _inserts(table: str, rows: pa.RecordBatch) -> TableChanges:
    there = np.ones(rows.num_rows, np.bool_)
    return TableChanges(table, np.zeros(rows.num_rows, np.int64), ~there, null_rows(rows), there, rows)


def _change_index(index: JoinIndex, changes: TableChanges, moves: Moves, clock: int) -> IndexChange:
    """Applies changes of a relation to one of its indexes."""
    value, cell = index.locate(changes.after, moves.new_codes, moves.new != NONE)
    _, old_cell = index.locate(changes.before, moves.old_codes, moves.old != NONE)
    index.put_values(moves.new[moves.new != NONE], value[moves.new != NONE])
    is_new, is_old = cell != NONE, old_cell != NONE
    # The new row is added before the old one is removed: for subscriptions that had the old row, it is no first partner.
    at = np.concatenate([np.flatnonzero(is_new), np.flatnonzero(is_old)])
    is_present = np.arange(len(at)) < is_new.sum()
    order = np.lexsort((~is_present, at))
    at, is_present = at[order], is_present[order]
    neighbours = index.change(
        np.where(is_present, cell[at], old_cell[at]),
        np.where(is_present, moves.new[at], moves.old[at]),
        np.where(is_present[:, None], moves.new_codes[at], moves.old_codes[at]),
        is_present,
    )
    gone = moves.old != NONE
    index.bury(moves.old[gone], moves.old_codes[gone], clock)
    gap = (neighbours.lo_from[is_present], neighbours.hi_to[is_present], neighbours.has_twin[is_present])
    return IndexChange(value, cell, at[is_present], Neighbours(*gap))
