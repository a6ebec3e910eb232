"""Bytes of the messages for changes: to regions and to one subscription after the other, on our wire and by the paper."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from tidings.bench.topk_data import TopkData
from tidings.families.topk.kernels.range_topk import Sends
from tidings.families.topk.view import PLACED
from tidings.model.codes import Int64Array
from tidings.model.message import MessageBatch
from tidings.model.region import Regions
from tidings.network.wire import wire_sizes

PAPER_BOX, PAPER_UNICAST = 24, 16
"""The paper's messages: six numbers of four bytes (two ranges and an object) for a box; what it sends to one subscription
(an id and an object) must have 16: its largest unicast traffic of one event, 39,998,000 bytes of 5,000,000 subscriptions,
is 16 bytes for every second one, which is as many as can hold an object in the middle."""
_SIZED_MAX = 10_000


def region_bytes(data: TopkData, sends: Sends) -> Int64Array:
    """Bytes of every send: one message with all its boxes. All count as of the change in the middle: seqs differ little."""
    scene = data.scene
    tags = np.full(len(sends.box_lo), PLACED, np.uint8)
    regions = Regions(sends.box_lo, sends.box_hi, tags, sends.box_starts)
    return wire_sizes(_messages(data, np.full(len(sends.entry), scene.changes // 2), sends.entry, regions))


def unicast_bytes(data: TopkData) -> float:
    """Mean bytes of a message to a single subscription, over subscriptions and changes evenly taken from all."""
    scene, count = data.scene, min(data.size, _SIZED_MAX)
    some = np.arange(count) * data.size // max(1, count)
    change = np.arange(count) * scene.changes // max(1, count)
    points = data.points().coords[some]
    regions = Regions(points, points, np.full(count, PLACED, np.uint8), np.arange(count + 1))
    # A row that takes the place of another is not the changed one, but as likely to be any.
    messages = _messages(data, change, scene.changed[change], regions)
    return float(wire_sizes(replace(messages, target=data.ids.take(pa.array(some)))).mean())


def _messages(data: TopkData, change: Int64Array, row: Int64Array, regions: Regions) -> MessageBatch:
    """Messages for these changes, counted from the first after the rows have come, that tell these rows."""
    # Which score a row has does not matter to its size.
    payload = data.rows(row, data.scene.score[row]).select(list(data.space.payload))
    return MessageBatch(data.space.key, data.scene.rows + change + 1, (), regions, payload)
