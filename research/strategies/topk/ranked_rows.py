"""State of a top-k server: all rows of its shard in a top-k index, with one set of entries per channel.

Channels without subscriptions have sets too, since the next subscription may be on any channel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from research.servers.changes import known_rows
from research.servers.message import SnapshotBatch
from research.servers.protocols import ColumnarRows
from research.servers.row_log import RowLog
from research.strategies.topk.kernels.range_topk import RangeTopkIndex, Sends
from research.strategies.topk.order_labels import OrderLabels
from tidings.families.topk.subscription import Space
from tidings.model.catalog import Column
from tidings.model.change import TableChanges
from tidings.model.channel import ChannelKey, channel_column, channel_columns, channel_keys, group_channels
from tidings.model.codes import CODE_MAX, CODE_MIN, BoolArray, Int64Array, codes_of
from tidings.model.points import PointBatch, on_some_channel

_SWEEP_DEAD_MIN = 65_536
ABSENT = -1


class TopkIndex(Protocol):
    """Ranks entries and finds the regions to send them to: a `RangeTopkIndex`, or a `BoxTopkIndex` for several ranges."""

    def new_set(self) -> int: ...
    def change(
        self,
        sets: Int64Array,
        entries: Int64Array,
        xs: Int64Array,
        ys: Int64Array,
        ties: Int64Array,
        is_present: BoolArray,
    ) -> Sends: ...
    def load(self, *columns: Int64Array | BoolArray) -> Sends: ...
    def best(self, sets: Int64Array, los: Int64Array, his: Int64Array) -> tuple[Int64Array, Int64Array]: ...
    def retie(self, sets: Int64Array, entries: Int64Array, ties: Int64Array) -> None: ...


@dataclass(frozen=True)
class RowSends:
    """Output of a batch of changes: sends of entries, and for each send (all arrays [sends]) its change, set and row."""

    sends: Sends
    change: Int64Array
    """Place of the change that causes the send."""
    set: Int64Array
    """Set (channel) in whose space the boxes of the send are."""
    row: Int64Array
    """Position in the log of the row to send."""


class RankedRows:
    """Rows as entries of a top-k index; their values are in a log."""

    def __init__(self, space: Space, index: TopkIndex | None = None) -> None:
        """index: None for a `RangeTopkIndex`, which serves at most one range."""
        self.space = space
        self.index: TopkIndex = RangeTopkIndex(space.k) if index is None else index
        looked_at = [column.name for column in (*space.equalities, *space.ranges)]
        names = dict.fromkeys([*space.payload, *looked_at])
        self.log = RowLog(pa.schema([space.table.schema.field(name) for name in names]))
        self._sets: dict[ChannelKey, int] = {}
        self._entries: dict[ChannelKey, int] = {}
        self._free: list[int] = []
        self._set_of = np.empty(0, np.int64)
        self._row_of = np.empty(0, np.int64)
        self._ties = OrderLabels()
        types = [space.table.column(name).type for name in space.table.key]
        self._has_number_keys = len(types) == 1 and not types[0].is_lossy
        self.is_filled = False

    def fill(self, rows: ColumnarRows) -> None:
        """Enters the rows from before the server was made."""
        self.is_filled = True
        current = rows.rows()
        if current.num_rows:
            self._enter(current, np.ones(current.num_rows, np.bool_), is_told=False)

    def change(self, changes: TableChanges) -> RowSends:
        """Applies changes. Returns what to send."""
        # Before the changes, not after: the caller still reads the rows to send from the log.
        self._sweep()
        return self._enter(known_rows(changes), changes.has, is_told=True)

    def best(self, channels: Sequence[ChannelKey], los: Int64Array, his: Int64Array) -> tuple[Int64Array, Int64Array]:
        """(index of the point, position of the row) of the first k rows of every point. los, his: [points, ranges]."""
        sets = np.array([self._sets.get(key, ABSENT) for key in channels], np.int64)
        at = np.flatnonzero(sets != ABSENT)
        starts, entries = self.index.best(sets[at], los[at], his[at])
        return np.repeat(at, np.diff(starts)), self._row_of[entries]

    def first_rows(self, points: PointBatch) -> list[SnapshotBatch]:
        """The first k rows of every new point: none or one batch."""
        keys = channel_keys(points.channel, len(points))
        owner, row = self.best(keys, points.coords[:, 0::2], points.coords[:, 1::2])
        if len(owner) == 0:
            return []
        payload = self.log.take(row).select(list(self.space.payload))
        return [SnapshotBatch(self.space.key, points.after[owner], points.id.take(pa.array(owner)), payload)]

    def sets_of(self, channels: Iterable[ChannelKey]) -> Int64Array:
        """The set of each channel, [channels], made if there is none; ABSENT for a channel with a null."""
        return np.array([self._set(key) for key in channels], np.int64)

    def placed(self, points: PointBatch) -> tuple[Int64Array, Int64Array]:
        """(sets, coordinates) of the points that are on a channel."""
        reachable = points.take(on_some_channel(points))
        group, keys = group_channels(reachable.channel, len(reachable))
        return self.sets_of(keys)[group], reachable.coords

    def channels(self, sets: Int64Array) -> tuple[pa.Array, ...]:
        """The channel of each set, one array per component."""
        columns = channel_columns(self.space.channel_types, self._sets)
        return tuple(column.take(pa.array(sets)) for column in columns)

    def dump(self) -> dict[str, Any]:
        entries = np.array(sorted(self._entries.values()), np.int64)
        return {"is_filled": self.is_filled, "rows": self.log.take(self._row_of[entries])}

    def load(self, state: dict[str, Any]) -> None:
        self.is_filled = state["is_filled"]
        if state["rows"].num_rows:
            self._enter(state["rows"], np.ones(state["rows"].num_rows, np.bool_), is_told=False)

    def _enter(self, rows: pa.RecordBatch, is_there: BoolArray, *, is_told: bool) -> RowSends:
        """Enters rows, as they are after changes, into log and index; rows not `is_there` (deleted) leave the index."""
        first = len(self.log)
        self.log.append(rows.select(self.log.names))
        keys = self._keys(rows)
        entry = self._entries_of(keys)
        group, channels = group_channels(self._channel_columns(rows), rows.num_rows)
        new_set = self.sets_of(channels)[group]
        xs, has_x = self._xs_of(rows)
        ys, has_y = self._codes(self.space.rank, rows)
        new_set[~(is_there & has_x & has_y)] = ABSENT
        place, sets, is_present = _moves(self._before(entry, new_set), new_set)
        ties = self._ties_of(keys)
        ys = ~ys if self.space.descending else ys
        columns = (sets, entry[place], xs[place], ys[place], ties[place], is_present)
        sends = self.index.change(*columns) if is_told else self.index.load(*columns)
        of = np.repeat(np.arange(len(sets)), np.diff(sends.send_starts))
        change = place[of]
        row = self._rows_at(entry, first, sends.entry, change)
        self._set_of[entry], self._row_of[entry] = new_set, first + np.arange(len(entry))
        # A row may be deleted and inserted again in one batch: its last change counts.
        for key, is_last_there in dict(zip(keys, is_there.tolist(), strict=True)).items():
            if not is_last_there:
                self._free.append(self._entries.pop(key))
        return RowSends(sends, change, sets[of], row)

    def _before(self, entry: Int64Array, new_set: Int64Array) -> Int64Array:
        """The set of each row before its change, [changes]; the batch may have several changes of one row."""
        order = np.argsort(entry, kind="stable")
        is_again = np.zeros(len(entry), np.bool_)
        is_again[1:] = entry[order][1:] == entry[order][:-1]
        before = np.empty(len(entry), np.int64)
        before[order] = np.where(is_again, np.roll(new_set[order], 1), self._set_of[entry[order]])
        return before

    def _rows_at(self, entry: Int64Array, first: int, sent: Int64Array, change: Int64Array) -> Int64Array:
        """Position in the log of each sent entry's row, as of the change that it is sent for, [sends]."""
        width = len(entry) + 1
        known = np.sort(entry * width + np.arange(len(entry)))
        at = np.searchsorted(known, sent * width + change, "right") - 1
        is_new = (at >= 0) & (known[at] // width == sent) if len(known) else np.zeros(len(sent), np.bool_)
        return np.where(is_new, first + known[at] % width, self._row_of[sent])

    def _sweep(self) -> None:
        entries = np.array(list(self._entries.values()), np.int64)
        if len(self.log) - len(entries) > max(_SWEEP_DEAD_MIN, len(entries)):
            rows = self.log.take(self._row_of[entries])
            self.log.clear()
            self.log.append(rows)
            self._row_of[entries] = np.arange(len(entries))

    def _entries_of(self, keys: list[ChannelKey]) -> Int64Array:
        entry = np.empty(len(keys), np.int64)
        for i, key in enumerate(keys):
            number = self._entries.get(key)
            if number is None:
                number = self._entries[key] = self._free.pop() if self._free else len(self._entries) + len(self._free)
            entry[i] = number
        size = len(self._entries) + len(self._free)
        if size > len(self._set_of):
            grown = max(size, 2 * len(self._set_of)) - len(self._set_of)
            self._set_of = np.append(self._set_of, np.full(grown, ABSENT))
            self._row_of = np.append(self._row_of, np.full(grown, ABSENT))
        return entry

    def _set(self, channel: ChannelKey) -> int:
        """The set of a channel, made if there is none; ABSENT if a component is null."""
        if None in channel:
            return ABSENT
        number = self._sets.get(channel)
        if number is None:
            number = self._sets[channel] = self.index.new_set()
            assert number == len(self._sets) - 1
        return number

    def _keys(self, rows: pa.RecordBatch) -> list[ChannelKey]:
        table = self.space.table
        columns = [channel_column(table.column(name).type, rows.column(name))[0] for name in table.key]
        return channel_keys(columns, rows.num_rows)

    def _channel_columns(self, rows: pa.RecordBatch) -> list[pa.Array]:
        columns = []
        for column in self.space.equalities:
            components, valid = channel_column(column.type, rows.column(column.name))
            columns.append(components if valid.all() else pc.if_else(pa.array(valid), components, None))
        return columns

    def _xs_of(self, rows: pa.RecordBatch) -> tuple[Int64Array, BoolArray]:
        """(codes of the range columns, [rows, ranges]; whether none is null, [rows]). One code 0 if there is no range."""
        xs = np.zeros((rows.num_rows, max(1, len(self.space.ranges))), np.int64)
        valid = np.ones(rows.num_rows, np.bool_)
        for i, column in enumerate(self.space.ranges):
            xs[:, i], is_valid = self._codes(column, rows)
            valid &= is_valid
        if len(self.space.ranges) == 1:
            # The ends of the axis mean "no limit": a value with such a code gets the neighbouring code.
            xs = np.clip(xs, CODE_MIN + 1, CODE_MAX - 1)
        return xs, valid

    def _codes(self, column: Column, rows: pa.RecordBatch) -> tuple[Int64Array, BoolArray]:
        return codes_of(column.type, rows.column(column.name))

    def _ties_of(self, keys: list[ChannelKey]) -> Int64Array:
        """Numbers that sort like the primary keys, [keys]: the key itself if it is one number, else order labels."""
        if self._has_number_keys:
            return np.array([key[0] for key in keys], np.int64)
        if self._ties.add(keys):
            ranked = [(key, number) for key, number in self._entries.items() if self._set_of[number] != ABSENT]
            numbers = np.array([number for _, number in ranked], np.int64)
            self.index.retie(self._set_of[numbers], numbers, self._ties.of(key for key, _ in ranked))
        return self._ties.of(keys)


def _moves(before: Int64Array, after: Int64Array) -> tuple[Int64Array, Int64Array, BoolArray]:
    """(place of the change, set, whether the entry is in it afterwards). A row that moves leaves one set and enters another."""
    leaves = (before != ABSENT) & (before != after)
    enters = after != ABSENT
    place = np.concatenate([np.flatnonzero(leaves), np.flatnonzero(enters)])
    sets = np.concatenate([before[leaves], after[enters]])
    is_present = np.arange(len(place)) >= leaves.sum()
    order = np.lexsort((is_present, place))
    return place[order], sets[order], is_present[order]
