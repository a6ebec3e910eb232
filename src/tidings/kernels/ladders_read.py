"""What ladders hold: all pairs, the different codes, or the codes nearest to given marks."""

from __future__ import annotations

import numpy as np

from tidings.kernels.jit import kernel
from tidings.kernels.ladders_arrays import CODE_MIN, HEIGHT, I64, OFFSET, SIZE, Int, block_of
from tidings.kernels.ladders_find import code_before, code_from, find_block, place_in


@kernel
def gather(ladders: I64, codes: I64, entries: I64, which: I64) -> tuple[I64, I64, I64]:
    """(starts, entries, codes) of the asked ladders."""
    starts = np.zeros(which.shape[0] + 1, np.int64)
    for i in range(which.shape[0]):
        starts[i + 1] = starts[i] + ladders[which[i], SIZE]
    all_entries = np.empty(starts[-1], np.int64)
    all_codes = np.empty(starts[-1], np.int64)
    end = 0
    for ladder in which:
        for block in range(max(1, ladders[ladder, HEIGHT])):
            offset, size = block_of(ladders, codes, entries, ladder, block)
            for i in range(size):
                all_codes[end + i] = codes[offset + i]
            for i in range(size):
                all_entries[end + i] = entries[offset + i]
            end += size
    return starts, all_entries, all_codes


@kernel
def distinct(ladders: I64, codes: I64, entries: I64, which: I64) -> tuple[I64, I64]:
    """(starts, different codes) of the asked ladders."""
    starts = np.zeros(which.shape[0] + 1, np.int64)
    room = 0
    for ladder in which:
        room += ladders[ladder, SIZE]
    found = np.empty(room, np.int64)
    end = 0
    for k in range(which.shape[0]):
        ladder = which[k]
        for block in range(max(1, ladders[ladder, HEIGHT])):
            offset, size = block_of(ladders, codes, entries, ladder, block)
            for i in range(offset, offset + size):
                if end == starts[k] or codes[i] > found[end - 1]:
                    found[end] = codes[i]
                    end += 1
        starts[k + 1] = end
    return starts, found[:end]


@kernel
def nearest_short(codes: I64, offset: Int, size: Int, marks: I64, found: I64, end: Int) -> Int:
    """Append what of a short ladder is nearest to the marks; returns the new end."""
    first = end
    place = np.uint64(offset)
    stop = np.uint64(offset + size)
    one = np.uint64(1)
    for mark in marks:
        # How many codes are below the mark, without a branch that depends on them.
        left = stop - place
        while left > one:
            half = left >> one
            place += half * np.uint64(codes[place + half - one] < mark)
            left -= half
        place += np.uint64(codes[place] < mark)
        if place > np.uint64(offset) and (place == stop or codes[place] > mark):
            code = codes[place - one]
            found[end] = code
            end += end == first or code > found[end - 1]
        if place == stop:
            break
        code = codes[place]
        found[end] = code
        end += end == first or code > found[end - 1]
    return end


@kernel
def nearest_tall(ladders: I64, codes: I64, entries: I64, ladder: Int, marks: I64, found: I64, end: Int) -> Int:
    """Append what of a tall ladder is nearest to the marks; returns the new end."""
    first = end
    for mark in marks:
        block = find_block(ladders, codes, entries, ladder, mark, CODE_MIN)
        offset, size = block_of(ladders, codes, entries, ladder, block)
        place = place_in(codes, entries, offset, size, mark, CODE_MIN)
        has_before, before = code_before(ladders, codes, entries, ladder, block, place)
        has_after, after = code_from(ladders, codes, entries, ladder, block, place)
        if has_before and not (has_after and after == mark) and (end == first or before > found[end - 1]):
            found[end] = before
            end += 1
        if has_after and (end == first or after > found[end - 1]):
            found[end] = after
            end += 1
    return end


@kernel
def nearest(ladders: I64, codes: I64, entries: I64, which: I64, marks: I64) -> tuple[I64, I64]:
    """(starts, codes): of each asked ladder, the codes next to the marks on either side."""
    starts = np.zeros(which.shape[0] + 1, np.int64)
    # One more, as a code is written before it is known to be new.
    room = 1
    for ladder in which:
        room += min(ladders[ladder, SIZE], 2 * marks.shape[0])
    found = np.empty(room, np.int64)
    end = 0
    for i in range(which.shape[0]):
        ladder = which[i]
        if ladders[ladder, HEIGHT]:
            end = nearest_tall(ladders, codes, entries, ladder, marks, found, end)
        elif ladders[ladder, SIZE]:
            end = nearest_short(codes, ladders[ladder, OFFSET], ladders[ladder, SIZE], marks, found, end)
        starts[i + 1] = end
    return starts, found[:end]
