"""The packed tree of a large cell: boxes in kd order, leaves of 64, nodes of 16, bounds (lowest lo, highest hi) per axis.

Positions are ordered so that each aligned run of 64, of 16 * 64, .. is what a kd-tree would put together; the tree is then
only the bounds of these runs. A cut is at the median of one end of one axis: the one for which a vector is expected to
meet the fewest of the two halves, if vectors are spread as the finite ends of boxes are.
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.extents import NOWHERE, class_words, size_class
from tidings.kernels.jit import kernel
from tidings.kernels.rows import I64, Int
from tidings.kernels.stabbing.stabbing_layout import (
    BOX,
    CODE_MAX,
    CODE_MIN,
    DATA,
    DEAD,
    DIMS,
    FAN,
    FAN_BITS,
    KIND_FIELDS,
    KIND_MASK,
    LEAF,
    LEAF_BITS,
    MASK,
    NUMBER,
    OWNER,
    PACKED,
    ROOM,
    SHAPE,
    TREE,
    TREE_FIELDS,
    TREE_LEVELS,
    USED,
    Boxes,
    allocate,
    columns_of,
    release,
)

SAMPLE = 31
"""Boxes looked at to choose a cut."""
ENDS_SAMPLE = 64
"""Boxes whose finite ends stand for the vectors that will come."""


@kernel
def tail_max(packed: Int) -> Int:
    """Newcomers beside a tree of so many boxes before it is built anew."""
    return LEAF + 8 * np.int64(np.sqrt(packed))


@kernel
def tree_words(packed: Int, dims: Int) -> Int:
    words = TREE_FIELDS
    entries = packed
    shift = LEAF_BITS
    while True:
        entries = (entries + (1 << shift) - 1) >> shift
        words += 2 + 2 * dims * entries
        shift = FAN_BITS
        if entries <= FAN:
            return words


@kernel
def sort_few(values: I64, n: Int) -> None:
    for i in range(1, n):
        value = values[i]
        j = i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value


@kernel
def count_within(values: I64, n: Int, lo: Int, hi: Int) -> Int:
    """How many of n sorted values lie within a closed range."""
    first, stop = 0, n
    while first < stop:
        middle = (first + stop) >> 1
        if values[middle] < lo:
            first = middle + 1
        else:
            stop = middle
    last, stop = first, n
    while last < stop:
        middle = (last + stop) >> 1
        if values[middle] <= hi:
            last = middle + 1
        else:
            stop = middle
    return last - first


@kernel
def sample_ends(boxes: Boxes, data: Int, room: Int, dims: Int, order: I64) -> tuple[I64, I64]:
    """([dims, 2 * ENDS_SAMPLE] finite ends of some boxes, sorted; how many per axis)."""
    n = order.shape[0]
    ends = np.empty((dims, 2 * ENDS_SAMPLE), np.int64)
    counts = np.zeros(dims, np.int64)
    taken = min(n, ENDS_SAMPLE)
    for d in range(dims):
        count = 0
        for i in range(taken):
            at = data + 2 * d * room + order[i * n // taken]
            for value in (boxes.arena[at], boxes.arena[at + room]):
                if CODE_MIN < value < CODE_MAX:
                    ends[d, count] = value
                    count += 1
        sort_few(ends[d], count)
        counts[d] = count
    return ends, counts


@kernel
def choose_cut(
    boxes: Boxes, data: Int, room: Int, dims: Int, order: I64, start: Int, stop: Int, ends: I64, counts: I64
) -> Int:
    """The column of the end to cut order[start:stop] by."""
    n = min(stop - start, SAMPLE)
    half = n >> 1
    los, his, others = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    best, best_cost = 0, np.inf
    for d in range(dims):
        column = data + 2 * d * room
        for i in range(n):
            at = column + order[start + i * (stop - start) // n]
            los[i], his[i] = boxes.arena[at], boxes.arena[at + room]
        sort_few(los, n)
        sort_few(his, n)
        known = counts[d]
        whole = count_within(ends[d], known, los[0], his[n - 1]) + 1
        for end in range(2):
            cut = los[half] if end == 0 else his[half]
            # The other end of boxes on the side that the cut itself does not bound: left of lo, right of hi.
            m = 0
            for i in range(n):
                at = column + order[start + i * (stop - start) // n]
                lo, hi = boxes.arena[at], boxes.arena[at + room]
                if (end == 0 and lo < cut) or (end == 1 and hi > cut):
                    others[m] = hi if end == 0 else lo
                    m += 1
            sort_few(others, m)
            if m == 0:
                continue
            # Where the two halves lie; quantiles, as one wide box is not to speak for all.
            left_hi, right_lo = (others[3 * m >> 2], cut) if end == 0 else (cut, others[m >> 2])
            left = count_within(ends[d], known, los[0], left_hi)
            right = count_within(ends[d], known, right_lo, his[n - 1])
            cost = (left + right + 2) / whole
            if cost < best_cost:
                best, best_cost = 2 * d + end, cost
    return best


@kernel
def select_nth(keys: I64, order: I64, start: Int, stop: Int, nth: Int) -> None:
    """Quickselect: reorders keys[start:stop], and order with them, so that those before `nth` are not above those after."""
    lo, hi = start, stop - 1
    while lo < hi:
        a, b, c = keys[lo], keys[(lo + hi) >> 1], keys[hi]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = lo, hi
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if nth <= j:
            hi = j
        elif nth >= i:
            lo = i
        else:
            return


@kernel
def kd_order(boxes: Boxes, data: Int, room: Int, dims: Int, order: I64) -> None:
    """Puts positions into kd order."""
    ends, counts = sample_ends(boxes, data, room, dims, order)
    keys = np.empty(order.shape[0], np.int64)
    stack = np.empty((64, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, order.shape[0]
    depth = 1
    while depth:
        depth -= 1
        start, stop = stack[depth, 0], stack[depth, 1]
        if stop - start <= LEAF:
            continue
        unit = LEAF
        while unit * FAN < stop - start:
            unit *= FAN
        middle = start + ((stop - start + unit) // (2 * unit)) * unit
        if middle == stop:
            middle -= unit
        column = data + choose_cut(boxes, data, room, dims, order, start, stop, ends, counts) * room
        for i in range(start, stop):
            keys[i] = boxes.arena[column + order[i]]
        select_nth(keys, order, start, stop, middle)
        stack[depth, 0], stack[depth, 1] = start, middle
        stack[depth + 1, 0], stack[depth + 1, 1] = middle, stop
        depth += 2


@kernel
def put_bounds(boxes: Boxes, source: Int, stride: Int, n: Int, target: Int, target_stride: Int, at: Int) -> None:
    """Bounds of n entries of a column pair, whose first lo is at `source`, to entry `at` of the level above."""
    lo, hi = CODE_MAX, CODE_MIN
    for i in range(n):
        lo = min(lo, boxes.arena[source + i])
        hi = max(hi, boxes.arena[source + stride + i])
    boxes.arena[target + at] = lo
    boxes.arena[target + target_stride + at] = hi


@kernel
def build_tree(boxes: Boxes, cell: Int, packed: Int) -> None:
    """Makes the tree over the first `packed` positions, which are in kd order."""
    dims = boxes.arena[boxes.arena[cell + SHAPE] + DIMS]
    tree = allocate(boxes, tree_words(packed, dims))
    level = 0
    source, stride, count, shift = boxes.arena[cell + DATA], boxes.arena[cell + ROOM], packed, LEAF_BITS
    entries = (count + LEAF - 1) >> LEAF_BITS
    levels = 1
    while entries > FAN:
        entries = (entries + FAN - 1) >> FAN_BITS
        levels += 1
    at = tree + TREE_FIELDS + 2 * levels
    while level < levels:
        entries = (count + (1 << shift) - 1) >> shift
        boxes.arena[tree + TREE_FIELDS + 2 * level] = at
        boxes.arena[tree + TREE_FIELDS + 2 * level + 1] = entries
        for d in range(dims):
            for i in range(entries):
                put_bounds(
                    boxes,
                    source + 2 * d * stride + (i << shift),
                    stride,
                    min(1 << shift, count - (i << shift)),
                    at + 2 * d * entries,
                    entries,
                    i,
                )
        source, stride, count, shift = at, entries, entries, FAN_BITS
        at += 2 * dims * entries
        level += 1
    boxes.arena[tree + TREE_LEVELS] = levels
    boxes.arena[cell + TREE] = tree
    boxes.arena[cell + PACKED] = packed


@kernel
def drop_tree(boxes: Boxes, cell: Int) -> None:
    if boxes.arena[cell + TREE] != NOWHERE:
        dims = boxes.arena[boxes.arena[cell + SHAPE] + DIMS]
        release(boxes, boxes.arena[cell + TREE], tree_words(boxes.arena[cell + PACKED], dims))
    boxes.arena[cell + TREE] = NOWHERE
    boxes.arena[cell + PACKED] = 0


@kernel
def rebuild_words(boxes: Boxes, cell: Int) -> Int:
    """Room that `rebuild` needs at most."""
    shape = boxes.arena[cell + SHAPE]
    used = boxes.arena[cell + USED]
    return tree_words(used, boxes.arena[shape + DIMS]) + used * columns_of(boxes, shape)


@kernel
def rebuild(boxes: Boxes, cell: Int) -> None:
    """Sweeps dead boxes and makes the tree anew; the caller has seen to it that there is room."""
    arena = boxes.arena
    shape, data, room, used = arena[cell + SHAPE], arena[cell + DATA], arena[cell + ROOM], arena[cell + USED]
    dims, columns = arena[shape + DIMS], columns_of(boxes, shape)
    first_box = data + (2 * dims + BOX) * room
    drop_tree(boxes, cell)
    order = np.empty(used - arena[cell + DEAD], np.int64)
    n = np.int64(0)
    for position in range(used):
        if arena[first_box + position] >= 0:
            order[n] = position
            n += 1
    is_large = dims > 0 and n > LEAF
    if is_large:
        kd_order(boxes, data, room, dims, order)
    target, target_room = data, room
    if n < room >> 1:
        size = size_class(columns * n)
        target, target_room = allocate(boxes, columns * n), class_words(size) // columns
    column = np.empty(n, np.int64)
    for c in range(columns):
        for i in range(n):
            column[i] = arena[data + c * room + order[i]]
        for i in range(n):
            arena[target + c * target_room + i] = column[i]
    if target != data:
        release(boxes, data, columns * room)
    mask = np.int64(0)
    number = arena[cell + NUMBER] << 32
    for i in range(n):
        boxes.places[arena[target + (2 * dims + BOX) * target_room + i]] = number | i
        kind = arena[target + (2 * dims + OWNER) * target_room + i] >> 32
        mask |= boxes.kinds[kind * KIND_FIELDS + KIND_MASK]
    arena[cell + DATA], arena[cell + ROOM], arena[cell + MASK] = target, target_room, mask
    arena[cell + USED], arena[cell + DEAD] = n, 0
    if is_large:
        build_tree(boxes, cell, n)
