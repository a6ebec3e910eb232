"""PointIndex: which points lie in a union of boxes? A kd-tree (Bentley 1975) per channel, with buckets for leaves."""

from tidings.kernels.point_index.point_index import PointIndex

__all__ = ["PointIndex"]
