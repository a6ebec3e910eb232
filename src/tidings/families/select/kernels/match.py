"""Goes through the events of a micro-batch and says whom each change concerns; creations get the rows that are there.

A change becomes two vectors, the row before and after, over axes that number the columns of all tables. One stab finds the
boxes that hold either; hits of one subscription are merged, and what those with the same projection are told is made once.
A creation compares its boxes with every current row. Where many come at one moment, rows are stabbed instead, and new
subscriptions are picked from the hits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidings.families.select.kernels.snapshot import count_versions, find_rows, next_box
from tidings.families.select.kernels.table import (
    TableRows,
    differs,
    has_value,
    is_there,
    record_at,
    table_rows,
    text_span,
)
from tidings.kernels.events import CHANGE, CREATE, EventColumns, columns_of
from tidings.kernels.handles import array_at, table_at
from tidings.kernels.intrinsics import pointer, prefetch
from tidings.kernels.jit import kernel, uncounted
from tidings.kernels.lives import LIFE_FIELDS, PROJECTION, SINCE, UNTIL, Lives
from tidings.kernels.rows import COLUMNS, FIRST_PAGE, I64, NONE, PAGE, PAGE_BITS, U8, Int, Rows, hash_bytes
from tidings.kernels.rows.read import rows_at
from tidings.kernels.stabbing import (
    CODE,
    EQUAL,
    KIND_FIELDS,
    KIND_TAG,
    NEW,
    OLD,
    SIDES,
    TEXT_START,
    TEXT_STOP,
    VALID,
    VECTOR_FIELDS,
    Boxes,
    stab,
)
from tidings.kernels.stabbing.stabbing_layout import boxes_at

# Fields of `counts`. Of a micro-batch: the event to go on from, entries of the output, the end of the run of creations looked
# at last, and how long arrays have to be where one was too short.
AT, TOLD, TAILS, CHANGES, RUN_STOP, HITS_NEEDED, TOLD_NEEDED, CHANGES_NEEDED, BATCH_COUNTS = range(9)
# Beyond: stamps given, the table whose vectors were made last, up to how many (box, row) pairs new boxes are compared with all
# rows; which of the two vectors there are.
CLOCK, TABLE, CELLS_MAX, HAS = range(BATCH_COUNTS, BATCH_COUNTS + 4)
COUNTS = HAS + 2

# The tag of a box's kind: projection << 1 | whether its subscription has several boxes.
SEVERAL = 1
BOX_BITS = (1 << 32) - 1

# Fields of a table: axis of its first column, boxes there have been, boxes created by a run of events; then whether rows were
# stabbed for them. Behind the axes of its columns is one that says: a row of this table; then one for each column that says:
# the column is null.
FIRST_AXIS, BOXES, HEAVY, TABLE_FIELDS = range(4)

# Fields of a projection's memory: when it was used last; whether it shows a change at all; its tail for each kind of change.
USED_AT, IS_SHOWN, TAIL_OF, MEMORY_FIELDS = 0, 1, 2, 6

_AHEAD = 16
"""Records of subscriptions are asked for so many hits before they are looked at."""


class Members(NamedTuple):
    """The subscriptions of the family."""

    first: I64
    """[slots]: NONE if the slot is not ours, else table << 32 | box + 1: one of its boxes, 0 if nothing can match."""
    next: I64
    """[boxes]: the next box of the same subscription, or NONE, as it is for boxes beyond."""
    marks: I64
    """[slots]: of a subscription with several boxes 4 * clock + bits: when it was last hit, and which of two rows it had."""
    tables: I64
    """[tables, TABLE_FIELDS]"""
    has_predicate: I64
    """[axes]: whether some box restricts the axis."""


class Matching(NamedTuple):
    """Scratch and output."""

    counts: I64
    vectors: I64
    """[2, axes, VECTOR_FIELDS]"""
    hits: I64
    """[hits, 2]"""
    memory: I64
    """[projections, MEMORY_FIELDS]"""
    told: I64
    """[3, told]: event, slot, tail."""
    tails: I64
    """[tails, 4], as long as `told`."""
    changes: I64


_FIRST_OF_MEMBERS = len(Boxes._fields)
_FIRST_OF_MATCHING = _FIRST_OF_MEMBERS + len(Members._fields)


@kernel
def _members_at(handles: I64) -> Members:
    first = np.int64(_FIRST_OF_MEMBERS)
    return Members(
        array_at(handles, first),
        array_at(handles, first + 1),
        array_at(handles, first + 2),
        table_at(handles, first + 3),
        array_at(handles, first + 4),
    )


@kernel
def table_of(members: Members, slot: Int) -> Int:
    """The table of a subscription, NONE if it is not ours."""
    if slot >= len(members.first) or members.first[slot] == NONE:
        return np.int64(NONE)
    return members.first[slot] >> 32


@kernel
def first_box(first: I64, slot: Int) -> Int:
    """A box of one of our subscriptions, or NONE."""
    return (first[slot] & BOX_BITS) - 1


@kernel
def _matching_at(handles: I64) -> Matching:
    first = np.int64(_FIRST_OF_MATCHING)
    vectors = array_at(handles, first + 1)
    return Matching(
        array_at(handles, first),
        vectors.reshape((2, len(vectors) // (2 * VECTOR_FIELDS), VECTOR_FIELDS)),
        table_at(handles, first + 2),
        table_at(handles, first + 3),
        table_at(handles, first + 4),
        table_at(handles, first + 5),
        table_at(handles, first + 6),
    )


@kernel
def _fill(t: TableRows, has_predicate: Any, first: Int, version: Int, vector: Any) -> None:
    """Makes the vector of a version; `vector` is where the axis of the table's first column begins."""
    record = record_at(t, version)
    for column in range(t.columns):
        if has_predicate[first + column]:
            axis = column * VECTOR_FIELDS
            vector[axis + VALID] = has_value(t, record, column)
            vector[axis + CODE] = t.words[record + t.codes + column]
            vector[axis + EQUAL] = t.words[record + t.equals + column]
            vector[axis + TEXT_START], vector[axis + TEXT_STOP] = text_span(t, record, column)
        null = t.columns + 1 + column
        if has_predicate[first + null]:
            vector[null * VECTOR_FIELDS + VALID] = 1 - has_value(t, record, column)
    vector[t.columns * VECTOR_FIELDS + VALID] = 1


@kernel
def _turn_to(rows: Rows, members: Members, m: Matching, table: Int) -> None:
    """Before vectors of a table are made: axes of the one before have no values any more."""
    before = m.counts[TABLE]
    if before != table:
        if before != NONE:
            first = members.tables[before, FIRST_AXIS]
            for axis in range(first, first + 2 * rows.layout[before, COLUMNS] + 1):
                m.vectors[0, axis, VALID], m.vectors[1, axis, VALID] = 0, 0
        m.counts[TABLE] = table


@kernel
def _changed_axes(t: TableRows, first_axis: Int, old: Int, new: Int) -> Int:
    """Mask of the axes of columns that differ between two versions."""
    mask: Int = np.int64(0)
    a, b = record_at(t, old), record_at(t, new)
    for column in range(t.columns):
        if differs(t, a, b, column):
            mask |= np.int64(1) << ((first_axis + column) & 63)
            if has_value(t, a, column) != has_value(t, b, column):
                mask |= np.int64(1) << ((first_axis + t.columns + 1 + column) & 63)
    return mask


@uncounted
def _merge(lives: Lives, kinds: I64, marks: I64, m: Matching, event: Int, hits: Int, is_quiet: Int) -> Int:
    """Leaves one hit for each subscription that is alive, with the bits of all; how many there are.

    is_quiet: whether all are alive all the time.
    """
    m.counts[CLOCK] += 1
    clock = m.counts[CLOCK]
    if is_quiet and len(marks) == 0:
        return hits
    n = np.int64(0)
    records = pointer(lives)
    for i in range(hits):
        slot, kind = m.hits[i, 0], m.hits[i, 1]
        if not is_quiet:
            if i + _AHEAD < hits:
                prefetch(records, m.hits[i + _AHEAD, 0] * LIFE_FIELDS)
            if not lives[slot, SINCE] < event < lives[slot, UNTIL]:
                continue
        if kinds[(kind >> 2) * KIND_FIELDS + KIND_TAG] & SEVERAL:
            if marks[slot] >> 2 == clock:
                marks[slot] |= kind & SIDES
                continue
            marks[slot] = clock << 2 | kind & SIDES
        m.hits[n, 0], m.hits[n, 1] = slot, kind
        n += 1
    return n


@uncounted
def _has_room(m: Matching, told: Int, changes: Int) -> bool:
    """Whether so much more can be told; else says how long arrays have to be."""
    m.counts[TOLD_NEEDED], m.counts[CHANGES_NEEDED] = m.counts[TOLD] + told, m.counts[CHANGES] + changes
    return bool(m.counts[TOLD_NEEDED] <= m.told.shape[1] and m.counts[CHANGES_NEEDED] <= m.changes.shape[0])


@uncounted
def _new_tail(m: Matching, event: Int, projection: Int, start: Int, stop: Int) -> Int:
    tail = m.counts[TAILS]
    m.tails[tail, 0], m.tails[tail, 1], m.tails[tail, 2], m.tails[tail, 3] = event, projection, start, stop
    m.counts[TAILS] += 1
    return tail


@kernel
def _tell(m: Matching, event: Int, slot: Int, tail: Int) -> None:
    at = m.counts[TOLD]
    m.told[0, at], m.told[1, at], m.told[2, at] = event, slot, tail
    m.counts[TOLD] += 1


@uncounted
def _is_shown(t: TableRows, starts: I64, column: I64, projection: Int, old: Int, new: Int) -> bool:
    """Whether two versions differ in a column that is shown."""
    a, b = record_at(t, old), record_at(t, new)
    for entry in range(starts[projection], starts[projection + 1]):
        if differs(t, a, b, column[entry]):
            return True
    return False


@uncounted
def _tell_all(
    t: TableRows,
    kinds: I64,
    marks: I64,
    starts: I64,
    column: I64,
    m: Matching,
    event: Int,
    old: Int,
    new: Int,
    n: Int,
) -> None:
    """Tells the subscriptions that `_merge` has left of a change; there is room."""
    counts, memory, told = m.counts, m.memory, m.told
    clock, first_change, at = counts[CLOCK], counts[CHANGES], counts[TOLD]
    # What those are told who had the row, who have it now, and who had and have it.
    for bits in range(1, 4):
        m.changes[first_change + bits - 1, 0] = old if bits & OLD else NONE
        m.changes[first_change + bits - 1, 1] = new if bits & NEW else NONE
    used = 0
    for i in range(n):
        slot, bits = m.hits[i, 0], m.hits[i, 1] & SIDES
        tag = kinds[(m.hits[i, 1] >> 2) * KIND_FIELDS + KIND_TAG]
        projection = tag >> 1
        if tag & SEVERAL:
            bits = marks[slot] & SIDES
        if memory[projection, USED_AT] != clock:
            memory[projection, USED_AT], memory[projection, IS_SHOWN] = clock, NONE
            for kind in range(1, 4):
                memory[projection, TAIL_OF + kind] = NONE
        if bits == SIDES:
            if memory[projection, IS_SHOWN] == NONE:
                memory[projection, IS_SHOWN] = _is_shown(t, starts, column, projection, old, new)
            if not memory[projection, IS_SHOWN]:
                continue
        if memory[projection, TAIL_OF + bits] == NONE:
            change = first_change + bits - 1
            memory[projection, TAIL_OF + bits] = _new_tail(m, event, projection, change, change + 1)
            used = max(used, bits)
        told[0, at], told[1, at], told[2, at] = event, slot, memory[projection, TAIL_OF + bits]
        at += 1
    counts[CHANGES] += used
    counts[TOLD] = at


@uncounted
def _change(
    rows: Rows,
    boxes: Boxes,
    members: Members,
    lives: Lives,
    starts: I64,
    column: I64,
    m: Matching,
    event: Int,
    table: Int,
    old: Int,
    new: Int,
    is_quiet: Int,
) -> bool:
    """Tells of a change; False, with nothing told, if there is no room."""
    t, first = table_rows(rows, table), members.tables[table, FIRST_AXIS]
    changed = np.int64(0)
    if old != NONE and new != NONE:
        changed = _changed_axes(t, first, old, new)
        if changed == 0:
            return True
    _turn_to(rows, members, m, table)
    has = m.counts[HAS : HAS + 2]
    has[0], has[1] = old != NONE, new != NONE
    has_predicate = pointer(members.has_predicate)
    if old != NONE:
        _fill(t, has_predicate, first, old, pointer(m.vectors[0, first]))
    if new != NONE:
        _fill(t, has_predicate, first, new, pointer(m.vectors[1, first]))
    found = stab(boxes, rows.text, m.vectors, has, changed, m.hits)
    if found < 0:
        m.counts[HITS_NEEDED] = 2 * m.hits.shape[0]
        return False
    n = _merge(lives, boxes.kinds, members.marks, m, event, found, is_quiet)
    if n == 0:
        return True
    if not _has_room(m, n, 3):
        return False
    _tell_all(t, boxes.kinds, members.marks, starts, column, m, event, old, new, n)
    return True


@kernel
def _find_run(rows: Rows, members: Members, events: EventColumns, m: Matching, event: Int) -> None:
    """Creations up to the next change see the same rows: decides for which tables rows are stabbed for all of them."""
    tables = members.tables
    for table in range(len(tables)):
        tables[table, HEAVY] = 0
    stop = event
    while stop < len(events.kind) and events.kind[stop] != CHANGE:
        slot = events.slot[stop]
        table = table_of(members, slot)
        if events.kind[stop] == CREATE and table != NONE:
            box = first_box(members.first, slot)
            while box != NONE:
                tables[table, HEAVY] += 1
                box = next_box(members.next, box)
        stop += 1
    for table in range(len(tables)):
        if tables[table, HEAVY]:
            tables[table, HEAVY] = tables[table, HEAVY] * count_versions(rows, table) > m.counts[CELLS_MAX]
    m.counts[RUN_STOP] = stop


@kernel
def _stab_rows(
    rows: Rows,
    boxes: Boxes,
    members: Members,
    lives: Lives,
    m: Matching,
    table: Int,
    event: Int,
    places: I64,
    is_counting: Int,
) -> bool:
    """Finds each current row's subscriptions among those created by the run of events that begins at `event`.

    places: [events of the run]: how many rows each has, if counting; else where the next of them goes in `changes`.
    """
    t, first = table_rows(rows, table), members.tables[table, FIRST_AXIS]
    _turn_to(rows, members, m, table)
    has = m.counts[HAS : HAS + 2]
    has[0], has[1] = 0, 1
    vector, has_predicate = pointer(m.vectors[1, first]), pointer(members.has_predicate)
    page = np.int64(rows.layout[table, FIRST_PAGE])
    while page != NONE:
        for version in range(page << PAGE_BITS, (page << PAGE_BITS) + PAGE):
            if not is_there(t, version, event):
                continue
            _fill(t, has_predicate, first, version, vector)
            found = stab(boxes, rows.text, m.vectors, has, np.int64(0), m.hits)
            if found < 0:
                m.counts[HITS_NEEDED] = 2 * m.hits.shape[0]
                return False
            m.counts[CLOCK] += 1
            for i in range(found):
                slot = m.hits[i, 0]
                of = lives[slot, SINCE] - event
                if 0 <= of < len(places):
                    if boxes.kinds[(m.hits[i, 1] >> 2) * KIND_FIELDS + KIND_TAG] & SEVERAL:
                        if members.marks[slot] == m.counts[CLOCK] << 2:
                            continue
                        members.marks[slot] = m.counts[CLOCK] << 2
                    if not is_counting:
                        m.changes[places[of], 0], m.changes[places[of], 1] = NONE, version
                    places[of] += 1
        page = np.int64(rows.page_next[page])
    return True


@kernel
def _create_many(
    rows: Rows, boxes: Boxes, members: Members, events: EventColumns, lives: Lives, m: Matching, event: Int, table: Int
) -> bool:
    """Tells all that a run of events creates on a table what they start with; False if there is no room."""
    places = np.zeros(m.counts[RUN_STOP] - event, np.int64)
    if not _stab_rows(rows, boxes, members, lives, m, table, event, places, np.int64(1)):
        return False
    if not _has_room(m, len(places), places.sum()):
        return False
    for i in range(len(places)):
        slot = events.slot[event + i]
        if events.kind[event + i] == CREATE and table_of(members, slot) == table:
            start = m.counts[CHANGES]
            m.counts[CHANGES] += places[i]
            tail = _new_tail(m, event + i, lives[slot, PROJECTION], start, m.counts[CHANGES])
            _tell(m, event + i, slot, tail)
            places[i] = start
    return bool(_stab_rows(rows, boxes, members, lives, m, table, event, places, np.int64(0)))


@kernel
def _create(
    rows: Rows, boxes: Boxes, members: Members, events: EventColumns, lives: Lives, m: Matching, event: Int, slot: Int
) -> bool:
    """Tells a new subscription what it starts with; False, with nothing told, if there is no room."""
    table = table_of(members, slot)
    if event >= m.counts[RUN_STOP]:
        _find_run(rows, members, events, m, event)
        told, tails, changes = m.counts[TOLD], m.counts[TAILS], m.counts[CHANGES]
        for each in range(len(members.tables)):
            is_heavy = members.tables[each, HEAVY] != 0
            if is_heavy and not _create_many(rows, boxes, members, events, lives, m, event, each):
                m.counts[TOLD], m.counts[TAILS], m.counts[CHANGES] = told, tails, changes
                m.counts[RUN_STOP] = 0
                return False
    if members.tables[table, HEAVY]:
        return True
    if not _has_room(m, 1, 0):
        return False
    start, first_axis = m.counts[CHANGES], members.tables[table, FIRST_AXIS]
    box = first_box(members.first, slot)
    stop = find_rows(rows, boxes, m.vectors, members.next, box, table, first_axis, event, m.changes, start)
    if stop < 0:
        m.counts[CHANGES_NEEDED] = 2 * len(m.changes)
        return False
    m.counts[CHANGES] = stop
    _tell(m, event, slot, _new_tail(m, event, lives[slot, PROJECTION], start, stop))
    return True


@kernel
def apply_events(
    rows_handles: I64, handles: I64, words: I64, lives: Lives, starts: I64, column: I64, is_new: bool
) -> Int:
    """Goes through the events, or on from event counts[AT] unless `is_new`; gives how many are told something.

    NONE: it stopped at an event that needs longer arrays, as told by `counts`. handles: of the arrays of boxes, members and
    matching. words: of the events. Projection p shows columns column[starts[p] : starts[p + 1]].
    """
    rows, boxes, members, m = rows_at(rows_handles), boxes_at(handles), _members_at(handles), _matching_at(handles)
    events = columns_of(words)
    if is_new:
        m.counts[:BATCH_COUNTS] = 0
    is_quiet = np.int64(1)
    for event in range(len(events.kind)):
        if events.kind[event] != CHANGE:
            is_quiet = np.int64(0)
    for event in range(m.counts[AT], len(events.kind)):
        m.counts[AT] = event
        if events.kind[event] == CHANGE:
            table, old, new = events.table[event], events.old[event], events.new[event]
            if members.tables[table, BOXES] and not _change(
                rows, boxes, members, lives, starts, column, m, event, table, old, new, is_quiet
            ):
                return np.int64(NONE)
            continue
        slot = events.slot[event]
        if (
            events.kind[event] == CREATE
            and table_of(members, slot) != NONE
            and not _create(rows, boxes, members, events, lives, m, event, slot)
        ):
            return np.int64(NONE)
    return m.counts[TOLD]


@kernel
def link_boxes(first: I64, following: I64, owners: I64, boxes: I64) -> None:
    """Puts boxes into the chains of their subscriptions. `following` covers those of subscriptions with several boxes."""
    for i in range(len(boxes)):
        if boxes[i] < len(following):
            following[boxes[i]] = first_box(first, owners[i])
        first[owners[i]] = first[owners[i]] >> 32 << 32 | boxes[i] + 1


@kernel
def list_boxes(first: I64, following: I64, owners: I64, found: I64) -> Int:
    """Boxes of subscriptions; how many there are, also where there is no room for all."""
    n = 0
    for slot in owners:
        box = first_box(first, slot)
        while box != NONE:
            if n < len(found):
                found[n] = box
            n += 1
            box = next_box(following, box)
    return n


@kernel
def hash_texts(data: U8, stops: I64, hashes: I64) -> None:
    """Hashes texts that follow each other."""
    start = np.int64(0)
    for i in range(len(stops)):
        hashes[i] = hash_bytes(data, start, stops[i])
        start = stops[i]
