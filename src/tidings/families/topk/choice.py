"""Names of strategies, which may carry how far tiles are rounded: `dense:0.25`."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

NAMES = ("dense", "sparse", "dense:0.5", "sparse:0.5", "unicast", "relax")
"""The ways to reformulate; those with a number stand for all from `dense:0.01` to `dense:1`."""

_ROUNDED = ("dense", "sparse")
_EPS_MIN = 0.01


class Choice(NamedTuple):
    kind: str
    eps: float | None

    def groups(self, k: int) -> int | None:
        """Most tiles of a row that rises; None: as many as it takes."""
        return None if self.eps is None else min(k, ceil(1 / self.eps))


def read(name: str) -> Choice | None:
    """The choice a name stands for; None if it stands for none."""
    kind, colon, number = name.partition(":")
    if not colon:
        return Choice(kind, None) if kind in NAMES else None
    try:
        eps = float(number)
    except ValueError:
        return None
    return Choice(kind, eps) if kind in _ROUNDED and _EPS_MIN <= eps <= 1 else None
