"""Sends of a top-k index become messages: a row, and the tiles (boxes) of the plane of ranges where it now matters.

r |      :::::            The ranges that contain the row and fewer than k better rows lie in a staircase with
  |   ::::::::            its corner at (x, x): at most k tiles. When a row falls, each row that takes its place
  |  :::::::::x           for some ranges is sent to the tiles of those ranges.
  +--------------- l
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from research.servers.message import MessageBatch
from tidings.families.topk.subscription import Space
from tidings.model.codes import Int64Array
from tidings.model.region import Regions, TagArray

PLACED, GONE = 1, 2
"""Tags of boxes: subscriptions in a PLACED box need the row, those in GONE boxes lose it."""

if TYPE_CHECKING:
    from research.strategies.topk.ranked_rows import RankedRows, RowSends


def messages_of(space: Space, ranked: RankedRows, seq: Int64Array, batch: RowSends, regions: Regions) -> MessageBatch:
    """One message per send, in the order in which views must apply them. seq: [changes]."""
    rows = ranked.log.take(batch.row).select(list(space.payload))
    return MessageBatch(space.key, seq[batch.change], ranked.channels(batch.set), regions, rows)


def tiles_of(batch: RowSends) -> Regions:
    """The exact region of each send: its tiles."""
    sends = batch.sends
    return Regions(sends.box_lo, sends.box_hi, np.repeat(tags_of(batch), np.diff(sends.box_starts)), sends.box_starts)


def tags_of(batch: RowSends) -> TagArray:
    """The tag of each send's boxes."""
    return np.where(batch.sends.is_gone, GONE, PLACED).astype(np.uint8)
