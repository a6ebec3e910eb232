"""Where a threshold index lies in memory, when a member is reached, and the sorted reaches of an audience.

Sequences are lists of lists, as in a B+-tree of fixed height. Each list is an extent (`tidings.kernels.extents`) with room for
a power of two of entries, its *class* being the exponent, field after field; `f` and `m` are the same memory, as floats and
as integers. A reference to a list is its offset and its *shape*, size << 8 | class.

    audience   root -> blocks of reaches                 the distinct reaches of its members, ascending
    item       root -> nodes -> blocks of records        runs of members with equal anchors, in the order of keys (`runs`)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidings.kernels import extents
from tidings.kernels.arrays import F64, I64, INT64_MAX, INT64_MIN, ZERO, Float, Int
from tidings.kernels.extents import EXTENT_FIELDS, allocate, class_for, copy_span, release
from tidings.kernels.intrinsics import pointer
from tidings.kernels.jit import kernel

LABEL_MIN: Int = np.int64(INT64_MIN)
LABEL_MAX: Int = np.int64(INT64_MAX)
NO_TIME = INT64_MIN
CHOOSE = INT64_MIN
"""In place of a label: let one be chosen. No member has it."""

ABSOLUTE, PERCENT, RATIO = 0, 1, 2

BLOCK_MAX = 32
"""Most records in a block."""
NODE_MAX = 64
"""Most blocks in a node; twice as many while an item is worked on."""
REACHES_MAX = 128
"""Most reaches in a block: these are searched, never scanned, so the blocks may be larger."""

# Fields of an entry, by sort of list: records of runs, references to lists of these, reaches, references to lists of reaches.
RECORD_WIDTH, LIST_WIDTH, REACH_WIDTH, ROOT_WIDTH = np.int64(10), np.int64(7), np.int64(4), np.int64(3)

# Fields of records and of references to lists of them; the first ones are the same, so that both are scanned and searched
# alike. A reference has the lowest UP, highest DN, lowest DUE and the first key (LO, L1) of what is below it.
UP, DN, DUE, LO, L1, C, HI, T0, L2, N = range(10)
CHILD, SHAPE = 5, 6
# Fields of reaches, and of references to lists of them; the first is the reach, or the first reach, in both.
COUNT, LABEL_LO, LABEL_HI = 1, 2, 3
ROOT_CHILD, ROOT_SHAPE = 1, 2

# Fields of a row of `items` (ITEM_AUDIENCE is -1 if the item is free, then chained by NEXT) and of `audiences`.
ITEM_AUDIENCE, TIME, NEXT, PREVIOUS, ITEM_ROOT, ITEM_SHAPE, ITEM_FIELDS = 0, 1, 2, 3, 4, 5, 6
FIRST_ITEM, ITEMS, TOTAL, AUDIENCE_ROOT, AUDIENCE_SHAPE, AUDIENCE_FIELDS = 0, 1, 2, 3, 4, 5

# Fields of `head` behind those of the allocator; RESUME is the item at which the change of a member is to go on, or -1, and
# then come the count and the labels of the reach before that change.
KIND, PATIENCE, PROGRESS, ITEM_TOP, ITEM_FREE, AUDIENCE_TOP, BOXES, BOXES_WANTED = range(
    EXTENT_FIELDS, EXTENT_FIELDS + 8
)
RESUME, COUNT_BEFORE, LABEL_LO_BEFORE, LABEL_HI_BEFORE = range(EXTENT_FIELDS + 8, EXTENT_FIELDS + 12)
# Of the walk of a move: what is open (in which extent, and where), how many records are in the scratch extent, the wide
# record before an open part of the same range, and the last count looked up.
OPEN, AT, CLASS, PLACE, M, WIDE_BEFORE, WIDE_AT, WIDE_CLASS, WIDE_PLACE, LAST_COUNT = range(
    EXTENT_FIELDS + 12, EXTENT_FIELDS + 22
)
# Of the choice of labels: the usual distance between two, whether they are given anew when there is none left, and behind
# which one there was none.
STEP, RENEWS, GAP, HEAD_FIELDS = range(EXTENT_FIELDS + 22, EXTENT_FIELDS + 26)

# What a kernel reports. Where it stopped is in head[PROGRESS].
DONE, NEEDS_ROOM, BAD_KEY, BAD_LABEL, NOT_ALONE, NO_LABEL, BAD_AUDIENCE, BAD_REACH, BAD_ITEM = range(9)

SCRATCH, SCRATCH_CLASS = np.int64(0), np.int64(7)
"""The memory begins with two lists of records: what replaces a part of a block, and a whole block that is to be cut."""
WHOLE = RECORD_WIDTH << SCRATCH_CLASS
KNOWN_REACH = 2 * WHOLE
"""A word of the memory: the reach whose count was last looked up in a move."""
MEMORY_START = 2 * int(WHOLE) + 1


class Arrays(NamedTuple):
    """All state; every kernel gets exactly these, in this order."""

    head: I64
    items: I64
    """[items, ITEM_FIELDS]"""
    values: F64
    """[items] current values, NaN if void."""
    audiences: I64
    """[audiences, AUDIENCE_FIELDS]"""
    m: I64
    """Memory of all lists, as integers."""
    f: F64
    """The same, as floats."""


def empty_arrays(kind: int, patience: int, step: int, *, renews: bool) -> Arrays:
    """The arrays of an index without audiences and items."""
    memory = np.zeros(MEMORY_START, np.int64)
    head = extents.new_head(HEAD_FIELDS, MEMORY_START, memory)
    head[KIND], head[PATIENCE], head[ITEM_FREE], head[RESUME] = kind, patience, -1, -1
    head[STEP], head[RENEWS] = step, renews
    items, audiences = np.zeros((0, ITEM_FIELDS), np.int64), np.zeros((0, AUDIENCE_FIELDS), np.int64)
    return Arrays(head, items, np.zeros(0), audiences, memory, memory.view(np.float64))


class Pointers(NamedTuple):
    """Pointers to the arrays, for compiled code (see `pointer`). Rows are laid end to end."""

    head: Any
    items: Any
    values: Any
    audiences: Any
    m: Any
    f: Any


@kernel
def pointers(head: I64, items: I64, values: F64, audiences: I64, m: I64, f: F64) -> Pointers:
    """What all functions below a kernel work on."""
    return Pointers(pointer(head), pointer(items), pointer(values), pointer(audiences), pointer(m), pointer(f))


# --- When a member is reached ---


@kernel(error_model="numpy")
def thresholds(kind: Int, c: Float, reach: Float) -> tuple[Float, Float]:
    """The values at and above, and at and below, which a member anchored at c is touched; rounded as defined."""
    if kind == ABSOLUTE:
        return c + reach, c - reach
    if kind == PERCENT:
        step = abs(c) * reach / 100.0
        return c + step, c - step
    return c * reach, c / reach


@kernel(error_model="numpy")
def is_hit(kind: Int, c: Float, reach: Float, d: Float) -> bool:
    """True if the move to d touches a member anchored at c by value."""
    up, dn = thresholds(kind, c, reach)
    return bool(d >= up or d <= dn)


@kernel
def due_after(patience: Int, t0: Int) -> Int:
    """The last time at which patience with an anchor of time t0 lasts; a later one touches."""
    if patience == 0 or t0 == NO_TIME or t0 > INT64_MAX - patience:
        return INT64_MAX
    return t0 + (patience - 1)


# --- Lists ---


@kernel
def list_new(s: Pointers, width: Int, k: Int) -> Int:
    """Offset of a list of class k, of entries with so many fields; the caller has made sure that there is room."""
    return allocate(s.m, s.head, width << k)


@kernel
def list_free(s: Pointers, width: Int, offset: Int, k: Int) -> None:
    """Gives a list of class k back."""
    release(s.m, s.head, offset, width << k)


@kernel
def list_fit(s: Pointers, width: Int, offset: Int, k: Int, size: Int, wanted: Int) -> tuple[Int, Int]:
    """Offset and class of a list with the given one's entries and room for `wanted`, but not for four times as many."""
    if wanted > (1 << k) or (wanted << 2) <= (1 << k):
        fitting = class_for(wanted)
        moved = list_new(s, width, fitting)
        copy_span(s.m, width, offset, k, ZERO, moved, fitting, ZERO, min(size, wanted))
        list_free(s, width, offset, k)
        return moved, fitting
    return offset, k


@kernel
def has_room(s: Pointers, records: Int, lists: Int, reaches: Int, roots: Int) -> bool:
    """Whether there is memory for so many entries of each sort."""
    words = records * RECORD_WIDTH + lists * LIST_WIDTH + reaches * REACH_WIDTH + roots * ROOT_WIDTH
    return bool(extents.has_room(s.head, words + 32))


# --- The reaches of an audience, ascending; each with a count of members and the labels used so far ---


@kernel
def reach_root_of(s: Pointers, audience: Int) -> tuple[Int, Int, Int]:
    """Offset, size and class of an audience's root."""
    shape = s.audiences[audience * AUDIENCE_FIELDS + AUDIENCE_SHAPE]
    return s.audiences[audience * AUDIENCE_FIELDS + AUDIENCE_ROOT], shape >> 8, shape & 255


@kernel
def reach_block_of(s: Pointers, audience: Int, b: Int) -> tuple[Int, Int, Int]:
    """Offset, size and class of an audience's b-th block."""
    root, _, k = reach_root_of(s, audience)
    shape = s.m[root + (ROOT_SHAPE << k) + b]
    return s.m[root + (ROOT_CHILD << k) + b], shape >> 8, shape & 255


@kernel
def find_reach(s: Pointers, audience: Int, reach: Float) -> tuple[Int, Int]:
    """Block and place of the highest reach up to the given one; (-1, -1) if there is none."""
    root, blocks, _ = reach_root_of(s, audience)
    lo, hi = -1, blocks - 1
    while lo < hi:
        middle = (lo + hi + 1) >> 1
        if s.f[root + middle] <= reach:
            lo = middle
        else:
            hi = middle - 1
    if lo < 0:
        return -1, -1
    b = lo
    offset, size, _ = reach_block_of(s, audience, b)
    lo, hi = 0, size - 1
    while lo < hi:
        middle = (lo + hi + 1) >> 1
        if s.f[offset + middle] <= reach:
            lo = middle
        else:
            hi = middle - 1
    return b, lo


@kernel
def last_hit_of(s: Pointers, offset: Int, size: Int, kind: Int, c: Float, d: Float) -> Int:
    """Place of the last of so many reaches that is touched by a move from c to d; the first one is."""
    at = offset
    while size > 1:
        half = size >> 1
        at = at + half if is_hit(kind, c, s.f[at + half], d) else at
        size -= half
    return at - offset


@kernel
def last_hit(s: Pointers, audience: Int, kind: Int, c: Float, d: Float) -> tuple[Float, Float]:
    """The highest reach touched by a move from c to d, and the next one; there are both.

    Touched reaches come first, as rounding is monotone; so the predicate itself is searched, and no equation solved.
    """
    root, blocks, _ = reach_root_of(s, audience)
    b = last_hit_of(s, root, blocks, kind, c, d)
    offset, size, _ = reach_block_of(s, audience, b)
    i = last_hit_of(s, offset, size, kind, c, d)
    following = s.f[offset + i + 1] if i + 1 < size else s.f[root + b + 1]
    return s.f[offset + i], following


@kernel
def reach_at(s: Pointers, audience: Int, reach: Float) -> Int:
    """Where in m the COUNT, LABEL_LO and LABEL_HI of a reach are, as (place, stride); place -1 if it is not there."""
    b, i = find_reach(s, audience, reach)
    if b >= 0:
        offset, _, k = reach_block_of(s, audience, b)
        if s.f[offset + i] == reach:
            return offset + i, 1 << k
    return -1, 0


@kernel
def neighbours(s: Pointers, audience: Int, reach: Float) -> tuple[Float, Float]:
    """The highest reach below and the lowest above a given one; NaN if there is none."""
    below = above = np.nan
    root, blocks, _ = reach_root_of(s, audience)
    b, i = find_reach(s, audience, reach)
    if b >= 0:
        offset, size, _ = reach_block_of(s, audience, b)
        if s.f[offset + i] < reach:
            below = s.f[offset + i]
        elif i > 0:
            below = s.f[offset + i - 1]
        elif b > 0:
            before, count, _ = reach_block_of(s, audience, b - 1)
            below = s.f[before + count - 1]
        if i + 1 < size:
            return below, s.f[offset + i + 1]
    if b + 1 < blocks:
        above = s.f[root + b + 1]
    return below, above


@kernel
def extremes(s: Pointers, audience: Int) -> tuple[Float, Float]:
    """The lowest and the highest reach of an audience that has any."""
    root, blocks, _ = reach_root_of(s, audience)
    offset, size, _ = reach_block_of(s, audience, blocks - 1)
    return s.f[root], s.f[offset + size - 1]


@kernel
def resize_root(s: Pointers, audience: Int, size: Int) -> None:
    """Make the root of an audience one for so many blocks."""
    offset, held, k = reach_root_of(s, audience)
    if held == 0:
        k = class_for(size)
        offset = list_new(s, ROOT_WIDTH, k)
    elif size == 0:
        list_free(s, ROOT_WIDTH, offset, k)
        k = 0
    else:
        offset, k = list_fit(s, ROOT_WIDTH, offset, k, held, size)
    s.audiences[audience * AUDIENCE_FIELDS + AUDIENCE_ROOT] = offset
    s.audiences[audience * AUDIENCE_FIELDS + AUDIENCE_SHAPE] = size << 8 | k


@kernel
def set_block(s: Pointers, audience: Int, b: Int, offset: Int, size: Int, k: Int) -> None:
    """Enter a block of members in the root."""
    root, _, kr = reach_root_of(s, audience)
    s.f[root + b] = s.f[offset]
    s.m[root + (ROOT_CHILD << kr) + b] = offset
    s.m[root + (ROOT_SHAPE << kr) + b] = size << 8 | k


@kernel
def open_root(s: Pointers, audience: Int, b: Int) -> None:
    """Open a gap at place b of the root, to be filled by `set_block`."""
    size = reach_root_of(s, audience)[1]
    resize_root(s, audience, size + 1)
    root, _, k = reach_root_of(s, audience)
    copy_span(s.m, ROOT_WIDTH, root, k, b, root, k, b + 1, size - b)


@kernel
def close_root(s: Pointers, audience: Int, b: Int) -> None:
    """Take the b-th block, which is freed, out of the root."""
    root, size, k = reach_root_of(s, audience)
    copy_span(s.m, ROOT_WIDTH, root, k, b + 1, root, k, b, size - b - 1)
    resize_root(s, audience, size - 1)


@kernel
def insert_reach(s: Pointers, audience: Int, reach: Float, label: Int) -> None:
    """Add a reach that is not there, with one member."""
    b, i = find_reach(s, audience, reach)
    if reach_root_of(s, audience)[1] == 0:
        open_root(s, audience, ZERO)
        offset, size, k = list_new(s, REACH_WIDTH, ZERO), 0, 0
        b, i = 0, -1
    else:
        b = max(b, 0)
        offset, size, k = reach_block_of(s, audience, b)
    if size == REACHES_MAX:
        half = size >> 1
        other = list_new(s, REACH_WIDTH, k)
        copy_span(s.m, REACH_WIDTH, offset, k, half, other, k, ZERO, size - half)
        open_root(s, audience, b + 1)
        set_block(s, audience, b + 1, other, size - half, k)
        set_block(s, audience, b, offset, half, k)
        if i >= half:
            b, i, offset, half = b + 1, i - half, other, size - half
        size = half
    offset, k = list_fit(s, REACH_WIDTH, offset, k, size, size + 1)
    at = i + 1
    copy_span(s.m, REACH_WIDTH, offset, k, at, offset, k, at + 1, size - at)
    s.f[offset + at] = reach
    place = offset + at
    s.m[place + (COUNT << k)] = 1
    s.m[place + (LABEL_LO << k)] = label
    s.m[place + (LABEL_HI << k)] = label
    set_block(s, audience, b, offset, size + 1, k)


@kernel
def delete_reach(s: Pointers, audience: Int, reach: Float) -> None:
    """Take out a reach that is there; a block that has become small joins the next one if that is small, too."""
    b, i = find_reach(s, audience, reach)
    offset, size, k = reach_block_of(s, audience, b)
    copy_span(s.m, REACH_WIDTH, offset, k, i + 1, offset, k, i, size - i - 1)
    size -= 1
    if size == 0:
        list_free(s, REACH_WIDTH, offset, k)
        close_root(s, audience, b)
        return
    set_block(s, audience, b, offset, size, k)
    if size > REACHES_MAX // 8:
        return
    if b + 1 < reach_root_of(s, audience)[1]:
        other, more, ko = reach_block_of(s, audience, b + 1)
        if size + more <= REACHES_MAX // 2:
            offset, k = list_fit(s, REACH_WIDTH, offset, k, size, size + more)
            copy_span(s.m, REACH_WIDTH, other, ko, ZERO, offset, k, size, more)
            list_free(s, REACH_WIDTH, other, ko)
            close_root(s, audience, b + 1)
            set_block(s, audience, b, offset, size + more, k)
            return
    offset, k = list_fit(s, REACH_WIDTH, offset, k, size, size)
    set_block(s, audience, b, offset, size, k)
