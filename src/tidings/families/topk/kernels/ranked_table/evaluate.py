"""The loop over the events of a micro-batch for one ranking: rows move in orders and lists, and whoever shows others is told.

One change takes at most one row out of what a subscription shows and brings at most one in: the changed row itself, or the
one behind or before the k-th place. So a difference is a pair (gone, come) of versions. It is an update if both are the
changed row, nothing if the two look alike, and else a delete and an insert.
"""

# mypy: allow-untyped-decorators

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import carray

from tidings.families.topk.kernels.ranked_table.rank_index import hash_of, insert, remove, room_for_change, store_again
from tidings.families.topk.kernels.ranked_table.ranking_layout import (
    BITS,
    BLOCK_TOP,
    CAPACITY,
    COLUMNS,
    CURRENT,
    FIRST_OF_BOXES,
    FIRST_OF_WORK,
    IS_COMPLETE,
    ORDER_TOP,
    PLAN,
    ROOM,
    ROW_FREE,
    ROW_TOP,
    SHOWN,
    SHOWS_KEY,
    SIZE,
    SLOT,
    STAMP,
    START,
    STORED,
    TABLE,
    TEXTS,
    TOUCHED,
    USERS,
    K,
    View,
    differs,
    free_row,
    has_value,
    has_words,
    rank_of,
    record_at,
    take_row,
    text_span,
    view_at,
)
from tidings.families.topk.kernels.ranked_table.top_lists import (
    move_highs,
    place_in,
    position_of,
    put_in,
    refill,
    take_out,
)
from tidings.kernels.events import CHANGE, CREATE, columns_of
from tidings.kernels.handles import text_array_at, words_at
from tidings.kernels.jit import kernel
from tidings.kernels.lives import IS_NET, LIFE_FIELDS, PROJECTION, SINCE, UNTIL
from tidings.kernels.rows import EXACT, I64, NONE, U8, Int, mix
from tidings.kernels.stabbing import (
    CODE,
    EQUAL,
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

# What `evaluate` lacked when it stopped before an event.
DONE, NEEDS_ROWS, NEEDS_BLOCKS, NEEDS_WORDS, NEEDS_HITS, NEEDS_TOLD = range(6)
# Fields of `Work.progress`: next event, what is told so far, tails numbered in earlier calls, and how much is lacking.
AT, TOLD, TAILS, CHANGES, TAIL_BASE, LACKING, PROGRESS_FIELDS = range(7)
# Fields of a tail's key: projection, gone, come.
TAIL_KEY = 3


class Work(NamedTuple):
    """Scratch memory and the output of `evaluate`; `_output_at` knows the order of these arrays."""

    progress: I64
    vectors: I64
    """[2, columns + 1, VECTOR_FIELDS]: the row before and after a change, and its rank."""
    has: I64
    """[2]: whether there is a row before, and after."""
    hits: I64
    """[hits, 2]."""
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


class Output(NamedTuple):
    """Pointers to `Work`, to lives and to projections."""

    progress: Any
    vectors: Any
    side_words: Int
    """Words of a vector."""
    has: Any
    hits: Any
    hits_room: Int
    touched: Any
    told: Any
    tails: Any
    keys: Any
    changes: Any
    room: Int
    """Of told, tails, their keys and changes."""
    table: Any
    table_mask: Int
    lives: Any
    starts: Any
    """Of projections, and their columns."""
    column: Any


@kernel
def _output_at(handles: I64, columns: Int) -> Output:
    at = FIRST_OF_WORK
    return Output(
        words_at(handles[at, 0]),
        words_at(handles[at + 1, 0]),
        (columns + 1) * VECTOR_FIELDS,
        words_at(handles[at + 2, 0]),
        words_at(handles[at + 3, 0]),
        handles[at + 4, 1],
        words_at(handles[at + 4, 0]),
        words_at(handles[at + 5, 0]),
        words_at(handles[at + 6, 0]),
        words_at(handles[at + 7, 0]),
        words_at(handles[at + 8, 0]),
        handles[at + 8, 1] // 2,
        words_at(handles[at + 9, 0]),
        handles[at + 9, 1] - 1,
        words_at(handles[at + 10, 0]),
        words_at(handles[at + 11, 0]),
        words_at(handles[at + 12, 0]),
    )


@kernel
def _describe(v: View, o: Output, side: Int, record: Int, has_rank: bool, rank: Int) -> None:
    """Writes a record and its rank to vector `side`."""
    at, columns = side * o.side_words, v.head[COLUMNS]
    for column in range(columns):
        o.vectors[at + VALID] = has_value(v, record, column)
        o.vectors[at + CODE] = v.records[record + v.codes + column]
        o.vectors[at + EQUAL] = v.records[record + v.equals + column]
        if v.kinds[column] != EXACT:
            o.vectors[at + TEXT_START], o.vectors[at + TEXT_STOP] = text_span(v, record, column)
        at += VECTOR_FIELDS
    o.vectors[at + VALID], o.vectors[at + CODE], o.vectors[at + EQUAL] = has_rank, rank, rank


@kernel
def _changed_columns(v: View, a: Int, b: Int) -> Int:
    """Mask with bit (column & 63) of columns in which two records differ."""
    changed = np.int64(0)
    for column in range(v.head[COLUMNS]):
        if differs(v, a, b, column):
            changed |= np.int64(1) << (column & 63)
    return changed


@kernel
def _looks_alike(v: View, o: Output, projection: Int, a: Int, b: Int) -> bool:
    """Whether two versions agree in what is shown."""
    first, other = record_at(v, a), record_at(v, b)
    for i in range(o.starts[projection], o.starts[projection + 1]):
        if differs(v, first, other, o.column[i]):
            return False
    return True


@kernel
def _add_change(o: Output, old: Int, new: Int) -> None:
    at = o.progress[CHANGES]
    o.changes[2 * at], o.changes[2 * at + 1] = old, new
    o.progress[CHANGES] = at + 1


@kernel
def _open_tail(o: Output, event: Int, projection: Int) -> Int:
    """A new tail; its changes follow."""
    tail = o.progress[TAILS]
    o.tails[4 * tail], o.tails[4 * tail + 1], o.tails[4 * tail + 2] = event, projection, o.progress[CHANGES]
    o.progress[TAILS] = tail + 1
    return tail


@kernel
def _tail(o: Output, first: Int, event: Int, projection: Int, gone: Int, come: Int, is_update: bool) -> Int:
    """Number of the tail that tells of this difference; those of this event are numbered from `first` on."""
    base = o.progress[TAIL_BASE]
    at = mix(mix(projection, gone), come) & o.table_mask
    while o.table[at] >= base + first:
        tail = o.table[at] - base
        key = TAIL_KEY * tail
        if o.keys[key] == projection and o.keys[key + 1] == gone and o.keys[key + 2] == come:
            return tail
        at = (at + 1) & o.table_mask
    tail = _open_tail(o, event, projection)
    o.table[at], key = base + tail, TAIL_KEY * tail
    o.keys[key], o.keys[key + 1], o.keys[key + 2] = projection, gone, come
    if is_update:
        _add_change(o, gone, come)
    else:
        if gone != NONE:
            _add_change(o, gone, NONE)
        if come != NONE:
            _add_change(o, NONE, come)
    o.tails[4 * tail + 3] = o.progress[CHANGES]
    return tail


@kernel
def _tell(o: Output, event: Int, slot: Int, tail: Int) -> None:
    at = o.progress[TOLD]
    o.told[at], o.told[o.room + at], o.told[2 * o.room + at] = event, slot, tail
    o.progress[TOLD] = at + 1


@kernel
def _has_room_to_tell(o: Output, told: Int, changes: Int) -> bool:
    o.progress[LACKING] = max(o.progress[TOLD] + told, o.progress[CHANGES] + changes)
    return bool(o.progress[LACKING] <= o.room)


@kernel
def _tell_snapshot(v: View, o: Output, event: Int, slot: Int, number: Int) -> bool:
    shown, start = min(v.lists[number + SIZE], v.plans[v.lists[number + PLAN] + K]), v.lists[number + START]
    if not _has_room_to_tell(o, 1, shown):
        return False
    tail = _open_tail(o, event, o.lives[LIFE_FIELDS * slot + PROJECTION])
    for i in range(shown):
        _add_change(o, NONE, v.current[v.words[start + 2 * i + 1]])
    o.tails[4 * tail + 3] = o.progress[CHANGES]
    _tell(o, event, slot, tail)
    return True


@kernel
def _touch(v: View, o: Output, hits: Int) -> tuple[Int, Int]:
    """(lists that the hits are of, words they may need to grow); a list with several boxes is there once."""
    v.head[STAMP] += 1
    stamp, count, words = v.head[STAMP], 0, 0
    for i in range(hits):
        number = o.hits[2 * i]
        if v.lists[number + TOUCHED] != stamp:
            v.lists[number + TOUCHED], v.lists[number + BITS] = stamp, 0
            o.touched[count] = number
            count += 1
            room = v.lists[number + ROOM]
            if v.lists[number + SIZE] == room and room < v.plans[v.lists[number + PLAN] + CAPACITY]:
                words += 4 * room
        v.lists[number + BITS] |= o.hits[2 * i + 1] & SIDES
    return count, words


@kernel
def _reorder(
    v: View,
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
    for i in range(v.block_fields - STORED):
        is_stored_anew |= (changed >> (v.stored[i] & 63)) & 1 != 0
    for order in range(0, v.head[ORDER_TOP], v.order_fields):
        if v.orders[order + USERS] == 0:
            continue
        was_in, old_hash, is_in, new_hash = False, np.int64(0), False, np.int64(0)
        if has_old:
            was_in, old_hash = hash_of(v, old, order)
        if has_new:
            is_in, new_hash = hash_of(v, new, order)
        if was_in and is_in and old_hash == new_hash and old_rank == new_rank:
            if is_stored_anew:
                store_again(v, order, new_hash, new_rank, row, new)
            continue
        if was_in:
            remove(v, order, old_hash, old_rank, row)
        if is_in:
            insert(v, order, new_hash, new_rank, row, new)


@kernel
def _settle(v: View, number: Int, row: Int, old_rank: Int, new_rank: Int) -> tuple[Int, Int]:
    """Brings a list up to date; (where the changed row stood in it, where it stands now), NONE for nowhere."""
    bits, plan = v.lists[number + BITS], v.lists[number + PLAN]
    capacity = v.plans[plan + CAPACITY]
    before, after = NONE, NONE
    if bits & OLD:
        before = position_of(v, number, old_rank, row)
    if before != NONE:
        if bits & NEW and old_rank == new_rank:
            return before, before
        take_out(v, number, before)
    elif not bits & NEW:
        return NONE, NONE
    if bits & NEW:
        place = place_in(v, number, new_rank, row)
        if place < v.lists[number + SIZE] or v.lists[number + IS_COMPLETE]:
            put_in(v, number, place, new_rank, row, capacity)
            after = place
    if v.lists[number + SIZE] == capacity:
        v.lists[number + IS_COMPLETE] = 0
    elif v.lists[number + SIZE] < v.plans[plan + K] and not v.lists[number + IS_COMPLETE]:
        # What is looked up may be the changed row itself, though it came to stand where it did not matter.
        refill(v, number)
        if after == NONE:
            after = position_of(v, number, new_rank, row)
    return before, after


@kernel
def _tell_list(
    v: View,
    o: Output,
    event: Int,
    first_tail: Int,
    number: Int,
    slot: Int,
    changed: Int,
    row: Int,
    old: Int,
    new: Int,
    before: Int,
    after: Int,
    is_part: bool,
) -> None:
    """Tells a subscription what the change of a row from version `old` to `new` has done to what it shows.

    is_part: of a commit with several changes (`is_netted`).
    """
    plan, projection = v.lists[number + PLAN], o.lives[LIFE_FIELDS * slot + PROJECTION]
    k, size, start = v.plans[plan + K], v.lists[number + SIZE], v.lists[number + START]
    was_shown, is_shown = before != NONE and before < k, after != NONE and after < k
    if was_shown and is_shown:
        if v.head[COLUMNS] < 64:
            is_seen = v.plans[plan + SHOWN] & changed != 0
        else:
            is_seen = not _looks_alike(v, o, projection, old, new)
        if is_seen:
            _tell(o, event, slot, _tail(o, first_tail, event, projection, old, new, True))
        return
    gone, come = old, new
    if was_shown:
        come = v.current[v.words[start + 2 * k - 1]] if size >= k else NONE
    elif is_shown:
        gone = v.current[v.words[start + 2 * k + 1]] if size > k else NONE
    else:
        return
    shows_all = v.plans[plan + SHOWS_KEY] or is_part or o.lives[LIFE_FIELDS * slot + IS_NET] != 0
    if not shows_all and gone != NONE and come != NONE and _looks_alike(v, o, projection, gone, come):
        return
    _tell(o, event, slot, _tail(o, first_tail, event, projection, gone, come, False))


@kernel
def _settle_all(
    v: View,
    o: Output,
    event: Int,
    touched: Int,
    changed: Int,
    row: Int,
    old: Int,
    old_rank: Int,
    new: Int,
    new_rank: Int,
    is_part: bool,
) -> None:
    """Brings the lists touched by a change up to date, and tells those who hear it."""
    first_tail = o.progress[TAILS]
    for i in range(touched):
        number = o.touched[i]
        before, after = _settle(v, number, row, old_rank, new_rank)
        slot = v.lists[number + SLOT]
        if o.lives[LIFE_FIELDS * slot + SINCE] < event < o.lives[LIFE_FIELDS * slot + UNTIL]:
            _tell_list(v, o, event, first_tail, number, slot, changed, row, old, new, before, after, is_part)


@kernel
def _change(
    v: View, o: Output, boxes: Boxes, text: U8, rows_room: Int, event: Int, old: Int, new: Int, is_part: bool
) -> Int:
    """One change of a row. Nothing is changed unless there is room for all."""
    if v.head[ROW_FREE] == NONE and v.head[ROW_TOP] == rows_room:
        return NEEDS_ROWS
    blocks, words = room_for_change(v)
    if v.head[BLOCK_TOP] + blocks > v.blocks_room:
        o.progress[LACKING] = blocks
        return NEEDS_BLOCKS
    changed = np.int64(0)
    old_record, new_record, has_old, has_new, old_rank, new_rank = 0, 0, False, False, np.int64(0), np.int64(0)
    o.has[0], o.has[1] = old != NONE, new != NONE
    if old != NONE:
        old_record = record_at(v, old)
        has_old, old_rank = rank_of(v, old_record)
        _describe(v, o, 0, old_record, has_old, old_rank)
    if new != NONE:
        new_record = record_at(v, new)
        has_new, new_rank = rank_of(v, new_record)
        _describe(v, o, 1, new_record, has_new, new_rank)
    if old != NONE and new != NONE:
        changed = _changed_columns(v, old_record, new_record)
        if has_old != has_new or old_rank != new_rank:
            changed |= np.int64(1) << (v.head[COLUMNS] & 63)
        if changed == 0:
            row = v.row_of[old]
            v.row_of[new], v.current[row] = row, new
            return DONE
    vectors = carray(o.vectors, (2, v.head[COLUMNS] + 1, VECTOR_FIELDS))
    hits = stab(boxes, text, vectors, carray(o.has, (2,)), changed, carray(o.hits, (o.hits_room, 2)))
    if hits < 0:
        return NEEDS_HITS
    touched, more_words = _touch(v, o, hits)
    if not has_words(v, words + more_words):
        o.progress[LACKING] = words + more_words
        return NEEDS_WORDS
    if not _has_room_to_tell(o, touched, 2 * touched):
        return NEEDS_TOLD
    if old == NONE:
        row = take_row(v, new)
    else:
        row = np.int64(v.row_of[old])
        if new != NONE:
            v.row_of[new], v.current[row] = row, new
    _reorder(v, row, old_record, has_old, old_rank, new_record, has_new, new_rank, changed)
    _settle_all(v, o, event, touched, changed, row, old, old_rank, new, new_rank, is_part)
    move_highs(v, boxes, o.touched, touched)
    if new == NONE:
        free_row(v, row)
    return DONE


@kernel
def evaluate(handles: I64, words: I64, own: Int, ranking_of: I64, list_of: I64) -> Int:
    """Goes through the events from progress[AT] on; DONE, or what it lacks to go on.

    words: of the events. `own` is this ranking's number; slot s has list_of[s] of ranking_of[s].
    """
    v = view_at(handles)
    kind, _, table, old, new, slot, is_part = columns_of(words)
    o, boxes, text = (
        _output_at(handles, v.head[COLUMNS]),
        boxes_at(handles[FIRST_OF_BOXES:]),
        text_array_at(handles, TEXTS),
    )
    for event in range(o.progress[AT], kind.shape[0]):
        o.progress[AT] = event
        if kind[event] == CHANGE:
            if table[event] == v.head[TABLE]:
                lacking = _change(
                    v, o, boxes, text, handles[CURRENT, 1], event, old[event], new[event], is_part[event] != 0
                )
                if lacking != DONE:
                    return lacking
        elif kind[event] == CREATE:
            who = slot[event]
            if (
                who < ranking_of.shape[0]
                and ranking_of[who] == own
                and not _tell_snapshot(v, o, event, who, list_of[who])
            ):
                return NEEDS_TOLD
    o.progress[AT] = kind.shape[0]
    return DONE


@kernel
def mark_concerned(words: I64, tables: I64, ranking_of: I64, is_concerned: I64) -> None:
    """Marks rankings that an event of the micro-batch is about: tables[r] is the table of ranking r, NONE if it is free."""
    kind, _, table, _, _, slot, _ = columns_of(words)
    for event in range(kind.shape[0]):
        if kind[event] == CHANGE:
            for i in range(tables.shape[0]):
                if tables[i] == table[event]:
                    is_concerned[i] = 1
        elif kind[event] == CREATE and slot[event] < ranking_of.shape[0] and ranking_of[slot[event]] != NONE:
            is_concerned[ranking_of[slot[event]]] = 1
