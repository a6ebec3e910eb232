"""Finds the snapshot rows of new select subscriptions."""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa

from research.servers.protocols import ColumnarRows
from research.strategies.select.table_form import Predicates, TableSpace, spread
from tidings.families.select.subscription import Details, Space, space_of
from tidings.families.spec import Form
from tidings.model.channel import channel_column, group_channels
from tidings.model.codes import Int64Array, code_of
from tidings.model.points import PointBatch, on_some_channel
from tidings.model.types import ColumnType

_SCAN_CELLS_MAX = 20_000_000
"""Up to this many (subscription, row) pairs, a scan is faster than building an index of the rows."""

_details = msgspec.msgpack.Decoder(Details)


def find_rows(
    space: TableSpace, points: PointBatch, predicates: Predicates, rows: ColumnarRows
) -> tuple[Int64Array, Int64Array]:
    """(index of the point, position of the row), both [pairs], of every current row in the answer of a new point, each once."""
    found = []
    if len(rows):
        for _, batch, of in spread(space, points, predicates):
            own, position = _find_rows(space_of(Form.from_key(batch.form), space.catalog), batch, rows)
            found.append(np.stack([of[own], position]))
    pairs = np.concatenate([np.empty((2, 0), np.int64), *found], axis=1)
    return pairs[0], pairs[1]


def _find_rows(space: Space, points: PointBatch, rows: ColumnarRows) -> tuple[Int64Array, Int64Array]:
    """As `find_rows`, for points of one shape."""
    reachable = np.flatnonzero(on_some_channel(points))
    if len(reachable) == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if len(reachable) * len(rows.alive) <= _SCAN_CELLS_MAX:
        found = [(point, _scan(space, points, point, rows)) for point in reachable.tolist()]
        owner = np.concatenate([np.full(len(at), point, np.int64) for point, at in found])
        position = np.concatenate([at for _, at in found])
    else:
        owner, position = _search(space, points, reachable, rows)
    return _verify(space, points, owner, position, rows) if space.is_lossy else (owner, position)


def _scan(space: Space, points: PointBatch, point: int, rows: ColumnarRows) -> Int64Array:
    mask = rows.alive.copy()
    texts: list[tuple[str, str]] = []
    for column, values in zip(space.equalities, points.channel, strict=True):
        codes, valid = rows.codes(column.name)
        component = values[point].as_py()
        if column.type is ColumnType.TEXT:
            texts.append((column.name, component))
            component = code_of(ColumnType.TEXT, component)
        mask &= valid & (codes == component)
    for i, column in enumerate(space.ranges):
        codes, valid = rows.codes(column.name)
        mask &= valid & (codes >= points.coords[point, 2 * i]) & (codes <= points.coords[point, 2 * i + 1])
    at = np.flatnonzero(mask)
    for name, text in texts:
        at = at[[value == text for value in rows.take(at).column(name).to_pylist()]] if len(at) else at
    return at


def _search(
    space: Space, points: PointBatch, reachable: Int64Array, rows: ColumnarRows
) -> tuple[Int64Array, Int64Array]:
    """As `_find_rows`, for many points: indexes the rows as points and queries it with the box of each subscription."""
    from tidings.kernels.point_index import PointIndex

    mask = rows.alive.copy()
    coded = [rows.codes(column.name) for column in space.ranges]
    for _, valid in coded:
        mask &= valid
    at = np.flatnonzero(mask)
    taken = rows.take(at)
    columns = []
    usable = np.ones(len(at), np.bool_)
    for column in space.equalities:
        components, valid = channel_column(column.type, taken.column(column.name))
        columns.append(components.fill_null("") if components.null_count else components)
        usable &= valid
    group, keys = group_channels(columns, len(at))
    coords = np.stack([codes[at] for codes, _ in coded], axis=1) if coded else np.empty((len(at), 0), np.int64)
    forest = PointIndex(len(coded))
    kept = np.flatnonzero(usable)
    forest.add_many(group[kept], kept.astype(np.int32), coords[kept])
    known = {key: i for i, key in enumerate(keys)}
    asked, asked_keys = group_channels([column.take(pa.array(reachable)) for column in points.channel], len(reachable))
    channel = np.array([known.get(key, -1) for key in asked_keys], np.int64)[asked]
    ends = points.coords[reachable]
    starts, slots, _ = forest.stab(
        channel, ends[:, 0::2], ends[:, 1::2], np.ones(len(reachable), np.uint8), np.arange(len(reachable) + 1)
    )
    return np.repeat(reachable, np.diff(starts)), at[slots]


def _verify(
    space: Space, points: PointBatch, owner: Int64Array, position: Int64Array, rows: ColumnarRows
) -> tuple[Int64Array, Int64Array]:
    taken = rows.take(position)
    ok = np.ones(len(owner), np.bool_)
    for i, column in enumerate(space.ranges):
        if column.type.is_lossy:
            texts = taken.column(column.name).to_pylist()
            for k, (point, text) in enumerate(zip(owner.tolist(), texts, strict=True)):
                bounds = _details.decode(points.details[point].as_py()).texts[i]
                ok[k] &= bounds is not None and bounds.holds(text)
    return owner[ok], position[ok]
