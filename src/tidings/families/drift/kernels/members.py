"""Members of audiences: subscriptions are added, start to hold rows, stop, and are removed; and what they hold, for a dump."""
# mypy: disallow-untyped-decorators=False

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidings.families.drift.kernels.audience_layout import (
    AUDIENCE_CLOCK,
    AUDIENCE_COUNT,
    AUDIENCE_GROUP,
    AUDIENCE_MEMBERS,
    AUDIENCE_NEXT,
    AUDIENCE_SIZE,
    AUDIENCE_USERS,
    AUDIENCE_VALUE,
    CELLS,
    EIGHT,
    FAN,
    FOUR,
    GROUP_AUDIENCES,
    GROUP_LINK_COUNT,
    GROUP_LINKS,
    LINK_GROUP,
    LINK_NEXT,
    LINK_OF_ROW,
    LINK_ROW,
    LINK_WATCHES,
    MEMBER_AUDIENCE,
    MEMBER_KIND,
    MEMBER_NEXT,
    MEMBER_PATIENCE,
    MEMBER_PLACE,
    MEMBER_RADIUS,
    MEMBER_SLOT,
    ROW_LINKS,
    ROW_VERSION,
    WATCH_AUDIENCE,
    WATCH_CELLS,
    WATCH_NEXT,
    WORDS_PER_LINK,
    Audiences,
    add_row,
    add_watch,
    close_watch,
    free_if_empty,
    give_back,
    group_at,
    has_room_for,
    has_value,
    key_words_most,
    link_row,
    open_watch,
    set_cell,
    take_cells,
    take_record,
    time_of,
    value_of,
    watch_of,
    widen,
)
from tidings.families.drift.kernels.tournament_tree import clear, rebuild, refresh, stride_of, words_of
from tidings.kernels.arrays import ONE, ZERO
from tidings.kernels.extents import class_for
from tidings.kernels.jit import kernel
from tidings.kernels.rows import I64, NONE, Int, Rows, equal_at, mix, record_of, same_value, table_of


@kernel
def _find_audience(words: I64, group: Int, value: Int, clock: Int) -> Int:
    """The audience of a group that follows a column by a clock, or NONE."""
    audience = words[group + GROUP_AUDIENCES]
    while audience != NONE:
        if words[audience + AUDIENCE_VALUE] == value and words[audience + AUDIENCE_CLOCK] == clock:
            break
        audience = words[audience + AUDIENCE_NEXT]
    return audience


@kernel
def _add_audience(audiences: Audiences, rows: Rows, group: Int, value: Int, clock: Int) -> Int:
    """A new audience of a group."""
    words = audiences.words
    audience = take_record(audiences, EIGHT)
    words[audience + AUDIENCE_GROUP] = group
    words[audience + AUDIENCE_NEXT] = words[group + GROUP_AUDIENCES]
    words[audience + AUDIENCE_VALUE] = value
    words[audience + AUDIENCE_CLOCK] = clock
    words[audience + AUDIENCE_COUNT] = 0
    words[audience + AUDIENCE_MEMBERS] = take_record(audiences, ZERO)
    words[audience + AUDIENCE_SIZE] = 0
    words[audience + AUDIENCE_USERS] = 0
    words[group + GROUP_AUDIENCES] = audience
    widen(audiences, group, ONE)
    link = words[group + GROUP_LINKS]
    while link != NONE:
        watch = add_watch(audiences, link, audience)
        version = words[words[link + LINK_ROW] + ROW_VERSION]
        if has_value(rows, record_of(rows, version), value):
            open_watch(audiences, rows, watch, version)
        link = words[link + LINK_NEXT]
    return audience


@kernel
def _remove_audience(audiences: Audiences, audience: Int) -> None:
    """Forgets an audience without members."""
    words = audiences.words
    group = words[audience + AUDIENCE_GROUP]
    link = words[group + GROUP_LINKS]
    while link != NONE:
        watch = watch_of(words, link, audience)
        if words[watch + WATCH_CELLS] != NONE:
            close_watch(audiences, watch)
        if words[link + LINK_WATCHES] == watch:
            words[link + LINK_WATCHES] = words[watch + WATCH_NEXT]
        else:
            before = words[link + LINK_WATCHES]
            while words[before + WATCH_NEXT] != watch:
                before = words[before + WATCH_NEXT]
            words[before + WATCH_NEXT] = words[watch + WATCH_NEXT]
        give_back(audiences, FOUR, watch)
        link = words[link + LINK_NEXT]
    if words[group + GROUP_AUDIENCES] == audience:
        words[group + GROUP_AUDIENCES] = words[audience + AUDIENCE_NEXT]
    else:
        before = words[group + GROUP_AUDIENCES]
        while words[before + AUDIENCE_NEXT] != audience:
            before = words[before + AUDIENCE_NEXT]
        words[before + AUDIENCE_NEXT] = words[audience + AUDIENCE_NEXT]
    size = words[audience + AUDIENCE_SIZE]
    widen(audiences, group, -(1 << size))
    give_back(audiences, size, words[audience + AUDIENCE_MEMBERS])
    give_back(audiences, EIGHT, audience)
    free_if_empty(audiences, group)


@kernel
def words_to_join(audiences: Audiences, audience: Int) -> Int:
    """Words that one more member of an audience takes."""
    words = audiences.words
    size = words[audience + AUDIENCE_SIZE]
    if words[audience + AUDIENCE_COUNT] < 1 << size:
        return np.int64(0)
    watches = words[words[audience + AUDIENCE_GROUP] + GROUP_LINK_COUNT]
    return np.int64((2 << size) + watches * words_of(size + 1, audiences.head[FAN]))


@kernel
def _grow(audiences: Audiences, audience: Int) -> None:
    """Doubles the room of an audience and its watches."""
    words, fan = audiences.words, audiences.head[FAN]
    size, count = words[audience + AUDIENCE_SIZE], words[audience + AUDIENCE_COUNT]
    old = words[audience + AUDIENCE_MEMBERS]
    new = take_record(audiences, size + 1)
    for i in range(count):
        words[new + i] = words[old + i]
    give_back(audiences, size, old)
    words[audience + AUDIENCE_MEMBERS] = new
    words[audience + AUDIENCE_SIZE] = size + 1
    group = words[audience + AUDIENCE_GROUP]
    widen(audiences, group, 1 << size)
    narrow, wide = stride_of(size, fan), stride_of(size + 1, fan)
    link = words[group + GROUP_LINKS]
    while link != NONE:
        watch = watch_of(words, link, audience)
        old = words[watch + WATCH_CELLS]
        if old != NONE:
            new = take_cells(audiences, size + 1)
            clear(words, new, size + 1, fan, count)
            for part in range(4):
                for i in range(count):
                    words[new + part * wide + i] = words[old + part * narrow + i]
            rebuild(words, new, size + 1, fan)
            give_back(audiences, CELLS + size, old)
            words[watch + WATCH_CELLS] = new
        link = words[link + LINK_NEXT]


@kernel
def join(audiences: Audiences, rows: Rows, member: Int) -> None:
    """Lets a member hold the rows of its group as they are now."""
    words, fan = audiences.words, audiences.head[FAN]
    audience = words[member + MEMBER_AUDIENCE]
    if audience == NONE:
        return
    place = words[audience + AUDIENCE_COUNT]
    if place == 1 << words[audience + AUDIENCE_SIZE]:
        _grow(audiences, audience)
    size = words[audience + AUDIENCE_SIZE]
    stride = stride_of(size, fan)
    words[words[audience + AUDIENCE_MEMBERS] + place] = member
    words[audience + AUDIENCE_COUNT] = place + 1
    words[member + MEMBER_PLACE] = place
    link = words[words[audience + AUDIENCE_GROUP] + GROUP_LINKS]
    while link != NONE:
        cells = words[watch_of(words, link, audience) + WATCH_CELLS]
        if cells != NONE:
            version = words[words[link + LINK_ROW] + ROW_VERSION]
            hold(words, rows, audience, cells, stride, place, version)
            refresh(words, cells, size, fan, place)
        link = words[link + LINK_NEXT]


@kernel
def hold(words: I64, rows: Rows, audience: Int, cells: Int, stride: Int, place: Int, version: Int) -> None:
    """Lets a member that holds nothing hold a version, and pins that."""
    table, record = table_of(rows, version), record_of(rows, version)
    value = value_of(rows, record, table, words[audience + AUDIENCE_VALUE])
    time = time_of(rows, record, table, words[audience + AUDIENCE_CLOCK])
    member = words[words[audience + AUDIENCE_MEMBERS] + place]
    set_cell(words, cells, stride, place, member, value, time, version)
    rows.pins[version] += 1


@kernel
def leave(audiences: Audiences, rows: Rows, member: Int) -> None:
    """Ends what a member holds. The last of its audience moves to its place."""
    words, fan = audiences.words, audiences.head[FAN]
    place = words[member + MEMBER_PLACE]
    if place == NONE:
        return
    words[member + MEMBER_PLACE] = NONE
    audience = words[member + MEMBER_AUDIENCE]
    size, last = words[audience + AUDIENCE_SIZE], words[audience + AUDIENCE_COUNT] - 1
    stride, members = stride_of(size, fan), words[audience + AUDIENCE_MEMBERS]
    words[audience + AUDIENCE_COUNT] = last
    if place != last:
        moved = words[members + last]
        words[members + place] = moved
        words[moved + MEMBER_PLACE] = place
    link = words[words[audience + AUDIENCE_GROUP] + GROUP_LINKS]
    while link != NONE:
        cells = words[watch_of(words, link, audience) + WATCH_CELLS]
        if cells != NONE:
            rows.pins[words[cells + 3 * stride + place]] -= 1
            for part in range(4):
                words[cells + part * stride + place] = words[cells + part * stride + last]
            words[cells + last] = -(2**63)
            words[cells + stride + last] = words[cells + 2 * stride + last] = 2**63 - 1
            refresh(words, cells, size, fan, place)
            refresh(words, cells, size, fan, last)
        link = words[link + LINK_NEXT]


@kernel
def remove_member(audiences: Audiences, rows: Rows, member: Int) -> None:
    """Forgets a member."""
    words = audiences.words
    leave(audiences, rows, member)
    audience = words[member + MEMBER_AUDIENCE]
    if audience != NONE:
        words[audience + AUDIENCE_USERS] -= 1
        if words[audience + AUDIENCE_USERS] == 0:
            _remove_audience(audiences, audience)
    give_back(audiences, EIGHT, member)


# --- Many at once; where memory runs out, kernels stop and give the place to go on from ---


@kernel
def link_rows(audiences: Audiences, rows: Rows, grouping: Int, versions: I64, start: Int) -> Int:
    """Makes rows, given by their current versions, part of their groups in a new grouping."""
    for i in range(start, len(versions)):
        version = versions[i]
        key_words = key_words_most(rows, record_of(rows, version), table_of(rows, version))
        if not has_room_for(audiences, WORDS_PER_LINK + 2 * key_words, key_words):
            return i
        row = audiences.row_of[version]
        if row == NONE:
            row = add_row(audiences, version)
        link_row(audiences, rows, row, grouping)
    return len(versions)


@kernel
def add_members(
    audiences: Audiences,
    rows: Rows,
    grouping: Int,
    value: Int,
    clock: Int,
    kind: Int,
    patience: Int,
    slots: I64,
    radii: I64,
    key_of: I64,
    key_starts: I64,
    keys: I64,
    exists: NDArray[np.bool_],
    start: Int,
) -> Int:
    """Adds members of one form: slots[i] with the radius (its code) radii[i] and the key with number key_of[i].

    No key (NONE): it follows nothing. Those that exist already hold their rows as these are now; others will once created.
    """
    words = audiences.words
    for i in range(start, len(slots)):
        audience = np.int64(NONE)
        key = key_of[i]
        needed = np.int64(8)
        if key != NONE:
            width = key_starts[key + 1] - key_starts[key] + 1
            if not has_room_for(audiences, WORDS_PER_LINK + 2 * width, width):
                return i
            audiences.scratch[0] = grouping
            for j in range(1, width):
                audiences.scratch[j] = keys[key_starts[key] + j - 1]
            group = group_at(audiences, width)
            audience = _find_audience(words, group, value, clock)
            if audience == NONE:
                needed = 32 + words[group + GROUP_LINK_COUNT] * (4 + words_of(ZERO, audiences.head[FAN]))
            else:
                needed = 32 + words_to_join(audiences, audience)
        if not has_room_for(audiences, needed, ZERO):
            return i
        if key != NONE:
            if audience == NONE:
                audience = _add_audience(audiences, rows, group, value, clock)
            words[audience + AUDIENCE_USERS] += 1
        member = take_record(audiences, EIGHT)
        words[member + MEMBER_SLOT] = slots[i]
        words[member + MEMBER_NEXT] = audiences.member_of[slots[i]]
        words[member + MEMBER_AUDIENCE] = audience
        words[member + MEMBER_PLACE] = NONE
        words[member + MEMBER_KIND] = kind
        words[member + MEMBER_RADIUS] = radii[i]
        words[member + MEMBER_PATIENCE] = patience
        audiences.member_of[slots[i]] = member
        if exists[i]:
            join(audiences, rows, member)
    return len(slots)


@kernel
def remove_members(audiences: Audiences, rows: Rows, slots: I64) -> None:
    """Forgets subscriptions; slots of others are passed over."""
    for slot in slots:
        if slot >= len(audiences.member_of):
            continue
        member = audiences.member_of[slot]
        while member != NONE:
            other = audiences.words[member + MEMBER_NEXT]
            remove_member(audiences, rows, member)
            member = other
        audiences.member_of[slot] = NONE


# --- What members hold that is not current ---


@kernel
def list_held(audiences: Audiences, slots: I64, versions: I64) -> Int:
    """Writes (slot, version) for every row that was last told otherwise than it is now; gives their number.

    Nothing is written beyond the room there is.
    """
    words, fan = audiences.words, audiences.head[FAN]
    count = 0
    for slot in range(len(audiences.member_of)):
        member = audiences.member_of[slot]
        while member != NONE:
            place = words[member + MEMBER_PLACE]
            audience = words[member + MEMBER_AUDIENCE]
            link = NONE if place == NONE else words[words[audience + AUDIENCE_GROUP] + GROUP_LINKS]
            while link != NONE:
                cells = words[watch_of(words, link, audience) + WATCH_CELLS]
                if cells != NONE:
                    held = words[cells + 3 * stride_of(words[audience + AUDIENCE_SIZE], fan) + place]
                    if held != words[words[link + LINK_ROW] + ROW_VERSION]:
                        if count < len(slots):
                            slots[count], versions[count] = slot, held
                        count += 1
                link = words[link + LINK_NEXT]
            member = words[member + MEMBER_NEXT]
    return count


@kernel
def _hash_key(rows: Rows, version: Int, table: Int) -> Int:
    record = record_of(rows, version)
    hashed = np.int64(table)
    for i in range(rows.keys.shape[1]):
        column = rows.keys[table, i]
        if column == NONE:
            break
        hashed = mix(hashed, equal_at(rows, record, table, column))
    return hashed


@kernel
def _have_same_key(rows: Rows, a: Int, b: Int, table: Int) -> bool:
    x, y = record_of(rows, a), record_of(rows, b)
    for i in range(rows.keys.shape[1]):
        column = rows.keys[table, i]
        if column == NONE:
            break
        if not same_value(rows, x, y, table, column):
            return False
    return True


@kernel
def _watch_for(audiences: Audiences, row: Int, slot: Int) -> tuple[Int, Int]:
    """(member, watch) by which a subscription follows a row; it does."""
    words = audiences.words
    member = audiences.member_of[slot]
    while True:
        audience = words[member + MEMBER_AUDIENCE]
        link = words[row + ROW_LINKS]
        while link != NONE:
            if audience != NONE and words[link + LINK_GROUP] == words[audience + AUDIENCE_GROUP]:
                return member, watch_of(words, link, audience)
            link = words[link + LINK_OF_ROW]
        member = words[member + MEMBER_NEXT]


@kernel
def restore_held(audiences: Audiences, rows: Rows, table: Int, current: I64, slots: I64, versions: I64) -> None:
    """Takes what `list_held` gave for one table, whose current rows are given: slots[i] holds versions[i]."""
    words, fan = audiences.words, audiences.head[FAN]
    places = np.full(2 << class_for(len(current)), NONE, np.int64)
    mask = len(places) - 1
    for version in current:
        at = _hash_key(rows, version, table) & mask
        while places[at] != NONE:
            at = (at + 1) & mask
        places[at] = version
    for i in range(len(slots)):
        at = _hash_key(rows, versions[i], table) & mask
        while not _have_same_key(rows, places[at], versions[i], table):
            at = (at + 1) & mask
        member, watch = _watch_for(audiences, audiences.row_of[places[at]], slots[i])
        audience, place, cells = words[watch + WATCH_AUDIENCE], words[member + MEMBER_PLACE], words[watch + WATCH_CELLS]
        size = words[audience + AUDIENCE_SIZE]
        stride = stride_of(size, fan)
        rows.pins[words[cells + 3 * stride + place]] -= 1
        hold(words, rows, audience, cells, stride, place, versions[i])
        refresh(words, cells, size, fan, place)
