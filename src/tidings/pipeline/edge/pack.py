"""What a place is sent in a micro-batch: rows, and creations and drops of its subscriptions."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from tidings.model.points import PointBatch


@dataclass(frozen=True)
class Pack:
    """A micro-batch for one place.

    passed: the seq up to which the place is told everything, so that a quiet place knows that time has passed. Items and
    their encoding: `tidings.kernels.packs`. points: events of subscriptions, `after` the seq at which each happens.
    """

    base: int
    """Seqs of items count from here."""
    passed: int
    count: int
    """Number of items."""
    items: bytes
    points: tuple[PointBatch, ...] = ()


def place_of(id: str, places: int) -> int:
    """The place of a subscription that does not name one."""
    return zlib.crc32(id.encode()) % places
