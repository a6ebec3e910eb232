"""The events of a micro-batch, one by one: who is told what, and what they hold from then on.

A change looks at the watches of its row alone. Those it tells share a tail when they see the same: the projection, the version
last told and whether the row has gone decide. Tails are found in a hash whose entries count for one event, by a stamp.

Before each event the room it may take is compared with what there is; the loop stops there if it is too little.
"""
# mypy: disallow-untyped-decorators=False

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.families.drift.kernels.audience_layout import (
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
    STAMP,
    WATCH_AUDIENCE,
    WATCH_CELLS,
    WATCH_NEXT,
    WORDS_PER_LINK,
    WORDS_PER_PLACE,
    Audiences,
    add_row,
    close_watch,
    has_room_for,
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
from tidings.families.drift.kernels.tournament_tree import double_of, find_due, refresh_several, stride_of
from tidings.kernels.arrays import ONE, ZERO
from tidings.kernels.events import CHANGE, CREATE, DROP, columns_of
from tidings.kernels.jit import kernel
from tidings.kernels.lives import PROJECTION, Lives
from tidings.kernels.rows import I64, NONE, Int, Rows, mix, record_of, same_value
from tidings.kernels.rows.read import rows_at

# What the loop counts: the next event, what it has told, and what the event it stopped at needs.
AT, TOLD, TAILS, CHANGES, PLACES_NEEDED, CHANGES_NEEDED, COUNTS = range(7)

# With a type, lest numba compiles variants for a literal.
_NO_VERSION = np.int64(NONE)

_STAMP, _KIND, _OLD, _TAIL = range(4)


class Output(NamedTuple):
    """Room for what is told; shapes as in `tidings.kernels.events.Told`."""

    told: I64
    """[room, 3]: event, slot, tail."""
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
def _has_room_for_all(audiences: Audiences, out: Output, words: Int, scratch: Int, places: Int, changes: Int) -> bool:
    """Whether there is room for an event that tells at most so many members; else notes what is wanted."""
    counts = out.counts
    counts[PLACES_NEEDED], counts[CHANGES_NEEDED] = places, changes
    return bool(
        has_room_for(audiences, words, scratch)
        and counts[TOLD] + places <= len(out.told)
        and counts[TAILS] + places <= len(out.tails)
        and counts[CHANGES] + changes <= len(out.changes)
        and 2 * places <= len(out.known_tails)
    )


@kernel
def _has_room_for_change(audiences: Audiences, rows: Rows, out: Output, table: Int, old: Int, new: Int) -> bool:
    words = audiences.words
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
    needed = groupings * (WORDS_PER_LINK + 2 * key_words) + WORDS_PER_PLACE * places
    return bool(_has_room_for_all(audiences, out, needed, max(key_words, 2 * places), places, places))


@kernel
def _has_room_for_creation(audiences: Audiences, out: Output, slot: Int) -> bool:
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
    return bool(_has_room_for_all(audiences, out, needed, ZERO, ONE, changes))


@kernel
def _looks_same(rows: Rows, shown: Shown, projection: Int, table: Int, old: Int, new: Int) -> bool:
    a, b = record_of(rows, old), record_of(rows, new)
    for i in range(shown.starts[projection], shown.starts[projection + 1]):
        if not same_value(rows, a, b, table, shown.column[i]):
            return False
    return True


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
    """Tells a subscription that a version it holds has been replaced, if it shows a difference; NONE stands for no row."""
    known, counts = out.known_tails, out.counts
    mask = len(known) - 1
    projection = shown.lives[slot, PROJECTION]
    # For some the row may have gone because their value is null, while others are told the new version.
    kind = 2 * projection + (new == NONE)
    at = mix(kind, old) & mask
    while known[at, _STAMP] == stamp and not (known[at, _KIND] == kind and known[at, _OLD] == old):
        at = (at + 1) & mask
    if known[at, _STAMP] != stamp:
        tail = np.int64(NONE)
        if old == NONE or new == NONE or not _looks_same(rows, shown, projection, table, old, new):
            tail, change = counts[TAILS], counts[CHANGES]
            out.changes[change, 0], out.changes[change, 1] = old, new
            out.tails[tail, 0], out.tails[tail, 1] = event, projection
            out.tails[tail, 2], out.tails[tail, 3] = change, change + 1
            counts[TAILS], counts[CHANGES] = tail + 1, change + 1
        known[at, _STAMP], known[at, _KIND], known[at, _OLD], known[at, _TAIL] = stamp, kind, old, tail
    if known[at, _TAIL] != NONE:
        told = counts[TOLD]
        out.told[told, 0], out.told[told, 1], out.told[told, 2] = event, slot, known[at, _TAIL]
        counts[TOLD] = told + 1


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
    words, fan, found = audiences.words, audiences.head[FAN], audiences.scratch
    audiences.head[STAMP] += 1
    stamp = audiences.head[STAMP]
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
            was_held, is_held = cells != NONE, new != NONE and has_value(rows, record, value)
            start, stop = ZERO, count if was_held or is_held else ZERO
            number, time = 0.0, ZERO
            if was_held and is_held:
                code = value_code_of(rows, record, table, value)
                number, time = double_of(code), time_of(rows, record, table, words[audience + AUDIENCE_CLOCK])
                start, stop = find_due(words, cells, size, fan, code, time, found)
            elif is_held:
                open_watch(audiences, rows, watch, new)
            for i in range(start, stop):
                place, before = i, _NO_VERSION
                if was_held and is_held:
                    place = found[i]
                member = words[members + place]
                if was_held:
                    before = words[cells + 3 * stride + place]
                    rows.pins[before] -= 1
                    if is_held:
                        set_cell(words, cells, stride, place, member, number, time, new)
                after = new if is_held else _NO_VERSION
                _tell(out, rows, shown, stamp, event, table, words[member + MEMBER_SLOT], before, after)
            if was_held and not is_held:
                close_watch(audiences, watch)
            elif was_held and start < stop:
                rows.pins[new] += stop - start
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
    out.told[told, 0], out.told[told, 1], out.told[told, 2] = event, slot, tail
    out.tails[tail, 0], out.tails[tail, 1] = event, shown.lives[slot, PROJECTION]
    out.tails[tail, 2], out.tails[tail, 3] = first, end
    counts[TOLD], counts[TAILS], counts[CHANGES] = told + 1, tail + 1, end


@kernel
def apply_events(
    audiences: Audiences,
    handles: I64,
    event_words: I64,
    lives: Lives,
    starts: I64,
    column: I64,
    out: Output,
) -> bool:
    """Goes on from event counts[AT]. False: it stopped at an event that needs more room, as told by `counts`.

    handles: of the rows. event_words: of the events. lives, starts, column: of `Lives` and `Projections`.
    """
    rows, shown = rows_at(handles), Shown(lives, starts, column)
    kinds, _, tables, olds, news, slots, _ = columns_of(event_words)
    words, counts = audiences.words, out.counts
    for event in range(counts[AT], len(kinds)):
        counts[AT] = event
        kind = kinds[event]
        if kind == CHANGE:
            table, old, new = tables[event], olds[event], news[event]
            if audiences.groupings[table] == NONE:
                continue
            if not _has_room_for_change(audiences, rows, out, table, old, new):
                return False
            _change(audiences, rows, shown, out, event, table, old, new)
            continue
        slot = slots[event]
        if slot >= len(audiences.member_of) or audiences.member_of[slot] == NONE:
            continue
        if kind == CREATE:
            if not _has_room_for_creation(audiences, out, slot):
                return False
            _create(audiences, rows, shown, out, event, slot)
        elif kind == DROP:
            member = audiences.member_of[slot]
            while member != NONE:
                leave(audiences, rows, member)
                member = words[member + MEMBER_NEXT]
    return True
