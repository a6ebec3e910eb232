"""Varints: whole numbers in groups of seven bits, the lowest first, a high bit on all bytes but the last (LEB128)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tidings.kernels.jit import kernel

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
U8 = npt.NDArray[np.uint8]

BYTES_MAX = 10
"""Bytes of the longest varint of 64 bits."""
OVERRUN = -1


@kernel
def write_varints(numbers: U64) -> U8:
    """The bytes of all numbers, one after the other."""
    out = np.empty(BYTES_MAX * len(numbers), np.uint8)
    at = 0
    for i in range(len(numbers)):
        number = numbers[i]
        while number >= np.uint64(128):
            out[at] = np.uint8(number & np.uint64(127)) | np.uint8(128)
            number >>= np.uint64(7)
            at += 1
        out[at] = np.uint8(number)
        at += 1
    return out[:at]


@kernel
def read_varints(data: U8, start: int, numbers: U64) -> int:
    """Fills `numbers` from data[start:]; gives where they end, or OVERRUN if the data ends before, or one is too long."""
    at = start
    for i in range(len(numbers)):
        number, shift = np.uint64(0), np.uint64(0)
        while True:
            if at >= len(data) or shift > np.uint64(63):
                return OVERRUN
            byte = np.uint64(data[at])
            at += 1
            number |= (byte & np.uint64(127)) << shift
            shift += np.uint64(7)
            if byte < np.uint64(128):
                break
        numbers[i] = number
    return at


@kernel
def varint_lengths(numbers: U64) -> I64:
    """Bytes of every number."""
    lengths = np.empty(len(numbers), np.int64)
    for i in range(len(numbers)):
        length = np.int64(1)
        # All that there can be, whatever the number: so the compiler does several numbers at once.
        for shift in range(7, 64, 7):
            length += np.int64(numbers[i] >> np.uint64(shift) != 0)
        lengths[i] = length
    return lengths
