"""Digits of seven bits: how many of them numbers have."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from tidings.kernels.anchors_arrays import I64

U64 = npt.NDArray[np.uint64]


@njit(cache=True)
def count_digits(numbers: U64) -> I64:
    """Digits of every number, leading zeros left out; 0 has one."""
    counts = np.empty(len(numbers), np.int64)
    for i in range(len(numbers)):
        count = np.int64(1)
        # All that there can be, whatever the number: so the compiler does several numbers at once.
        for shift in range(7, 64, 7):
            count += np.int64(numbers[i] >> np.uint64(shift) != 0)
        counts[i] = count
    return counts
