"""Bytes of the messages for changes: to regions and to one subscription after the other, on our wire and by the paper."""

from __future__ import annotations

import numpy as np

from tidings.bench.topk_data import TopkData
from tidings.families.topk.view import PLACED
from tidings.kernels.rankings import Sends
from tidings.model.codes import Int64Array
from tidings.model.message import MessageBatch
from tidings.model.region import Regions
from tidings.model.wire import wire_sizes

PAPER_BOX, PAPER_UNICAST = 24, 16
"""The paper's messages: six numbers of four bytes (two ranges and an object) for a box; what it sends to one subscription
(an id and an object) must have 16: its largest unicast traffic of one event, 39,998,000 bytes of 5,000,000 subscriptions,
is 16 bytes for every second one, which is as many as can hold an object in the middle."""
_SIZED_MAX = 10_000


def region_bytes(data: TopkData, sends: Sends) -> Int64Array:
    """Bytes of every send: one message with all its boxes."""
    tags = np.full(len(sends.box_lo), PLACED, np.uint8)
    regions = Regions(sends.box_lo, sends.box_hi, tags, sends.box_starts)
    return _sizes(data, sends.entry, regions)


def unicast_bytes(data: TopkData) -> float:
    """Mean bytes of a message to a single subscription, over the first subscriptions: hardly any two sizes differ."""
    points = data.points().slice(0, min(data.size, _SIZED_MAX)).coords
    tags = np.full(len(points), PLACED, np.uint8)
    regions = Regions(points, points, tags, np.arange(len(points) + 1))
    return float(_sizes(data, np.zeros(len(points), np.int64), regions, has_target=True).mean())


def _sizes(data: TopkData, row: Int64Array, regions: Regions, *, has_target: bool = False) -> Int64Array:
    # Which score a row has does not matter to its size.
    rows = data.rows(row, data.scene.score[row]).select(list(data.space.payload))
    target = data.ids.slice(0, len(row)) if has_target else None
    return wire_sizes(MessageBatch(data.space.key, np.zeros(len(row), np.int64), (), regions, rows, target))
