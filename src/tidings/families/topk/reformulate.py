"""Sends of the rankings become messages: a row, and the tiles of the plane where it now matters.

r |      :::::            Everyone whose range holds the row and fewer than k better ones lies in a staircase with
  |   ::::::::            its corner at (x, x): at most k tiles. When a row falls, each row that takes its place
  |  :::::::::x           somewhere is sent to the tiles where it does.
  +--------------- l
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.families.topk.subscription import Space
from tidings.families.topk.view import GONE, PLACED
from tidings.model.codes import Int64Array
from tidings.model.message import MessageBatch
from tidings.model.region import Regions

if TYPE_CHECKING:
    from tidings.families.topk.index import Ranked, Step


def messages_of(space: Space, ranked: Ranked, seq: Int64Array, step: Step) -> MessageBatch:
    """Messages in the order in which views must apply them; `seq` is that of each change."""
    sends = step.sends
    rows = ranked.log.take(step.row)
    counts = np.diff(sends.box_starts)
    lo = np.stack([sends.lo_min, sends.hi_min], axis=1)
    hi = np.stack([sends.lo_max, sends.hi_max], axis=1)
    tags = np.repeat(np.where(sends.is_gone, GONE, PLACED).astype(np.uint8), counts)
    regions = Regions(lo, hi, tags, sends.box_starts)
    return MessageBatch(
        space.key, seq[step.change], ranked.channels(step.set), regions, rows.select(list(space.payload))
    )
