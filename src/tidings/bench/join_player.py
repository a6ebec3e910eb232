"""Plays the changes of join data on a server, or on that part of it which says where the changed rows themselves go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tidings.bench.join_data import JoinData
from tidings.families.join.boxes import Boxes
from tidings.families.join.relations.store import RelationStore
from tidings.families.join.semijoin.skylines import Question, Skyline
from tidings.families.join.strategies import server_of
from tidings.families.join.subscriber_index import SubscriberIndex
from tidings.families.optional import Replanning
from tidings.families.protocols import Rows
from tidings.model.change import ChangeBatch, Op, TableChanges
from tidings.model.codes import BoolArray, Int64Array, codes_of_doubles
from tidings.model.message import MessageBatch
from tidings.pipeline.store import TableStore
from tidings.workloads.join_tables import BINARY

R, S = 0, 1
"""Numbers of the sides."""
_COLUMNS = [table.value for table in BINARY.tables]


class Player:
    """A server by one strategy, with all rows and subscriptions in place."""

    def __init__(self, data: JoinData, strategy: str) -> None:
        self._server = server_of(data.catalog, strategy)
        stores = {table.name: TableStore(table) for table in data.catalog.tables}
        for batch in data.inserts():
            stores[batch.table].replay(batch)
        tables: dict[str, Rows] = {**stores}
        self._server.create(data.points(), tables, wants_snapshots=False)

    def play(self, changes: TableChanges) -> list[MessageBatch]:
        sent = list(self._server.change(changes))
        if isinstance(self._server, Replanning) and (decision := self._server.decide()) is not None:
            sent.extend(self._server.follow(decision, int(changes.seq[-1])))
        return sent


def portions(data: JoinData, at_a_time: int, changes_max: int) -> Iterator[TableChanges]:
    """The first changes after the rows, with their images."""
    given = 0
    for batch in data.updates():
        for start in range(0, len(batch), at_a_time):
            stop = min(start + at_a_time, len(batch), start + changes_max - given)
            if stop > start:
                yield data.images(batch.slice(start, stop))
                given += stop - start


class Arrived(NamedTuple):
    """Changes of R as arrays: what is known of the rows once their columns and keys are read."""

    codes: Int64Array
    """[change, 1]"""
    value: Int64Array
    cell: Int64Array
    entry: Int64Array
    is_insert: BoolArray

    def insertions(self) -> Arrived:
        at = self.is_insert
        return Arrived(self.codes[at], self.value[at], self.cell[at], self.entry[at], at[at])


class BaseSide:
    """Where the changed rows of R go: skylines over the rows of S, with the rows of R kept in order all the while."""

    def __init__(self, data: JoinData, skyline: Skyline) -> None:
        self._space, self._skyline = data.space, skyline
        self._subscribers = SubscriberIndex(data.space)
        self._subscribers.add(np.arange(data.size), data.points().coords)
        self._edge = RelationStore().graph(data.space, {}).edges[R, S]
        for batch in data.inserts():
            self._keep(self.arrive(batch), data.space.side_of(batch.table))

    def arrive(self, batch: ChangeBatch) -> Arrived:
        side = self._space.side_of(batch.table)
        codes = codes_of_doubles(batch.rows.column(_COLUMNS[side]).to_numpy())[:, None]
        value, cell = self._edge.index(side).locate(batch.rows, codes, np.ones(len(batch), np.bool_))
        return Arrived(codes, value, cell, batch.rows.column("id").to_numpy(), batch.op != Op.DELETE)

    def play(self, rows: Arrived) -> int:
        """Makes changes; gives how many boxes they go to."""
        self._keep(rows, R)
        gone = rows.codes[~rows.is_insert]
        return len(self.draw(rows.insertions())) + len(Boxes.all(self._space, len(gone)).hold(R, gone))

    def draw(self, rows: Arrived) -> Boxes:
        """The boxes of insertions."""
        question = Question(self._space, self._subscribers, R, rows.codes, S, self._edge.index(S))
        return self._skyline.draw(question, rows.value)[1]

    def _keep(self, rows: Arrived, side: int) -> None:
        self._edge.index(side).change(rows.cell, rows.entry, rows.codes, rows.is_insert)
