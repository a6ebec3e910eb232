"""Deliveries change lists, batch by batch; a group that shows something else after a batch has a difference.

A list overwrites or removes the item of a tie that it holds, takes in one that it does not hold unless that is gone, and lets
the last of more than k go. A difference is pairs of items. Readers see an item's look alone: what goes and what comes are
multisets of looks. An item that takes the place of one with the same tie, and both look different, makes a pair with it. The
rest goes, or comes, one by one. Equal differences of a batch are numbered once.
"""

from __future__ import annotations

import numpy as np

from research.views.topk.differences import BATCH, END, FIRST, HASH, KIND_FIELDS, find_kind, hash_pairs, wider
from research.views.topk.view_lists.layout import (
    HOME,
    I32,
    I64,
    LIST_COUNT,
    LIST_FREE,
    LIST_TOP,
    LOOK,
    MARK,
    NEXT,
    NONE,
    ROOM,
    SIZE,
    START,
    TIE,
    WASTE,
    Flags,
    Int,
    find,
    insert,
    is_before,
    look_ahead,
    place_for,
    remove,
    show,
    with_room_in,
)
from tidings.kernels.arrays import grown
from tidings.kernels.jit import kernel


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


@kernel
def difference(
    items: I64, balance: I32, old: I32, old_start: Int, old_stop: Int, new: I32, new_size: Int, pairs: I32, at: Int
) -> Int:
    """Writes the difference of old[old_start:old_stop] and new[:new_size] to pairs[at:]; gives its end there.

    A pair is (old item, new item), with NONE for what is not there: first those that change, in the new order, then those
    that go, in the old order, then those that come, in the new order. `balance` has a zero for every look, before and
    after. There is room for all of old and new.
    """
    lead, common = 0, min(old_stop - old_start, new_size)
    while lead < common and old[old_start + lead] == new[lead]:
        lead += 1
    trail = 0
    while trail < common - lead and old[old_stop - 1 - trail] == new[new_size - 1 - trail]:
        trail += 1
    gone = come = 0
    for i in range(old_start + lead, old_stop - trail):
        look = items[old[i], LOOK]
        balance[look] -= 1
        gone += 1
    for i in range(lead, new_size - trail):
        look = items[new[i], LOOK]
        if balance[look] < 0:
            gone -= 1
        else:
            come += 1
        balance[look] += 1
    if gone and come:
        for i in range(lead, new_size - trail):
            look = items[new[i], LOOK]
            if balance[look] <= 0:
                continue
            tie = items[new[i], TIE]
            for j in range(old_start + lead, old_stop - trail):
                if items[old[j], TIE] == tie:
                    old_look = items[old[j], LOOK]
                    if balance[old_look] < 0:
                        balance[old_look] += 1
                        balance[look] -= 1
                        pairs[at, 0], pairs[at, 1] = old[j], new[i]
                        at += 1
                        gone -= 1
                        come -= 1
                    break
    # Of items that look alike the first ones count, also where those are the same as before.
    i = old_start
    while gone:
        look = items[old[i], LOOK]
        if balance[look] < 0:
            balance[look] += 1
            pairs[at, 0], pairs[at, 1] = old[i], NONE
            at += 1
            gone -= 1
        i += 1
    i = 0
    while come:
        look = items[new[i], LOOK]
        if balance[look] > 0:
            balance[look] -= 1
            pairs[at, 0], pairs[at, 1] = NONE, new[i]
            at += 1
            come -= 1
        i += 1
    return at


@kernel
def apply(
    head: I64,
    lists: I32,
    memory: I32,
    items: I64,
    balance: I32,
    k: Int,
    number: I64,
    send: I64,
    is_gone: Flags,
    send_batch: I64,
    send_item: I64,
    send_tie: I64,
) -> tuple[I32, I64, I64, I32]:
    """Makes deliveries in order, each of a send to a list; those of one batch follow each other.

    Gives (memory, [told, 2], [kinds, KIND_FIELDS], [pairs, 2]): home and kind of each difference that is not empty, and
    the kinds, each of one batch.
    """
    told, told_count = np.empty((len(send), 2), np.int64), 0
    touched, first_shown = np.empty(len(send), np.int64), np.empty(len(send) + 1, np.int64)
    shown, now_shown = np.empty(1024, np.int32), np.empty(2 * k, np.int32)
    kinds, kind_count = np.empty((256, KIND_FIELDS), np.int64), 0
    pairs, pair_count = np.empty((256, 2), np.int32), 0
    table = np.full(64, NONE, np.int32)
    start = stop = 0
    while start < len(send):
        batch, first_kind = send_batch[send[start]], kind_count
        while stop < len(send) and send_batch[send[stop]] == batch:
            stop += 1
        memory, shown, groups = change_lists(
            head,
            lists,
            memory,
            items,
            k,
            number,
            send,
            is_gone,
            send_item,
            send_tie,
            start,
            stop,
            touched,
            first_shown,
            shown,
        )
        start, ahead = stop, 0
        for i in range(groups):
            if i == ahead:
                ahead = look_ahead(head, lists, memory, touched, i, groups)
            home, old_start, old_stop = touched[i], first_shown[i], first_shown[i + 1]
            lists[home, MARK] = 0
            now_count = show(lists, memory, items, home, k, now_shown, 0)
            if pair_count + 2 * k > len(pairs):
                pairs = grown(pairs, pair_count + 2 * k)
            end = difference(items, balance, shown, old_start, old_stop, now_shown, now_count, pairs, pair_count)
            if end == pair_count:
                continue
            hashed = hash_pairs(pairs, pair_count, end)
            at = find_kind(table, kinds, pairs, first_kind, pair_count, end, hashed)
            kind = table[at]
            if kind < first_kind:
                if kind_count == len(kinds):
                    kinds = grown(kinds, 0)
                kind = table[at] = kind_count
                kinds[kind, BATCH], kinds[kind, HASH] = batch, hashed
                kinds[kind, FIRST], kinds[kind, END] = pair_count, end
                pair_count, kind_count = end, kind_count + 1
                if 2 * (kind_count - first_kind) > len(table):
                    table = wider(table, kinds, first_kind, kind_count)
            told[told_count, 0], told[told_count, 1] = home, kind
            told_count += 1
    return memory, told[:told_count].copy(), kinds[:kind_count].copy(), pairs[:pair_count].copy()


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
