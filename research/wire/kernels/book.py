"""A book: many numbers with few distinct ones among them, as those in order of first appearance and an index for each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from research.wire.kernels.varints import I64
from tidings.kernels.jit import kernel

U32 = npt.NDArray[np.uint32]

_BITS_MIN, _BITS_FIRST = 6, 16
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio: neighbours land far apart."""
_CERTAIN = 2**16
"""So many distinct ones tell of the rest: among the first numbers most are distinct anyway."""
_ONE = np.uint64(1)


@kernel
def write_book(numbers: I64) -> tuple[I64, U32]:
    """The distinct numbers and, for each number, its place among them; both empty once half of many are found distinct.

    A hash table with open addressing: values, and 1 + their places in the book (0: nothing). It starts small and doubles
    when it is half full, so that the part in use stays in the processor's cache.
    """
    index = np.empty(len(numbers), np.uint32)
    bits, done, size = _BITS_MIN, 0, 0
    while bits < _BITS_FIRST and 1 << bits < len(numbers):
        bits += 1
    book = np.empty(0, np.int64)
    while True:
        grown = np.empty(1 << bits - 1, np.int64)
        grown[:size] = book[:size]
        book = grown
        values, places = np.empty(1 << bits, np.int64), np.zeros(1 << bits, np.uint32)
        _find_all(book[:size], values, places, np.uint64(bits), book, 0, np.empty(size, np.uint32), 0)
        done, size = _find_all(numbers, values, places, np.uint64(bits), book, size, index, done)
        if done == len(numbers):
            return book[:size].copy(), index
        if size >= _CERTAIN and 2 * size > done:
            return np.empty(0, np.int64), np.empty(0, np.uint32)
        bits += 1


@kernel
def _find_all(
    numbers: I64, values: I64, places: U32, bits: np.uint64, book: I64, size: int, index: U32, first: int
) -> tuple[int, int]:
    """Looks numbers up from the first on, adding those that are new, until the book is full: (where it stopped, its size)."""
    mask, shift = (_ONE << bits) - _ONE, np.uint64(64) - bits
    for i in range(first, len(numbers)):
        number = numbers[i]
        # Unsigned throughout: signed places would be checked for being negative.
        slot = (np.uint64(number) * _GOLDEN) >> shift
        while places[slot] != 0 and values[slot] != number:
            slot = (slot + _ONE) & mask
        if places[slot] == 0:
            if size == len(book):
                return i, size
            book[size] = number
            size += 1
            places[slot] = size
            values[slot] = number
        index[i] = places[slot] - 1
    return len(numbers), size


@kernel
def read_book(book: I64, index: U32, numbers: I64) -> bool:
    """Fills `numbers` with those at the places given; False if the book has no such place."""
    for i in range(np.uint64(len(index))):
        if index[i] >= len(book):
            return False
        numbers[i] = book[np.uint64(index[i])]
    return True
