"""Long values of bulky columns travel only when they are new to somebody (Select with payload, as a join would send it).

Bulky are shown columns of TEXT or BINARY that no predicate looks at. Gateways keep their long values for every row that
somebody there holds, so a message may leave them out: it is then slim, and its tags say so.

        hi |      +--new--+          An update that leaves a long value as it was goes slim to the old box, where the row is
           |  +--old--+   |          held, with a second box for the part that holds it still; and in full, once more, to the
           |  |###+###|===|          rest of the new box (=), if anybody is there. So nobody hears a change twice.
           +--------------- lo
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.families.select.reformulate import NEW, OLD, in_new_only
from tidings.families.select.subscription import Space
from tidings.model.codes import BoolArray, Int64Array
from tidings.model.message import MessageBatch
from tidings.model.region import Regions

SLIM = 4
"""Tag of messages without long values. Null in both rows then means: as the gateway has it. Null in the old row alone, too."""

LONG_BYTES_MIN = 65
"""Shorter values travel as ever: to leave them out would save less than the second message costs."""


def is_long(column: pa.Array) -> BoolArray:
    """Which values of a column of text or bytes are long."""
    lengths = pc.binary_length(column)
    found: BoolArray = np.asarray(lengths.fill_null(0) if lengths.null_count else lengths) >= LONG_BYTES_MIN
    return found


def slim(space: Space, messages: MessageBatch, anybody: Callable[[MessageBatch], BoolArray]) -> MessageBatch:
    """The same messages without the long values their receivers have; `anybody` tells which messages would be heard."""
    sides = {name: [messages.payload.column(f"{side}.{name}") for side in ("old", "new")] for name in space.bulky}
    if not any(is_long(column).any() for columns in sides.values() for column in columns):
        return messages
    regions = messages.regions
    tags = np.bitwise_or.reduceat(regions.tags, regions.starts[:-1])
    has_old, has_new = (tags & OLD) != 0, (tags & NEW) != 0
    stays = has_old & has_new
    lacks_old, lacks_kept = np.zeros((2, len(messages)), np.bool_)
    left_out: dict[str, BoolArray] = {}
    for name, (old, new) in sides.items():
        old_long, new_long = is_long(old), is_long(new)
        kept = stays & old_long & np.asarray(pc.equal(old, new).fill_null(False))
        # Whoever holds the old row has its long values. But one that gives way to null is to be seen doing so.
        left_out[f"old.{name}"] = old_long & ~(stays & np.asarray(new.is_null()))
        left_out[f"new.{name}"] = kept | (new_long & ~has_new)
        lacks_old |= left_out[f"old.{name}"] & has_old
        lacks_kept |= kept
    moved = np.flatnonzero(lacks_kept & (np.diff(regions.starts) == 2))
    light = MessageBatch(
        messages.form,
        messages.seq,
        messages.channel,
        _to_holders(regions, moved, lacks_old),
        _without(messages.payload, left_out),
    )
    full = _to_newcomers(messages.take(moved)) if len(moved) else light.take(moved)
    full = full.take(np.flatnonzero(anybody(full))) if len(full) else full
    if not len(full):
        return light
    joined = MessageBatch.concat([light, full])
    return joined.take(np.argsort(joined.seq, kind="stable").astype(np.int64))


def _to_holders(regions: Regions, moved: Int64Array, is_slim: BoolArray) -> Regions:
    """The regions with tags that tell which are slim; those of the moved cut down to who held the row before."""
    lo, hi = regions.lo.copy(), regions.hi.copy()
    new = regions.starts[moved]
    lo[new] = np.maximum(lo[new], lo[new + 1])
    hi[new] = np.minimum(hi[new], hi[new + 1])
    tags = regions.tags | np.where(np.repeat(is_slim, np.diff(regions.starts)), np.uint8(SLIM), np.uint8(0))
    return Regions(lo, hi, tags, regions.starts)


def _to_newcomers(messages: MessageBatch) -> MessageBatch:
    """The new rows in full, for those who hold them now and did not before."""
    regions = messages.regions
    # The new row's box ends at its values, the old row's, which comes second, at its own.
    new, old = (regions.hi[side::2, 0::2] for side in (0, 1))
    names = messages.payload.schema.names
    columns = [
        pa.nulls(len(messages), column.type) if name.startswith("old.") else column
        for name, column in zip(names, messages.payload.columns, strict=True)
    ]
    payload = pa.RecordBatch.from_arrays(columns, names)
    return MessageBatch(messages.form, messages.seq, messages.channel, in_new_only(new, old), payload)


def _without(payload: pa.RecordBatch, left_out: dict[str, BoolArray]) -> pa.RecordBatch:
    columns = [
        pc.if_else(pa.array(left_out[name]), pa.scalar(None, column.type), column)
        if name in left_out and left_out[name].any()
        else column
        for name, column in zip(payload.schema.names, payload.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, payload.schema.names)
