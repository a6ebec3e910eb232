"""From the combinations of a group before to those after, as pairs; equal differences of a batch are numbered once.

Who looks sees a combination's look alone: what goes and what comes are multisets of looks. One that takes the place of
another, and both differ to the eye, makes a pair with it. The rest goes, or comes, one by one. All in the order of places.
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.differences import BATCH, FIRST, HASH, KIND_FIELDS, find_kind, hash_pairs, wider
from tidings.kernels.differences import END as KIND_END
from tidings.kernels.growth import grown
from tidings.kernels.jit import kernel
from tidings.kernels.meshes_apply import END, NEW, OLD
from tidings.kernels.meshes_arrays import I32, I64, NONE, Int


@kernel
def tell(groups: I64, batch: I64, found: I32, place: I64, look: I64) -> tuple[I64, I64, I32]:
    """([told, 2], [kinds, KIND_FIELDS], [pairs, 2]): row of the group and kind of each difference that is not empty.

    Groups of one batch follow each other. `place` and `look` are small numbers of combinations.
    """
    told, told_count = np.empty((len(groups), 2), np.int64), 0
    kinds, kind_count, first_kind = np.empty((256, KIND_FIELDS), np.int64), 0, 0
    pairs, pair_count = np.empty((256, 2), np.int32), 0
    table = np.full(64, NONE, np.int32)
    balance = np.zeros(look.max() + 1 if len(look) else 0, np.int32)
    size = 0
    for g in range(len(groups)):
        size = max(size, groups[g, END] - groups[g, OLD])
    order, old, new = np.empty(size, np.int64), np.empty(size, np.int32), np.empty(size, np.int32)
    for g in range(len(groups)):
        if g and batch[g] != batch[g - 1]:
            first_kind = kind_count
        old_count = _in_order(found, groups[g, OLD], groups[g, NEW], place, order, old)
        new_count = _in_order(found, groups[g, NEW], groups[g, END], place, order, new)
        if pair_count + old_count + new_count > len(pairs):
            pairs = grown(pairs, pair_count + old_count + new_count)
        end = _difference(place, look, balance, old, old_count, new, new_count, pairs, pair_count)
        if end == pair_count:
            continue
        hashed = hash_pairs(pairs, pair_count, end)
        at = find_kind(table, kinds, pairs, first_kind, pair_count, end, hashed)
        kind = table[at]
        if kind < first_kind:
            if kind_count == len(kinds):
                kinds = grown(kinds, 0)
            kind = table[at] = kind_count
            kinds[kind, BATCH], kinds[kind, HASH] = batch[g], hashed
            kinds[kind, FIRST], kinds[kind, KIND_END] = pair_count, end
            pair_count, kind_count = end, kind_count + 1
            if 2 * (kind_count - first_kind) > len(table):
                table = wider(table, kinds, first_kind, kind_count)
        told[told_count, 0], told[told_count, 1] = g, kind
        told_count += 1
    return told[:told_count].copy(), kinds[:kind_count].copy(), pairs[:pair_count].copy()


@kernel
def _in_order(found: I32, start: Int, stop: Int, place: I64, order: I64, out: I32) -> Int:
    """Writes found[start:stop] in the order of places, of those with one place the last; gives how many these are."""
    size = stop - start
    for i in range(size):
        order[i] = (place[found[start + i]] << 32) | i
    if size > 1:
        order[:size].sort()
    count = 0
    for i in range(size):
        if i + 1 == size or order[i] >> 32 != order[i + 1] >> 32:
            out[count] = found[start + (order[i] & (2**32 - 1))]
            count += 1
    return count


@kernel
def _difference(
    place: I64, look: I64, balance: I32, old: I32, old_count: Int, new: I32, new_count: Int, pairs: I32, at: Int
) -> Int:
    """Writes the difference of two lists to pairs[at:]; gives its end there. `balance` is zero before and after."""
    for i in range(old_count):
        balance[look[old[i]]] -= 1
    for i in range(new_count):
        balance[look[new[i]]] += 1
    j = 0
    for i in range(old_count):
        before = old[i]
        while j < new_count and place[new[j]] < place[before]:
            j += 1
        if j < new_count and place[new[j]] == place[before]:
            after = new[j]
            if balance[look[before]] < 0 and balance[look[after]] > 0:
                balance[look[before]] += 1
                balance[look[after]] -= 1
                pairs[at, 0], pairs[at, 1] = before, after
                at += 1
    for i in range(old_count):
        if balance[look[old[i]]] < 0:
            balance[look[old[i]]] += 1
            pairs[at, 0], pairs[at, 1] = old[i], NONE
            at += 1
    for i in range(new_count):
        if balance[look[new[i]]] > 0:
            balance[look[new[i]]] -= 1
            pairs[at, 0], pairs[at, 1] = NONE, new[i]
            at += 1
    return at
