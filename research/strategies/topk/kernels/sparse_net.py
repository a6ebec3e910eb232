"""The net effect of a batch, sent only to points that a kd-tree knows: how far sweeps have to go, and boxes drawn in."""

from __future__ import annotations

from research.strategies.topk.kernels.crowd import tighten
from research.strategies.topk.kernels.net import OLD, lo_of, top_of
from research.strategies.topk.kernels.plane_kdtree.layout import LISTED, tree_pointers
from research.strategies.topk.kernels.range_topk.layout import ENTRY_X, I64, INT64_MAX, INT64_MIN, OWNER, Int
from research.strategies.topk.kernels.sparse import is_free
from tidings.kernels.intrinsics import pointer
from tidings.kernels.jit import kernel


@kernel
def limit(
    tree_head: I64,
    tree_sets: I64,
    tree_nodes: I64,
    tree_m: I64,
    tree_work: I64,
    touched: I64,
    kept: I64,
    k: Int,
    limits: I64,
) -> None:
    """Writes the least lo and the greatest hi of the points below each kept profile, one of each row of `touched`."""
    c = tree_pointers(tree_head, tree_sets, tree_nodes, tree_m, tree_work)
    t = pointer(kept)
    for q in range(len(touched)):
        of, x, at = touched[q, OLD + OWNER] - 1, touched[q, OLD + ENTRY_X], q * kept.shape[1]
        lo_max, x_min, x_max = x, INT64_MAX, INT64_MIN
        for step in range(kept[q, 0]):
            lo_min, _, _, hi_max = tighten(c, of, lo_of(t, at, step), lo_max, x, top_of(t, at, k, step))
            x_min, x_max = min(x_min, lo_min), max(x_max, hi_max)
            lo_max = lo_of(t, at, step) - 1
        limits[q, 0], limits[q, 1] = x_min, x_max


@kernel
def draw_in(
    tree_head: I64,
    tree_sets: I64,
    tree_nodes: I64,
    tree_m: I64,
    tree_work: I64,
    of: I64,
    starts: I64,
    lo: I64,
    hi: I64,
) -> None:
    """Draws the boxes starts[j]:starts[j + 1] of each send to a set in to its points: empty ones go, neighbours are joined.

    What is left is at the beginning, with new starts.
    """
    c = tree_pointers(tree_head, tree_sets, tree_nodes, tree_m, tree_work)
    # All is asked of the tree.
    c.head[LISTED] = -1
    at = end = 0
    for j in range(len(of)):
        begin, end = end, starts[j + 1]
        first = starts[j] = at
        for i in range(begin, end):
            lo1, lo2, hi1, hi2 = tighten(c, of[j], lo[i, 0], hi[i, 0], lo[i, 1], hi[i, 1])
            if lo1 > lo2:
                continue
            last = at - 1
            # Boxes come from right to left, in one row or in two.
            if (
                at > first
                and lo2 < lo[last, 0]
                and is_free(c, of[j], lo1, lo2, lo[last, 0], hi[last, 0], hi1, hi2, lo[last, 1], hi[last, 1])
            ):
                lo[last, 0] = lo1
                lo[last, 1], hi[last, 1] = min(hi1, lo[last, 1]), max(hi2, hi[last, 1])
                continue
            lo[at, 0], hi[at, 0], lo[at, 1], hi[at, 1] = lo1, lo2, hi1, hi2
            at += 1
    starts[len(of)] = at
