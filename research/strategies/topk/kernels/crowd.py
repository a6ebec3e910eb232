"""Who is in a closed box of the plane, as far as it is known: the points of a kd-tree, or a cover of them by rectangles.

As the functions of the same names of `plane_kdtree.query`. Of a cover any place in a rectangle may be a point.
"""

from __future__ import annotations

from research.strategies.topk.kernels import rectangle_cover
from research.strategies.topk.kernels.plane_kdtree import query
from research.strategies.topk.kernels.plane_kdtree.layout import RECTANGLES, Int, TreePointers
from tidings.kernels.jit import kernel


@kernel
def tighten(c: TreePointers, of: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int) -> tuple[Int, Int, Int, Int]:
    if c.head[RECTANGLES]:
        return rectangle_cover.tighten(c, of, lo_min, lo_max, hi_min, hi_max)
    return query.tighten(c, of, lo_min, lo_max, hi_min, hi_max)


@kernel
def has_any(c: TreePointers, of: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int) -> bool:
    if c.head[RECTANGLES]:
        lo1, lo2, _, _ = rectangle_cover.tighten(c, of, lo_min, lo_max, hi_min, hi_max)
        return bool(lo1 <= lo2)
    return query.has_any(c, of, lo_min, lo_max, hi_min, hi_max)


@kernel
def gather(c: TreePointers, of: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int, most: Int) -> Int:
    return -1 if c.head[RECTANGLES] else query.gather(c, of, lo_min, lo_max, hi_min, hi_max, most)


@kernel
def leftmost(c: TreePointers, of: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int) -> tuple[bool, Int, Int]:
    if c.head[RECTANGLES]:
        return rectangle_cover.leftmost(c, of, lo_min, lo_max, hi_min, hi_max)
    return query.leftmost(c, of, lo_min, lo_max, hi_min, hi_max)


@kernel
def rightmost(c: TreePointers, of: Int, lo_min: Int, lo_max: Int, hi_min: Int, hi_max: Int) -> tuple[bool, Int, Int]:
    if c.head[RECTANGLES]:
        return rectangle_cover.rightmost(c, of, lo_min, lo_max, hi_min, hi_max)
    return query.rightmost(c, of, lo_min, lo_max, hi_min, hi_max)
