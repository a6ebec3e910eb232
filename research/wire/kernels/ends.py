"""Ends of boxes: which of them say something new, and what the others are (layout.py has the four states).

Boxes of group g are starts[g]:starts[g + 1]; lo, hi: (boxes, dims). `known`: (numbers, groups), the codes of payload values
that ends of a group's first box may refer to, but OPEN_LO, which stands for none. In a box the ends come as lo and hi of the
first dimension, lo and hi of the next, .. A dimension's two states share half a byte, the lo's in its lower bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from research.wire.kernels.varints import I64, U8
from tidings.kernels.jit import kernel

OPEN_LO = np.int64(-(2**63))
OPEN_HI = np.int64(2**63 - 1)
NOWHERE = -1
_ONE, _TWO, _THREE, _FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)

# `last_lo` and `last_hi` are the bounded end before in the box; until there is one, what no bounded lo, no bounded hi can be.
# In later boxes of a batch with stairs state 3 means another thing: the numbers next to the other end of the dimension in the
# box before, `_above` its hi and `_below` its lo. Ends of all kinds come mixed: hence few branches.


@kernel
def write_ends(
    lo: I64, hi: I64, starts: I64, groups: I64, known: I64, numbers: U8, has_stairs: bool
) -> tuple[U8, U8, I64]:
    """States, references and literals of the boxes of these groups; column i of `known` is of groups[i].

    Of the numbers known, numbers[j] is what stands for known[j] in references.
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
            byte = byte >> _FOUR | (state | other << _TWO) << _FOUR
            states[half >> _ONE] = byte
            half += _ONE
        if has_stairs:
            for at in range((start + _ONE) * dims, stop * dims):
                before_lo, before_hi = flat_lo[at - dims], flat_hi[at - dims]
                end = flat_lo[at]
                state = _state(end, OPEN_LO, _above(before_hi), end == before_lo)
                literals[literal] = end
                literal += np.uint64(state == 1)
                end = flat_hi[at]
                other = _state(end, OPEN_HI, _below(before_lo), end == before_hi)
                literals[literal] = end
                literal += np.uint64(other == 1)
                byte = byte >> _FOUR | (state | other << _TWO) << _FOUR
                states[half >> _ONE] = byte
                half += _ONE
        else:
            for box in range(start + _ONE, stop):
                last_lo, last_hi = OPEN_LO, OPEN_HI
                for at in range(box * dims, box * dims + dims):
                    end = flat_lo[at]
                    state = _state(end, OPEN_LO, last_lo, end == flat_lo[at - dims])
                    literals[literal] = end
                    literal += np.uint64(state == 1)
                    last_lo = end if state != 0 else last_lo
                    last_hi = end if state != 0 else last_hi
                    end = flat_hi[at]
                    other = _state(end, OPEN_HI, last_hi, end == flat_hi[at - dims])
                    literals[literal] = end
                    literal += np.uint64(other == 1)
                    last_lo = end if other != 0 else last_lo
                    last_hi = end if other != 0 else last_hi
                    byte = byte >> _FOUR | (state | other << _TWO) << _FOUR
                    states[half >> _ONE] = byte
                    half += _ONE
    if half & _ONE:
        states[half >> _ONE] = byte >> _FOUR
    return states[: (half + _ONE) >> _ONE], references[:referring].copy(), literals[:literal]


@kernel
def count_ends(lo: I64, hi: I64, starts: I64, groups: I64, known: I64, has_stairs: bool) -> tuple[I64, I64]:
    """The number of literals and of references that `write_ends` gives for each of these groups."""
    literals, references = np.zeros(len(groups), np.int64), np.zeros(len(groups), np.int64)
    for i in range(len(groups)):
        for box in range(starts[groups[i]], starts[groups[i] + 1]):
            is_first = box == starts[groups[i]]
            last_lo, last_hi = OPEN_LO, OPEN_HI
            for d in range(lo.shape[1]):
                if has_stairs and not is_first:
                    last_lo, last_hi = _above(hi[box - 1, d]), _below(lo[box - 1, d])
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


@kernel(inline="always")
def _state(end: Any, open_end: Any, last: Any, is_known: Any) -> Any:
    state = np.uint64(2) if is_known else np.uint64(1)
    state = np.uint64(3) if end == last else state
    return np.uint64(0) if end == open_end else state


# Beyond the last code comes the first, which is an open end there, and so never told by state 3. Unsigned, because the
# compiler takes it that signed numbers never overflow: it would conclude that what is next to an end is not open, and ask
# for state 3 before it asks for state 0.


@kernel(inline="always")
def _above(end: Any) -> Any:
    return np.int64(np.uint64(end) + _ONE)


@kernel(inline="always")
def _below(end: Any) -> Any:
    return np.int64(np.uint64(end) - _ONE)


@kernel(inline="always")
def _place_of(known: I64, column: Any, end: Any) -> Any:
    """The first place of the number in its column, or NOWHERE."""
    place = NOWHERE
    for j in range(known.shape[0] - 1, -1, -1):
        place = j if known[j, column] == end and end != OPEN_LO else place
    return place


@kernel
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


@kernel
def read_ends(
    states: U8, references: U8, literals: I64, starts: I64, known: I64, places: I64, has_stairs: bool, lo: I64, hi: I64
) -> bool:
    """Fills lo and hi; False if what the states ask for is not what there is.

    places[n] is the row of `known` that reference n stands for, or NOWHERE. `literals` has one more than there are.
    """
    dims, flat_lo, flat_hi = np.uint64(lo.shape[1]), lo.reshape(-1), hi.reshape(-1)
    count = np.uint64(len(literals) - 1)
    half, referring, literal = np.uint64(0), np.uint64(0), np.uint64(0)
    for group in range(len(starts) - 1):
        start, stop = np.uint64(starts[group]), np.uint64(starts[group + 1])
        if start == stop:
            continue
        last = np.int64(0)
        for at in range(start * dims, start * dims + dims):
            pair = np.uint64(states[half >> _ONE]) >> (half & _ONE) * _FOUR
            half += _ONE
            state, other = pair & _THREE, pair >> _TWO & _THREE
            if literal + np.uint64(state == 1) + np.uint64(other == 1) > count:
                return False
            end = last if state == 3 else literals[literal]
            if state == 2:
                if places[references[referring]] == NOWHERE:
                    return False
                end = known[places[references[referring]], group]
                referring += _ONE
            literal += np.uint64(state == 1)
            last = end if state != 0 else last
            flat_lo[at] = end if state != 0 else OPEN_LO
            end = last if other == 3 else literals[literal]
            if other == 2:
                if places[references[referring]] == NOWHERE:
                    return False
                end = known[places[references[referring]], group]
                referring += _ONE
            literal += np.uint64(other == 1)
            last = end if other != 0 else last
            flat_hi[at] = end if other != 0 else OPEN_HI
        for box in range(start + _ONE, stop):
            last = np.int64(0)
            for at in range(box * dims, box * dims + dims):
                pair = np.uint64(states[half >> _ONE]) >> (half & _ONE) * _FOUR
                half += _ONE
                state, other = pair & _THREE, pair >> _TWO & _THREE
                if literal + np.uint64(state == 1) + np.uint64(other == 1) > count:
                    return False
                before_lo, before_hi = flat_lo[at - dims], flat_hi[at - dims]
                end = before_lo if state == 2 else literals[literal]
                end = (_above(before_hi) if has_stairs else last) if state == 3 else end
                literal += np.uint64(state == 1)
                last = end if state != 0 else last
                flat_lo[at] = end if state != 0 else OPEN_LO
                end = before_hi if other == 2 else literals[literal]
                end = (_below(before_lo) if has_stairs else last) if other == 3 else end
                literal += np.uint64(other == 1)
                last = end if other != 0 else last
                flat_hi[at] = end if other != 0 else OPEN_HI
    return literal == count and referring == np.uint64(len(references))
