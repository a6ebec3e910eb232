"""What the drift family reads from rows: keys, followed values, and the snapshot rows of new subscriptions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from research.servers.message import SnapshotBatch
from research.servers.protocols import ColumnarRows
from tidings.families.drift.subscription import Space
from tidings.model.change import TableChanges
from tidings.model.channel import ChannelKey, channel_column, channel_keys, group_channels
from tidings.model.codes import CODE_MIN, Int64Array, code_of, codes_of
from tidings.model.points import PointBatch

Float64Array = npt.NDArray[np.float64]
NO_TIME = CODE_MIN
VALUE, TIME = "held.value", "held.time"
"""Payload columns beside the row, for views that decide themselves whether to notify."""


def values_of(space: Space, rows: pa.RecordBatch) -> tuple[Float64Array, Int64Array]:
    """(followed value of each row, NaN for null or no row; its time by the form's clock, or NO_TIME), both [rows]."""
    column = rows.column(space.column.name).cast(pa.float64(), safe=False)
    values = column.to_numpy(zero_copy_only=False)
    times = np.full(len(values), NO_TIME, np.int64)
    if space.clock is not None:
        codes, valid = codes_of(space.clock.type, rows.column(space.clock.name))
        # NO_TIME is also the least value of a clock: such a value counts as the next higher one.
        times[valid] = np.maximum(codes[valid], NO_TIME + 1)
    return values, times


def row_keys(space: Space, rows: pa.RecordBatch) -> list[ChannelKey]:
    """Primary keys, in the order of `key_columns`."""
    columns = [channel_column(column.type, rows.column(column.name))[0] for column in space.key_columns]
    return channel_keys(columns, rows.num_rows)


def changed_keys(space: Space, changes: TableChanges) -> list[pa.Array]:
    """Primary keys of changed rows, one array per column, in the order of `key_columns`."""
    columns = []
    for column in space.key_columns:
        values = changes.after.column(column.name)
        if not changes.has.all():
            values = pc.coalesce(values, changes.before.column(column.name))
        columns.append(channel_column(column.type, values)[0])
    return columns


def in_key_order(space: Space, keys: Iterable[ChannelKey]) -> Iterator[ChannelKey]:
    """Keys in the order of the table's PRIMARY KEY instead of `key_columns`."""
    names = [column.name for column in space.key_columns]
    order = [names.index(name) for name in space.table.key]
    return (tuple(key[at] for at in order) for key in keys)


def snapshots(space: Space, points: PointBatch, rows: ColumnarRows) -> Iterator[SnapshotBatch]:
    """The snapshot rows of new points: none or one batch."""
    owner, position = _first_rows(space, points, rows)
    yield from snapshots_of(space, points, owner, rows.take(position))


def snapshots_of(space: Space, points: PointBatch, owner: Int64Array, taken: pa.RecordBatch) -> Iterator[SnapshotBatch]:
    """Rows as those of snapshots; owner: index of the point of each. Rows without a value are left out."""
    values, times = values_of(space, taken)
    has_value = ~np.isnan(values)
    if not has_value.any():
        return
    kept = pa.array(np.flatnonzero(has_value))
    owner, taken = owner[has_value], taken.take(kept)
    columns = {f"row.{name}": taken.column(name) for name in space.projection}
    columns |= {f"key.{column.name}": taken.column(column.name) for column in space.key_columns}
    columns |= {VALUE: pa.array(values[has_value]), TIME: pa.array(times[has_value])}
    payload = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
    yield SnapshotBatch(space.key, points.after[owner], points.id.take(pa.array(owner)), payload)


def _first_rows(space: Space, points: PointBatch, rows: ColumnarRows) -> tuple[Int64Array, Int64Array]:
    """(index of the point, position of the row) for every current row that a new point follows."""
    group, keys = group_channels(points.channel, len(points))
    if space.follows_one_row:
        reachable = [key for key in keys if None not in key]
        found = dict(zip(reachable, rows.find(in_key_order(space, reachable)).tolist(), strict=True))
        position = np.array([found.get(key, -1) for key in keys], np.int64)[group]
        owner = np.flatnonzero(position >= 0)
        return owner, position[owner]
    starts, found_at = rows_on(space, rows, keys)
    counts = np.diff(starts)[group]
    owner = np.repeat(np.arange(len(points)), counts)
    first = np.repeat(starts[group] - (np.cumsum(counts) - counts), counts)
    return owner, found_at[first + np.arange(len(owner))]


def rows_on(space: Space, rows: ColumnarRows, channels: Sequence[ChannelKey]) -> tuple[Int64Array, Int64Array]:
    """Positions of the current rows of channels: those of channel i are positions[starts[i]:starts[i + 1]]."""
    parts = [_on_channel(space, rows, channel) for channel in channels]
    starts = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=starts[1:])
    return starts, np.concatenate([np.empty(0, np.int64), *parts])


def _on_channel(space: Space, rows: ColumnarRows, channel: ChannelKey) -> Int64Array:
    if None in channel:
        return np.empty(0, np.int64)
    is_on = rows.alive.copy()
    for column, component in zip(space.pinned, channel, strict=True):
        code = code_of(column.type, component) if column.type.is_lossy else component
        is_on &= rows.codes(column.name)[0] == code
    at = np.flatnonzero(is_on)
    for column, component in zip(space.pinned, channel, strict=True):
        if column.type.is_lossy and len(at):
            # Codes of text are only its first bytes.
            at = at[np.asarray(pc.equal(rows.take(at).column(column.name), component))]
    return at
