"""A region of points as disjoint boxes (tiles), and the rows that such a region depends on.

A region is given by rows: those points of a box whose ranges contain from `least` to `most` of the rows. A box is cut until
all of its points agree, or few rows are left to disagree about:

    hi |  ..2.. :.3..     the points whose ranges contain fewer than 2 rows: right of the first row the bound is known at
       |--------:----     once; left of it one row less is allowed, and so on. Cuts are made where the next row is, in the
       |   1    : 2..     direction that fewest rows lie in; once all lie in one direction, one cut says who has too many.
       +--------:---- lo

With points that are there, boxes are drawn in to these before they are cut, and left out where nobody is. Two boxes written
one after the other are joined if no point comes in that is in neither; whoever is there, if they are one box cut in two.

The idea of dividing regions is from Yu, Agarwal and Yang, "Processing and notifying range top-k subscriptions" (ICDE 2012),
IV-C, which leaves open how.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from research.strategies.topk.kernels.box_topk.layout import (
    BLOCK,
    BLOCK_MAX,
    COUNT,
    I64,
    INT64_MAX,
    INT64_MIN,
    IS_LEAF,
    LEFT,
    LINK_FIELDS,
    NOBODY,
    RIGHT,
    ROOT,
    SET,
    Int,
    TreePointers,
    is_less,
)
from research.strategies.topk.kernels.box_topk.output import Output, with_room_for
from tidings.kernels.jit import kernel

ALL_HAVE, NONE_HAVE = 0, -1


class Region(NamedTuple):
    """The points of a box whose ranges contain from `least` to `most` of the first `count` rows.

    Where boxes are joined, points with `slack` rows more or less may come in.
    """

    low: I64
    """[2 * dims] least coordinates of the box; overwritten."""
    high: I64
    rows: I64
    """[rows, dims ..] where rows are; further columns do not matter."""
    count: Int
    least: Int
    most: Int
    slack: Int


class Crowd(NamedTuple):
    """The points of a set in a tree, as pointers; `is_known` is False if anybody may be anywhere."""

    tree: TreePointers
    of: Int
    is_known: bool


@kernel
def tighten(c: Crowd, low: I64, high: I64, bounds: I64) -> Int:
    """Draws a box in to the points of a crowd in it; returns how many they are. bounds [2, 2 * dims] is scratch."""
    w, of, width = c.tree, c.of, len(low)
    bounds[0], bounds[1] = INT64_MAX, INT64_MIN
    count = 0
    w.stack[0] = w.head[ROOT]
    depth = 0 if w.stack[0] == NOBODY else 1
    while depth:
        depth -= 1
        node = w.stack[depth]
        first = 2 * node * w.half
        last = first + w.half
        if w.bounds[first] > of or w.bounds[last] < of:
            continue
        is_apart, is_inside = False, w.bounds[first] == w.bounds[last]
        for i in range(width):
            is_apart = is_apart or w.bounds[first + 1 + i] > high[i] or w.bounds[last + 1 + i] < low[i]
            is_inside = is_inside and w.bounds[first + 1 + i] >= low[i] and w.bounds[last + 1 + i] <= high[i]
        if is_apart:
            continue
        if is_inside:
            count += w.links[node * LINK_FIELDS + COUNT]
            for i in range(width):
                bounds[0, i] = min(bounds[0, i], w.bounds[first + 1 + i])
                bounds[1, i] = max(bounds[1, i], w.bounds[last + 1 + i])
        elif w.links[node * LINK_FIELDS + LEFT] != IS_LEAF:
            w.stack[depth] = w.links[node * LINK_FIELDS + RIGHT]
            w.stack[depth + 1] = w.links[node * LINK_FIELDS + LEFT]
            depth += 2
        else:
            block = w.links[node * LINK_FIELDS + BLOCK] * w.block_width
            for p in range(w.links[node * LINK_FIELDS + COUNT]):
                i = 0
                while i < width and low[i] <= w.pool[block + (1 + i) * BLOCK_MAX + p] <= high[i]:
                    i += 1
                if i < width or w.pool[block + p] != of:
                    continue
                count += 1
                for i in range(width):
                    coordinate = w.pool[block + (1 + i) * BLOCK_MAX + p]
                    bounds[0, i], bounds[1, i] = min(bounds[0, i], coordinate), max(bounds[1, i], coordinate)
    low[:], high[:] = bounds[0], bounds[1]
    return count


@kernel
def relate(rows: I64, row: Int, low: I64, high: I64) -> Int:
    """Whether the points of a box contain a row: ALL_HAVE, NONE_HAVE, or the bits of the coordinates by which they differ."""
    differ = 0
    for c in range(len(low) // 2):
        x = rows[row, c]
        if low[2 * c] > x or high[2 * c + 1] < x:
            return NONE_HAVE
        differ |= (high[2 * c] > x) << (2 * c) | (low[2 * c + 1] < x) << (2 * c + 1)
    return differ


@kernel
def find_next(rows: I64, listed: I64, direction: Int, low: I64, high: I64, rank: Int) -> Int:
    """The listed row that, outwards in a direction, comes as number `rank` of those that some points of a box have."""
    c, n = direction // 2, 0
    places, at = np.empty(len(listed), np.int64), np.empty(len(listed), np.int64)
    for row in listed:
        x = rows[row, c]
        if (x < high[direction]) if direction % 2 == 0 else (x > low[direction]):
            places[n], at[n] = (~x if direction % 2 == 0 else x), row
            n += 1
    found: Int = at[places[:n].argmin() if rank == 0 else np.argsort(places[:n])[rank]]
    return found


@kernel
def is_behind(rows: I64, listed: I64, row: Int, low: I64, high: I64, most: Int) -> bool:
    """Whether all points of a box that contain a row contain more than `most` other listed ones, too."""
    before = 0
    for other in listed:
        c, dims = 0, len(low) // 2
        while (
            c < dims
            and min(rows[other, c], high[2 * c]) >= min(rows[row, c], high[2 * c])
            and max(rows[other, c], low[2 * c + 1]) <= max(rows[row, c], low[2 * c + 1])
        ):
            c += 1
        before += c == dims and other != row
    return bool(before > most)


@kernel
def is_cut_box(out: Output, at: Int, low: I64, high: I64) -> bool:
    """Whether a box continues a written one: they differ in one coordinate, and have no room in between."""
    differing = -1
    for i in range(len(low)):
        if low[i] != out.box_lo[at, i] or high[i] != out.box_hi[at, i]:
            if differing >= 0:
                return False
            differing = i
    i = differing
    if low[i] > out.box_hi[at, i]:
        return bool(low[i] - 1 == out.box_hi[at, i])
    return bool(out.box_lo[at, i] - 1 == high[i])


@kernel
def may_be_joined(r: Region, low: I64, high: I64) -> bool:
    """Whether all points of a box are in a region, but for some slack."""
    fewest = most = 0
    for row in range(r.count):
        how = relate(r.rows, row, low, high)
        fewest += how == ALL_HAVE
        most += how != NONE_HAVE
    return bool(fewest >= r.least - r.slack and most <= r.most + r.slack)


@kernel
def write_box(
    out: Output, c: Crowd, r: Region, low: I64, high: I64, points: Int, last: Int, bounds: I64
) -> tuple[Output, Int]:
    """Writes a box with so many points, or joins it with the last one of the send, which has `last`.

    Returns how many the last box then has.
    """
    at = out.ends[1]
    if at > out.box_starts[out.ends[0]]:
        both_low, both_high = np.minimum(low, out.box_lo[at - 1]), np.maximum(high, out.box_hi[at - 1])
        both = tighten(c, both_low, both_high, bounds) if c.is_known else 0
        is_joined = both == points + last if c.is_known else is_cut_box(out, at - 1, low, high)
        if is_joined or (r.slack > 0 and may_be_joined(r, both_low, both_high)):
            out.box_lo[at - 1], out.box_hi[at - 1] = both_low, both_high
            return out, both
    out = with_room_for(out, 2)
    out.box_lo[at], out.box_hi[at] = low, high
    out.ends[1] = at + 1
    return out, points


@kernel
def write_region(out: Output, c: Crowd, r: Region) -> Output:
    """Writes the boxes of a region behind those since the last send."""
    low, high, rows, count, least, most = r.low, r.high, r.rows, r.count, r.least, r.most
    width = len(low)
    directions, bounds = np.zeros(width, np.int64), np.empty((2, width), np.int64)
    # Of every box still to be divided: its bounds, and first and end of the rows listed for it, and how many all points have.
    waiting, lists = np.empty((16, 2, width), np.int64), np.empty((16, 3), np.int64)
    listed = np.arange(2 * count + 1)
    waiting[0, 0], waiting[0, 1] = low, high
    lists[0, 0], lists[0, 1], lists[0, 2] = 0, count, 0
    depth, last = 1, 0
    while depth:
        depth -= 1
        low[:], high[:] = waiting[depth, 0], waiting[depth, 1]
        start, end, deep = lists[depth]
        while True:
            points = tighten(c, low, high, bounds) if c.is_known else 0
            if c.is_known and points == 0:
                break
            directions[:] = 0
            kept = start
            for q in range(start, end):
                how = relate(rows, listed[q], low, high)
                deep += how == ALL_HAVE
                if how > 0:
                    listed[kept] = listed[q]
                    kept += 1
                    for i in range(width):
                        directions[i] += how >> i & 1
            end = kept
            rest = end - start
            if deep > most or deep + rest < least:
                break
            if deep >= least and deep + rest <= most:
                out, last = write_box(out, c, r, low, high, points, last, bounds)
                break
            if deep + rest == least:
                # Left are those who contain all that is listed.
                for q in range(start, end):
                    for i in range(width):
                        x = rows[listed[q], i // 2]
                        if i % 2 == 0:
                            high[i] = min(high[i], x)
                        else:
                            low[i] = max(low[i], x)
                continue
            direction = -1
            for i in range(width):
                if directions[i] and (direction < 0 or directions[i] < directions[direction]):
                    direction = i
            is_only = (directions > 0).sum() == 1
            rank = most - deep if is_only else 0
            row = find_next(rows, listed[start:end], direction, low, high, rank)
            x = rows[row, direction // 2]
            if not is_only:
                if is_behind(rows, listed[start:end], row, low, high, most - deep):
                    q = start
                    while listed[q] != row:
                        q += 1
                    end -= 1
                    listed[q] = listed[end]
                    continue
                if depth == len(waiting):
                    waiting, lists = np.concatenate((waiting, waiting)), np.concatenate((lists, lists))
                waiting[depth, 0], waiting[depth, 1] = low, high
                waiting[depth, 1 - direction % 2, direction] = x
                lists[depth, 0], lists[depth, 1], lists[depth, 2] = start, end, deep
                depth += 1
                if end + rest > len(listed):
                    listed = np.concatenate((listed, listed))
                listed[end : end + rest] = listed[start:end]
                start, end = end, end + rest
            if direction % 2 == 0:
                low[direction] = x + 1
            else:
                high[direction] = x - 1
    return out


@kernel
def is_idle(found: I64, n: Int, x: Any, near: I64, y: Int, tie: Int, floor_y: Int, floor_tie: Int, k: Int) -> bool:
    """Whether rows at `near` or beyond it, seen from x, with keys from (y, tie) on, matter to nobody.

    So it is if k of the rows found are between, with lower keys; keys below the floor are all the same.
    """
    dims, before = len(near), 0
    for i in range(n):
        other_y, other_tie = found[i, dims], found[i, dims + 1]
        if not (is_less(other_y, other_tie, y, tie) or is_less(other_y, other_tie, floor_y, floor_tie)):
            continue
        c = 0
        while c < dims and min(x[1 + c], near[c]) <= found[i, c] <= max(x[1 + c], near[c]):
            c += 1
        before += c == dims
        if before == k:
            return True
    return False


@kernel
def distance_to(w: TreePointers, node: Int, x: Any, dims: Int) -> float:
    """How far a node is from where a row is, added up over all ranges."""
    low = 2 * node * w.half
    total = 0.0
    for c in range(1, dims + 1):
        beside = max(float(w.bounds[low + c]) - float(x[c]), float(x[c]) - float(w.bounds[low + w.half + c]))
        total += max(0.0, beside)
    return total


@kernel
def find_rivals(w: TreePointers, of: Int, x: Any, entry: Int, floor: Any, top: Any, has_top: bool, k: Int) -> I64:
    """The rows [n, x_1 .. x_d, y, tie, entry] that the regions of an entry depend on while its key grows from one to another.

    These have a key up to that at `top`, if there is one, and fewer than k rows with lower keys are between them and x; all
    keys below that at `floor` count as the same. There may be some more.
    """
    dims = w.y - 1
    found, n = np.empty((4 * BLOCK_MAX, dims + 3), np.int64), 0
    near = np.empty(dims, np.int64)
    w.stack[0] = w.head[ROOT]
    depth = 0 if w.stack[0] == NOBODY else 1
    while depth:
        depth -= 1
        node = w.stack[depth]
        low = 2 * node * w.half
        high = low + w.half
        if w.bounds[low] > of or w.bounds[high] < of:
            continue
        y, tie = w.bounds[low + w.y], w.bounds[low + w.y + 1]
        if has_top and not is_less(y, tie, top[0], top[1]):
            continue
        for c in range(dims):
            near[c] = min(max(x[1 + c], w.bounds[low + 1 + c]), w.bounds[high + 1 + c])
        if is_idle(found, n, x, near, y, tie, floor[0], floor[1], k):
            continue
        if w.links[node * LINK_FIELDS + LEFT] != IS_LEAF:
            one, other = w.links[node * LINK_FIELDS + LEFT], w.links[node * LINK_FIELDS + RIGHT]
            # Nearer rows and lower keys first: they show that many others are idle.
            y_one = max(floor[0], w.bounds[2 * one * w.half + w.y])
            y_other = max(floor[0], w.bounds[2 * other * w.half + w.y])
            if y_other < y_one or (y_other == y_one and distance_to(w, other, x, dims) < distance_to(w, one, x, dims)):
                one, other = other, one
            w.stack[depth], w.stack[depth + 1] = other, one
            depth += 2
            continue
        block = w.links[node * LINK_FIELDS + BLOCK] * w.block_width
        if n + BLOCK_MAX > len(found):
            found = np.concatenate((found, found))
        for i in range(w.links[node * LINK_FIELDS + COUNT]):
            y, tie = w.pool[block + w.y * BLOCK_MAX + i], w.pool[block + (w.y + 1) * BLOCK_MAX + i]
            number = w.pool[block + (w.y + 2) * BLOCK_MAX + i]
            if w.pool[block + SET * BLOCK_MAX + i] != of or number == entry:
                continue
            if has_top and not is_less(y, tie, top[0], top[1]):
                continue
            for c in range(dims):
                near[c] = w.pool[block + (1 + c) * BLOCK_MAX + i]
            if not is_idle(found, n, x, near, y, tie, floor[0], floor[1], k):
                found[n, :dims] = near
                found[n, dims], found[n, dims + 1], found[n, dims + 2] = y, tie, number
                n += 1
    return sorted_by_key(found[:n])


@kernel
def sorted_by_key(rows: I64) -> I64:
    """The rows in ascending order of their keys."""
    rows = rows[np.argsort(rows[:, -2], kind="mergesort")]
    sorted_rows: I64 = rows[np.argsort(rows[:, -3], kind="mergesort")]
    return sorted_rows
