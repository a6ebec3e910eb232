"""What a group of lists shows: the first k items of all of them."""

from __future__ import annotations

import numpy as np

from tidings.kernels.jit import kernel
from tidings.kernels.shortlists_arrays import I32, I64, NEXT, NONE, SIZE, START, Int, is_before


@kernel
def _merge(lists: I32, memory: I32, items: I64, number: Int, k: Int, out: I32, at: Int, size: Int) -> Int:
    """Merges a list into the first `size` items at out[at:]; gives how many there are then, at most k."""
    start, count = lists[number, START], lists[number, SIZE]
    if size == k:
        # Mostly all others stand behind the k already found.
        last, reaching = out[at + k - 1], 0
        while reaching < count and is_before(items, memory[start + reaching], last):
            reaching += 1
        count = reaching
    a, b, to = size - 1, count - 1, at + size + count - 1
    while b >= 0:
        if a >= 0 and is_before(items, memory[start + b], out[at + a]):
            out[to] = out[at + a]
            a -= 1
        else:
            out[to] = memory[start + b]
            b -= 1
        to -= 1
    return min(k, size + count)


@kernel
def show(lists: I32, memory: I32, items: I64, home: Int, k: Int, out: I32, at: Int) -> Int:
    """Writes what a group shows to out[at:], which has room for 2 k; gives how many items that is."""
    start, size = lists[home, START], lists[home, SIZE]
    for i in range(size):
        out[at + i] = memory[start + i]
    number = lists[home, NEXT]
    while number != NONE:
        size = _merge(lists, memory, items, number, k, out, at, size)
        number = lists[number, NEXT]
    return size


@kernel
def show_many(lists: I32, memory: I32, items: I64, homes: I64, k: Int) -> tuple[I64, I32]:
    """(starts, items): what group i shows is items[starts[i]:starts[i + 1]]."""
    starts = np.zeros(len(homes) + 1, np.int64)
    for i in range(len(homes)):
        total, number = 0, homes[i]
        while number != NONE:
            total += lists[number, SIZE]
            number = lists[number, NEXT]
        starts[i + 1] = starts[i] + min(k, total)
    shown = np.empty(starts[-1] + 2 * k, np.int32)
    for i in range(len(homes)):
        show(lists, memory, items, homes[i], k, shown, starts[i])
    return starts, shown[: starts[-1]].copy()
