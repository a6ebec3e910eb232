"""Re-anchoring members one by one: the plain ways that `anchors` is measured against.

`scan` compares the new value with the thresholds of every member. The heaps keep every member's upper end, lower end and
due time, each in a heap of its own, find the members that are touched without looking at others, and move each of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.anchors_arrays import F64, I64, INT64_MAX, Float, Int, due_after, thresholds
from tidings.kernels.jit import kernel

Flags = NDArray[np.bool_]
Keys = Any
"""Keys of a heap, of either type."""


@kernel(error_model="numpy")
def scan(
    kind: Int, patience: Int, reach: F64, value: Float, time: Int, is_touched: Flags, anchor: F64, anchor_time: I64
) -> None:
    """Marks and re-anchors every member that the value leaves behind."""
    for i in range(len(reach)):
        up, dn = thresholds(kind, anchor[i], reach[i])
        is_touched[i] = value >= up or value <= dn or time > due_after(patience, anchor_time[i])
        if is_touched[i]:
            anchor[i] = value
            anchor_time[i] = time


@kernel
def sift(heap: I64, place: I64, key: Keys, at: Int) -> None:
    """Moves the entry at a place of the heap to where its key belongs."""
    member = heap[at]
    while at > 0 and key[heap[(at - 1) // 2]] > key[member]:
        heap[at] = heap[(at - 1) // 2]
        place[heap[at]] = at
        at = (at - 1) // 2
    while 2 * at + 1 < len(heap):
        child = 2 * at + 1
        if child + 1 < len(heap) and key[heap[child + 1]] < key[heap[child]]:
            child += 1
        if key[heap[child]] >= key[member]:
            break
        heap[at] = heap[child]
        place[heap[at]] = at
        at = child
    heap[at] = member
    place[member] = at


@kernel
def heapify(heap: I64, place: I64, key: Keys) -> None:
    """Puts the entries into the order of their keys, which is one of a heap."""
    heap[:] = heap[np.argsort(key[heap], kind="mergesort")]
    for at in range(len(heap)):
        place[heap[at]] = at


@kernel
def _take(heap: I64, place: I64, key: Keys, limit: Any, gone: Any, touched: I64, count: Int, is_touched: Flags) -> Int:
    """Takes the members whose key does not exceed the limit from the top of the heap."""
    while len(heap) and key[heap[0]] <= limit and key[heap[0]] != gone:
        member = heap[0]
        if not is_touched[member]:
            is_touched[member] = True
            touched[count] = member
            count += 1
        key[member] = gone
        sift(heap, place, key, 0)
    return count


@kernel(error_model="numpy")
def set_ends(kind: Int, patience: Int, reach: F64, anchor: F64, anchor_time: I64, ends: F64, dues: I64) -> None:
    """The keys of all members: ends [2, n], upper ones and negated lower ones; dues [n]."""
    for i in range(len(reach)):
        up, dn = thresholds(kind, anchor[i], reach[i])
        ends[0, i] = up
        ends[1, i] = -dn
        dues[i] = due_after(patience, anchor_time[i])


@kernel(error_model="numpy")
def move_in_heaps(
    kind: Int,
    patience: Int,
    reach: F64,
    value: Float,
    time: Int,
    is_touched: Flags,
    anchor: F64,
    anchor_time: I64,
    heaps: I64,
    places: I64,
    ends: F64,
    dues: I64,
    touched: I64,
) -> Int:
    """Re-anchors the members that the value leaves behind; gives their number, and themselves in `touched`.

    heaps, places: [3, n], of the upper ends, the negated lower ends and the due times.
    """
    count = _take(heaps[0], places[0], ends[0], value, np.inf, touched, 0, is_touched)
    count = _take(heaps[1], places[1], ends[1], -value, np.inf, touched, count, is_touched)
    count = _take(heaps[2], places[2], dues, max(time, -INT64_MAX) - 1, INT64_MAX, touched, count, is_touched)
    for i in range(count):
        member = touched[i]
        is_touched[member] = False
        anchor[member] = value
        anchor_time[member] = time
        up, dn = thresholds(kind, value, reach[member])
        ends[0, member] = up
        ends[1, member] = -dn
        dues[member] = due_after(patience, time)
        sift(heaps[0], places[0], ends[0], places[0, member])
        sift(heaps[1], places[1], ends[1], places[1, member])
        sift(heaps[2], places[2], dues, places[2, member])
    return count
