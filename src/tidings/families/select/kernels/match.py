"""Goes through the events of a micro-batch and says whom each change concerns; creations get the rows that are there.

A change becomes two vectors, the row before and after, over axes that number the columns of all tables. One stab finds the
boxes that hold either; hits of one subscription are merged, and what those with the same projection are told is made once.
A creation compares its boxes with every current row. Where many come at one moment, rows are stabbed instead, and new
subscriptions are picked from the hits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from tidings.families.evaluator import CHANGE, CREATE, Events, Lives, Projections
from tidings.families.select.kernels.snapshot import count_versions, find_rows
from tidings.kernels.rows import (
    COLUMNS,
    FIRST_PAGE,
    I64,
    NONE,
    PAGE,
    PAGE_BITS,
    U8,
    Int,
    Rows,
    code_at,
    equal_at,
    hash_bytes,
    is_current,
    is_valid,
    record_of,
    same_value,
    text_at,
)
from tidings.kernels.stabbing import NEW, OLD, Boxes, stab

# Fields of `counts`: the event to go on from, entries of the output, stamps given, the table whose vectors were made last,
# the end of the run of creations that was looked at last; how long arrays have to be where one was too short; and up to
# how many (box, row) pairs new boxes are compared with all rows.
AT, TOLD, TAILS, CHANGES, CLOCK, TABLE, RUN_STOP, HITS_NEEDED, TOLD_NEEDED, CHANGES_NEEDED, CELLS_MAX, COUNTS = range(
    12
)

# Fields of a projection's memory: when it was used last; whether it shows a change at all; its tail for each kind of change.
USED_AT, IS_SHOWN, TAIL_OF, MEMORY_FIELDS = 0, 1, 2, 6


class Members(NamedTuple):
    """The subscriptions of the family."""

    table: I64
    """[slots]: number of the table, NONE for slots that are not ours."""
    first: I64
    """[slots]: a box of the subscription, or NONE if nothing can match."""
    next: I64
    """[boxes]: the next box of the same subscription, or NONE."""
    first_axis: I64
    """[tables]: axis of a table's first column; behind those of its columns is one that says: a row of this table."""
    has_predicate: I64
    """[axes]: whether some box restricts the axis."""
    boxes: I64
    """[tables]: boxes there have been."""


class Matching(NamedTuple):
    """Scratch and output."""

    counts: I64
    vectors: I64
    """[2, axes, VECTOR_FIELDS]"""
    has: I64
    """[2]: which of the vectors there are."""
    hits: I64
    """[hits, 3]"""
    stamps: I64
    """[slots, 2]: the last stamp, and with it which of the two rows the subscription has."""
    memory: I64
    """[projections, MEMORY_FIELDS]"""
    heavy: I64
    """[tables]: boxes created by a run of events; then whether rows were stabbed for them."""
    told: I64
    """[3, told]: event, slot, tail."""
    tails: I64
    """[tails, 4], as long as `told`."""
    changes: I64


@njit(cache=True)
def _fill(rows: Rows, members: Members, m: Matching, table: Int, version: Int, side: Int) -> None:
    """Makes the vector of a version."""
    record = record_of(rows, version)
    first = members.first_axis[table]
    columns = rows.layout[table, COLUMNS]
    for column in range(columns):
        if members.has_predicate[first + column]:
            start, stop = text_at(rows, record, table, column)
            axis = m.vectors[side, first + column]
            axis[0] = is_valid(rows, record, column)
            axis[1] = code_at(rows, record, table, column)
            axis[2] = equal_at(rows, record, table, column)
            axis[3], axis[4] = start, stop
    m.vectors[side, first + columns, 0] = 1


@njit(cache=True)
def _turn_to(rows: Rows, members: Members, m: Matching, table: Int) -> None:
    """Before vectors of a table are made: axes of the one before have no values any more."""
    before = m.counts[TABLE]
    if before != table:
        if before != NONE:
            first = members.first_axis[before]
            m.vectors[:, first : first + rows.layout[before, COLUMNS] + 1, 0] = 0
        m.counts[TABLE] = table


@njit(cache=True)
def _changed_axes(rows: Rows, members: Members, table: Int, old: Int, new: Int) -> Int:
    """Mask of the axes of columns that differ between two versions."""
    mask: Int = np.int64(0)
    a, b = record_of(rows, old), record_of(rows, new)
    for column in range(rows.layout[table, COLUMNS]):
        if not same_value(rows, a, b, table, column):
            mask |= np.int64(1) << ((members.first_axis[table] + column) & 63)
    return mask


@njit(cache=True)
def _is_shown(rows: Rows, projections: Projections, projection: Int, table: Int, old: Int, new: Int) -> bool:
    """Whether two versions differ in a column that is shown."""
    a, b = record_of(rows, old), record_of(rows, new)
    for entry in range(projections.starts[projection], projections.starts[projection + 1]):
        if not same_value(rows, a, b, table, projections.column[entry]):
            return True
    return False


@njit(cache=True)
def _merge(lives: Lives, m: Matching, event: Int, hits: Int) -> Int:
    """Leaves one hit for each subscription that is alive, with the bits of all; how many there are."""
    m.counts[CLOCK] += 1
    clock = m.counts[CLOCK]
    n = 0
    for i in range(hits):
        slot = m.hits[i, 0]
        if not lives.since[slot] < event < lives.until[slot]:
            continue
        if m.stamps[slot, 0] == clock:
            m.stamps[slot, 1] |= m.hits[i, 1]
            continue
        m.stamps[slot, 0], m.stamps[slot, 1] = clock, m.hits[i, 1]
        m.hits[n, 0] = slot
        n += 1
    return n


@njit(cache=True)
def _has_room(m: Matching, told: Int, changes: Int) -> bool:
    """Whether so much more can be told; else says how long arrays have to be."""
    m.counts[TOLD_NEEDED], m.counts[CHANGES_NEEDED] = m.counts[TOLD] + told, m.counts[CHANGES] + changes
    return bool(m.counts[TOLD_NEEDED] <= m.told.shape[1] and m.counts[CHANGES_NEEDED] <= m.changes.shape[0])


@njit(cache=True)
def _new_tail(m: Matching, event: Int, projection: Int, start: Int, stop: Int) -> Int:
    tail = m.counts[TAILS]
    m.tails[tail, 0], m.tails[tail, 1], m.tails[tail, 2], m.tails[tail, 3] = event, projection, start, stop
    m.counts[TAILS] += 1
    return tail


@njit(cache=True)
def _tell(m: Matching, event: Int, slot: Int, tail: Int) -> None:
    at = m.counts[TOLD]
    m.told[0, at], m.told[1, at], m.told[2, at] = event, slot, tail
    m.counts[TOLD] += 1


@njit(cache=True)
def _change(
    rows: Rows,
    boxes: Boxes,
    members: Members,
    lives: Lives,
    projections: Projections,
    m: Matching,
    event: Int,
    table: Int,
    old: Int,
    new: Int,
) -> bool:
    """Tells of a change; False, with nothing told, if there is no room."""
    changed = np.int64(0)
    if old != NONE and new != NONE:
        changed = _changed_axes(rows, members, table, old, new)
        if changed == 0:
            return True
    _turn_to(rows, members, m, table)
    m.has[0], m.has[1] = old != NONE, new != NONE
    if old != NONE:
        _fill(rows, members, m, table, old, 0)
    if new != NONE:
        _fill(rows, members, m, table, new, 1)
    found = stab(boxes, rows.text, m.vectors, m.has, changed, m.hits)
    if found < 0:
        m.counts[HITS_NEEDED] = 2 * m.hits.shape[0]
        return False
    n = _merge(lives, m, event, found)
    if not _has_room(m, n, 3):
        return False
    clock = m.counts[CLOCK]
    first_change = m.counts[CHANGES]
    # What those are told who had the row, who have it now, and who had and have it.
    for bits in range(1, 4):
        m.changes[first_change + bits - 1, 0] = old if bits & OLD else NONE
        m.changes[first_change + bits - 1, 1] = new if bits & NEW else NONE
    used = 0
    for i in range(n):
        slot = m.hits[i, 0]
        bits = m.stamps[slot, 1]
        projection = lives.projection[slot]
        if m.memory[projection, USED_AT] != clock:
            m.memory[projection, USED_AT], m.memory[projection, IS_SHOWN] = clock, NONE
            m.memory[projection, TAIL_OF + 1], m.memory[projection, TAIL_OF + 2], m.memory[projection, TAIL_OF + 3] = (
                NONE,
                NONE,
                NONE,
            )
        if bits == OLD | NEW:
            if m.memory[projection, IS_SHOWN] == NONE:
                m.memory[projection, IS_SHOWN] = _is_shown(rows, projections, projection, table, old, new)
            if not m.memory[projection, IS_SHOWN]:
                continue
        if m.memory[projection, TAIL_OF + bits] == NONE:
            at = first_change + bits - 1
            m.memory[projection, TAIL_OF + bits] = _new_tail(m, event, projection, at, at + 1)
            used = max(used, bits)
        _tell(m, event, slot, m.memory[projection, TAIL_OF + bits])
    m.counts[CHANGES] += used
    return True


@njit(cache=True)
def _find_run(rows: Rows, members: Members, events: Events, m: Matching, event: Int) -> None:
    """Creations up to the next change see the same rows: decides for which tables rows are stabbed for all of them."""
    m.heavy[:] = 0
    stop = event
    while stop < len(events.kind) and events.kind[stop] != CHANGE:
        slot = events.slot[stop]
        if events.kind[stop] == CREATE and slot < len(members.table) and members.table[slot] != NONE:
            box = members.first[slot]
            while box != NONE:
                m.heavy[members.table[slot]] += 1
                box = members.next[box]
        stop += 1
    for table in range(len(m.heavy)):
        if m.heavy[table]:
            m.heavy[table] = m.heavy[table] * count_versions(rows, table) > m.counts[CELLS_MAX]
    m.counts[RUN_STOP] = stop


@njit(cache=True)
def _stab_rows(
    rows: Rows,
    boxes: Boxes,
    members: Members,
    lives: Lives,
    m: Matching,
    table: Int,
    event: Int,
    places: I64,
    is_counting: bool,
) -> bool:
    """Finds each current row's subscriptions among those created by the run of events that begins at `event`.

    places: [events of the run]: how many rows each has, if counting; else where the next of them goes in `changes`.
    """
    _turn_to(rows, members, m, table)
    m.has[0], m.has[1] = 0, 1
    page = np.int64(rows.layout[table, FIRST_PAGE])
    while page != NONE:
        for version in range(page << PAGE_BITS, (page << PAGE_BITS) + PAGE):
            if not is_current(rows, version, event):
                continue
            _fill(rows, members, m, table, version, 1)
            found = stab(boxes, rows.text, m.vectors, m.has, 0, m.hits)
            if found < 0:
                m.counts[HITS_NEEDED] = 2 * m.hits.shape[0]
                return False
            m.counts[CLOCK] += 1
            for i in range(found):
                slot = m.hits[i, 0]
                of = lives.since[slot] - event
                if 0 <= of < len(places) and m.stamps[slot, 0] != m.counts[CLOCK]:
                    m.stamps[slot, 0] = m.counts[CLOCK]
                    if not is_counting:
                        m.changes[places[of], 0], m.changes[places[of], 1] = NONE, version
                    places[of] += 1
        page = np.int64(rows.page_next[page])
    return True


@njit(cache=True)
def _create_many(
    rows: Rows, boxes: Boxes, members: Members, events: Events, lives: Lives, m: Matching, event: Int, table: Int
) -> bool:
    """Tells all that a run of events creates on a table what they start with; False if there is no room."""
    places = np.zeros(m.counts[RUN_STOP] - event, np.int64)
    if not _stab_rows(rows, boxes, members, lives, m, table, event, places, True):
        return False
    if not _has_room(m, len(places), places.sum()):
        return False
    for i in range(len(places)):
        slot = events.slot[event + i]
        is_ours = slot < len(members.table) and members.table[slot] == table
        if events.kind[event + i] == CREATE and is_ours:
            start = m.counts[CHANGES]
            m.counts[CHANGES] += places[i]
            tail = _new_tail(m, event + i, lives.projection[slot], start, m.counts[CHANGES])
            _tell(m, event + i, slot, tail)
            places[i] = start
    return bool(_stab_rows(rows, boxes, members, lives, m, table, event, places, False))


@njit(cache=True)
def _create(
    rows: Rows, boxes: Boxes, members: Members, events: Events, lives: Lives, m: Matching, event: Int, slot: Int
) -> bool:
    """Tells a new subscription what it starts with; False, with nothing told, if there is no room."""
    table = members.table[slot]
    if event >= m.counts[RUN_STOP]:
        _find_run(rows, members, events, m, event)
        told, tails, changes = m.counts[TOLD], m.counts[TAILS], m.counts[CHANGES]
        for each in range(len(m.heavy)):
            if m.heavy[each] and not _create_many(rows, boxes, members, events, lives, m, event, each):
                m.counts[TOLD], m.counts[TAILS], m.counts[CHANGES] = told, tails, changes
                m.counts[RUN_STOP] = 0
                return False
    if m.heavy[table]:
        return True
    if not _has_room(m, 1, 0):
        return False
    start = m.counts[CHANGES]
    stop = find_rows(
        rows, boxes, members.next, members.first[slot], table, members.first_axis[table], event, m.changes, start
    )
    if stop < 0:
        m.counts[CHANGES_NEEDED] = 2 * len(m.changes)
        return False
    m.counts[CHANGES] = stop
    _tell(m, event, slot, _new_tail(m, event, lives.projection[slot], start, stop))
    return True


@njit(cache=True)
def apply_events(
    rows: Rows,
    boxes: Boxes,
    members: Members,
    events: Events,
    lives: Lives,
    projections: Projections,
    m: Matching,
) -> bool:
    """Goes on from event counts[AT]. False: it stopped at an event that needs longer arrays, as told by `counts`."""
    for event in range(m.counts[AT], len(events.kind)):
        m.counts[AT] = event
        slot = events.slot[event]
        if events.kind[event] == CHANGE:
            table = events.table[event]
            if members.boxes[table] and not _change(
                rows, boxes, members, lives, projections, m, event, table, events.old[event], events.new[event]
            ):
                return False
            continue
        is_ours = slot < len(members.table) and members.table[slot] != NONE
        if (
            events.kind[event] == CREATE
            and is_ours
            and not _create(rows, boxes, members, events, lives, m, event, slot)
        ):
            return False
    return True


@njit(cache=True)
def link_boxes(first: I64, following: I64, slots: I64, boxes: I64) -> None:
    """Puts boxes into the chains of their subscriptions."""
    for i in range(len(boxes)):
        following[boxes[i]] = first[slots[i]]
        first[slots[i]] = boxes[i]


@njit(cache=True)
def list_boxes(first: I64, following: I64, slots: I64, found: I64) -> Int:
    """Boxes of subscriptions; how many there are, also where there is no room for all."""
    n = 0
    for slot in slots:
        box = first[slot]
        while box != NONE:
            if n < len(found):
                found[n] = box
            n += 1
            box = following[box]
    return n


@njit(cache=True)
def hash_texts(data: U8, stops: I64, hashes: I64) -> None:
    """Hashes texts that follow each other."""
    start = np.int64(0)
    for i in range(len(stops)):
        hashes[i] = hash_bytes(data, start, stops[i])
        start = stops[i]
