"""Where a pair (code, entry) stands in a ladder, and the codes beside a place."""

from __future__ import annotations

from tidings.kernels.jit import kernel
from tidings.kernels.ladders_arrays import CODE_MAX, CODE_MIN, HEIGHT, I64, OFFSET, Int, block_of

NOWHERE = -1


@kernel
def place_in(codes: I64, entries: I64, offset: Int, size: Int, code: Int, entry: Int) -> Int:
    """How many of the sorted pairs of an extent stand before this one."""
    low, left = offset, size
    while left > 0:
        half = left >> 1
        middle = low + half
        if codes[middle] < code or (codes[middle] == code and entries[middle] < entry):
            low = middle + 1
            left -= half + 1
        else:
            left = half
    return low - offset


@kernel
def find_block(ladders: I64, codes: I64, entries: I64, ladder: Int, code: Int, entry: Int) -> Int:
    """The block in which a pair stands, or would stand."""
    height = ladders[ladder, HEIGHT]
    if height == 0:
        return 0
    directory = ladders[ladder, OFFSET]
    after = place_in(codes, entries, directory + 1, height - 1, code, entry)
    at = directory + 1 + after
    if after < height - 1 and codes[at] == code and entries[at] == entry:
        after += 1
    return after


@kernel
def first_from(ladders: I64, codes: I64, entries: I64, ladder: Int, code: Int, entry: Int) -> Int:
    """Where in the pool the first pair of a ladder is that does not stand before this one; NOWHERE if there is none."""
    block = find_block(ladders, codes, entries, ladder, code, entry)
    offset, size = block_of(ladders, codes, entries, ladder, block)
    place = place_in(codes, entries, offset, size, code, entry)
    if place < size:
        return offset + place
    if block + 1 < ladders[ladder, HEIGHT]:
        offset, _ = block_of(ladders, codes, entries, ladder, block + 1)
        return offset
    return NOWHERE


@kernel
def code_before(ladders: I64, codes: I64, entries: I64, ladder: Int, block: Int, place: Int) -> tuple[bool, Int]:
    """(whether there is a pair before this place of a block, its code or CODE_MIN)."""
    if place == 0:
        if block == 0:
            return False, CODE_MIN
        block -= 1
        offset, place = block_of(ladders, codes, entries, ladder, block)
    else:
        offset, _ = block_of(ladders, codes, entries, ladder, block)
    return True, codes[offset + place - 1]


@kernel
def code_from(ladders: I64, codes: I64, entries: I64, ladder: Int, block: Int, place: Int) -> tuple[bool, Int]:
    """(whether there is a pair at this place of a block or after it, the code of the first or CODE_MAX)."""
    offset, size = block_of(ladders, codes, entries, ladder, block)
    if place == size:
        if block + 1 >= ladders[ladder, HEIGHT]:
            return False, CODE_MAX
        offset, _ = block_of(ladders, codes, entries, ladder, block + 1)
        place = 0
    return True, codes[offset + place]
