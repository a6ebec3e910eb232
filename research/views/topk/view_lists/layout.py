"""The flat arrays of view lists: the memory of all lists, how a list finds room in it, and what a group of lists shows.

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

Flags = NDArray[np.bool_]
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
def find(lists: I32, memory: I32, items: I64, number: Int, tie: Int) -> Int:
    """Where in the memory the list's item with this tie is, or NONE."""
    start = lists[number, START]
    for at in range(start, start + lists[number, SIZE]):
        if items[memory[at], TIE] == tie:
            return at
    return NONE


@kernel
def place_for(lists: I32, memory: I32, items: I64, number: Int, item: Int) -> Int:
    """Where in the memory the list's first item is that does not stand before this one; its end if there is none."""
    low = lists[number, START]
    high = low + lists[number, SIZE]
    while low < high:
        middle = (low + high) // 2
        if is_before(items, memory[middle], item):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def remove(lists: I32, memory: I32, number: Int, at: Int) -> None:
    """Takes the item at a place out of a list."""
    lists[number, SIZE] -= 1
    for i in range(at, lists[number, START] + lists[number, SIZE]):
        memory[i] = memory[i + 1]


@kernel
def insert(lists: I32, memory: I32, number: Int, at: Int, item: Int, k: Int) -> None:
    """Puts an item at a place of a list that has room for it, or k items; the last of more than k goes."""
    end = lists[number, START] + lists[number, SIZE]
    if lists[number, SIZE] < k:
        lists[number, SIZE] += 1
    elif at == end:
        return
    else:
        end -= 1
    for i in range(end, at, -1):
        memory[i] = memory[i - 1]
    memory[at] = item


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
