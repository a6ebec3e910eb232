"""How a stabbing set follows its intervals one by one, until it may have too many anchors."""

from __future__ import annotations

from tidings.kernels.jit import kernel
from tidings.kernels.ladders_arrays import CODE_MIN, SIZE, TOP, block_of
from tidings.kernels.ladders_change import put, room_needed, take
from tidings.kernels.ladders_find import NOWHERE, find_block, first_from, place_in
from tidings.kernels.stabs_arrays import (
    ANCHOR,
    ANCHORS,
    DONE,
    HI,
    I64,
    INTERVALS,
    LO,
    NEEDED,
    NEEDS_REBUILD,
    NEEDS_ROOM,
    NOT_THERE,
    PROGRESS,
    SLACK,
    TIMES,
    WITNESSES,
    Int,
    clear_slot,
    slot_of,
)


@kernel
def is_too_many(ladders: I64) -> bool:
    """Whether there are more than 1.5 anchors for each witness, and SLACK."""
    return bool(2 * ladders[ANCHORS, SIZE] > 3 * ladders[WITNESSES, SIZE] + 2 * SLACK)


@kernel
def put_pair(pool_head: I64, ladders: I64, codes: I64, entries: I64, ladder: Int, code: Int, entry: Int) -> None:
    """Put a pair into a ladder that does not have it."""
    block = find_block(ladders, codes, entries, ladder, code, entry)
    offset, size = block_of(ladders, codes, entries, ladder, block)
    place = place_in(codes, entries, offset, size, code, entry)
    put(pool_head, ladders, codes, entries, ladder, block, place, code, entry)


@kernel
def take_pair(pool_head: I64, ladders: I64, codes: I64, entries: I64, ladder: Int, code: Int, entry: Int) -> None:
    """Take a pair out of a ladder, if it has it."""
    block = find_block(ladders, codes, entries, ladder, code, entry)
    offset, size = block_of(ladders, codes, entries, ladder, block)
    place = place_in(codes, entries, offset, size, code, entry)
    if place < size and codes[offset + place] == code and entries[offset + place] == entry:
        take(pool_head, ladders, codes, entries, ladder, block, place)


@kernel
def stab_one(stabbed: I64, pool_head: I64, ladders: I64, codes: I64, entries: I64, lo: Int, hi: Int) -> Int:
    """The anchor of a new interval: the first one it contains, or else a new one at its upper end."""
    at = first_from(ladders, codes, entries, ANCHORS, lo, 0)
    if at != NOWHERE and codes[at] <= hi:
        anchor = codes[at]
    else:
        anchor = hi
        put_pair(pool_head, ladders, codes, entries, ANCHORS, anchor, 0)
    slot = slot_of(stabbed, anchor, anchor)
    stabbed[slot, LO], stabbed[slot, HI] = anchor, anchor
    stabbed[slot, TIMES] += 1
    return anchor


@kernel
def add(
    head: I64,
    table: I64,
    stabbed: I64,
    pool_head: I64,
    ladders: I64,
    codes: I64,
    entries: I64,
    los: I64,
    his: I64,
    first: Int,
) -> Int:
    """Add the intervals from `first` on to tables with room for them; returns DONE or why it stopped."""
    for i in range(first, los.shape[0]):
        head[PROGRESS] = i
        if is_too_many(ladders):
            return NEEDS_REBUILD
        head[NEEDED] = room_needed(ladders, ANCHORS) + room_needed(ladders, WITNESSES)
        if pool_head[TOP] + head[NEEDED] > codes.shape[0]:
            return NEEDS_ROOM
        lo, hi = los[i], his[i]
        slot = slot_of(table, lo, hi)
        table[slot, TIMES] += 1
        if table[slot, TIMES] == 1:
            head[INTERVALS] += 1
            table[slot, LO], table[slot, HI] = lo, hi
            table[slot, ANCHOR] = stab_one(stabbed, pool_head, ladders, codes, entries, lo, hi)
            at = first_from(ladders, codes, entries, WITNESSES, lo, CODE_MIN)
            if at == NOWHERE or entries[at] > hi:
                put_pair(pool_head, ladders, codes, entries, WITNESSES, hi, lo)
    head[PROGRESS] = los.shape[0]
    return NEEDS_REBUILD if is_too_many(ladders) else DONE


@kernel
def remove(
    head: I64,
    table: I64,
    stabbed: I64,
    pool_head: I64,
    ladders: I64,
    codes: I64,
    entries: I64,
    los: I64,
    his: I64,
    first: Int,
) -> Int:
    """Remove the intervals from `first` on; returns DONE or why it stopped."""
    for i in range(first, los.shape[0]):
        head[PROGRESS] = i
        if is_too_many(ladders):
            return NEEDS_REBUILD
        head[NEEDED] = room_needed(ladders, ANCHORS) + room_needed(ladders, WITNESSES)
        if pool_head[TOP] + head[NEEDED] > codes.shape[0]:
            return NEEDS_ROOM
        lo, hi = los[i], his[i]
        slot = slot_of(table, lo, hi)
        if table[slot, TIMES] == 0:
            return NOT_THERE
        table[slot, TIMES] -= 1
        if table[slot, TIMES] == 0:
            head[INTERVALS] -= 1
            anchor = table[slot, ANCHOR]
            clear_slot(table, slot)
            slot = slot_of(stabbed, anchor, anchor)
            stabbed[slot, TIMES] -= 1
            if stabbed[slot, TIMES] == 0:
                clear_slot(stabbed, slot)
                take_pair(pool_head, ladders, codes, entries, ANCHORS, anchor, 0)
            take_pair(pool_head, ladders, codes, entries, WITNESSES, hi, lo)
    head[PROGRESS] = los.shape[0]
    return NEEDS_REBUILD if is_too_many(ladders) else DONE
