"""The members of an audience: its distinct reaches in ascending order, each with a count and the labels used so far."""

from __future__ import annotations

import numpy as np

from tidings.kernels.anchors_arrays import (
    AUDIENCE_FIELDS,
    AUDIENCE_ROOT,
    AUDIENCE_SHAPE,
    COUNT,
    LABEL_HI,
    LABEL_LO,
    MEMBER_MAX,
    MEMBER_WIDTH,
    MEMBERS,
    ROOT_CHILD,
    ROOT_SHAPE,
    ROOT_WIDTH,
    ROOTS,
    Float,
    Int,
    Pointers,
    class_for,
    copy_span,
    extent_fit,
    extent_free,
    extent_new,
    is_hit,
)
from tidings.kernels.jit import kernel


@kernel
def root_of(s: Pointers, audience: Int) -> tuple[Int, Int, Int]:
    """Offset, size and class of an audience's root."""
    shape = s.audiences[audience * AUDIENCE_FIELDS + AUDIENCE_SHAPE]
    return s.audiences[audience * AUDIENCE_FIELDS + AUDIENCE_ROOT], shape >> 8, shape & 255


@kernel
def block_of(s: Pointers, audience: Int, b: Int) -> tuple[Int, Int, Int]:
    """Offset, size and class of an audience's b-th block."""
    root, _, k = root_of(s, audience)
    shape = s.m[root + (ROOT_SHAPE << k) + b]
    return s.m[root + (ROOT_CHILD << k) + b], shape >> 8, shape & 255


@kernel
def find_reach(s: Pointers, audience: Int, reach: Float) -> tuple[Int, Int]:
    """Block and place of the highest reach up to the given one; (-1, -1) if there is none."""
    root, blocks, _ = root_of(s, audience)
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
    offset, size, _ = block_of(s, audience, b)
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
    root, blocks, _ = root_of(s, audience)
    b = last_hit_of(s, root, blocks, kind, c, d)
    offset, size, _ = block_of(s, audience, b)
    i = last_hit_of(s, offset, size, kind, c, d)
    following = s.f[offset + i + 1] if i + 1 < size else s.f[root + b + 1]
    return s.f[offset + i], following


@kernel
def member_at(s: Pointers, audience: Int, reach: Float) -> Int:
    """Where in m the COUNT, LABEL_LO and LABEL_HI of a reach are, as (place, stride); place -1 if it is not there."""
    b, i = find_reach(s, audience, reach)
    if b >= 0:
        offset, _, k = block_of(s, audience, b)
        if s.f[offset + i] == reach:
            return offset + i, 1 << k
    return -1, 0


@kernel
def neighbours(s: Pointers, audience: Int, reach: Float) -> tuple[Float, Float]:
    """The highest reach below and the lowest above a given one; NaN if there is none."""
    below = above = np.nan
    root, blocks, _ = root_of(s, audience)
    b, i = find_reach(s, audience, reach)
    if b >= 0:
        offset, size, _ = block_of(s, audience, b)
        if s.f[offset + i] < reach:
            below = s.f[offset + i]
        elif i > 0:
            below = s.f[offset + i - 1]
        elif b > 0:
            before, count, _ = block_of(s, audience, b - 1)
            below = s.f[before + count - 1]
        if i + 1 < size:
            return below, s.f[offset + i + 1]
    if b + 1 < blocks:
        above = s.f[root + b + 1]
    return below, above


@kernel
def extremes(s: Pointers, audience: Int) -> tuple[Float, Float]:
    """The lowest and the highest reach of an audience that has any."""
    root, blocks, _ = root_of(s, audience)
    offset, size, _ = block_of(s, audience, blocks - 1)
    return s.f[root], s.f[offset + size - 1]


@kernel
def root_resize(s: Pointers, audience: Int, size: Int) -> None:
    """Make the root of an audience one for so many blocks."""
    offset, held, k = root_of(s, audience)
    if held == 0:
        k = class_for(size)
        offset = extent_new(s, ROOTS, k)
    elif size == 0:
        extent_free(s, ROOTS, offset, k)
        k = 0
    else:
        offset, k = extent_fit(s, ROOTS, offset, k, held, size)
    s.audiences[audience * AUDIENCE_FIELDS + AUDIENCE_ROOT] = offset
    s.audiences[audience * AUDIENCE_FIELDS + AUDIENCE_SHAPE] = size << 8 | k


@kernel
def set_block(s: Pointers, audience: Int, b: Int, offset: Int, size: Int, k: Int) -> None:
    """Enter a block of members in the root."""
    root, _, kr = root_of(s, audience)
    s.f[root + b] = s.f[offset]
    s.m[root + (ROOT_CHILD << kr) + b] = offset
    s.m[root + (ROOT_SHAPE << kr) + b] = size << 8 | k


@kernel
def root_insert(s: Pointers, audience: Int, b: Int) -> None:
    """Open a gap at place b of the root, to be filled by `set_block`."""
    size = root_of(s, audience)[1]
    root_resize(s, audience, size + 1)
    root, _, k = root_of(s, audience)
    copy_span(s.m, ROOT_WIDTH, root, k, b, root, k, b + 1, size - b)


@kernel
def root_delete(s: Pointers, audience: Int, b: Int) -> None:
    """Take the b-th block, which is freed, out of the root."""
    root, size, k = root_of(s, audience)
    copy_span(s.m, ROOT_WIDTH, root, k, b + 1, root, k, b, size - b - 1)
    root_resize(s, audience, size - 1)


@kernel
def insert_reach(s: Pointers, audience: Int, reach: Float, label: Int) -> None:
    """Add a reach that is not there, with one member."""
    b, i = find_reach(s, audience, reach)
    if root_of(s, audience)[1] == 0:
        root_insert(s, audience, 0)
        offset, size, k = extent_new(s, MEMBERS, 0), 0, 0
        b, i = 0, -1
    else:
        b = max(b, 0)
        offset, size, k = block_of(s, audience, b)
    if size == MEMBER_MAX:
        half = size >> 1
        other = extent_new(s, MEMBERS, k)
        copy_span(s.m, MEMBER_WIDTH, offset, k, half, other, k, 0, size - half)
        root_insert(s, audience, b + 1)
        set_block(s, audience, b + 1, other, size - half, k)
        set_block(s, audience, b, offset, half, k)
        if i >= half:
            b, i, offset, half = b + 1, i - half, other, size - half
        size = half
    offset, k = extent_fit(s, MEMBERS, offset, k, size, size + 1)
    at = i + 1
    copy_span(s.m, MEMBER_WIDTH, offset, k, at, offset, k, at + 1, size - at)
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
    offset, size, k = block_of(s, audience, b)
    copy_span(s.m, MEMBER_WIDTH, offset, k, i + 1, offset, k, i, size - i - 1)
    size -= 1
    if size == 0:
        extent_free(s, MEMBERS, offset, k)
        root_delete(s, audience, b)
        return
    set_block(s, audience, b, offset, size, k)
    if size > MEMBER_MAX // 8:
        return
    if b + 1 < root_of(s, audience)[1]:
        other, more, ko = block_of(s, audience, b + 1)
        if size + more <= MEMBER_MAX // 2:
            offset, k = extent_fit(s, MEMBERS, offset, k, size, size + more)
            copy_span(s.m, MEMBER_WIDTH, other, ko, 0, offset, k, size, more)
            extent_free(s, MEMBERS, other, ko)
            root_delete(s, audience, b + 1)
            set_block(s, audience, b, offset, size + more, k)
            return
    offset, k = extent_fit(s, MEMBERS, offset, k, size, size)
    set_block(s, audience, b, offset, size, k)
