"""The flat arrays that shortlists live in: the memory of all lists, and how a list finds room in it.

A list is a run of `memory`. One that outgrows its run moves to the top, into a run twice as long; when there is no room
at the top, all runs move together into new memory.

    lists[n]: START SIZE ROOM HOME NEXT MARK        memory[START : START + SIZE]: its items, the first one first

Lists of one group are chained by NEXT, from the first one on, which is the HOME of all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.jit import kernel

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Int = Any
"""An integer: int64 in compiled code, where numpy's scalars and Python's mix freely."""

# Fields of a row of `lists`. HOME is NONE if the list is free; then NEXT chains the free ones. MARK is for kernels alone.
START, SIZE, ROOM, HOME, NEXT, MARK, LIST_FIELDS = range(7)
# Fields of a row of `items`.
RANK, TIE, LOOK, ITEM_FIELDS = range(4)
# Fields of `head`: words of memory in runs, also those left behind, and in the latter; lists ever used, free ones (chained)
# and open ones; what is read for nothing.
TOP, WASTE, LIST_TOP, LIST_FREE, LIST_COUNT, SINK, HEAD_FIELDS = range(7)

NONE = -1
ROOM_MIN = 4
MEMORY_MAX = 2**31 - 1
AHEAD = 32
"""Lists read a little ahead of their turn."""


@kernel
def is_before(items: I64, a: Int, b: Int) -> bool:
    """Whether an item stands before another."""
    if items[a, RANK] != items[b, RANK]:
        return bool(items[a, RANK] < items[b, RANK])
    return bool(items[a, TIE] < items[b, TIE])


@kernel
def with_room(head: I64, lists: I32, memory: I32, words: Int) -> I32:
    """Memory with room for so many words at the top: the same, or all runs moved together into new memory."""
    if head[TOP] + words <= len(memory):
        return memory
    needed = head[TOP] - head[WASTE] + words
    if needed > MEMORY_MAX:
        raise OverflowError("too many items in all lists together")
    moved = np.empty(min(needed + needed // 2 + 16, MEMORY_MAX), np.int32)
    top = 0
    for number in range(head[LIST_TOP]):
        start = lists[number, START]
        for i in range(lists[number, SIZE]):
            moved[top + i] = memory[start + i]
        lists[number, START] = top
        top += lists[number, ROOM]
    head[TOP], head[WASTE] = top, 0
    return moved


@kernel
def with_room_in(head: I64, lists: I32, memory: I32, number: Int, size: Int, k: Int) -> I32:
    """Memory in which the list has room for so many items, at most k."""
    room = lists[number, ROOM]
    if size <= room:
        return memory
    wider = min(k, max(size, 2 * room, ROOM_MIN))
    memory = with_room(head, lists, memory, wider)
    start, top = lists[number, START], head[TOP]
    for i in range(lists[number, SIZE]):
        memory[top + i] = memory[start + i]
    lists[number, START], lists[number, ROOM] = top, wider
    head[TOP] += wider
    head[WASTE] += room
    return memory


@kernel
def look_ahead(head: I64, lists: I32, memory: I32, numbers: I64, start: Int, stop: Int) -> Int:
    """Reads a little of the next lists of numbers[start:stop]; gives the first one it has not read.

    Lists are far apart, and memory answers many questions about as fast as one.
    """
    stop = min(start + AHEAD, stop)
    read = 0
    for i in range(start, stop):
        read += lists[numbers[i], START] + lists[numbers[i], MARK]
    for i in range(start, stop):
        at, size = lists[numbers[i], START], lists[numbers[i], SIZE]
        if size:
            read += memory[at] + memory[at + size - 1]
    # What was read must count for something, or compiled code would read nothing.
    head[SINK] = read
    return stop


@kernel
def grown(values: Any, size: Int) -> Any:
    """The same values in a longer array, at least of this length."""
    longer = np.empty((max(size, 2 * len(values)), *values.shape[1:]), values.dtype)
    longer[: len(values)] = values
    return longer
