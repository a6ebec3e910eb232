"""How a stabbing set is made at once: the fewest anchors, found by going through the intervals by their upper ends."""

from __future__ import annotations

import numpy as np

from tidings.kernels.jit import kernel
from tidings.kernels.stabs_arrays import (
    ANCHOR,
    HI,
    I64,
    INTERVALS,
    LO,
    TABLE_FIELDS,
    TIMES,
    slot_of,
)


@kernel
def fill(head: I64, table: I64, los: I64, his: I64) -> None:
    """Add intervals to a table with room for them, and to nothing else."""
    for i in range(los.shape[0]):
        slot = slot_of(table, los[i], his[i])
        table[slot, TIMES] += 1
        if table[slot, TIMES] == 1:
            table[slot, LO], table[slot, HI] = los[i], his[i]
            head[INTERVALS] += 1


@kernel
def rehash(table: I64, other: I64) -> None:
    """Copy all intervals into an empty table of another size."""
    for i in range(table.shape[0]):
        if table[i, TIMES]:
            slot = slot_of(other, table[i, LO], table[i, HI])
            for field in range(TABLE_FIELDS):
                other[slot, field] = table[i, field]


@kernel
def list_slots(head: I64, table: I64) -> tuple[I64, I64]:
    """Slots and upper ends of all intervals."""
    slots = np.empty(head[INTERVALS], np.int64)
    his = np.empty(head[INTERVALS], np.int64)
    end = 0
    for slot in range(table.shape[0]):
        if table[slot, TIMES]:
            slots[end], his[end] = slot, table[slot, HI]
            end += 1
    return slots, his


@kernel
def stab_all(table: I64, slots: I64, order: I64) -> tuple[I64, I64, I64]:
    """Give every interval its anchor anew, by the order of their upper ends.

    An interval that no anchor stabs yet gets one at its upper end. It is a witness: it meets none of the witnesses before.
    Returns the anchors, the lower ends of their witnesses, and how many intervals each stabs.
    """
    anchors = np.empty(order.shape[0], np.int64)
    witness_los = np.empty(order.shape[0], np.int64)
    counts = np.empty(order.shape[0], np.int64)
    last = -1
    for i in order:
        slot = slots[i]
        if last < 0 or table[slot, LO] > anchors[last]:
            last += 1
            anchors[last], witness_los[last], counts[last] = table[slot, HI], table[slot, LO], 0
        table[slot, ANCHOR] = anchors[last]
        counts[last] += 1
    return anchors[: last + 1], witness_los[: last + 1], counts[: last + 1]


@kernel
def fill_stabbed(stabbed: I64, anchors: I64, counts: I64) -> None:
    """Fill an empty table with how many intervals each anchor stabs."""
    for i in range(anchors.shape[0]):
        slot = slot_of(stabbed, anchors[i], anchors[i])
        stabbed[slot, LO], stabbed[slot, HI], stabbed[slot, TIMES] = anchors[i], anchors[i], counts[i]
