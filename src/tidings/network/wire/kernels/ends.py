"""Ends of boxes: which of them say something new, and what the others are (layout.py has the four states).

Boxes of group g are starts[g]:starts[g + 1]; lo, hi: (boxes, dims). `known`: (groups, numbers), the codes of payload values
that ends of a group's first box may refer to, but OPEN_LO, which stands for none. In a box the ends come as lo and hi of the
first dimension, lo and hi of the next, .. A dimension's two states share half a byte, the lo's in its lower bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from tidings.network.wire.kernels.varints import I64, U8

OPEN_LO = np.int64(-(2**63))
OPEN_HI = np.int64(2**63 - 1)
NOWHERE = -1
_ONE, _FOUR = np.uint64(1), np.uint64(4)

# `last_lo` and `last_hi` are the bounded end before in the box; until there is one, what no bounded lo, no bounded hi can be.
# In later boxes of a batch with stairs state 3 means another thing: `beside_lo`, `beside_hi`, the numbers next to the other
# end of the dimension in the box before. Ends of all kinds come mixed: hence few branches.


@njit(cache=True)
def write_ends(
    lo: I64, hi: I64, starts: I64, groups: I64, known: I64, numbers: U8, has_stairs: bool
) -> tuple[U8, U8, I64]:
    """States, references and literals of the boxes of these groups; row i of `known` is of groups[i].

    Of the numbers known, numbers[j] is what stands for known[:, j] in references.
    """
    boxes = 0
    for i in range(len(groups)):
        boxes += starts[groups[i] + 1] - starts[groups[i]]
    # Places are unsigned throughout: signed ones would be checked for being negative.
    dims, flat_lo, flat_hi = np.uint64(lo.shape[1]), lo.reshape(-1), hi.reshape(-1)
    # One more of each: half a byte is written before it is whole, a literal before it is known to be one.
    states = np.empty(boxes * lo.shape[1] // 2 + 1, np.uint8)
    references = np.empty(2 * lo.shape[1] * len(groups), np.uint8)
    literals = np.empty(2 * lo.shape[1] * boxes + 1, np.int64)
    half, referring, literal, byte = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
    for i in range(len(groups)):
        start, stop = np.uint64(starts[groups[i]]), np.uint64(starts[groups[i] + 1])
        if start == stop:
            continue
        last_lo, last_hi = OPEN_LO, OPEN_HI
        for at in range(start * dims, start * dims + dims):
            end = flat_lo[at]
            place = _place_of(known, i, end)
            state = _state(end, OPEN_LO, last_lo, place != NOWHERE)
            if state == 2:
                references[referring] = numbers[place]
                referring += _ONE
            literals[literal] = end
            literal += np.uint64(state == 1)
            last_lo, last_hi = (end, end) if state != 0 else (last_lo, last_hi)
            end = flat_hi[at]
            place = _place_of(known, i, end)
            other = _state(end, OPEN_HI, last_hi, place != NOWHERE)
            if other == 2:
                references[referring] = numbers[place]
                referring += _ONE
            literals[literal] = end
            literal += np.uint64(other == 1)
            last_lo, last_hi = (end, end) if other != 0 else (last_lo, last_hi)
            byte = byte >> _FOUR | (state | other << np.uint64(2)) << _FOUR
            states[half >> _ONE] = byte
            half += _ONE
        for box in range(start + _ONE, stop):
            last_lo, last_hi = OPEN_LO, OPEN_HI
            for at in range(box * dims, box * dims + dims):
                before_lo, before_hi = flat_lo[at - dims], flat_hi[at - dims]
                end = flat_lo[at]
                state = _state(end, OPEN_LO, before_hi + 1 if has_stairs else last_lo, end == before_lo)
                literals[literal] = end
                literal += np.uint64(state == 1)
                last_lo, last_hi = (end, end) if state != 0 else (last_lo, last_hi)
                end = flat_hi[at]
                other = _state(end, OPEN_HI, before_lo - 1 if has_stairs else last_hi, end == before_hi)
                literals[literal] = end
                literal += np.uint64(other == 1)
                last_lo, last_hi = (end, end) if other != 0 else (last_lo, last_hi)
                byte = byte >> _FOUR | (state | other << np.uint64(2)) << _FOUR
                states[half >> _ONE] = byte
                half += _ONE
    if half & _ONE:
        states[half >> _ONE] = byte >> _FOUR
    return states[: (half + _ONE) >> _ONE], references[:referring].copy(), literals[:literal]


@njit(cache=True)
def count_ends(lo: I64, hi: I64, starts: I64, groups: I64, known: I64, has_stairs: bool) -> tuple[I64, I64]:
    """The number of literals and of references that `write_ends` gives for each of these groups."""
    literals, references = np.zeros(len(groups), np.int64), np.zeros(len(groups), np.int64)
    for i in range(len(groups)):
        for box in range(starts[groups[i]], starts[groups[i] + 1]):
            is_first = box == starts[groups[i]]
            last_lo, last_hi = OPEN_LO, OPEN_HI
            for d in range(lo.shape[1]):
                if has_stairs and not is_first:
                    last_lo, last_hi = hi[box - 1, d] + 1, lo[box - 1, d] - 1
                for side in range(2):
                    end = hi[box, d] if side else lo[box, d]
                    if is_first:
                        is_known = _place_of(known, i, end) != NOWHERE
                    else:
                        is_known = end == (hi[box - 1, d] if side else lo[box - 1, d])
                    state = _state(end, OPEN_HI if side else OPEN_LO, last_hi if side else last_lo, is_known)
                    literals[i] += state == 1
                    references[i] += is_first and state == 2
                    if state != 0 and (is_first or not has_stairs):
                        last_lo, last_hi = end, end
    return literals, references


@njit(inline="always")
def _state(end: Any, open_end: Any, last: Any, is_known: Any) -> Any:
    state = np.uint64(2) if is_known else np.uint64(1)
    state = np.uint64(3) if end == last else state
    return np.uint64(0) if end == open_end else state


@njit(inline="always")
def _place_of(known: I64, row: Any, end: Any) -> Any:
    """The first place of the number in its row, or NOWHERE."""
    place = NOWHERE
    for j in range(known.shape[1] - 1, -1, -1):
        place = j if known[row, j] == end and end != OPEN_LO else place
    return place


@njit(cache=True)
def count_references(states: U8, starts: I64, dims: int) -> int:
    """How many ends of first boxes have state 2."""
    count = 0
    for group in range(len(starts) - 1):
        if starts[group] == starts[group + 1]:
            continue
        for half in range(starts[group] * dims, (starts[group] + 1) * dims):
            pair = states[half >> 1] >> (half & 1) * 4
            count += (pair & 3) == 2
            count += (pair >> 2 & 3) == 2
    return count


@njit(cache=True)
def read_ends(
    states: U8, references: U8, literals: I64, starts: I64, known: I64, places: I64, has_stairs: bool, lo: I64, hi: I64
) -> bool:
    """Fills lo and hi; False if what the states ask for is not what there is.

    places[n] is the column of `known` that reference n stands for, or NOWHERE. `literals` has one more than there are.
    """
    dims = lo.shape[1]
    count = len(literals) - 1
    half, referring, literal = np.uint64(0), 0, 0
    for group in range(len(starts) - 1):
        for box in range(starts[group], starts[group + 1]):
            is_first = box == starts[group]
            last = np.int64(0)
            for d in range(dims):
                pair = states[half >> np.uint64(1)] >> (half & np.uint64(1)) * np.uint64(4)
                half += np.uint64(1)
                lo_state, hi_state = pair & 3, pair >> 2 & 3
                if literal + 2 > count and literal + (lo_state == 1) + (hi_state == 1) > count:
                    return False
                if is_first:
                    before_lo = before_hi = np.int64(0)
                    if lo_state == 2:
                        if places[references[referring]] == NOWHERE:
                            return False
                        before_lo = known[group, places[references[referring]]]
                        referring += 1
                    if hi_state == 2:
                        if places[references[referring]] == NOWHERE:
                            return False
                        before_hi = known[group, places[references[referring]]]
                        referring += 1
                else:
                    before_lo, before_hi = lo[box - 1, d], hi[box - 1, d]
                is_stair = has_stairs and not is_first
                end = before_lo if lo_state == 2 else literals[literal]
                end = (before_hi + 1 if is_stair else last) if lo_state == 3 else end
                end = OPEN_LO if lo_state == 0 else end
                literal += lo_state == 1
                last = end if lo_state != 0 else last
                lo[box, d] = end
                end = before_hi if hi_state == 2 else literals[literal]
                end = (before_lo - 1 if is_stair else last) if hi_state == 3 else end
                end = OPEN_HI if hi_state == 0 else end
                literal += hi_state == 1
                last = end if hi_state != 0 else last
                hi[box, d] = end
    return literal == count and referring == len(references)
