"""Where to cut points so that the tree over them is balanced: the topology only, before any node exists.

Cuts go round the dimensions, so that no dimension's unit of measure matters and open ends (INT64_MIN, INT64_MAX) do no
harm. A cut is at the median, moved to an edge of the run of equal coordinates it falls into; a dimension where this
leaves less than a quarter on one side is taken only if no other does better. Such a run then is at an edge, and after
one more cut fills the dimension, so a path has at most 2 D uneven cuts: the height is below 2.5 log2(n) + 2 D.
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.forest_arrays import I32, I64, LEAF_MAX, Int
from tidings.kernels.jit import kernel


@kernel
def select(keys: I64, n: Int, k: Int) -> Int:
    """The k-th smallest of the first n keys, which are reordered (Hoare's quickselect, median of three)."""
    lo = 0
    hi = n - 1
    while lo < hi:
        a, b, c = keys[lo], keys[(lo + hi) >> 1], keys[hi]
        pivot = max(min(a, b), min(max(a, b), c))
        i = lo
        j = hi
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                i += 1
                j -= 1
        if k <= j:
            hi = j
        elif k >= i:
            lo = i
        else:
            break
    return keys[k]


@kernel
def best_cut(keys: I64, scratch: I64, n: Int) -> tuple[Int, Int]:
    """Value v for which {x <= v} and {x > v} are closest to halves, and the size of the smaller; 0 if all are equal."""
    for i in range(n):
        scratch[i] = keys[i]
    median = select(scratch, n, (n - 1) >> 1)
    below = 0
    upto = 0
    for i in range(n):
        below += keys[i] < median
        upto += keys[i] <= median
    if min(upto, n - upto) >= min(below, n - below):
        return median, min(upto, n - upto)
    value = scratch[0]
    found = False
    for i in range(n):
        if keys[i] < median and (not found or keys[i] > value):
            value = keys[i]
            found = True
    return value, min(below, n - below)


@kernel
def choose_cut(
    coords: I64, rows: I32, start: Int, end: Int, first: Int, live: Int, keys: I64, scratch: I64
) -> tuple[Int, Int, Int]:
    """Dimension (-1: all points are the same) and value to cut coords[rows[start:end]] at.

    Dimensions are tried from `first` on. `live` is the bit set of those not yet known to be constant; the third result
    is what is left of it. `keys` and `scratch` are for end - start values; `keys` is left with the last tried.
    """
    dims = coords.shape[1]
    n = end - start
    best = 0
    best_dim = -1
    best_value = np.int64(0)
    for turn in range(dims):
        d = (first + turn) % dims
        if not (live >> d) & 1:
            continue
        for i in range(n):
            keys[i] = coords[rows[start + i], d]
        value, smaller = best_cut(keys, scratch, n)
        if smaller == 0:
            live &= ~(np.int64(1) << d)
        elif smaller > best:
            best, best_dim, best_value = smaller, d, value
            if smaller * 4 >= n:
                break
    return best_dim, best_value, live


@kernel
def divide(coords: I64, rows: I32, start: Int, end: Int, d: Int, value: Int, held: I32) -> Int:
    """Stable partition of rows[start:end] by coordinate d <= value; returns where the right part starts."""
    middle = start
    right = 0
    for i in range(start, end):
        row = rows[i]
        if coords[row, d] <= value:
            rows[middle] = row
            middle += 1
        else:
            held[right] = row
            right += 1
    for i in range(right):
        rows[middle + i] = held[i]
    return middle


@kernel
def plan_trees(coords: I64, tree_starts: I64) -> tuple[I32, I64, I64]:
    """Plan one balanced tree over each coords[tree_starts[t]:tree_starts[t + 1]] (not empty).

    Returns rows int32[n], the order of the points by leaves; and nodes in preorder as steps int64[p, 4] with their cut
    values int64[p]. A step is (first row, end row, cut dimension or -1 for a leaf, parent step or -1 - t for a root);
    a left child directly follows its parent.
    """
    n, dims = coords.shape
    trees = tree_starts.shape[0] - 1
    rows = np.arange(n).astype(np.int32)
    steps = np.empty((trees + n // 4 + 16, 4), np.int64)
    cuts = np.empty(steps.shape[0], np.int64)
    largest = 0
    for t in range(trees):
        largest = max(largest, tree_starts[t + 1] - tree_starts[t])
    keys = np.empty(largest, np.int64)
    scratch = np.empty(largest, np.int64)
    held = np.empty(largest, np.int32)
    stack = np.empty((4 * dims + 256, 5), np.int64)
    made = 0
    for t in range(trees):
        stack[0] = (tree_starts[t], tree_starts[t + 1], -1 - t, 0, (np.int64(1) << dims) - 1)
        depth = 1
        while depth:
            depth -= 1
            start, end, parent = stack[depth, 0], stack[depth, 1], stack[depth, 2]
            first, live = stack[depth, 3], stack[depth, 4]
            d = np.int64(-1)
            value = np.int64(0)
            if end - start > LEAF_MAX and live:
                d, value, live = choose_cut(coords, rows, start, end, first, live, keys, scratch)
            if made == steps.shape[0]:
                steps = np.concatenate((steps, np.empty_like(steps)))
                cuts = np.concatenate((cuts, np.empty_like(cuts)))
            steps[made] = (start, end, d, parent)
            cuts[made] = value
            if d >= 0:
                middle = divide(coords, rows, start, end, d, value, held)
                stack[depth] = (middle, end, made, d + 1, live)
                stack[depth + 1] = (start, middle, made, d + 1, live)
                depth += 2
            made += 1
    return rows, steps[:made], cuts[:made]
