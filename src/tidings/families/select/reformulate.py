"""A change becomes a message: the row before and after, and the region of everyone whose answer it alters.

A row with value v concerns the points with lo <= v <= hi in every range column: one box. So an update concerns the union of
the new row's box (tag NEW) and the old row's (tag OLD); a point in both sees an update, in one only an insert or a delete.

        hi |        :::NEW::::          Where the shown columns did not change, points in both boxes see no change:
           |   ::::OLD:::               then the region is what lies in exactly one box, cut into disjoint pieces,
           +---------------- lo         at most one per range column and side.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.families.select.subscription import Space
from tidings.model.change import TableChanges
from tidings.model.channel import ChannelKey, channel_column, group_channels
from tidings.model.codes import CODE_MAX, CODE_MIN, BoolArray, Int64Array, codes_of
from tidings.model.message import MessageBatch
from tidings.model.region import Regions

OLD, NEW = 1, 2
BOTH = OLD | NEW


def reformulate(space: Space, changes: TableChanges, listening: Collection[ChannelKey]) -> MessageBatch | None:
    """Messages for all changes of a batch; none for channels where nobody listens."""
    if not listening:
        return None
    old_channel, old_ok = _channels(space, changes.before, changes.had, listening)
    new_channel, new_ok = _channels(space, changes.after, changes.has, listening)
    old, old_ok = _codes(space, changes.before, old_ok)
    new, new_ok = _codes(space, changes.after, new_ok)
    either = old_ok | new_ok
    if not either.any():
        return None
    same_channel = _same(old_channel, new_channel, len(changes))
    stays = old_ok & new_ok & same_channel
    changed = np.ones(len(changes), np.bool_)
    if stays.any():
        shown = space.payload if space.is_lossy else space.projection
        changed[stays] = ~_same_rows(changes, stays, shown)
    moved = (old != new).any(axis=1)
    parts: list[tuple[BoolArray, int, Callable[[Int64Array], Regions]]] = [
        # (which changes, side whose channel is used, boxes)
        (stays & changed & moved, NEW, lambda at: _two_boxes(new[at], old[at])),
        (stays & changed & ~moved, NEW, lambda at: _one_box(new[at], BOTH)),
        (stays & ~changed & moved, NEW, lambda at: _one_side_only(new[at], old[at])),
        (new_ok & ~stays, NEW, lambda at: _one_box(new[at], NEW)),
        (old_ok & ~stays, OLD, lambda at: _one_box(old[at], OLD)),
    ]
    places, sides, regions = [], [], []
    for mask, side, boxes in parts:
        at = np.flatnonzero(mask)
        if len(at):
            places.append(at)
            sides.append(np.full(len(at), side))
            regions.append(boxes(at))
    if not places:
        return None
    place, used = np.concatenate(places), np.concatenate(sides)
    region = Regions.concat(regions)
    if len(places) > 1:
        order = np.argsort(place * 4 - used, kind="stable")
        place, used, region = place[order], used[order], region.take(order)
    return MessageBatch(
        space.key,
        changes.seq[place],
        _pick_channels(old_channel, new_channel, place, used),
        region,
        _payload(space, changes, place),
    )


def _channels(
    space: Space, rows: pa.RecordBatch, present: BoolArray, listening: Collection[ChannelKey]
) -> tuple[list[pa.Array], BoolArray]:
    """Channel columns of the rows, and which rows are on a channel somebody listens to."""
    columns = []
    ok = present
    for column in space.equalities:
        components, valid = channel_column(column.type, rows.column(column.name))
        columns.append(components)
        ok = ok & valid
    if columns and ok.any():
        filled = [column.fill_null("") if column.null_count else column for column in columns]
        group, keys = group_channels(filled, len(ok))
        ok = ok & np.array([key in listening for key in keys], np.bool_)[group]
    return columns, ok


def _codes(space: Space, rows: pa.RecordBatch, ok: BoolArray) -> tuple[Int64Array, BoolArray]:
    codes = np.empty((len(ok), len(space.ranges)), np.int64)
    for i, column in enumerate(space.ranges):
        codes[:, i], valid = codes_of(column.type, rows.column(column.name))
        ok = ok & valid
    return codes, ok


def _same(left: Sequence[pa.Array], right: Sequence[pa.Array], length: int) -> BoolArray:
    same = np.ones(length, np.bool_)
    for a, b in zip(left, right, strict=True):
        same &= np.asarray(pc.equal(a, b).fill_null(False))
    return same


def _same_rows(changes: TableChanges, mask: BoolArray, columns: Sequence[str]) -> BoolArray:
    """Whether old and new row agree in the columns, for the changes in the mask. Two nulls agree."""
    before, after = changes.before, changes.after
    if not mask.all():
        chosen = pa.array(np.flatnonzero(mask))
        before, after = before.select(columns).take(chosen), after.select(columns).take(chosen)
    same = np.ones(before.num_rows, np.bool_)
    for name in columns:
        a, b = before.column(name), after.column(name)
        equal = pc.equal(a, b)
        if equal.null_count:
            both_null = np.asarray(a.is_null()) & np.asarray(b.is_null())
            same &= np.asarray(equal.fill_null(False)) | both_null
        else:
            same &= np.asarray(equal)
    return same


def _box_ends(values: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Boxes of the points whose ranges hold the values: (n, columns) -> two arrays (n, 2 * columns)."""
    lo = np.full((len(values), 2 * values.shape[1]), CODE_MIN, np.int64)
    hi = np.full_like(lo, CODE_MAX)
    hi[:, 0::2] = values
    lo[:, 1::2] = values
    return lo, hi


def _one_box(values: Int64Array, tag: int) -> Regions:
    lo, hi = _box_ends(values)
    return Regions(lo, hi, np.full(len(lo), tag, np.uint8), np.arange(len(lo) + 1))


def _two_boxes(new: Int64Array, old: Int64Array) -> Regions:
    lo = np.empty((2 * len(new), 2 * new.shape[1]), np.int64)
    hi = np.empty_like(lo)
    lo[0::2], hi[0::2] = _box_ends(new)
    lo[1::2], hi[1::2] = _box_ends(old)
    tags = np.tile(np.array([NEW, OLD], np.uint8), len(new))
    return Regions(lo, hi, tags, np.arange(0, 2 * len(new) + 1, 2))


def _one_side_only(new: Int64Array, old: Int64Array) -> Regions:
    """Points whose ranges hold exactly one of the two rows, as disjoint boxes."""
    return _pieces(len(new), ((new, old, NEW), (old, new, OLD)))


def in_new_only(new: Int64Array, old: Int64Array) -> Regions:
    """Points whose ranges hold the new row and not the old one, as disjoint boxes."""
    return _pieces(len(new), ((new, old, NEW),))


def _pieces(count: int, sides: Sequence[tuple[Int64Array, Int64Array, int]]) -> Regions:
    """Per side (this row, the other, tag) the points whose ranges hold this row alone.

    Piece c of a side: ranges hold this row, and the other row in the columns before c, but not in column c.
    """
    pieces: list[tuple[Int64Array, Int64Array, Int64Array, int]] = []
    for this, other, tag in sides:
        lo, hi = _box_ends(this)
        for c in range(this.shape[1]):
            rises = this[:, c] > other[:, c]
            piece_lo, piece_hi = lo.copy(), hi.copy()
            # this > other: missed from below, lo in (other, this]. this < other: hi in [this, other).
            piece_lo[rises, 2 * c] = other[rises, c] + 1
            falls = this[:, c] < other[:, c]
            piece_hi[falls, 2 * c + 1] = other[falls, c] - 1
            at = np.flatnonzero(rises | falls)
            pieces.append((at, piece_lo[at], piece_hi[at], tag))
            # From here on, only points whose range in column c holds the other row too.
            hi[:, 2 * c] = np.minimum(hi[:, 2 * c], other[:, c])
            lo[:, 2 * c + 1] = np.maximum(lo[:, 2 * c + 1], other[:, c])
    region = np.concatenate([at for at, _, _, _ in pieces])
    order = np.argsort(region, kind="stable")
    tags = np.concatenate([np.full(len(at), tag, np.uint8) for at, _, _, tag in pieces])
    starts = np.searchsorted(region[order], np.arange(count + 1)).astype(np.int64)
    return Regions(
        np.concatenate([lo for _, lo, _, _ in pieces])[order],
        np.concatenate([hi for _, _, hi, _ in pieces])[order],
        tags[order],
        starts,
    )


def _pick_channels(
    old: Sequence[pa.Array], new: Sequence[pa.Array], place: Int64Array, side: Int64Array
) -> tuple[pa.Array, ...]:
    """The channel of each message: that of the new row or of the old one."""
    if (side == NEW).all():
        is_all = len(new) == 0 or (len(place) == len(new[0]) and bool((place == np.arange(len(place))).all()))
        return tuple(new) if is_all else tuple(column.take(pa.array(place)) for column in new)
    at = pa.array(np.where(side == NEW, place, place + (len(new[0]) if new else 0)))
    return tuple(pa.concat_arrays([a, b]).take(at) for a, b in zip(new, old, strict=True))


def _payload(space: Space, changes: TableChanges, place: Int64Array) -> pa.RecordBatch:
    arrays, names = [], []
    is_all = len(place) == len(changes) and bool((place == np.arange(len(place))).all())
    chosen = None if is_all else pa.array(place)
    for side, rows in (("old", changes.before), ("new", changes.after)):
        for name in space.payload:
            column = rows.column(name)
            arrays.append(column if chosen is None else column.take(chosen))
            names.append(f"{side}.{name}")
    return pa.RecordBatch.from_arrays(arrays, names)
