"""Assigns subscriptions to replicas."""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Iterable
from functools import cache

import numpy as np

from tidings.model.points import PointBatch

_LEAN = 0.2
"""The first replica gets this fraction less subscriptions than the last one."""


def share(batches: Iterable[PointBatch], count: int, number: int) -> list[PointBatch]:
    """Subscription events of replica `number` of `count`: all events of one id go to one replica."""
    own = [
        points.take(np.array([replica_of(id, count) == number for id in points.id.to_pylist()], np.bool_))
        for points in batches
    ]
    return [points for points in own if len(points)]


def replica_of(id: str, count: int) -> int:
    """Number of the replica, of `count`, that has the subscription with this id, by a hash of the id.

    Later replicas get slightly more subscriptions, so that on one machine they usually finish in order: Spark gives the first
    task of the next micro-batch to the worker that was free first, and the first replica is then already in its memory.
    """
    return min(bisect_right(_ends(count), zlib.crc32(id.encode())), count - 1)


@cache
def _ends(count: int) -> list[int]:
    """End of the hashes of each replica."""
    weights = np.linspace(1.0 - _LEAN, 1.0, count)
    ends: list[int] = (np.cumsum(weights / weights.sum()) * 2**32).astype(np.int64).tolist()
    return ends
