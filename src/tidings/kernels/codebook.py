"""Many numbers with few distinct values among them, as a book of those and a short index for each."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from tidings.kernels.anchors_arrays import I64

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]

BOOK_MAX = 65_535
_BITS = 17
_MASK = np.uint64(2**_BITS - 1)
_SHIFT = np.uint64(64 - _BITS)
_ONE = np.uint64(1)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 over the golden ratio: neighbours land far apart."""


@njit(cache=True)
def encode(lo: I64, hi: I64, tags: U8, starts: I64, at: I64, first: int) -> tuple[int, I64, U16, U8]:
    """Writes the boxes of groups at[first], at[first + 1] .. as indices into a book, until one might not fit in it.

    Gives (where it stopped, the book, indices, tags): per box its low ends, then its high ends, and its tag.
    """
    dims = lo.shape[1]
    room = 0
    for i in range(first, len(at)):
        room += starts[at[i] + 1] - starts[at[i]]
    index = np.empty((room, 2 * dims), np.uint16)
    tag = np.empty(room, np.uint8)
    book = np.empty(BOOK_MAX, np.int64)
    # A hash table: values, and 1 + their places in the book; 0: nothing.
    values = np.empty(2**_BITS, np.int64)
    places = np.zeros(2**_BITS, np.uint16)
    size = 0
    out = 0
    for i in range(first, len(at)):
        start, stop = starts[at[i]], starts[at[i] + 1]
        if size + (stop - start) * 2 * dims > BOOK_MAX:
            return i, book[:size].copy(), index[:out].copy(), tag[:out].copy()
        for box in range(start, stop):
            for d in range(2 * dims):
                value = lo[box, d] if d < dims else hi[box, d - dims]
                # Unsigned throughout: signed places would be checked for being negative.
                slot = (np.uint64(value) * _GOLDEN) >> _SHIFT
                while places[slot] != 0 and values[slot] != value:
                    slot = (slot + _ONE) & _MASK
                if places[slot] == 0:
                    book[size] = value
                    size += 1
                    places[slot] = size
                    values[slot] = value
                index[out, d] = places[slot] - 1
            tag[out] = tags[box]
            out += 1
    return len(at), book[:size].copy(), index[:out], tag[:out]
