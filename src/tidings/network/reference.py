"""What the network must do, by enumeration: a message reaches exactly the points in its region, each once."""

from __future__ import annotations

import numpy as np

from tidings.kernels.arrays import I64


def points_in(points: I64, lo: I64, hi: I64) -> list[int]:
    """Numbers of the points [n, D] in the union of the closed boxes lo, hi [b, D]."""
    inside = np.zeros(len(points), np.bool_)
    for low, high in zip(lo, hi, strict=True):
        inside |= ((points >= low) & (points <= high)).all(axis=1)
    found: list[int] = np.flatnonzero(inside).tolist()
    return found
