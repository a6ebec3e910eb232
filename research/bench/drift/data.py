"""A drift workload as arrays (moves of items, and members that follow items), and as a dataset for the pipeline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec
import numpy as np
import pyarrow as pa

from research.bench.dataset import BATCH, Dataset
from research.servers.changes import ChangeBatch
from research.workloads.drift.quotes import CATALOG_SQL
from tidings.families.drift.subscription import Space, space_of
from tidings.model.change import Op, TableChanges
from tidings.model.codes import Int64Array, codes_of_doubles
from tidings.workloads.draws import FloatArray
from tidings.workloads.workload import WorkloadLines

_START = np.datetime64("2026-01-05T09:30:00", "us")


@dataclass(frozen=True)
class Timeline:
    """Moves in order, and members (subscriptions) in order of creation. An item has no value before its first move."""

    names: tuple[str, ...]
    move_item: Int64Array
    move_value: FloatArray
    member_item: Int64Array
    member_reach: FloatArray
    member_after: Int64Array
    """Number of moves before the member is created; ascending."""

    @staticmethod
    def of(workload: WorkloadLines) -> Timeline:
        """The timeline of a workload. Every subscription must be `symbol = '..' AND moved(price) >= r` and is never dropped."""
        numbers: dict[str, int] = {}
        subscription, change = msgspec.json.Decoder(_Subscription), msgspec.json.Decoder(_Change)
        moves = [change.decode(line).row for line in workload.changes]
        item = np.fromiter((numbers.setdefault(row.symbol, len(numbers)) for row in moves), np.int64, len(moves))
        members = [subscription.decode(line) for line in workload.subscriptions]
        symbols = (member.sql.split("'", 2)[1] for member in members)
        follows = np.fromiter((numbers.setdefault(symbol, len(numbers)) for symbol in symbols), np.int64, len(members))
        reach = np.array([float(member.sql.rpartition(" ")[2]) for member in members], np.float64)
        after = np.array([member.after for member in members], np.int64)
        return Timeline(tuple(numbers), item, np.array([row.price for row in moves]), follows, reach, after)

    @property
    def size(self) -> int:
        return len(self.member_reach)

    @property
    def moves(self) -> int:
        return len(self.move_value)

    @property
    def settled(self) -> int:
        """Number of moves after which all members are created and every item has a value."""
        _, first = np.unique(self.move_item, return_index=True)
        return int(max(self.member_after.max(initial=0), first.max(initial=-1) + 1))

    def early(self, moves: int) -> Timeline:
        """The same timeline with all members created within the first `moves` moves, in the same order."""
        return replace(self, member_after=self.member_after * moves // max(1, self.moves))

    def sql(self, member: int) -> str:
        name, reach = self.names[self.member_item[member]], float(self.member_reach[member])
        return f"SELECT * FROM quotes WHERE symbol = '{name}' AND moved(price) >= {reach!r}"


class _Subscription(msgspec.Struct):
    sql: str
    after: int


class _Row(msgspec.Struct):
    symbol: str
    price: float


class _Change(msgspec.Struct):
    row: _Row


@dataclass(frozen=True)
class DriftData(Dataset):
    """The first move of an item inserts its row; every item has made one before any makes its second."""

    timeline: Timeline
    catalog_sql: str = CATALOG_SQL

    @property
    def size(self) -> int:
        return self.timeline.size

    @cached_property
    def space(self) -> Space:
        return space_of(self.form, self.catalog)

    def sql(self, i: int) -> str:
        return self.timeline.sql(i)

    def coords(self) -> Int64Array:
        coords = np.zeros((self.size, 2), np.int64)
        coords[:, 0] = codes_of_doubles(self.timeline.member_reach)
        return coords

    def channel(self) -> tuple[pa.Array, ...]:
        return (pa.array(self.timeline.names, pa.string()).take(pa.array(self.timeline.member_item)),)

    def after(self) -> Int64Array:
        return self.timeline.member_after

    def inserts(self) -> Iterator[ChangeBatch]:
        yield self.moves(0, len(self.timeline.names))

    def updates(self) -> Iterator[ChangeBatch]:
        for start in range(len(self.timeline.names), self.timeline.moves, BATCH):
            yield self.moves(start, min(start + BATCH, self.timeline.moves))

    def stream(self, changes: int, at_a_time: int) -> Iterator[ChangeBatch]:
        """The first so many changes."""
        assert changes <= self.timeline.moves
        for start in range(0, changes, at_a_time):
            yield self.moves(start, min(start + at_a_time, changes))

    def moves(self, start: int, stop: int) -> ChangeBatch:
        """Moves as changes; volume and time of the rows are made up."""
        timeline, move = self.timeline, np.arange(start, stop)
        columns = [
            pa.array(timeline.names, pa.string()).take(pa.array(timeline.move_item[move])),
            pa.array(timeline.move_value[move]),
            pa.array(move * 7_919 % 100_000),
            pa.array(_START + move.astype("timedelta64[s]")),
        ]
        op = np.where(move < len(timeline.names), Op.INSERT, Op.UPDATE).astype(np.int8)
        return self.batch("quotes", op, start, columns)

    def images(self, start: int, stop: int) -> TableChanges:
        """Moves as changes with images, as messages need them. Old images are the same as the new ones."""
        batch, there = self.moves(start, stop), np.ones(stop - start, np.bool_)
        return TableChanges("quotes", batch.seq, there, batch.rows, there, batch.rows)
