"""Bytes of the messages for moves: to ranges, and to one subscription after the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from tidings.bench.drift_data import DriftData
from tidings.bench.drift_player import Played
from tidings.bench.drift_timeline import Timeline
from tidings.families.drift.reformulate import TOLD, messages_of, regions_of, tags_of
from tidings.model.codes import Int64Array
from tidings.model.region import Regions
from tidings.network.wire import wire_sizes

_SIZED_MAX = 10_000
_GOLDEN = (5**0.5 - 1) / 2
"""Its multiples are spread evenly between whole numbers, however many there are and whichever are left out at regular
intervals."""


def region_bytes(data: DriftData, played: Played) -> Int64Array:
    """Bytes that leave the server for every move; its ranges are sent in one message."""
    stop = played.first + len(played)
    sizes = np.zeros(len(played), np.int64)
    reached = np.flatnonzero(np.diff(played.touched.starts))
    if len(reached):
        regions = regions_of(played.touched, tags_of(data.timeline.move_value[played.first : stop]))
        changes = data.images(played.first, stop)
        sizes[reached] = wire_sizes(messages_of(data.space, changes, reached, regions.take(reached)))
    return sizes


def unicast_bytes(data: DriftData) -> float:
    """Mean bytes of a message to a single subscription, over subscriptions evenly taken from all, each told one move."""
    count = min(data.size, _SIZED_MAX)
    some = np.arange(count) * data.size // max(1, count)
    points = data.points().coords[some]
    # As unicast numbers its members: none has label 0, and no end is open.
    points[:, 1] = some + 1
    regions = Regions(points, points, np.full(count, TOLD, np.uint8), np.arange(count + 1))
    move = _moves_of(data.timeline, data.timeline.member_item[some])
    messages = messages_of(data.space, data.images(0, data.timeline.moves), move, regions)
    return float(wire_sizes(replace(messages, target=data.ids.take(pa.array(some)))).mean())


def _moves_of(timeline: Timeline, item: Int64Array) -> Int64Array:
    """A move of each of these items, early and late ones alike."""
    order = np.argsort(timeline.move_item, kind="stable")
    starts = np.searchsorted(timeline.move_item[order], np.arange(len(timeline.names) + 1))
    share = np.arange(len(item)) * _GOLDEN % 1
    return order[starts[item] + (share * np.diff(starts)[item]).astype(np.int64)]
