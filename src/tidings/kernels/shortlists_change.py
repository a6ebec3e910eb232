"""How a list changes: it overwrites or removes the item of a tie that it holds, takes in one that it does not hold unless
that is gone, and lets the last of more than k go.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.jit import kernel
from tidings.kernels.shortlists_arrays import (
    HOME,
    I32,
    I64,
    MARK,
    NONE,
    SIZE,
    START,
    TIE,
    Int,
    grown,
    is_before,
    look_ahead,
    with_room_in,
)
from tidings.kernels.shortlists_show import show

Flags = NDArray[np.bool_]


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
def change_lists(
    head: I64,
    lists: I32,
    memory: I32,
    items: I64,
    k: Int,
    number: I64,
    send: I64,
    is_gone: Flags,
    send_item: I64,
    send_tie: I64,
    start: Int,
    stop: Int,
    touched: I64,
    first_shown: I64,
    shown: I32,
) -> tuple[I32, I32, Int]:
    """Makes the deliveries start .. stop - 1; gives (memory, shown, how many groups have lists that changed).

    Before the first of its lists changes, what group touched[i] shows is kept in shown[first_shown[i]:first_shown[i + 1]].
    """
    groups = end = 0
    ahead = start
    for delivery in range(start, stop):
        if delivery == ahead:
            ahead = look_ahead(head, lists, memory, number, delivery, stop)
        own, item, goes = number[delivery], send_item[send[delivery]], is_gone[delivery]
        found = find(lists, memory, items, own, send_tie[send[delivery]])
        if found == NONE:
            last = lists[own, START] + k - 1
            if goes or (lists[own, SIZE] == k and is_before(items, memory[last], item)):
                continue
        elif memory[found] == item and not goes:
            continue
        home = lists[own, HOME]
        if not lists[home, MARK]:
            lists[home, MARK] = 1
            if end + 2 * k > len(shown):
                shown = grown(shown, end + 2 * k)
            touched[groups], first_shown[groups] = home, end
            end += show(lists, memory, items, home, k, shown, end)
            groups += 1
        if found != NONE:
            remove(lists, memory, own, found)
        if not goes:
            memory = with_room_in(head, lists, memory, own, min(k, lists[own, SIZE] + 1), k)
            insert(lists, memory, own, place_for(lists, memory, items, own, item), item, k)
    first_shown[groups] = end
    return memory, shown, groups
