"""Top lists: the first rows of each subscription, in order, with some to spare behind those it shows.

A list holds every row within its predicates up to the last one held. A row that goes leaves a gap at the end; only when fewer
than k are left are more looked up in the rank index (the view maintenance of Yi et al., "Efficient maintenance of
materialized top-k views", 2003). A list that holds all rows there are is complete, and takes in whatever comes. The rank up to
which rows matter to a list is the upper end of its boxes in the stabbing index, so that others never reach it.
"""

# mypy: allow-untyped-decorators

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.families.topk.kernels.ranked_table.rank_index import field_of, find
from tidings.families.topk.kernels.ranked_table.ranking_layout import (
    BLOCK,
    BLOCKS,
    CAPACITY,
    CHANNEL_BOX,
    CHANNEL_FIELDS,
    CHANNEL_HASH,
    CHANNELS,
    CODE_MAX,
    CODE_MIN,
    CONSTANT_WORDS,
    CONSTANTS,
    DIRECTORY,
    EQUAL_COLUMNS,
    HASH,
    HIGH,
    IS_COMPLETE,
    LIST_FIELDS,
    MEMBERS,
    ORDER,
    ORDER_FIELDS,
    PLACES,
    PLAN,
    RANGE_COLUMNS,
    RANGES,
    RANK,
    ROOM,
    ROW,
    ROWS,
    SIZE,
    SLOT,
    START,
    STORED,
    TOUCHED,
    View,
    allocate,
    are_same,
    extent_words,
    has_value,
    has_words,
    record_at,
    release,
    stands_before,
    text_span,
    view_at,
)
from tidings.kernels.jit import kernel
from tidings.kernels.rows import I64, NONE, U8, Int
from tidings.kernels.stabbing import Boxes, set_high

ROOM_FIRST = 16
"""Rows that a list has room for at first, if it may hold so many."""


@kernel
def place_in(v: View, number: Int, rank: Int, row: Int) -> Int:
    """How many rows of the list stand before this one."""
    start = v.lists[number + START]
    low, high = 0, v.lists[number + SIZE]
    while low < high:
        middle = (low + high) >> 1
        at = start + 2 * middle
        if stands_before(v, v.words[at], v.words[at + 1], rank, row):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def position_of(v: View, number: Int, rank: Int, row: Int) -> Int:
    """Where in the list the row is, or NONE."""
    place = place_in(v, number, rank, row)
    at = v.lists[number + START] + 2 * place
    if place < v.lists[number + SIZE] and v.words[at + 1] == row:
        return place
    return NONE


@kernel
def take_out(v: View, number: Int, place: Int) -> None:
    start, size = v.lists[number + START], v.lists[number + SIZE] - 1
    for i in range(start + 2 * place, start + 2 * size):
        v.words[i] = v.words[i + 2]
    v.lists[number + SIZE] = size


@kernel
def put_in(v: View, number: Int, place: Int, rank: Int, row: Int, capacity: Int) -> None:
    """Puts a row at a place; of a full list the last one goes. There are words for an extent of twice the size."""
    start, size, room = v.lists[number + START], v.lists[number + SIZE], v.lists[number + ROOM]
    if size == capacity:
        size -= 1
    elif size == room:
        room = min(2 * room, capacity)
        wider = allocate(v, 2 * room)
        for i in range(2 * size):
            v.words[wider + i] = v.words[start + i]
        release(v, start, 2 * v.lists[number + ROOM])
        v.lists[number + START], v.lists[number + ROOM] = wider, room
        start = wider
    for i in range(start + 2 * size - 1, start + 2 * place - 1, -1):
        v.words[i + 2] = v.words[i]
    v.words[start + 2 * place], v.words[start + 2 * place + 1] = rank, row
    v.lists[number + SIZE] = size + 1


@kernel
def _qualifies(v: View, record: Int, plan: Int, constants: Int, channel: Int) -> bool:
    """Whether a record satisfies all predicates of a subscription, with the equality values of this channel."""
    order = v.plans[plan + ORDER]
    for i in range(v.orders[order + EQUAL_COLUMNS]):
        column, at = v.orders[order + ORDER_FIELDS + i], channel + CHANNEL_FIELDS + 3 * i
        if not has_value(v, record, column) or v.records[record + v.equals + column] != v.words[at]:
            return False
        if v.words[at + 1] != NONE:
            start, stop = text_span(v, record, column)
            if not are_same(v.text, start, stop, v.bytes, v.words[at + 1], v.words[at + 2]):
                return False
    for i in range(v.plans[plan + RANGES]):
        column = v.plans[plan + RANGE_COLUMNS + i]
        code = v.records[record + v.codes + column]
        if not has_value(v, record, column):
            return False
        if code < v.words[constants + 2 * i] or code > v.words[constants + 2 * i + 1]:
            return False
    return True


@kernel
def _next_within(v: View, plan: Int, constants: Int, block: Int, place: Int, stop: Int) -> Int:
    """The first place of a block, from this one on, where codes are within all ranges; `stop` if there is none."""
    ranges, first = v.plans[plan + RANGES], field_of(v, block, STORED)
    while place < stop:
        is_within = True
        for i in range(ranges):
            code = v.blocks[first + v.plans[plan + PLACES + i] * BLOCK + place]
            if code < v.words[constants + 2 * i] or code > v.words[constants + 2 * i + 1]:
                is_within = False
                break
        if is_within:
            return place
        place += 1
    return place


@kernel
def refill(v: View, number: Int) -> None:
    """Takes in rows behind the last one held, until the list is full or there are no more."""
    plan, constants = v.lists[number + PLAN], v.lists[number + CONSTANTS]
    order, capacity, size = v.plans[plan + ORDER], v.plans[plan + CAPACITY], v.lists[number + SIZE]
    last_rank, last = np.int64(CODE_MIN), np.int64(NONE)
    if size:
        at = v.lists[number + START] + 2 * size - 2
        last_rank, last = v.words[at], v.words[at + 1]
    channel = constants + 2 * v.plans[plan + RANGES]
    for _ in range(v.lists[number + CHANNELS]):
        _refill_from(v, number, plan, order, constants, channel, last_rank, last, size, capacity)
        channel += CHANNEL_FIELDS + 3 * v.orders[order + EQUAL_COLUMNS]
    v.lists[number + IS_COMPLETE] = v.lists[number + SIZE] < capacity


@kernel
def _refill_from(
    v: View,
    number: Int,
    plan: Int,
    order: Int,
    constants: Int,
    channel: Int,
    last_rank: Int,
    last: Int,
    first: Int,
    capacity: Int,
) -> None:
    """Takes in rows of one channel that stand behind (last_rank, last); from place `first` on the list is of such rows."""
    hashed = v.words[channel + CHANNEL_HASH]
    directory, count = v.orders[order + DIRECTORY], v.orders[order + BLOCKS]
    at, place = find(v, order, hashed, last_rank, last)
    while at < count:
        block = v.words[directory + at]
        size = v.block_size[block]
        stop = size
        while stop > place and v.blocks[field_of(v, block, HASH) + stop - 1] != hashed:
            stop -= 1
        while True:
            place = _next_within(v, plan, constants, block, place, stop)
            if place == stop:
                break
            rank, row = v.blocks[field_of(v, block, RANK) + place], v.blocks[field_of(v, block, ROW) + place]
            place += 1
            if row == last:
                continue
            held, start = v.lists[number + SIZE], v.lists[number + START]
            if held == capacity and not stands_before(
                v, rank, row, v.words[start + 2 * held - 2], v.words[start + 2 * held - 1]
            ):
                return
            if _qualifies(v, record_at(v, v.current[row]), plan, constants, channel):
                to = held
                while to > first and stands_before(
                    v, rank, row, v.words[start + 2 * to - 2], v.words[start + 2 * to - 1]
                ):
                    to -= 1
                put_in(v, number, to, rank, row, capacity)
        if stop < size:
            return
        at, place = at + 1, 0


@kernel
def high_of(v: View, number: Int) -> Int:
    """The highest rank of rows that matter to a list."""
    if v.lists[number + IS_COMPLETE]:
        return np.int64(CODE_MAX)
    return v.words[v.lists[number + START] + 2 * v.lists[number + SIZE] - 2]


@kernel
def move_highs(v: View, boxes: Boxes, numbers: Any, count: Int) -> None:
    """Lets lists be reached by just the rows that matter to them: the first `count` of those given."""
    for i in range(count):
        number = numbers[i]
        high = high_of(v, number)
        if high == v.lists[number + HIGH]:
            continue
        v.lists[number + HIGH] = high
        plan = v.lists[number + PLAN]
        ranges = v.plans[plan + RANGES]
        channel = v.lists[number + CONSTANTS] + 2 * ranges
        for _ in range(v.lists[number + CHANNELS]):
            set_high(boxes, v.words[channel + CHANNEL_BOX], ranges, high)
            channel += CHANNEL_FIELDS + 3 * v.orders[v.plans[plan + ORDER] + EQUAL_COLUMNS]


@kernel
def open_lists(
    handles: I64,
    plan: Int,
    numbers: I64,
    slots: I64,
    firsts: I64,
    group: I64,
    hashes: I64,
    codes: I64,
    spans: I64,
    text: U8,
    ends: I64,
) -> None:
    """Writes the constants of new lists; there is room for them, and for their first rows.

    List numbers[i] has the points firsts[i]:firsts[i + 1]; point j has ends[j] of ranges and the channel group[j], that is
    hashes[c], codes[c] and the texts text[spans[c, 0]:spans[c, 1]] (NONE where the type is exact).
    """
    v = view_at(handles)
    ranges, equals = v.plans[plan + RANGES], codes.shape[1]
    room = min(ROOM_FIRST, v.plans[plan + CAPACITY])
    for i in range(numbers.shape[0]):
        number, channels = numbers[i], firsts[i + 1] - firsts[i]
        words = 2 * ranges + channels * (CHANNEL_FIELDS + 3 * equals)
        texts = words
        for j in range(firsts[i], firsts[i + 1]):
            for column in range(equals):
                words += (spans[group[j], column, 1] - spans[group[j], column, 0] + 7) >> 3
        at = allocate(v, words)
        texts += at
        for field in range(LIST_FIELDS):
            v.lists[number + field] = 0
        v.lists[number + SLOT], v.lists[number + PLAN] = slots[i], plan
        v.lists[number + START], v.lists[number + ROOM] = allocate(v, 2 * room), room
        v.lists[number + CONSTANTS], v.lists[number + CONSTANT_WORDS] = at, words
        v.lists[number + CHANNELS], v.lists[number + TOUCHED] = channels, NONE
        for j in range(2 * ranges if channels else 0):
            v.words[at + j] = ends[firsts[i], j]
        at += 2 * ranges
        for j in range(firsts[i], firsts[i + 1]):
            channel = group[j]
            v.words[at + CHANNEL_HASH], v.words[at + CHANNEL_BOX] = hashes[channel], NONE
            at += CHANNEL_FIELDS
            for column in range(equals):
                begin, end = spans[channel, column, 0], spans[channel, column, 1]
                v.words[at], v.words[at + 1], v.words[at + 2] = codes[channel, column], NONE, NONE
                if begin != NONE:
                    for byte in range(end - begin):
                        v.bytes[8 * texts + byte] = text[begin + byte]
                    v.words[at + 1], v.words[at + 2] = 8 * texts, 8 * texts + end - begin
                    texts += (end - begin + 7) >> 3
                at += 3


@kernel
def fill_lists(handles: I64, numbers: I64, done: Int, highs: I64) -> Int:
    """Fills new lists from number `done` on, with the highest rank that matters to each; where it ran out of words."""
    v = view_at(handles)
    for i in range(done, numbers.shape[0]):
        plan = v.lists[numbers[i] + PLAN]
        held_max = min(v.plans[plan + CAPACITY], v.orders[v.plans[plan + ORDER] + ROWS] + 1)
        if not has_words(v, 4 * extent_words(2 * held_max)):
            return i
        refill(v, numbers[i])
        highs[i] = v.lists[numbers[i] + HIGH] = high_of(v, numbers[i])
    return numbers.shape[0]


@kernel
def name_boxes(handles: I64, numbers: I64, firsts: I64, ids: I64) -> None:
    """Notes the boxes of new lists: those of numbers[i] are ids[firsts[i]:firsts[i + 1]]."""
    v = view_at(handles)
    for i in range(numbers.shape[0]):
        plan = v.lists[numbers[i] + PLAN]
        at = v.lists[numbers[i] + CONSTANTS] + 2 * v.plans[plan + RANGES]
        for j in range(firsts[i], firsts[i + 1]):
            v.words[at + CHANNEL_BOX] = ids[j]
            at += CHANNEL_FIELDS + 3 * v.orders[v.plans[plan + ORDER] + EQUAL_COLUMNS]


@kernel
def count_channels(handles: I64, numbers: I64) -> Int:
    v = view_at(handles)
    total = 0
    for i in range(numbers.shape[0]):
        total += v.lists[numbers[i] + CHANNELS]
    return total


@kernel
def close_lists(handles: I64, numbers: I64, ids: I64) -> None:
    """Frees lists, and gives the boxes they had."""
    v = view_at(handles)
    count = 0
    for i in range(numbers.shape[0]):
        number = numbers[i]
        plan = v.lists[number + PLAN]
        at = v.lists[number + CONSTANTS] + 2 * v.plans[plan + RANGES]
        for _ in range(v.lists[number + CHANNELS]):
            ids[count] = v.words[at + CHANNEL_BOX]
            at += CHANNEL_FIELDS + 3 * v.orders[v.plans[plan + ORDER] + EQUAL_COLUMNS]
            count += 1
        release(v, v.lists[number + START], 2 * v.lists[number + ROOM])
        release(v, v.lists[number + CONSTANTS], v.lists[number + CONSTANT_WORDS])
        v.plans[plan + MEMBERS] -= 1
        v.lists[number + SLOT] = NONE
