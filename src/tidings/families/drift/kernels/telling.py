"""The events of a micro-batch, one by one: who is told what, and what they hold from then on.

A change looks at the watches of its row alone. Those it tells share a tail when they see the same: the projection, the version
last told and whether the row has gone decide. Tails are found in a hash whose entries count for one event, by a stamp.

Before each event the room it may take is compared with what there is; the loop stops there if it is too little.
"""
# mypy: disallow-untyped-decorators=False

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.families.drift.kernels.audiences import (
    AUDIENCE_CLOCK,
    AUDIENCE_COUNT,
    AUDIENCE_GROUP,
    AUDIENCE_MEMBERS,
    AUDIENCE_SIZE,
    AUDIENCE_VALUE,
    FAN,
    GROUP_LINK_COUNT,
    GROUP_LINKS,
    GROUPING_NEXT,
    GROUPING_PLACES_MOST,
    LINK_NEXT,
    LINK_OF_ROW,
    LINK_ROW,
    LINK_WATCHES,
    MEMBER_AUDIENCE,
    MEMBER_NEXT,
    MEMBER_SLOT,
    ROW_LINKS,
    ROW_VERSION,
    SCRATCH_NEEDED,
    STAMP,
    WATCH_AUDIENCE,
    WATCH_CELLS,
    WATCH_NEXT,
    WORDS_NEEDED,
    WORDS_PER_LINK,
    WORDS_PER_PLACE,
    Audiences,
    add_row,
    close_watch,
    has_room,
    has_value,
    key_words_most,
    link_row,
    open_watch,
    remove_row,
    set_cell,
    time_of,
    value_code_of,
    watch_of,
)
from tidings.families.drift.kernels.members import join, leave, words_to_join
from tidings.families.drift.kernels.thresholds import double_of, find_due, refresh_several, stride_of
from tidings.families.evaluator import CHANGE, CREATE, DROP
from tidings.kernels.jit import kernel
from tidings.kernels.lives import PROJECTION, Lives
from tidings.kernels.rows import I64, NONE, Int, Rows, mix, record_of, same_value

# What the loop counts: the next event, what it has told, and what the event it stopped at needs.
AT, TOLD, TAILS, CHANGES, PLACES_NEEDED, CHANGES_NEEDED, COUNTS = range(7)

# With a type, lest numba compiles variants for a literal.
_NO_VERSION = np.int64(NONE)

_STAMP, _KIND, _OLD, _TAIL = range(4)


class Output(NamedTuple):
    """Room for what is told; shapes as in `tidings.families.evaluator.Told`."""

    told: I64
    """[3, room]: events, slots, tails."""
    tails: I64
    changes: I64
    counts: I64
    """[COUNTS]."""
    known_tails: I64
    """[power of two, 4]: hash of the event's tails: stamp, kind, old version, tail (NONE: nothing to be seen)."""


class Shown(NamedTuple):
    """What subscriptions show."""

    lives: Lives
    starts: I64
    column: I64
    """As in `Projections`."""


@kernel
def _note_needs_of_change(audiences: Audiences, rows: Rows, table: Int, old: Int, new: Int, counts: I64) -> None:
    words, numbers = audiences.words, audiences.numbers
    key_words = np.int64(0)
    if old == NONE:
        key_words = key_words_most(rows, record_of(rows, new), table)
    places: Int = np.int64(0)
    groupings = 0
    grouping = audiences.groupings[table]
    while grouping != NONE:
        places += words[grouping + GROUPING_PLACES_MOST]
        groupings += 1
        grouping = words[grouping + GROUPING_NEXT]
    numbers[WORDS_NEEDED] = groupings * (WORDS_PER_LINK + 2 * key_words) + WORDS_PER_PLACE * places
    counts[PLACES_NEEDED] = counts[CHANGES_NEEDED] = places
    numbers[SCRATCH_NEEDED] = max(key_words, 2 * places)


@kernel
def _note_needs_of_creation(audiences: Audiences, slot: Int, counts: I64) -> None:
    words = audiences.words
    needed: Int = np.int64(0)
    changes: Int = np.int64(0)
    member = audiences.member_of[slot]
    while member != NONE:
        audience = words[member + MEMBER_AUDIENCE]
        if audience != NONE:
            needed += words_to_join(audiences, audience)
            changes += words[words[audience + AUDIENCE_GROUP] + GROUP_LINK_COUNT]
        member = words[member + MEMBER_NEXT]
    audiences.numbers[WORDS_NEEDED], audiences.numbers[SCRATCH_NEEDED] = needed, 0
    counts[PLACES_NEEDED], counts[CHANGES_NEEDED] = 1, changes


@kernel
def _has_room_for_all(audiences: Audiences, out: Output) -> bool:
    counts = out.counts
    return bool(
        has_room(audiences)
        and counts[TOLD] + counts[PLACES_NEEDED] <= out.told.shape[1]
        and counts[TAILS] + counts[PLACES_NEEDED] <= len(out.tails)
        and counts[CHANGES] + counts[CHANGES_NEEDED] <= len(out.changes)
        and 2 * counts[PLACES_NEEDED] <= len(out.known_tails)
    )


@kernel
def _looks_same(rows: Rows, shown: Shown, projection: Int, table: Int, old: Int, new: Int) -> bool:
    a, b = record_of(rows, old), record_of(rows, new)
    for i in range(shown.starts[projection], shown.starts[projection + 1]):
        if not same_value(rows, a, b, table, shown.column[i]):
            return False
    return True


@kernel
def _tail_of(
    out: Output,
    rows: Rows,
    shown: Shown,
    stamp: Int,
    event: Int,
    table: Int,
    projection: Int,
    old: Int,
    new: Int,
) -> Int:
    """Number of the tail that leads from the old version to the new one; NONE where nothing of that is to be seen."""
    known, counts = out.known_tails, out.counts
    mask = len(known) - 1
    # For some the row may have gone because their value is null, while others are told the new version.
    kind = 2 * projection + (new == NONE)
    at = mix(kind, old) & mask
    while known[at, _STAMP] == stamp:
        if known[at, _KIND] == kind and known[at, _OLD] == old:
            return known[at, _TAIL]
        at = (at + 1) & mask
    tail = np.int64(NONE)
    if old == NONE or new == NONE or not _looks_same(rows, shown, projection, table, old, new):
        tail, change = counts[TAILS], counts[CHANGES]
        out.changes[change, 0], out.changes[change, 1] = old, new
        out.tails[tail, 0], out.tails[tail, 1] = event, projection
        out.tails[tail, 2], out.tails[tail, 3] = change, change + 1
        counts[TAILS], counts[CHANGES] = tail + 1, change + 1
    known[at, _STAMP], known[at, _KIND], known[at, _OLD], known[at, _TAIL] = stamp, kind, old, tail
    return tail


@kernel
def _tell(
    out: Output,
    rows: Rows,
    shown: Shown,
    stamp: Int,
    event: Int,
    table: Int,
    slot: Int,
    old: Int,
    new: Int,
) -> None:
    """Tells a subscription that a version it holds has been replaced; NONE stands for no row."""
    tail = _tail_of(out, rows, shown, stamp, event, table, shown.lives[slot, PROJECTION], old, new)
    if tail != NONE:
        told = out.counts[TOLD]
        out.told[0, told], out.told[1, told], out.told[2, told] = event, slot, tail
        out.counts[TOLD] = told + 1


@kernel
def _change(
    audiences: Audiences,
    rows: Rows,
    shown: Shown,
    out: Output,
    event: Int,
    table: Int,
    old: Int,
    new: Int,
) -> None:
    words, fan, found = audiences.words, audiences.numbers[FAN], audiences.scratch
    audiences.numbers[STAMP] += 1
    stamp = audiences.numbers[STAMP]
    if old == NONE:
        row = add_row(audiences, new)
        grouping = audiences.groupings[table]
        while grouping != NONE:
            link_row(audiences, rows, row, grouping)
            grouping = words[grouping + GROUPING_NEXT]
    else:
        row = audiences.row_of[old]
        audiences.row_of[old] = NONE
        if new != NONE:
            audiences.row_of[new] = row
            words[row + ROW_VERSION] = new
    record = NONE if new == NONE else record_of(rows, new)
    link = words[row + ROW_LINKS]
    while link != NONE:
        watch = words[link + LINK_WATCHES]
        while watch != NONE:
            audience, cells = words[watch + WATCH_AUDIENCE], words[watch + WATCH_CELLS]
            members, count = words[audience + AUDIENCE_MEMBERS], words[audience + AUDIENCE_COUNT]
            size, value = words[audience + AUDIENCE_SIZE], words[audience + AUDIENCE_VALUE]
            stride = stride_of(size, fan)
            if new == NONE or not has_value(rows, record, value):
                if cells != NONE:
                    for place in range(count):
                        before = words[cells + 3 * stride + place]
                        rows.pins[before] -= 1
                        slot = words[words[members + place] + MEMBER_SLOT]
                        _tell(out, rows, shown, stamp, event, table, slot, before, _NO_VERSION)
                    close_watch(audiences, watch)
            elif cells == NONE:
                open_watch(audiences, rows, watch, new)
                for place in range(count):
                    slot = words[words[members + place] + MEMBER_SLOT]
                    _tell(out, rows, shown, stamp, event, table, slot, _NO_VERSION, new)
            else:
                code = value_code_of(rows, record, table, value)
                time = time_of(rows, record, table, words[audience + AUDIENCE_CLOCK])
                start, stop = find_due(words, cells, size, fan, code, time, found)
                number = double_of(code)
                for i in range(start, stop):
                    place = found[i]
                    member, before = words[members + place], words[cells + 3 * stride + place]
                    rows.pins[before] -= 1
                    set_cell(words, cells, stride, place, member, number, time, new)
                    slot = words[member + MEMBER_SLOT]
                    _tell(out, rows, shown, stamp, event, table, slot, before, new)
                rows.pins[new] += stop - start
                if start < stop:
                    refresh_several(words, cells, size, fan, found, start, stop)
            watch = words[watch + WATCH_NEXT]
        link = words[link + LINK_OF_ROW]
    if new == NONE:
        remove_row(audiences, row)


@kernel
def _create(audiences: Audiences, rows: Rows, shown: Shown, out: Output, event: Int, slot: Int) -> None:
    """Lets a subscription hold the rows it follows, and tells it those that have a value."""
    words, counts = audiences.words, out.counts
    first = counts[CHANGES]
    end = first
    member = audiences.member_of[slot]
    while member != NONE:
        join(audiences, rows, member)
        audience = words[member + MEMBER_AUDIENCE]
        link = NONE if audience == NONE else words[words[audience + AUDIENCE_GROUP] + GROUP_LINKS]
        while link != NONE:
            if words[watch_of(words, link, audience) + WATCH_CELLS] != NONE:
                out.changes[end, 0], out.changes[end, 1] = NONE, words[words[link + LINK_ROW] + ROW_VERSION]
                end += 1
            link = words[link + LINK_NEXT]
        member = words[member + MEMBER_NEXT]
    told, tail = counts[TOLD], counts[TAILS]
    out.told[0, told], out.told[1, told], out.told[2, told] = event, slot, tail
    out.tails[tail, 0], out.tails[tail, 1] = event, shown.lives[slot, PROJECTION]
    out.tails[tail, 2], out.tails[tail, 3] = first, end
    counts[TOLD], counts[TAILS], counts[CHANGES] = told + 1, tail + 1, end


@kernel
def apply_events(
    audiences: Audiences,
    rows: Rows,
    kinds: I64,
    tables: I64,
    olds: I64,
    news: I64,
    slots: I64,
    lives: Lives,
    starts: I64,
    column: I64,
    out: Output,
) -> bool:
    """Goes on from event counts[AT]. False: it stopped at an event that needs more room, as told by `counts`.

    Arrays are those of `Events`, `Lives` and `Projections` that it takes: each argument has its price.
    """
    shown = Shown(lives, starts, column)
    words, counts = audiences.words, out.counts
    for event in range(counts[AT], len(kinds)):
        counts[AT] = event
        kind = kinds[event]
        if kind == CHANGE:
            table, old, new = tables[event], olds[event], news[event]
            if audiences.groupings[table] == NONE:
                continue
            _note_needs_of_change(audiences, rows, table, old, new, counts)
            if not _has_room_for_all(audiences, out):
                return False
            _change(audiences, rows, shown, out, event, table, old, new)
            continue
        slot = slots[event]
        if slot >= len(audiences.member_of) or audiences.member_of[slot] == NONE:
            continue
        if kind == CREATE:
            _note_needs_of_creation(audiences, slot, counts)
            if not _has_room_for_all(audiences, out):
                return False
            _create(audiences, rows, shown, out, event, slot)
        elif kind == DROP:
            member = audiences.member_of[slot]
            while member != NONE:
                leave(audiences, rows, member)
                member = words[member + MEMBER_NEXT]
    return True
