"""A schedule: in which round each of many steps can be done, so that steps in conflict keep their order.

As-soon-as-possible scheduling: the level of a step in the graph of conflicts, where two steps are in conflict if they are of
different kinds and touch the same thing.
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.jit import kernel
from tidings.kernels.rows import I64, NONE


@kernel
def schedule(kind: I64, touched: I64, size: int) -> I64:
    """The earliest round of each step. Of two steps that touch the same, the later has a later round, or the same if of one
    kind.

    touched: [step, n], numbers below `size`, or NONE.
    """
    last_kind = np.full(size, NONE, np.int64)
    last_round = np.zeros(size, np.int64)
    found = np.zeros(len(kind), np.int64)
    for i in range(len(kind)):
        at = 0
        for j in range(touched.shape[1]):
            mark = touched[i, j]
            if mark != NONE and last_kind[mark] != NONE:
                at = max(at, last_round[mark] + (last_kind[mark] != kind[i]))
        for j in range(touched.shape[1]):
            if touched[i, j] != NONE:
                last_kind[touched[i, j]] = kind[i]
                last_round[touched[i, j]] = at
        found[i] = at
    return found
