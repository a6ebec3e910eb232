"""Bytes of the messages for moves: to ranges, and to one subscription after the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tidings.bench.drift_data import DriftData
from tidings.bench.drift_player import Played
from tidings.families.drift.reformulate import TOLD, messages_of, regions_of, tags_of
from tidings.model.codes import Int64Array
from tidings.model.region import Regions
from tidings.model.wire import wire_sizes

_SIZED_MAX = 10_000


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
    """Mean bytes of a message to a single subscription, over the first subscriptions: hardly any two sizes differ."""
    timeline, count = data.timeline, min(data.size, _SIZED_MAX)
    points = data.points().slice(0, count).coords
    # As unicast numbers its members: none has label 0, and no end is open.
    points[:, 1] = np.arange(1, count + 1)
    regions = Regions(points, points, np.full(count, TOLD, np.uint8), np.arange(count + 1))
    _, first_move = np.unique(timeline.move_item, return_index=True)
    changes = data.images(0, int(first_move.max()) + 1)
    messages = messages_of(data.space, changes, first_move[timeline.member_item[:count]], regions)
    return float(wire_sizes(replace(messages, target=data.ids.slice(0, count))).mean())
