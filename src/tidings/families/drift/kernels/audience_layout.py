"""Who follows which row, for evaluation over shared rows: where all of it lies in memory, and how rows come and go.

    grouping   a table and the key columns that some subscriptions pin: all of the key, a part of it, or none
    group      its rows with the same values there: one row, several, or all            found by hash of the values
    audience   members of a group that follow the same column by the same clock
    member     a subscription, once per channel; it has the same place in the audience and in each of its watches
    link       a row as part of a group; a row has one for every grouping of its table
    watch      a row as one audience follows it: a tournament tree with a cell per member, as long as the row has a value

Links and watches belong to rows, and a row is found by its current version, so an update needs no hashing. A cell holds a
version of the row, the one last told, and pins it.

All records are extents of one memory of words (`tidings.kernels.extents`); an address is a position there.
"""
# mypy: disallow-untyped-decorators=False

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.families.drift.kernels.tournament_tree import (
    NO_TIME,
    clear,
    code_of_double,
    double_of,
    interval_around,
    patient_until,
    rebuild,
    stride_of,
    words_of,
)
from tidings.kernels.extents import EXTENT_FIELDS, class_for, give, has_room, take
from tidings.kernels.jit import kernel
from tidings.kernels.rows import (
    EXACT,
    I64,
    NONE,
    Int,
    Rows,
    code_at,
    equal_at,
    is_valid,
    mix,
    record_of,
    table_of,
    text_at,
)

# Fields of records.
GROUPING_NEXT, GROUPING_PLACES_MOST, GROUPING_WIDTH, GROUPING_COLUMNS = range(4)
GROUP_HASH, GROUP_CHAIN, GROUP_KEY, GROUP_KEY_WORDS, GROUP_LINKS, GROUP_LINK_COUNT, GROUP_AUDIENCES, GROUP_PLACES = (
    range(8)
)
# The value is twice the number of the followed column, plus one if that is a column of doubles.
AUDIENCE_GROUP, AUDIENCE_NEXT, AUDIENCE_VALUE, AUDIENCE_CLOCK, AUDIENCE_COUNT, AUDIENCE_MEMBERS, AUDIENCE_SIZE = range(
    7
)
AUDIENCE_USERS = 7
MEMBER_SLOT, MEMBER_NEXT, MEMBER_AUDIENCE, MEMBER_PLACE, MEMBER_KIND, MEMBER_RADIUS, MEMBER_PATIENCE = range(7)
ROW_VERSION, ROW_LINKS = range(2)
LINK_ROW, LINK_GROUP, LINK_OF_ROW, LINK_NEXT, LINK_PREVIOUS, LINK_WATCHES = range(6)
WATCH_AUDIENCE, WATCH_NEXT, WATCH_CELLS = range(3)

# Chains of extents: 2**chain words, and from CELLS on the cells of a watch for 2**(chain - CELLS) members.
PAIR, FOUR, EIGHT = np.int64(1), np.int64(2), np.int64(3)
CELLS = 64

# Fields of `head` behind those of the allocator: groups, width of the trees, changes so far, words of `scratch` needed.
GROUPS, FAN, STAMP, SCRATCH_NEEDED, HEAD_FIELDS = range(EXTENT_FIELDS, EXTENT_FIELDS + 5)

WORDS_PER_PLACE = 16
"""Words that a place of an audience takes at most when a row appears: four per cell, as much again for nodes, a watch."""
WORDS_PER_LINK = 32
"""Words that a row takes at most for becoming part of a group, its key left out."""


class Audiences(NamedTuple):
    """All state; arrays grow in place, but for `buckets`."""

    words: I64
    """Memory of all records."""
    head: I64
    """[HEAD_FIELDS]."""
    groupings: I64
    """[tables]: first grouping of a table."""
    buckets: I64
    """Hash of a group's key -> first group; a power of two."""
    row_of: I64
    """[versions]: the row whose current version it is."""
    member_of: I64
    """[slots]: first member of a subscription."""
    scratch: I64


@kernel
def take_record(audiences: Audiences, size: Int) -> Int:
    """The address of 2**size words; whoever calls a kernel has made sure that there is room."""
    return take(audiences.words, audiences.head, size, 1 << size)


@kernel
def take_cells(audiences: Audiences, size: Int) -> Int:
    """The address of the cells of a watch for 2**size members."""
    return take(audiences.words, audiences.head, CELLS + size, words_of(size, audiences.head[FAN]))


@kernel
def give_back(audiences: Audiences, chain: Int, address: Int) -> None:
    """Frees a record (chain: its size) or cells (chain: CELLS + their size)."""
    give(audiences.words, audiences.head, chain, address)


@kernel
def has_room_for(audiences: Audiences, words: Int, scratch: Int) -> bool:
    """Whether there is room for so many words of records and of scratch; else notes what is wanted."""
    audiences.head[SCRATCH_NEEDED] = scratch
    return bool(has_room(audiences.head, words) and scratch <= len(audiences.scratch))


# --- Groups ---


@kernel
def key_words_most(rows: Rows, record: Int, table: Int) -> Int:
    """Words that any key of the row takes at most."""
    width = np.int64(1)
    for i in range(rows.keys.shape[1]):
        column = rows.keys[table, i]
        if column == NONE:
            break
        begin, end = text_at(rows, record, table, column)
        width += 2 + ((end - begin) >> 3)
    return width


@kernel
def _write_key(audiences: Audiences, rows: Rows, record: Int, table: Int, grouping: Int) -> Int:
    """Puts a row's key in a grouping into `scratch`: the grouping, then codes, and texts behind their lengths."""
    words, key = audiences.words, audiences.scratch
    key[0] = grouping
    at = 1
    for i in range(words[grouping + GROUPING_WIDTH]):
        column = words[grouping + GROUPING_COLUMNS + i]
        if rows.kinds[table, column] == EXACT:
            key[at] = equal_at(rows, record, table, column)
            at += 1
            continue
        start, stop = text_at(rows, record, table, column)
        key[at] = stop - start
        at += 1
        for first in range(start, stop, 8):
            word = np.uint64(0)
            for j in range(min(8, stop - first)):
                word |= np.uint64(rows.text[first + j]) << np.uint64(8 * j)
            key[at] = np.int64(word)
            at += 1
    return at


@kernel
def group_at(audiences: Audiences, width: Int) -> Int:
    """The group whose key is in scratch[:width]; made where there is none."""
    words, key = audiences.words, audiences.scratch
    hashed = np.int64(width)
    for i in range(width):
        hashed = mix(hashed, key[i])
    bucket = hashed & (len(audiences.buckets) - 1)
    group = audiences.buckets[bucket]
    while group != NONE:
        if words[group + GROUP_HASH] == hashed and words[group + GROUP_KEY_WORDS] == width:
            first, same = words[group + GROUP_KEY], 0
            while same < width and words[first + same] == key[same]:
                same += 1
            if same == width:
                return group
        group = words[group + GROUP_CHAIN]
    group = take_record(audiences, EIGHT)
    size = class_for(width)
    first = take_record(audiences, size)
    for i in range(width):
        words[first + i] = key[i]
    words[group + GROUP_HASH] = hashed
    words[group + GROUP_CHAIN] = audiences.buckets[bucket]
    words[group + GROUP_KEY] = first
    words[group + GROUP_KEY_WORDS] = width
    words[group + GROUP_LINKS] = NONE
    words[group + GROUP_LINK_COUNT] = 0
    words[group + GROUP_AUDIENCES] = NONE
    words[group + GROUP_PLACES] = 0
    audiences.buckets[bucket] = group
    audiences.head[GROUPS] += 1
    return group


@kernel
def free_if_empty(audiences: Audiences, group: Int) -> None:
    """Forgets a group without rows and audiences."""
    words = audiences.words
    if words[group + GROUP_LINKS] != NONE or words[group + GROUP_AUDIENCES] != NONE:
        return
    bucket = words[group + GROUP_HASH] & (len(audiences.buckets) - 1)
    if audiences.buckets[bucket] == group:
        audiences.buckets[bucket] = words[group + GROUP_CHAIN]
    else:
        before = audiences.buckets[bucket]
        while words[before + GROUP_CHAIN] != group:
            before = words[before + GROUP_CHAIN]
        words[before + GROUP_CHAIN] = words[group + GROUP_CHAIN]
    give_back(audiences, class_for(words[group + GROUP_KEY_WORDS]), words[group + GROUP_KEY])
    give_back(audiences, EIGHT, group)
    audiences.head[GROUPS] -= 1


@kernel
def rehash(audiences: Audiences, buckets: I64) -> None:
    """Puts all groups into other buckets, all empty."""
    words = audiences.words
    for bucket in range(len(audiences.buckets)):
        group = audiences.buckets[bucket]
        while group != NONE:
            other = words[group + GROUP_CHAIN]
            to = words[group + GROUP_HASH] & (len(buckets) - 1)
            words[group + GROUP_CHAIN] = buckets[to]
            buckets[to] = group
            group = other


@kernel
def widen(audiences: Audiences, group: Int, places: Int) -> None:
    """Counts the places of a group's audiences, and notes how many one group of the grouping has at most."""
    words = audiences.words
    words[group + GROUP_PLACES] += places
    grouping = words[words[group + GROUP_KEY]]
    if words[group + GROUP_PLACES] > words[grouping + GROUPING_PLACES_MOST]:
        words[grouping + GROUPING_PLACES_MOST] = words[group + GROUP_PLACES]


# --- Values and cells ---


@kernel
def has_value(rows: Rows, record: Int, value: Int) -> bool:
    return bool(is_valid(rows, record, value >> 1))


@kernel
def value_of(rows: Rows, record: Int, table: Int, value: Int) -> float:
    """The followed value as a double, as Python's `float` makes it."""
    code = code_at(rows, record, table, value >> 1)
    return double_of(code) if value & 1 else np.float64(code)


@kernel
def value_code_of(rows: Rows, record: Int, table: Int, value: Int) -> Int:
    code = code_at(rows, record, table, value >> 1)
    return code if value & 1 else code_of_double(np.float64(code))


@kernel
def time_of(rows: Rows, record: Int, table: Int, clock: Int) -> Int:
    """A row's time by its clock; the least number of all counts as the next one, so that it is a time."""
    if clock == NONE or not is_valid(rows, record, clock):
        return np.int64(NO_TIME)
    return max(code_at(rows, record, table, clock), np.int64(NO_TIME + 1))


@kernel
def set_cell(
    words: I64, cells: Int, stride: Int, place: Int, member: Int, value: float, time: Int, version: Int
) -> None:
    """Notes that a member has been told a version; pins and nodes are the caller's matter."""
    low, high = interval_around(words[member + MEMBER_KIND], value, double_of(words[member + MEMBER_RADIUS]))
    words[cells + place] = low
    words[cells + stride + place] = high
    words[cells + 2 * stride + place] = patient_until(time, words[member + MEMBER_PATIENCE])
    words[cells + 3 * stride + place] = version


@kernel
def open_watch(audiences: Audiences, rows: Rows, watch: Int, version: Int) -> None:
    """Lets all members of a watch hold a version, whose value is not null; the watch had no cells."""
    words, fan = audiences.words, audiences.head[FAN]
    audience = words[watch + WATCH_AUDIENCE]
    size, count = words[audience + AUDIENCE_SIZE], words[audience + AUDIENCE_COUNT]
    cells = take_cells(audiences, size)
    words[watch + WATCH_CELLS] = cells
    clear(words, cells, size, fan, count)
    table, record, stride = table_of(rows, version), record_of(rows, version), stride_of(size, fan)
    value = value_of(rows, record, table, words[audience + AUDIENCE_VALUE])
    time = time_of(rows, record, table, words[audience + AUDIENCE_CLOCK])
    members = words[audience + AUDIENCE_MEMBERS]
    for place in range(count):
        set_cell(words, cells, stride, place, words[members + place], value, time, version)
    rebuild(words, cells, size, fan)
    rows.pins[version] += count


@kernel
def close_watch(audiences: Audiences, watch: Int) -> None:
    """Frees the cells of a watch; pins are the caller's matter."""
    words = audiences.words
    give_back(audiences, CELLS + words[words[watch + WATCH_AUDIENCE] + AUDIENCE_SIZE], words[watch + WATCH_CELLS])
    words[watch + WATCH_CELLS] = NONE


# --- Rows ---


@kernel
def add_watch(audiences: Audiences, link: Int, audience: Int) -> Int:
    words = audiences.words
    watch = take_record(audiences, FOUR)
    words[watch + WATCH_AUDIENCE] = audience
    words[watch + WATCH_NEXT] = words[link + LINK_WATCHES]
    words[watch + WATCH_CELLS] = NONE
    words[link + LINK_WATCHES] = watch
    return watch


@kernel
def watch_of(words: I64, link: Int, audience: Int) -> Int:
    watch = words[link + LINK_WATCHES]
    while words[watch + WATCH_AUDIENCE] != audience:
        watch = words[watch + WATCH_NEXT]
    return watch


@kernel
def link_row(audiences: Audiences, rows: Rows, row: Int, grouping: Int) -> None:
    """Makes a row part of its group in a grouping; watches of audiences are there, but closed."""
    words = audiences.words
    version = words[row + ROW_VERSION]
    table, record = table_of(rows, version), record_of(rows, version)
    group = group_at(audiences, _write_key(audiences, rows, record, table, grouping))
    link = take_record(audiences, EIGHT)
    following = words[group + GROUP_LINKS]
    words[link + LINK_ROW] = row
    words[link + LINK_GROUP] = group
    words[link + LINK_OF_ROW] = words[row + ROW_LINKS]
    words[link + LINK_NEXT] = following
    words[link + LINK_PREVIOUS] = NONE
    words[link + LINK_WATCHES] = NONE
    if following != NONE:
        words[following + LINK_PREVIOUS] = link
    words[group + GROUP_LINKS] = link
    words[group + GROUP_LINK_COUNT] += 1
    words[row + ROW_LINKS] = link
    audience = words[group + GROUP_AUDIENCES]
    while audience != NONE:
        add_watch(audiences, link, audience)
        audience = words[audience + AUDIENCE_NEXT]


@kernel
def add_row(audiences: Audiences, version: Int) -> Int:
    """A row without links."""
    row = take_record(audiences, PAIR)
    audiences.words[row + ROW_VERSION] = version
    audiences.words[row + ROW_LINKS] = NONE
    audiences.row_of[version] = row
    return row


@kernel
def remove_row(audiences: Audiences, row: Int) -> None:
    """Forgets a row whose watches are closed."""
    words = audiences.words
    link = words[row + ROW_LINKS]
    while link != NONE:
        watch = words[link + LINK_WATCHES]
        while watch != NONE:
            other = words[watch + WATCH_NEXT]
            give_back(audiences, FOUR, watch)
            watch = other
        group, before, after = words[link + LINK_GROUP], words[link + LINK_PREVIOUS], words[link + LINK_NEXT]
        if before == NONE:
            words[group + GROUP_LINKS] = after
        else:
            words[before + LINK_NEXT] = after
        if after != NONE:
            words[after + LINK_PREVIOUS] = before
        words[group + GROUP_LINK_COUNT] -= 1
        other = words[link + LINK_OF_ROW]
        give_back(audiences, EIGHT, link)
        free_if_empty(audiences, group)
        link = other
    give_back(audiences, PAIR, row)
