"""The loop over the events of a micro-batch for one ranking: rows move in orders and lists, and whoever shows others is told.

One change takes at most one row out of what a subscription shows and brings at most one in: the changed row itself, or the
one behind or before the k-th place. So a difference is a pair (gone, come) of versions. It is an update if both are the
changed row, nothing if the two look alike, and else a delete and an insert.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from tidings.families.evaluator import CHANGE, CREATE, Events, Lives, Projections
from tidings.families.topk.kernels.rank_index import (
    BLOCK_TOP,
    COLUMNS,
    ORDER_TOP,
    ROW_FREE,
    ROW_TOP,
    STAMP,
    TABLE,
    TOP,
    USERS,
    Ranking,
    free_row,
    hash_of,
    insert,
    rank_of,
    remove,
    room_for_change,
    store_again,
    take_row,
)
from tidings.families.topk.kernels.top_lists import (
    BITS,
    CAPACITY,
    IS_COMPLETE,
    PLAN,
    ROOM,
    SHOWN,
    SHOWS_DOUBLE,
    SHOWS_KEY,
    SIZE,
    SLOT,
    START,
    TOUCHED,
    K,
    place_in,
    position_of,
    put_in,
    raise_or_lower,
    refill,
    take_out,
)
from tidings.kernels.rows import (
    I64,
    NONE,
    Int,
    Rows,
    code_at,
    equal_at,
    is_valid,
    mix,
    record_of,
    same_value,
    text_at,
)
from tidings.kernels.stabbing import (
    CODE,
    EQUAL,
    NEW,
    OLD,
    TEXT_START,
    TEXT_STOP,
    VALID,
    Boxes,
    stab,
)

# What `evaluate` lacked when it stopped before an event.
DONE, NEEDS_ROWS, NEEDS_BLOCKS, NEEDS_WORDS, NEEDS_HITS, NEEDS_TOLD = range(6)
# Fields of `Work.progress`: next event, what is told so far, tails numbered in earlier calls, and how much is lacking.
AT, TOLD, TAILS, CHANGES, TAIL_BASE, LACKING, PROGRESS_FIELDS = range(7)
# Fields of a tail's key: projection, gone, come.
TAIL_KEY = 3


class Work(NamedTuple):
    """Scratch memory and the output of `evaluate`."""

    progress: I64
    vectors: I64
    """[2, columns + 1, VECTOR_FIELDS]: the row before and after a change, and its rank."""
    has: I64
    """[2]: whether there is a row before, and after."""
    is_double: I64
    """[columns]: columns whose zero may have a sign."""
    hits: I64
    """[hits, 3]."""
    touched: I64
    """[hits]: lists that hits are of."""
    told: I64
    """[3, told]: event, subscription, tail."""
    tails: I64
    """[tails, 4]: as `Told.tails`."""
    keys: I64
    """[tails, TAIL_KEY]."""
    changes: I64
    """[changes, 2]: old and new version."""
    table: I64
    """[2 * hits, a power of two]: hash of a tail's key -> TAIL_BASE + tail; what earlier events left counts as empty."""


@njit(cache=True)
def _describe(rows: Rows, vectors: I64, side: Int, record: Int, table: Int, columns: Int) -> None:
    for column in range(columns):
        vectors[side, column, VALID] = is_valid(rows, record, column)
        vectors[side, column, CODE] = code_at(rows, record, table, column)
        vectors[side, column, EQUAL] = equal_at(rows, record, table, column)
        start, stop = text_at(rows, record, table, column)
        vectors[side, column, TEXT_START], vectors[side, column, TEXT_STOP] = start, stop


@njit(cache=True)
def _changed_columns(rows: Rows, a: Int, b: Int, table: Int, columns: Int) -> Int:
    """Mask with bit (column & 63) of columns that differ."""
    changed = np.int64(0)
    for column in range(columns):
        if not same_value(rows, a, b, table, column):
            changed |= np.int64(1) << (column & 63)
    return changed


@njit(cache=True)
def _looks_alike(rows: Rows, projections: Projections, projection: Int, a: Int, b: Int, table: Int) -> bool:
    """Whether two versions agree in what is shown."""
    first, other = record_of(rows, a), record_of(rows, b)
    for i in range(projections.starts[projection], projections.starts[projection + 1]):
        if not same_value(rows, first, other, table, projections.column[i]):
            return False
    return True


@njit(cache=True)
def _shows_zero(
    rows: Rows, projections: Projections, projection: Int, is_double: I64, version: Int, table: Int
) -> bool:
    """Whether a shown value may be written in two ways."""
    record = record_of(rows, version)
    for i in range(projections.starts[projection], projections.starts[projection + 1]):
        column = projections.column[i]
        if is_double[column] and code_at(rows, record, table, column) == 0:
            return True
    return False


@njit(cache=True)
def _first_alike(
    rows: Rows,
    ranking: Ranking,
    projections: Projections,
    projection: Int,
    number: Int,
    stop: Int,
    row: Int,
    version: Int,
) -> Int:
    """Of rows that look alike the first one counts: among the list's first `stop` rows but for `row`, else the version."""
    start = ranking.lists[number, START]
    for i in range(stop):
        other = ranking.words[start + 2 * i + 1]
        if other != row and _looks_alike(
            rows, projections, projection, version, ranking.current[other], ranking.head[TABLE]
        ):
            return ranking.current[other]
    return version


@njit(cache=True)
def _tail(work: Work, first: Int, event: Int, projection: Int, gone: Int, come: Int, is_update: bool) -> Int:
    """Number of the tail that tells of this difference; those of this event are numbered from `first` on."""
    base, mask = work.progress[TAIL_BASE], work.table.shape[0] - 1
    at = mix(mix(projection, gone), come) & mask
    while work.table[at] >= base + first:
        tail = work.table[at] - base
        if work.keys[tail, 0] == projection and work.keys[tail, 1] == gone and work.keys[tail, 2] == come:
            return tail
        at = (at + 1) & mask
    tail, change = work.progress[TAILS], work.progress[CHANGES]
    work.table[at] = base + tail
    work.keys[tail, 0], work.keys[tail, 1], work.keys[tail, 2] = projection, gone, come
    work.tails[tail, 0], work.tails[tail, 1], work.tails[tail, 2] = event, projection, change
    if is_update:
        work.changes[change, 0], work.changes[change, 1] = gone, come
        change += 1
    else:
        if gone != NONE:
            work.changes[change, 0], work.changes[change, 1] = gone, NONE
            change += 1
        if come != NONE:
            work.changes[change, 0], work.changes[change, 1] = NONE, come
            change += 1
    work.tails[tail, 3] = change
    work.progress[TAILS], work.progress[CHANGES] = tail + 1, change
    return tail


@njit(cache=True)
def _tell(work: Work, event: Int, slot: Int, tail: Int) -> None:
    at = work.progress[TOLD]
    work.told[0, at], work.told[1, at], work.told[2, at] = event, slot, tail
    work.progress[TOLD] = at + 1


@njit(cache=True)
def _has_room_to_tell(work: Work, told: Int, changes: Int) -> bool:
    needed = max(work.progress[TOLD] + told, work.progress[CHANGES] + changes)
    work.progress[LACKING] = needed
    return needed <= work.changes.shape[0]


@njit(cache=True)
def _tell_snapshot(ranking: Ranking, work: Work, event: Int, slot: Int, projection: Int, number: Int) -> bool:
    shown = min(ranking.lists[number, SIZE], ranking.plans[ranking.lists[number, PLAN], K])
    if not _has_room_to_tell(work, 1, shown):
        return False
    tail, change = work.progress[TAILS], work.progress[CHANGES]
    start = ranking.lists[number, START]
    for i in range(shown):
        work.changes[change + i, 0] = NONE
        work.changes[change + i, 1] = ranking.current[ranking.words[start + 2 * i + 1]]
    work.tails[tail, 0], work.tails[tail, 1], work.tails[tail, 2] = event, projection, change
    work.tails[tail, 3] = change + shown
    work.progress[TAILS], work.progress[CHANGES] = tail + 1, change + shown
    _tell(work, event, slot, tail)
    return True


@njit(cache=True)
def _touch(ranking: Ranking, work: Work, hits: Int) -> tuple[Int, Int]:
    """(lists that the hits are of, words they may need to grow); a list with several boxes is there once."""
    ranking.head[STAMP] += 1
    stamp, count, words = ranking.head[STAMP], 0, 0
    for i in range(hits):
        number = work.hits[i, 0]
        if ranking.lists[number, TOUCHED] != stamp:
            ranking.lists[number, TOUCHED], ranking.lists[number, BITS] = stamp, 0
            work.touched[count] = number
            count += 1
            room = ranking.lists[number, ROOM]
            if ranking.lists[number, SIZE] == room and room < ranking.plans[ranking.lists[number, PLAN], CAPACITY]:
                words += 4 * room
        ranking.lists[number, BITS] |= work.hits[i, 1]
    return count, words


@njit(cache=True)
def _reorder(
    ranking: Ranking,
    rows: Rows,
    row: Int,
    old: Int,
    has_old: bool,
    old_rank: Int,
    new: Int,
    has_new: bool,
    new_rank: Int,
    changed: Int,
) -> None:
    """Moves a row in all orders, from the record it was to the one it is; `has_old`, `has_new`: whether these have a rank."""
    is_stored_anew = False
    for i in range(ranking.stored.shape[0]):
        is_stored_anew |= (changed >> (ranking.stored[i] & 63)) & 1 != 0
    for order in range(ranking.head[ORDER_TOP]):
        if ranking.orders[order, USERS] == 0:
            continue
        was_in, old_hash, is_in, new_hash = False, np.int64(0), False, np.int64(0)
        if has_old:
            was_in, old_hash = hash_of(ranking, rows, old, order)
        if has_new:
            is_in, new_hash = hash_of(ranking, rows, new, order)
        if was_in and is_in and old_hash == new_hash and old_rank == new_rank:
            if is_stored_anew:
                store_again(ranking, rows, order, new_hash, new_rank, row, new)
            continue
        if was_in:
            remove(ranking, rows, order, old_hash, old_rank, row)
        if is_in:
            insert(ranking, rows, order, new_hash, new_rank, row, new)


@njit(cache=True)
def _settle(
    ranking: Ranking, rows: Rows, boxes: Boxes, number: Int, row: Int, old_rank: Int, new_rank: Int
) -> tuple[Int, Int]:
    """Brings a list up to date; (where the changed row stood in it, where it stands now), NONE for nowhere."""
    bits, plan = ranking.lists[number, BITS], ranking.lists[number, PLAN]
    capacity = ranking.plans[plan, CAPACITY]
    before, after = NONE, NONE
    if bits & OLD:
        before = position_of(ranking, rows, number, old_rank, row)
    if before != NONE:
        if bits & NEW and old_rank == new_rank:
            return before, before
        take_out(ranking, number, before)
    elif not bits & NEW:
        return NONE, NONE
    if bits & NEW:
        place = place_in(ranking, rows, number, new_rank, row)
        if place < ranking.lists[number, SIZE] or ranking.lists[number, IS_COMPLETE]:
            put_in(ranking, number, place, new_rank, row, capacity)
            after = place
    if ranking.lists[number, SIZE] == capacity:
        ranking.lists[number, IS_COMPLETE] = 0
    elif ranking.lists[number, SIZE] < ranking.plans[plan, K] and not ranking.lists[number, IS_COMPLETE]:
        # What is looked up may be the changed row itself, though it came to stand where it did not matter.
        refill(ranking, rows, number)
        if after == NONE:
            after = position_of(ranking, rows, number, new_rank, row)
    raise_or_lower(ranking, boxes, number)
    return before, after


@njit(cache=True)
def _tell_list(
    ranking: Ranking,
    rows: Rows,
    projections: Projections,
    work: Work,
    event: Int,
    first_tail: Int,
    number: Int,
    projection: Int,
    changed: Int,
    row: Int,
    old: Int,
    new: Int,
    before: Int,
    after: Int,
) -> None:
    """Tells a subscription what the change of a row from version `old` to `new` has done to what it shows."""
    plan, table = ranking.lists[number, PLAN], ranking.head[TABLE]
    k, size, start = ranking.plans[plan, K], ranking.lists[number, SIZE], ranking.lists[number, START]
    was_shown, is_shown = before != NONE and before < k, after != NONE and after < k
    if was_shown and is_shown:
        if ranking.head[COLUMNS] < 64:
            if ranking.plans[plan, SHOWN] & changed == 0:
                return
        elif _looks_alike(rows, projections, projection, old, new, table):
            return
        _tell(work, event, ranking.lists[number, SLOT], _tail(work, first_tail, event, projection, old, new, True))
        return
    gone, come = old, new
    if was_shown:
        come = ranking.current[ranking.words[start + 2 * k - 1]] if size >= k else NONE
    elif is_shown:
        gone = ranking.current[ranking.words[start + 2 * k + 1]] if size > k else NONE
    else:
        return
    if not ranking.plans[plan, SHOWS_KEY]:
        if gone != NONE and come != NONE and _looks_alike(rows, projections, projection, gone, come, table):
            return
        if ranking.plans[plan, SHOWS_DOUBLE]:
            # In both the old and the new list the rows before the one in question are those of the new list but for `row`.
            if gone != NONE and _shows_zero(rows, projections, projection, work.is_double, gone, table):
                stop = before if was_shown else k
                gone = _first_alike(rows, ranking, projections, projection, number, stop, row, gone)
            if come != NONE and _shows_zero(rows, projections, projection, work.is_double, come, table):
                stop = after if is_shown else k - 1
                come = _first_alike(rows, ranking, projections, projection, number, stop, row, come)
    _tell(work, event, ranking.lists[number, SLOT], _tail(work, first_tail, event, projection, gone, come, False))


@njit(cache=True)
def _change(
    ranking: Ranking,
    rows: Rows,
    boxes: Boxes,
    lives: Lives,
    projections: Projections,
    work: Work,
    event: Int,
    old: Int,
    new: Int,
) -> Int:
    """One change of a row. Nothing is changed unless there is room for all."""
    table, columns, vectors = ranking.head[TABLE], ranking.head[COLUMNS], work.vectors
    if ranking.head[ROW_FREE] == NONE and ranking.head[ROW_TOP] == ranking.current.shape[0]:
        return NEEDS_ROWS
    blocks, words = room_for_change(ranking)
    if ranking.head[BLOCK_TOP] + blocks > ranking.blocks.shape[0]:
        work.progress[LACKING] = blocks
        return NEEDS_BLOCKS
    changed = np.int64(0)
    old_record, new_record, has_old, has_new, old_rank, new_rank = 0, 0, False, False, np.int64(0), np.int64(0)
    work.has[0], work.has[1] = old != NONE, new != NONE
    if old != NONE:
        old_record = record_of(rows, old)
        has_old, old_rank = rank_of(ranking, rows, old_record)
        _describe(rows, vectors, 0, old_record, table, columns)
        vectors[0, columns, VALID], vectors[0, columns, CODE], vectors[0, columns, EQUAL] = has_old, old_rank, old_rank
    if new != NONE:
        new_record = record_of(rows, new)
        has_new, new_rank = rank_of(ranking, rows, new_record)
        _describe(rows, vectors, 1, new_record, table, columns)
        vectors[1, columns, VALID], vectors[1, columns, CODE], vectors[1, columns, EQUAL] = has_new, new_rank, new_rank
    if old != NONE and new != NONE:
        changed = _changed_columns(rows, old_record, new_record, table, columns)
        if has_old != has_new or old_rank != new_rank:
            changed |= np.int64(1) << (columns & 63)
        if changed == 0:
            row = ranking.row_of[old]
            ranking.row_of[new], ranking.current[row] = row, new
            return DONE
    hits = stab(boxes, rows.text, vectors, work.has, changed, work.hits)
    if hits < 0:
        return NEEDS_HITS
    touched, more_words = _touch(ranking, work, hits)
    if ranking.head[TOP] + words + more_words > ranking.words.shape[0]:
        work.progress[LACKING] = words + more_words
        return NEEDS_WORDS
    if not _has_room_to_tell(work, touched, 2 * touched):
        return NEEDS_TOLD
    if old == NONE:
        row = take_row(ranking, rows, new)
    else:
        row = np.int64(ranking.row_of[old])
        if new != NONE:
            ranking.row_of[new], ranking.current[row] = row, new
    _reorder(ranking, rows, row, old_record, has_old, old_rank, new_record, has_new, new_rank, changed)
    first_tail = work.progress[TAILS]
    for i in range(touched):
        number = work.touched[i]
        before, after = _settle(ranking, rows, boxes, number, row, old_rank, new_rank)
        slot = ranking.lists[number, SLOT]
        if lives.since[slot] < event and event < lives.until[slot]:
            _tell_list(
                ranking,
                rows,
                projections,
                work,
                event,
                first_tail,
                number,
                lives.projection[slot],
                changed,
                row,
                old,
                new,
                before,
                after,
            )
    if new == NONE:
        free_row(ranking, row)
    return DONE


@njit(cache=True)
def evaluate(
    ranking: Ranking,
    rows: Rows,
    boxes: Boxes,
    events: Events,
    lives: Lives,
    projections: Projections,
    own: Int,
    ranking_of: I64,
    list_of: I64,
    work: Work,
) -> Int:
    """Goes through the events from progress[AT] on; DONE, or what it lacks to go on. `own` is this ranking's number."""
    for event in range(work.progress[AT], events.kind.shape[0]):
        work.progress[AT] = event
        if events.kind[event] == CHANGE:
            if events.table[event] == ranking.head[TABLE]:
                lacking = _change(
                    ranking, rows, boxes, lives, projections, work, event, events.old[event], events.new[event]
                )
                if lacking != DONE:
                    return lacking
        elif events.kind[event] == CREATE:
            slot = events.slot[event]
            if slot < ranking_of.shape[0] and ranking_of[slot] == own:
                projection = lives.projection[slot]
                if not _tell_snapshot(ranking, work, event, slot, projection, list_of[slot]):
                    return NEEDS_TOLD
    work.progress[AT] = events.kind.shape[0]
    return DONE


@njit(cache=True)
def mark_concerned(events: Events, tables: I64, ranking_of: I64, is_concerned: I64) -> None:
    """Marks rankings that an event of the micro-batch is about: tables[r] is the table of ranking r, NONE if it is free."""
    for event in range(events.kind.shape[0]):
        if events.kind[event] == CHANGE:
            for i in range(tables.shape[0]):
                if tables[i] == events.table[event]:
                    is_concerned[i] = 1
        elif events.kind[event] == CREATE:
            slot = events.slot[event]
            if slot < ranking_of.shape[0] and ranking_of[slot] != NONE:
                is_concerned[ranking_of[slot]] = 1
