"""The flat arrays of a stabbing set: hash tables of the intervals present and of the anchors. Two ladders keep the order.

    table[slot]:     LO HI TIMES ANCHOR      an interval, how often it is present (0: the slot is free), where it is stabbed
    stabbed[slot]:   anchor, anchor, number of different intervals stabbed there, nothing

    ladder ANCHORS:   (anchor, 0)            ladder WITNESSES:   (hi, lo) of intervals no two of which meet

An interval stands in the first free slot from its home on, round the end of the table. A removal moves those behind it up,
so that a search may end at the first free slot.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.jit import kernel

I64 = NDArray[np.int64]
Int = Any
"""An integer: int64 in compiled code, where numpy's scalars and Python's mix freely."""

# Fields of a row of `table`.
LO, HI, TIMES, ANCHOR, TABLE_FIELDS = range(5)
# The two ladders.
ANCHORS, WITNESSES = 0, 1
# Fields of `head`: different intervals, where the last kernel stopped, words of the ladders that it wants.
INTERVALS, PROGRESS, NEEDED, HEAD_FIELDS = range(4)

# What an update kernel reports; where it stopped is in head[PROGRESS].
DONE, NEEDS_REBUILD, NEEDS_ROOM, NOT_THERE = range(4)

SLACK = 8
"""So many anchors may there be at any time beyond half as many again as there are witnesses."""


@kernel
def home_of(table: I64, lo: Int, hi: Int) -> Int:
    """The slot at which the search for an interval starts."""
    mixed = np.uint64(lo) * np.uint64(0x9E3779B97F4A7C15)
    mixed = ((mixed >> np.uint64(29)) ^ mixed ^ np.uint64(hi)) * np.uint64(0xD6E8FEB86659FD93)
    mixed = ((mixed >> np.uint64(32)) ^ mixed) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64(((mixed >> np.uint64(32)) * np.uint64(table.shape[0])) >> np.uint64(32))


@kernel
def slot_of(table: I64, lo: Int, hi: Int) -> Int:
    """The slot of an interval, or the free one where it would stand."""
    slot = home_of(table, lo, hi)
    while table[slot, TIMES] and (table[slot, LO] != lo or table[slot, HI] != hi):
        slot += 1
        if slot == table.shape[0]:
            slot = 0
    return slot


@kernel
def clear_slot(table: I64, slot: Int) -> None:
    """Free a slot, and move up those behind it that would not be found any more."""
    size = table.shape[0]
    gap = slot
    table[gap, TIMES] = 0
    slot = gap + 1 if gap + 1 < size else 0
    while table[slot, TIMES]:
        home = home_of(table, table[slot, LO], table[slot, HI])
        # How far it is from its home, and how far the gap is behind it, going round.
        away = slot - home if slot >= home else slot - home + size
        behind = slot - gap if slot >= gap else slot - gap + size
        if away >= behind:
            for field in range(TABLE_FIELDS):
                table[gap, field] = table[slot, field]
            table[slot, TIMES] = 0
            gap = slot
        slot += 1
        if slot == size:
            slot = 0
