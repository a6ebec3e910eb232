"""Equal differences are numbered once: a hash table of lists of pairs (old item, new item), kept batch by batch.

The pairs of *kind* j are pairs[kinds[j, FIRST]:kinds[j, END]]. Kinds of earlier batches stay, but are not found any more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.jit import kernel

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Int = Any
"""An integer: int64 in compiled code, where numpy's scalars and Python's mix freely."""

NONE = -1
# Fields of a kind: its batch, its hash, and where its pairs begin and end.
BATCH, HASH, FIRST, END, KIND_FIELDS = range(5)
_SEED, _FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xFF51AFD7ED558CCD)
_SHIFT = np.uint64(32)


@kernel
def hash_pairs(pairs: I32, start: Int, stop: Int) -> Int:
    """A number that equal differences have in common, and others hardly ever."""
    mixed = _SEED
    for i in range(start, stop):
        for j in range(2):
            mixed = (mixed ^ np.uint64(pairs[i, j] + 1)) * _FACTOR
            mixed ^= mixed >> _SHIFT
    return np.int64(mixed >> np.uint64(1))


@kernel
def find_kind(table: I32, kinds: I64, pairs: I32, first: Int, start: Int, stop: Int, hashed: Int) -> Int:
    """Where in the table the kind of the difference pairs[start:stop] is, or is to be put.

    Kinds below `first` do not count any more, nor does what the table says of them.
    """
    mask = len(table) - 1
    at = hashed & mask
    while table[at] >= first:
        kind = table[at]
        if kinds[kind, HASH] == hashed and kinds[kind, END] - kinds[kind, FIRST] == stop - start:
            offset, i = kinds[kind, FIRST] - start, start
            while i < stop and pairs[i, 0] == pairs[offset + i, 0] and pairs[i, 1] == pairs[offset + i, 1]:
                i += 1
            if i == stop:
                return at
        at = (at + 1) & mask
    return at


@kernel
def wider(table: I32, kinds: I64, first: Int, count: Int) -> I32:
    """The table of the kinds first .. count - 1, twice as long."""
    longer = np.full(2 * len(table), NONE, np.int32)
    mask = len(longer) - 1
    for kind in range(first, count):
        at = kinds[kind, HASH] & mask
        while longer[at] != NONE:
            at = (at + 1) & mask
        longer[at] = kind
    return longer
