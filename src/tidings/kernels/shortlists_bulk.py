"""Lists that come and go, are filled at once, or are read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.jit import kernel
from tidings.kernels.shortlists_arrays import (
    HOME,
    I32,
    I64,
    LIST_COUNT,
    LIST_FREE,
    LIST_TOP,
    NEXT,
    NONE,
    ROOM,
    SIZE,
    START,
    TIE,
    WASTE,
    Int,
    with_room_in,
)
from tidings.kernels.shortlists_change import insert, place_for

Flags = NDArray[np.bool_]


@kernel
def open_lists(head: I64, lists: I32, is_first: Flags) -> I64:
    """Numbers of new, empty lists; each that is not the first of a group is in the group of the one before it."""
    numbers = np.empty(len(is_first), np.int64)
    for i in range(len(is_first)):
        number = head[LIST_FREE]
        if number != NONE:
            head[LIST_FREE] = lists[number, NEXT]
        else:
            number = head[LIST_TOP]
            head[LIST_TOP] += 1
        numbers[i] = number
        lists[number] = 0
        lists[number, HOME], lists[number, NEXT] = number, NONE
        if not is_first[i]:
            before = numbers[i - 1]
            lists[before, NEXT], lists[number, HOME] = number, lists[before, HOME]
    head[LIST_COUNT] += len(numbers)
    return numbers


@kernel
def close_lists(head: I64, lists: I32, numbers: I64) -> None:
    """Forgets lists, of all groups that they are in all."""
    for i in range(len(numbers)):
        number = numbers[i]
        head[WASTE] += lists[number, ROOM]
        lists[number] = 0
        lists[number, HOME], lists[number, NEXT] = NONE, head[LIST_FREE]
        head[LIST_FREE] = number
    head[LIST_COUNT] -= len(numbers)


@kernel
def fill(head: I64, lists: I32, memory: I32, items: I64, k: Int, numbers: I64, starts: I64, held: I64) -> I32:
    """Lets list numbers[i] hold the first k of held[starts[i]:starts[i + 1]] and nothing else; gives the memory.

    Items may come in any order, and twice.
    """
    for i in range(len(numbers)):
        number = numbers[i]
        lists[number, SIZE] = 0
        memory = with_room_in(head, lists, memory, number, min(k, starts[i + 1] - starts[i]), k)
        for j in range(starts[i], starts[i + 1]):
            at = place_for(lists, memory, items, number, held[j])
            end = lists[number, START] + lists[number, SIZE]
            if at == end or items[memory[at], TIE] != items[held[j], TIE]:
                insert(lists, memory, number, at, held[j], k)
    return memory


@kernel
def members(lists: I32, homes: I64) -> tuple[I64, I64]:
    """(starts, numbers): the lists of group i, given by its first one, are numbers[starts[i]:starts[i + 1]]."""
    starts = np.zeros(len(homes) + 1, np.int64)
    for i in range(len(homes)):
        starts[i + 1] = starts[i]
        number = homes[i]
        while number != NONE:
            starts[i + 1] += 1
            number = lists[number, NEXT]
    numbers = np.empty(starts[-1], np.int64)
    for i in range(len(homes)):
        number = homes[i]
        for at in range(starts[i], starts[i + 1]):
            numbers[at] = number
            number = lists[number, NEXT]
    return starts, numbers


@kernel
def read(lists: I32, memory: I32, numbers: I64) -> tuple[I64, I32]:
    """(starts, items): list numbers[i] holds items[starts[i]:starts[i + 1]]."""
    starts = np.zeros(len(numbers) + 1, np.int64)
    for i in range(len(numbers)):
        starts[i + 1] = starts[i] + lists[numbers[i], SIZE]
    held = np.empty(starts[-1], np.int32)
    for i in range(len(numbers)):
        first = lists[numbers[i], START]
        for at in range(starts[i], starts[i + 1]):
            held[at] = memory[first + at - starts[i]]
    return starts, held


@kernel
def mark_held(head: I64, lists: I32, memory: I32, is_held: Flags) -> None:
    """Marks all items that some list holds."""
    for number in range(head[LIST_TOP]):
        start = lists[number, START]
        for at in range(start, start + lists[number, SIZE]):
            is_held[memory[at]] = True
