"""Touched key ranges become messages: the row as it is now, and the boxes of all subscriptions to notify.

label |                       A box is a range of radii with all labels, or a range of labels of one radius.
      |  ######    #          When a row appears or goes, the box is the whole plane.
      |  ######    #
      +--------------- radius
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from research.servers.message import MessageBatch
from research.strategies.drift.rows import TIME, VALUE, Float64Array, values_of
from tidings.families.drift.subscription import Space
from tidings.model.change import TableChanges
from tidings.model.channel import channel_column
from tidings.model.codes import Int64Array, codes_of_doubles
from tidings.model.region import Regions, TagArray

if TYPE_CHECKING:
    from research.strategies.drift.kernels.threshold_index import Touched

TOLD, GONE, ASKED = 1, 2, 4
"""Tags of boxes: notify the row; the row was deleted; the view decides whether to notify the row."""


def tags_of(values: Float64Array) -> TagArray:
    return np.where(np.isnan(values), GONE, TOLD).astype(np.uint8)


def regions_of(touched: Touched, tags: TagArray) -> Regions:
    """One region per move. tags: [moves], the tag of all boxes of the region."""
    lo = np.stack([codes_of_doubles(touched.reach_lo), touched.label_lo], axis=1)
    hi = np.stack([codes_of_doubles(touched.reach_hi), touched.label_hi], axis=1)
    return Regions(lo, hi, np.repeat(tags, np.diff(touched.starts)), touched.starts)


def messages_of(
    space: Space, changes: TableChanges, at: Int64Array, regions: Regions, *, with_values: bool = False
) -> MessageBatch:
    """One message for each change at `at`; region i is that of change at[i]."""
    chosen = pa.array(at)
    after = changes.after.take(chosen)
    # The key of a deleted row is in its old image only.
    keyed = pa.array(np.where(changes.has[at], at, at + len(changes)))
    channel = tuple(channel_column(column.type, _both(changes, column.name).take(keyed))[0] for column in space.pinned)
    payload = {f"row.{name}": after.column(name) for name in space.projection}
    if not space.follows_one_row:
        payload |= {f"key.{column.name}": _both(changes, column.name).take(keyed) for column in space.key_columns}
    if with_values:
        payload[VALUE], payload[TIME] = (pa.array(part) for part in values_of(space, after))
    batch = pa.RecordBatch.from_arrays(list(payload.values()), list(payload))
    return MessageBatch(space.key, changes.seq[at], channel, regions, batch)


def _both(changes: TableChanges, name: str) -> pa.Array:
    """A column of the new rows, then of the old rows."""
    return pa.concat_arrays([changes.after.column(name), changes.before.column(name)])
