"""Range cover: which of some numbers lie in any of some ranges, list by list; a sweep over the ends of the ranges."""

from __future__ import annotations

import numpy as np

from tidings.kernels.jit import kernel
from tidings.kernels.rows import I64
from tidings.model.codes import BoolArray


@kernel
def covered(starts: I64, numbers: I64, range_starts: I64, lo: I64, hi: I64) -> BoolArray:
    """Whether each number, bool[n], lies in a closed range of its list.

    List i has the numbers starts[i]:starts[i + 1], in ascending order, and the ranges range_starts[i]:range_starts[i + 1].
    """
    found = np.zeros(numbers.shape[0], np.bool_)
    steps = np.zeros(numbers.shape[0] + 1, np.int64)
    for i in range(starts.shape[0] - 1):
        first, last = starts[i], starts[i + 1]
        for at in range(range_starts[i], range_starts[i + 1]):
            begin = first + np.searchsorted(numbers[first:last], lo[at])
            end = first + np.searchsorted(numbers[first:last], hi[at], "right")
            if begin < end:
                steps[begin] += 1
                steps[end] -= 1
        depth = 0
        for at in range(first, last):
            depth += steps[at]
            found[at] = depth > 0
            steps[at] = 0
        steps[last] = 0
    return found
