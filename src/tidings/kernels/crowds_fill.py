"""Many points at a time: brought together by sets, each point once; and whole sets."""

from __future__ import annotations

import numpy as np

from tidings.kernels.crowds_arrays import (
    COUNT,
    DONE,
    I64,
    NEEDS_ROOM,
    POINTS,
    RECORD,
    SIZE,
    Int,
    crowd_pointers,
    has_room,
    records_free,
    records_new,
)
from tidings.kernels.crowds_build import block_words_for, free_below, list_points, node_words_for, put_tree
from tidings.kernels.jit import kernel


@kernel
def scatter(of: Int, lo: Int, hi: Int) -> Int:
    """A number that looks random, for a table of points."""
    mixed = (lo * 0x1E3779B97F4A7C15) ^ (hi * 0x42B2AE3D27D4EB4F) ^ (of * 0x165667B19E3779F9)
    mixed = (mixed ^ (mixed >> 29)) * 0x3F58476D1CE4E5B9
    return mixed ^ (mixed >> 32)


@kernel
def group(tops: Int, of: I64, los: I64, his: I64, times: I64) -> tuple[I64, I64, I64, I64]:
    """Points by sets, which are below `tops`: where those of each set start, and the different ones with their times."""
    n = of.shape[0]
    bits = 4
    while (1 << bits) < 2 * n:
        bits += 1
    mask = (1 << bits) - 1
    table = np.full(1 << bits, -1, np.int32)
    times = times.copy()
    starts = np.zeros(tops + 1, np.int64)
    for i in range(n):
        at = scatter(of[i], los[i], his[i]) & mask
        while table[at] >= 0:
            j = table[at]
            if los[j] == los[i] and his[j] == his[i] and of[j] == of[i]:
                times[j] += times[i]
                times[i] = 0
                break
            at = (at + 1) & mask
        else:
            table[at] = i
            starts[of[i] + 1] += 1
    for number in range(tops):
        starts[number + 1] += starts[number]
    ends = starts[:-1].copy()
    grouped = np.empty(starts[tops], np.int64), np.empty(starts[tops], np.int64), np.empty(starts[tops], np.int64)
    for i in range(n):
        if times[i]:
            at = ends[of[i]]
            grouped[0][at], grouped[1][at], grouped[2][at] = los[i], his[i], times[i]
            ends[of[i]] = at + 1
    return starts, grouped[0], grouped[1], grouped[2]


@kernel
def fill(
    head: I64, sets: I64, nodes: I64, m: I64, work: I64, filled: I64, starts: I64, los: I64, his: I64, times: I64
) -> Int:
    """Give each of some sets without points those from starts[i] to starts[i + 1], all different, which are reordered.

    DONE, or NEEDS_ROOM: then nothing has been done.
    """
    c = crowd_pointers(head, sets, nodes, m, work)
    words = 0
    for i in range(filled.shape[0]):
        words += node_words_for(starts[i + 1] - starts[i]) + RECORD
    if not has_room(c, block_words_for(starts[-1] - starts[0]), words):
        return NEEDS_ROOM
    for i in range(filled.shape[0]):
        if starts[i] < starts[i + 1]:
            root = sets[filled[i]] = records_new(c, True)
            put_tree(c, root, los, his, times, starts[i], starts[i + 1], 0)
            head[POINTS] += nodes[root + COUNT]
    return DONE


@kernel
def dump(head: I64, sets: I64, nodes: I64, m: I64, work: I64, listed: I64) -> tuple[I64, I64, I64, I64]:
    """The points of some sets: where those of each start, and then all, with their times."""
    c = crowd_pointers(head, sets, nodes, m, work)
    starts = np.zeros(listed.shape[0] + 1, np.int64)
    for i in range(listed.shape[0]):
        root = sets[listed[i]]
        starts[i + 1] = starts[i] + (nodes[root + SIZE] if root >= 0 else 0)
    los, his, times = np.empty(starts[-1], np.int64), np.empty(starts[-1], np.int64), np.empty(starts[-1], np.int64)
    for i in range(listed.shape[0]):
        if starts[i] < starts[i + 1]:
            list_points(c, sets[listed[i]], los, his, times, starts[i])
    return starts, los, his, times


@kernel
def clear(head: I64, sets: I64, nodes: I64, m: I64, work: I64, cleared: I64) -> None:
    """Remove all points of some sets."""
    c = crowd_pointers(head, sets, nodes, m, work)
    for i in range(cleared.shape[0]):
        root = sets[cleared[i]]
        if root >= 0:
            head[POINTS] -= nodes[root + COUNT]
            free_below(c, root)
            records_free(c, root, True)
            sets[cleared[i]] = -1
