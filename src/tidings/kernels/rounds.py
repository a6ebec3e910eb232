"""Rounds: steps of several kinds that may be taken together, because those in between touch nothing they touch."""

from __future__ import annotations

import numpy as np

from tidings.kernels.arrays import I64
from tidings.kernels.jit import kernel

NOTHING = -1


@kernel
def rounds(kind: I64, touched: I64, size: int) -> I64:
    """A round for each step, such that of two steps of different kinds that touch the same, the later has a later round.

    Of two steps of one kind that touch the same, the later has no earlier round. touched: [step, n], numbers below `size`,
    or NOTHING.
    """
    last_kind = np.full(size, NOTHING, np.int64)
    last_round = np.zeros(size, np.int64)
    found = np.zeros(len(kind), np.int64)
    for i in range(len(kind)):
        at = 0
        for j in range(touched.shape[1]):
            mark = touched[i, j]
            if mark != NOTHING and last_kind[mark] != NOTHING:
                at = max(at, last_round[mark] + (last_kind[mark] != kind[i]))
        for j in range(touched.shape[1]):
            if touched[i, j] != NOTHING:
                last_kind[touched[i, j]] = kind[i]
                last_round[touched[i, j]] = at
        found[i] = at
    return found
