"""How ladders change: pairs are put in their places and taken out, and the codes beside them are told."""

from __future__ import annotations

from tidings.kernels.jit import kernel
from tidings.kernels.ladders_arrays import (
    BLOCK,
    CODE_MAX,
    CODE_MIN,
    DONE,
    HEIGHT,
    I64,
    MISFIT,
    NEEDED,
    NEEDS_ROOM,
    OFFSET,
    PROGRESS,
    ROOM,
    ROOM_MIN,
    SIZE,
    TOP,
    Flags,
    Int,
    block_of,
    resize_short,
    shift_down,
    shift_up,
)
from tidings.kernels.ladders_blocks import cut, join_if_low, make_tall
from tidings.kernels.ladders_find import code_before, code_from, find_block, place_in


@kernel(inline="always")
def count_one(ladders: I64, entries: I64, ladder: Int, block: Int, change: Int) -> None:
    """Let a block have one pair more or less."""
    ladders[ladder, SIZE] += change
    if ladders[ladder, HEIGHT]:
        entries[ladders[ladder, OFFSET] + ladders[ladder, ROOM] // 2 + block] += change


@kernel
def put(
    head: I64, ladders: I64, codes: I64, entries: I64, ladder: Int, block: Int, place: Int, code: Int, entry: Int
) -> None:
    """Put a pair at its place in a block."""
    offset, size = block_of(ladders, codes, entries, ladder, block)
    if ladders[ladder, HEIGHT] == 0 and size == ladders[ladder, ROOM] and size < BLOCK:
        resize_short(head, ladders, codes, entries, ladder, max(ROOM_MIN, 2 * size))
        offset = ladders[ladder, OFFSET]
    elif size == BLOCK:
        if ladders[ladder, HEIGHT] == 0:
            make_tall(head, ladders, codes, entries, ladder)
        cut(head, ladders, codes, entries, ladder, block)
        if place > BLOCK // 2:
            block += 1
            place -= BLOCK // 2
        offset, size = block_of(ladders, codes, entries, ladder, block)
    shift_up(codes, offset + place, offset + size)
    shift_up(entries, offset + place, offset + size)
    codes[offset + place] = code
    entries[offset + place] = entry
    count_one(ladders, entries, ladder, block, 1)


@kernel
def take(head: I64, ladders: I64, codes: I64, entries: I64, ladder: Int, block: Int, place: Int) -> None:
    """Take the pair at a place out of a block."""
    offset, size = block_of(ladders, codes, entries, ladder, block)
    shift_down(codes, offset + place, offset + size)
    shift_down(entries, offset + place, offset + size)
    count_one(ladders, entries, ladder, block, -1)
    if ladders[ladder, HEIGHT]:
        join_if_low(head, ladders, codes, entries, ladder, block)
    elif size == 1:
        resize_short(head, ladders, codes, entries, ladder, 0)
    elif 4 * size <= ladders[ladder, ROOM] and ladders[ladder, ROOM] > ROOM_MIN:
        resize_short(head, ladders, codes, entries, ladder, ladders[ladder, ROOM] // 2)


@kernel
def room_needed(ladders: I64, ladder: Int) -> Int:
    """Words that one change may take: a block, and a directory or a short ladder of twice the size."""
    return 2 * BLOCK + 2 * ladders[ladder, ROOM]


@kernel
def change(
    head: I64,
    ladders: I64,
    codes: I64,
    entries: I64,
    step_ladder: I64,
    step_entry: I64,
    step_code: I64,
    is_present: Flags,
    first: Int,
    lo_from: I64,
    hi_to: I64,
    has_twin: Flags,
) -> Int:
    """Make the changes from `first` on, and fill in what is told of them; returns DONE or why it stopped."""
    for step in range(first, step_ladder.shape[0]):
        ladder, entry, code = step_ladder[step], step_entry[step], step_code[step]
        needed = room_needed(ladders, ladder)
        if head[TOP] + needed > codes.shape[0]:
            head[PROGRESS], head[NEEDED] = step, needed
            return NEEDS_ROOM
        block = find_block(ladders, codes, entries, ladder, code, entry)
        offset, size = block_of(ladders, codes, entries, ladder, block)
        place = place_in(codes, entries, offset, size, code, entry)
        is_there = place < size and codes[offset + place] == code and entries[offset + place] == entry
        if is_there == is_present[step]:
            head[PROGRESS] = step
            return MISFIT
        has_before, before = code_before(ladders, codes, entries, ladder, block, place)
        has_after, after = code_from(ladders, codes, entries, ladder, block, place + is_there)
        has_twin[step] = (has_before and before == code) or (has_after and after == code)
        lo_from[step] = before + 1 if has_before and before < code else CODE_MIN
        hi_to[step] = after - 1 if has_after and after > code else CODE_MAX
        if is_present[step]:
            put(head, ladders, codes, entries, ladder, block, place, code, entry)
        else:
            take(head, ladders, codes, entries, ladder, block, place)
    return DONE
