"""Kd-trees of points in the plane that come and go, with bounds and counts (Bentley 1975; rebuilt in parts, Overmars 1983).

Read `layout`, `build` (blocks and balanced trees), `change` (single points), `query`, `tree` (the class that owns the arrays).
"""

from research.strategies.topk.kernels.plane_kdtree.tree import PlaneKdTree

__all__ = ["PlaneKdTree"]
