"""How deliveries change joins: the combinations before and after that have a changed row in them, and their difference as
pairs.

A subscriber sees no more of a combination than its look: what goes and what comes are multisets of looks. A combination
that takes the place of another (same keys) and looks different makes a pair with it; the rest goes, or comes, one by one,
all in the order of places. Equal differences of a batch are numbered once (hash consing).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from research.views.join.join_state.combine import combine, number_distinct
from research.views.join.join_state.layout import RELATION, ROW, find, has_room, with_room
from research.views.join.join_state.update import hold
from tidings.kernels.arrays import grown
from tidings.kernels.jit import kernel
from tidings.kernels.rows import I32, I64, NONE, Int

# Fields of a group in which something was found: its number, and where its combinations before and after begin and end.
GROUP, OLD, NEW, END, GROUP_FIELDS = range(5)
# Fields of a delta: its batch, its hash, and where its pairs begin and end.
BATCH, HASH, FIRST, STOP, DELTA_FIELDS = range(5)
_SEED, _FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xFF51AFD7ED558CCD)
_SHIFT = np.uint64(32)


@kernel
def apply(
    head: I64,
    firsts: I32,
    memory: I32,
    table: I64,
    rows: I32,
    layout: I64,
    steps: Any,
    checks: I64,
    mark: I32,
    starts: I64,
    views: I64,
    keys: I64,
    new_rows: I64,
    group: Int,
    found_max: Int,
) -> tuple[Int, I32, I64, I64, I32, I32]:
    """Makes deliveries starts[g] .. starts[g + 1] - 1, which go to one view, for every g from `group` on.

    Each says which row of a key the view is to hold, NONE for none; the last that is not NONE counts. Nobody holds the key
    NONE. `mark` has a NONE for every key, before and after. Stops after a group with which more than `found_max`
    combinations were found. Gives (next group, memory, table, [groups, GROUP_FIELDS], found, combinations).
    """
    relations = layout.shape[0] - 2
    stack, out, end = np.empty((2, relations), np.int64), np.empty((1024, relations), np.int32), 0
    told, told_count = np.empty((256, GROUP_FIELDS), np.int64), 0
    widest = 1
    for g in range(group, len(starts) - 1):
        widest = max(widest, starts[g + 1] - starts[g])
    key, entries = np.empty(widest, np.int64), np.empty(widest, np.int64)
    # By place: the row that the view holds of the key, and the one that it is to hold.
    held = np.empty((2, widest), np.int64)
    while group < len(starts) - 1 and end <= found_max:
        view, start, stop = views[starts[group]], starts[group], starts[group + 1]
        group += 1
        count = 0
        if stop == start + 1:
            key[0], held[1, 0], count = keys[start], new_rows[start], 1 if keys[start] != NONE else 0
        for i in range(start, stop if count == 0 else start):
            if keys[i] != NONE:
                at = mark[keys[i]]
                if at == NONE:
                    mark[keys[i]], key[count], held[1, count] = count, keys[i], new_rows[i]
                    count += 1
                elif new_rows[i] != NONE:
                    held[1, at] = new_rows[i]
        changing = 0
        for i in range(count):
            mark[key[i]] = NONE
            entry = find(memory, table, view, key[i])
            now = NONE if entry == NONE else memory[entry + ROW]
            # Most of what comes is held already, or is to go and never was.
            if now != held[1, i] or (now != NONE and rows[now, RELATION] == relations):
                key[changing], entries[changing] = key[i], entry
                held[0, changing], held[1, changing] = now, held[1, i]
                changing += 1
        if changing == 0:
            continue
        new = last = end
        for moment in range(2):
            if moment == 1:
                new = last
                if not has_room(head, memory, table, layout, changing):
                    memory, table = with_room(head, memory, table, layout, changing)
                for i in range(changing):
                    hold(head, firsts, memory, table, rows, layout, view, entries[i], key[i], held[1, i])
            # Joined rows come last: they take precedence over combinations with the same keys.
            for is_joined in range(2):
                for i in range(changing):
                    row = held[moment, i]
                    if row == NONE or (rows[row, RELATION] == relations) != is_joined:
                        continue
                    before, last = last, NONE
                    while last == NONE:
                        last = combine(memory, table, rows, layout, steps, checks, view, row, stack, out, before)
                        if last == NONE:
                            out = grown(out, 0)
        if last > end:
            if told_count == len(told):
                told = grown(told, 0)
            told[told_count, GROUP], told[told_count, OLD] = group - 1, end
            told[told_count, NEW], told[told_count, END] = new, last
            told_count += 1
        end = last
    found, combinations = number_distinct(out, end)
    return group, memory, table, told[:told_count].copy(), found, combinations


@kernel
def in_order(found: I32, start: Int, stop: Int, place: I64, order: I64, out: I32) -> Int:
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
def difference(
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


@kernel
def deltas(groups: I64, batch: I64, found: I32, place: I64, look: I64) -> tuple[I64, I64, I32]:
    """([told, 2], [deltas, DELTA_FIELDS], [pairs, 2]): row of the group and number of each difference that is not empty.

    Groups of one batch follow each other. `place` and `look` are small numbers of combinations.
    """
    told, told_count = np.empty((len(groups), 2), np.int64), 0
    known, count, first = np.empty((256, DELTA_FIELDS), np.int64), 0, 0
    pairs, pair_count = np.empty((256, 2), np.int32), 0
    # A hash table of the deltas of this batch; what it says of those below `first` does not count any more.
    table = np.full(64, NONE, np.int32)
    balance = np.zeros(look.max() + 1 if len(look) else 0, np.int32)
    size = 0
    for g in range(len(groups)):
        size = max(size, groups[g, END] - groups[g, OLD])
    order, old, new = np.empty(size, np.int64), np.empty(size, np.int32), np.empty(size, np.int32)
    for g in range(len(groups)):
        if g and batch[g] != batch[g - 1]:
            first = count
        old_count = in_order(found, groups[g, OLD], groups[g, NEW], place, order, old)
        new_count = in_order(found, groups[g, NEW], groups[g, END], place, order, new)
        if pair_count + old_count + new_count > len(pairs):
            pairs = grown(pairs, pair_count + old_count + new_count)
        end = difference(place, look, balance, old, old_count, new, new_count, pairs, pair_count)
        if end == pair_count:
            continue
        mixed = _SEED
        for i in range(pair_count, end):
            for j in range(2):
                mixed = (mixed ^ np.uint64(pairs[i, j] + 1)) * _FACTOR
                mixed ^= mixed >> _SHIFT
        hashed = np.int64(mixed >> np.uint64(1))
        at = hashed & (len(table) - 1)
        while table[at] >= first:
            one = table[at]
            if known[one, HASH] == hashed and known[one, STOP] - known[one, FIRST] == end - pair_count:
                offset, i = known[one, FIRST] - pair_count, pair_count
                while i < end and pairs[i, 0] == pairs[offset + i, 0] and pairs[i, 1] == pairs[offset + i, 1]:
                    i += 1
                if i == end:
                    break
            at = (at + 1) & (len(table) - 1)
        number = table[at]
        if number < first:
            if count == len(known):
                known = grown(known, 0)
            number = table[at] = count
            known[number, BATCH], known[number, HASH] = batch[g], hashed
            known[number, FIRST], known[number, STOP] = pair_count, end
            pair_count, count = end, count + 1
            if 2 * (count - first) > len(table):
                table = np.full(2 * len(table), NONE, np.int32)
                for one in range(first, count):
                    at = known[one, HASH] & (len(table) - 1)
                    while table[at] != NONE:
                        at = (at + 1) & (len(table) - 1)
                    table[at] = one
        told[told_count, 0], told[told_count, 1] = g, number
        told_count += 1
    return told[:told_count].copy(), known[:count].copy(), pairs[:pair_count].copy()
