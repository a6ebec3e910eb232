"""From what a group showed to what it shows now, as pairs of items; equal differences are numbered once.

Who looks sees an item's look alone: what goes and what comes are multisets of looks. An item that takes the place of one
with the same tie, and both differ to the eye, makes a pair with it. The rest goes, or comes, one by one.
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.jit import kernel
from tidings.kernels.shortlists_arrays import I32, I64, LOOK, NONE, TIE, Int

# Fields of a kind: its batch, its hash, and where its pairs begin and end.
BATCH, HASH, FIRST, END, KIND_FIELDS = range(5)
_SEED, _FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xFF51AFD7ED558CCD)
_SHIFT = np.uint64(32)


@kernel
def difference(
    items: I64, balance: I32, old: I32, old_start: Int, old_stop: Int, new: I32, new_size: Int, pairs: I32, at: Int
) -> Int:
    """Writes the difference of old[old_start:old_stop] and new[:new_size] to pairs[at:]; gives its end there.

    A pair is (old item, new item), with NONE for what is not there: first those that change, in the new order, then those
    that go, in the old order, then those that come, in the new order. `balance` has a zero for every look, before and
    after. There is room for all of old and new.
    """
    lead, common = 0, min(old_stop - old_start, new_size)
    while lead < common and old[old_start + lead] == new[lead]:
        lead += 1
    trail = 0
    while trail < common - lead and old[old_stop - 1 - trail] == new[new_size - 1 - trail]:
        trail += 1
    gone = come = 0
    for i in range(old_start + lead, old_stop - trail):
        look = items[old[i], LOOK]
        balance[look] -= 1
        gone += 1
    for i in range(lead, new_size - trail):
        look = items[new[i], LOOK]
        if balance[look] < 0:
            gone -= 1
        else:
            come += 1
        balance[look] += 1
    if gone and come:
        for i in range(lead, new_size - trail):
            look = items[new[i], LOOK]
            if balance[look] <= 0:
                continue
            tie = items[new[i], TIE]
            for j in range(old_start + lead, old_stop - trail):
                if items[old[j], TIE] == tie:
                    old_look = items[old[j], LOOK]
                    if balance[old_look] < 0:
                        balance[old_look] += 1
                        balance[look] -= 1
                        pairs[at, 0], pairs[at, 1] = old[j], new[i]
                        at += 1
                        gone -= 1
                        come -= 1
                    break
    # Of items that look alike the first ones count, also where those are the same as before.
    i = old_start
    while gone:
        look = items[old[i], LOOK]
        if balance[look] < 0:
            balance[look] += 1
            pairs[at, 0], pairs[at, 1] = old[i], NONE
            at += 1
            gone -= 1
        i += 1
    i = 0
    while come:
        look = items[new[i], LOOK]
        if balance[look] > 0:
            balance[look] -= 1
            pairs[at, 0], pairs[at, 1] = NONE, new[i]
            at += 1
            come -= 1
        i += 1
    return at


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
