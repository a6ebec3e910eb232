"""Top lists: the first rows of each subscription, in order, with some to spare behind those it shows.

A list holds every row within its predicates up to the last one held. A row that goes leaves a gap at the end; only when fewer
than k are left are more looked up in the rank index (the view maintenance of Yi et al., "Efficient maintenance of
materialized top-k views", 2003). A list that holds all rows there are is complete, and takes in whatever comes. The rank up to
which rows matter to a list is the upper end of its boxes in the stabbing index, so that others never reach it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tidings.families.topk.kernels.rank_index import (
    BLOCKS,
    CODE_MAX,
    CODE_MIN,
    DIRECTORY,
    EQUALS,
    HASH,
    ORDER_FIELDS,
    RANK,
    ROW,
    ROWS,
    STORED,
    TABLE,
    TOP,
    Ranking,
    allocate,
    extent_words,
    find,
    key_order,
    release,
)
from tidings.kernels.rows import (
    I64,
    NONE,
    U8,
    Int,
    Rows,
    code_at,
    equal_at,
    is_valid,
    record_of,
    same_text,
)
from tidings.kernels.stabbing import Boxes, set_high

RANGES_MAX = 8
# Fields of a plan, which all subscriptions of a form share: subscriptions (0: it is free), order, k, rows a list may hold,
# mask of shown columns, whether these tell rows apart, whether one is a DOUBLE, ranges; then range columns, then the places
# of these in blocks.
MEMBERS, ORDER, K, CAPACITY, SHOWN, SHOWS_KEY, SHOWS_DOUBLE, RANGES, RANGE_COLUMNS = range(9)
PLACES = RANGE_COLUMNS + RANGES_MAX
PLAN_FIELDS = PLACES + RANGES_MAX

# Fields of a list: subscription (NONE: it is free), plan, extent of its rows and how many there is room for, rows, whether
# these are all, highest rank that matters, constants and their words, channels (values of equality columns); what an event
# has touched.
SLOT, PLAN, START, ROOM, SIZE, IS_COMPLETE, HIGH, CONSTANTS, CONSTANT_WORDS, CHANNELS, TOUCHED, BITS, LIST_FIELDS = (
    range(13)
)
# Constants: (lo, hi) of each range; then per channel these fields, and (code, start, stop of the text or NONE) per column;
# then the texts. A held row is two words, its rank and its number.
CHANNEL_HASH, CHANNEL_BOX, CHANNEL_FIELDS = range(3)
ROOM_FIRST = 16
"""Rows that a list has room for at first, if it may hold so many."""


@njit(cache=True)
def stands_before(ranking: Ranking, rows: Rows, rank: Int, row: Int, other_rank: Int, other: Int) -> bool:
    if rank != other_rank:
        return rank < other_rank
    return key_order(ranking, rows, row, other) < 0


@njit(cache=True)
def place_in(ranking: Ranking, rows: Rows, number: Int, rank: Int, row: Int) -> Int:
    """How many rows of the list stand before this one."""
    start = ranking.lists[number, START]
    low, high = 0, ranking.lists[number, SIZE]
    while low < high:
        middle = (low + high) >> 1
        at = start + 2 * middle
        if stands_before(ranking, rows, ranking.words[at], ranking.words[at + 1], rank, row):
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def position_of(ranking: Ranking, rows: Rows, number: Int, rank: Int, row: Int) -> Int:
    """Where in the list the row is, or NONE."""
    place = place_in(ranking, rows, number, rank, row)
    at = ranking.lists[number, START] + 2 * place
    if place < ranking.lists[number, SIZE] and ranking.words[at + 1] == row:
        return place
    return NONE


@njit(cache=True)
def take_out(ranking: Ranking, number: Int, place: Int) -> None:
    start, size = ranking.lists[number, START], ranking.lists[number, SIZE] - 1
    for i in range(start + 2 * place, start + 2 * size):
        ranking.words[i] = ranking.words[i + 2]
    ranking.lists[number, SIZE] = size


@njit(cache=True)
def put_in(ranking: Ranking, number: Int, place: Int, rank: Int, row: Int, capacity: Int) -> None:
    """Puts a row at a place; of a full list the last one goes. There are words for an extent of twice the size."""
    start, size, room = ranking.lists[number, START], ranking.lists[number, SIZE], ranking.lists[number, ROOM]
    if size == capacity:
        size -= 1
    elif size == room:
        room = min(2 * room, capacity)
        wider = allocate(ranking, 2 * room)
        ranking.words[wider : wider + 2 * size] = ranking.words[start : start + 2 * size]
        release(ranking, start, 2 * ranking.lists[number, ROOM])
        ranking.lists[number, START], ranking.lists[number, ROOM] = wider, room
        start = wider
    for i in range(start + 2 * size - 1, start + 2 * place - 1, -1):
        ranking.words[i + 2] = ranking.words[i]
    ranking.words[start + 2 * place], ranking.words[start + 2 * place + 1] = rank, row
    ranking.lists[number, SIZE] = size + 1


@njit(cache=True)
def _qualifies(ranking: Ranking, rows: Rows, record: Int, plan: Int, constants: Int, channel: Int) -> bool:
    """Whether a record satisfies all predicates of a subscription, with the equality values of this channel."""
    table, order = ranking.head[TABLE], ranking.plans[plan, ORDER]
    for i in range(ranking.orders[order, EQUALS]):
        column, at = ranking.orders[order, ORDER_FIELDS + i], channel + CHANNEL_FIELDS + 3 * i
        if not is_valid(rows, record, column) or equal_at(rows, record, table, column) != ranking.words[at]:
            return False
        start = ranking.words[at + 1]
        if start != NONE and not same_text(rows, record, table, column, ranking.bytes, start, ranking.words[at + 2]):
            return False
    for i in range(ranking.plans[plan, RANGES]):
        column = ranking.plans[plan, RANGE_COLUMNS + i]
        code = code_at(rows, record, table, column)
        if not is_valid(rows, record, column):
            return False
        if code < ranking.words[constants + 2 * i] or code > ranking.words[constants + 2 * i + 1]:
            return False
    return True


@njit(cache=True)
def _next_within(ranking: Ranking, plan: Int, constants: Int, block: Int, place: Int, stop: Int) -> Int:
    """The first place of a block, from this one on, where codes are within all ranges; `stop` if there is none."""
    ranges = ranking.plans[plan, RANGES]
    while place < stop:
        is_within = True
        for i in range(ranges):
            code = ranking.blocks[block, STORED + ranking.plans[plan, PLACES + i], place]
            if code < ranking.words[constants + 2 * i] or code > ranking.words[constants + 2 * i + 1]:
                is_within = False
                break
        if is_within:
            return place
        place += 1
    return place


@njit(cache=True)
def refill(ranking: Ranking, rows: Rows, number: Int) -> None:
    """Takes in rows behind the last one held, until the list is full or there are no more."""
    plan, constants = ranking.lists[number, PLAN], ranking.lists[number, CONSTANTS]
    order, capacity, size = ranking.plans[plan, ORDER], ranking.plans[plan, CAPACITY], ranking.lists[number, SIZE]
    last_rank, last = np.int64(CODE_MIN), np.int64(NONE)
    if size:
        at = ranking.lists[number, START] + 2 * size - 2
        last_rank, last = ranking.words[at], ranking.words[at + 1]
    channel = constants + 2 * ranking.plans[plan, RANGES]
    for _ in range(ranking.lists[number, CHANNELS]):
        _refill_from(ranking, rows, number, plan, order, constants, channel, last_rank, last, size, capacity)
        channel += CHANNEL_FIELDS + 3 * ranking.orders[order, EQUALS]
    ranking.lists[number, IS_COMPLETE] = ranking.lists[number, SIZE] < capacity


@njit(cache=True)
def _refill_from(
    ranking: Ranking,
    rows: Rows,
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
    hashed = ranking.words[channel + CHANNEL_HASH]
    directory, count = ranking.orders[order, DIRECTORY], ranking.orders[order, BLOCKS]
    at, place = find(ranking, rows, order, hashed, last_rank, last)
    while at < count:
        block = ranking.words[directory + at]
        size = ranking.block_size[block]
        stop = size
        while stop > place and ranking.blocks[block, HASH, stop - 1] != hashed:
            stop -= 1
        while True:
            place = _next_within(ranking, plan, constants, block, place, stop)
            if place == stop:
                break
            rank, row = ranking.blocks[block, RANK, place], ranking.blocks[block, ROW, place]
            place += 1
            if row == last:
                continue
            held, start = ranking.lists[number, SIZE], ranking.lists[number, START]
            if held == capacity and not stands_before(
                ranking, rows, rank, row, ranking.words[start + 2 * held - 2], ranking.words[start + 2 * held - 1]
            ):
                return
            if _qualifies(ranking, rows, record_of(rows, ranking.current[row]), plan, constants, channel):
                to = held
                while to > first and stands_before(
                    ranking, rows, rank, row, ranking.words[start + 2 * to - 2], ranking.words[start + 2 * to - 1]
                ):
                    to -= 1
                put_in(ranking, number, to, rank, row, capacity)
        if stop < size:
            return
        at, place = at + 1, 0


@njit(cache=True)
def high_of(ranking: Ranking, number: Int) -> Int:
    """The highest rank of rows that matter to a list."""
    if ranking.lists[number, IS_COMPLETE]:
        return np.int64(CODE_MAX)
    return ranking.words[ranking.lists[number, START] + 2 * ranking.lists[number, SIZE] - 2]


@njit(cache=True)
def raise_or_lower(ranking: Ranking, boxes: Boxes, number: Int) -> None:
    """Lets the list be reached by just the rows that matter to it."""
    high = high_of(ranking, number)
    if high == ranking.lists[number, HIGH]:
        return
    ranking.lists[number, HIGH] = high
    plan = ranking.lists[number, PLAN]
    ranges = ranking.plans[plan, RANGES]
    channel = ranking.lists[number, CONSTANTS] + 2 * ranges
    for _ in range(ranking.lists[number, CHANNELS]):
        set_high(boxes, ranking.words[channel + CHANNEL_BOX], ranges, high)
        channel += CHANNEL_FIELDS + 3 * ranking.orders[ranking.plans[plan, ORDER], EQUALS]


@njit(cache=True)
def open_lists(
    ranking: Ranking,
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
    ranges, equals = ranking.plans[plan, RANGES], codes.shape[1]
    room = min(ROOM_FIRST, ranking.plans[plan, CAPACITY])
    for i in range(numbers.shape[0]):
        number, channels = numbers[i], firsts[i + 1] - firsts[i]
        words = 2 * ranges + channels * (CHANNEL_FIELDS + 3 * equals)
        texts = words
        for j in range(firsts[i], firsts[i + 1]):
            for column in range(equals):
                words += (spans[group[j], column, 1] - spans[group[j], column, 0] + 7) >> 3
        at = allocate(ranking, words)
        texts += at
        ranking.lists[number] = 0
        ranking.lists[number, SLOT], ranking.lists[number, PLAN] = slots[i], plan
        ranking.lists[number, START], ranking.lists[number, ROOM] = allocate(ranking, 2 * room), room
        ranking.lists[number, CONSTANTS], ranking.lists[number, CONSTANT_WORDS] = at, words
        ranking.lists[number, CHANNELS], ranking.lists[number, TOUCHED] = channels, NONE
        if channels:
            ranking.words[at : at + 2 * ranges] = ends[firsts[i]]
        at += 2 * ranges
        for j in range(firsts[i], firsts[i + 1]):
            channel = group[j]
            ranking.words[at + CHANNEL_HASH], ranking.words[at + CHANNEL_BOX] = hashes[channel], NONE
            at += CHANNEL_FIELDS
            for column in range(equals):
                begin, end = spans[channel, column, 0], spans[channel, column, 1]
                ranking.words[at], ranking.words[at + 1], ranking.words[at + 2] = codes[channel, column], NONE, NONE
                if begin != NONE:
                    ranking.bytes[8 * texts : 8 * texts + end - begin] = text[begin:end]
                    ranking.words[at + 1], ranking.words[at + 2] = 8 * texts, 8 * texts + end - begin
                    texts += (end - begin + 7) >> 3
                at += 3


@njit(cache=True)
def fill_lists(ranking: Ranking, rows: Rows, numbers: I64, done: Int, highs: I64) -> Int:
    """Fills new lists from number `done` on, with the highest rank that matters to each; where it ran out of words."""
    for i in range(done, numbers.shape[0]):
        plan = ranking.lists[numbers[i], PLAN]
        held_max = min(ranking.plans[plan, CAPACITY], ranking.orders[ranking.plans[plan, ORDER], ROWS] + 1)
        if ranking.head[TOP] + 4 * extent_words(2 * held_max) > ranking.words.shape[0]:
            return i
        refill(ranking, rows, numbers[i])
        highs[i] = ranking.lists[numbers[i], HIGH] = high_of(ranking, numbers[i])
    return numbers.shape[0]


@njit(cache=True)
def name_boxes(ranking: Ranking, numbers: I64, firsts: I64, ids: I64) -> None:
    """Notes the boxes of new lists: those of numbers[i] are ids[firsts[i]:firsts[i + 1]]."""
    for i in range(numbers.shape[0]):
        plan = ranking.lists[numbers[i], PLAN]
        at = ranking.lists[numbers[i], CONSTANTS] + 2 * ranking.plans[plan, RANGES]
        for j in range(firsts[i], firsts[i + 1]):
            ranking.words[at + CHANNEL_BOX] = ids[j]
            at += CHANNEL_FIELDS + 3 * ranking.orders[ranking.plans[plan, ORDER], EQUALS]


@njit(cache=True)
def count_channels(ranking: Ranking, numbers: I64) -> Int:
    total = 0
    for i in range(numbers.shape[0]):
        total += ranking.lists[numbers[i], CHANNELS]
    return total


@njit(cache=True)
def close_lists(ranking: Ranking, numbers: I64, ids: I64) -> None:
    """Frees lists, and gives the boxes they had."""
    count = 0
    for i in range(numbers.shape[0]):
        number = numbers[i]
        plan = ranking.lists[number, PLAN]
        at = ranking.lists[number, CONSTANTS] + 2 * ranking.plans[plan, RANGES]
        for _ in range(ranking.lists[number, CHANNELS]):
            ids[count] = ranking.words[at + CHANNEL_BOX]
            at += CHANNEL_FIELDS + 3 * ranking.orders[ranking.plans[plan, ORDER], EQUALS]
            count += 1
        release(ranking, ranking.lists[number, START], 2 * ranking.lists[number, ROOM])
        release(ranking, ranking.lists[number, CONSTANTS], ranking.lists[number, CONSTANT_WORDS])
        ranking.plans[plan, MEMBERS] -= 1
        ranking.lists[number, SLOT] = NONE
