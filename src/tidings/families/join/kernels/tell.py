"""What is told of a changed row: a subscription's pairs of joined rows as a list of changes, equal lists once.

Within one notification changes stand in the order of the keys of joined rows, side by side. What goes and what comes are
multisets of what subscribers see: only a row that is joined by other values than before can bring both, and then what looks
alike cancels out.
"""

# mypy: allow-untyped-decorators

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.families.join.kernels.combine import Plans
from tidings.kernels.events import Projections
from tidings.kernels.jit import kernel, uncounted
from tidings.kernels.lives import IS_NET, PROJECTION, Lives
from tidings.kernels.rows import I64, NONE, Int, Rows, compare_keys, equal_at, is_valid, mix, record_of, same_value
from tidings.kernels.stabbing import NEW, OLD

BOTH = OLD | NEW
FIRST, SECOND = np.int64(0), np.int64(1)
"""Numbers of numpy as arguments: for each literal one numba compiles a function once more."""
# Counts of what was told; uses so far; wide subscriptions; the side that the index of sides lacks.
TOLD, TAILS, CHANGES, ITEMS, STAMP, WIDE, WANTED, COUNTS = range(8)
# Fields of a heard pair: subscription, pair, OLD | NEW; then, in a list of pairs of one subscription, the next.
SLOT, PAIR, BITS, NEXT, HEARD_FIELDS = range(5)
# Of pairs of combinations: where what was heard of it begins, items of the old and new joined row; an order of them, and a
# second place to sort it in.
HEARD, OLD_ITEM, NEW_ITEM, ORDER, SPARE, PAIR_FIELDS = range(6)
# Fields of a group, the pairs that one subscription has heard of: subscription, first and last of them.
GROUP_SLOT, GROUP_FIRST, GROUP_LAST, GROUP_FIELDS = range(4)
# What is known of a projection at one use: stamp << 1 | whether it shows the difference between the old row and the new;
# then, for changes of one pair by their kind (OLD, NEW, BOTH), the stamp and the tail.
SHOWS, TAIL_STAMP, TAIL, LOOK_FIELDS = 0, 0, 3, 7

_TOLD_IN_ORDER = (BOTH, OLD, NEW)


class Output(NamedTuple):
    """What is told, as in `tidings.kernels.events.Told`."""

    told: I64
    """[room, 3]: event, slot, tail."""
    tails: I64
    changes: I64
    sources: I64
    """[room, sides at most]; beyond the last side of a join stands a version of its first."""
    counts: I64
    """[COUNTS]."""


class Scratch(NamedTuple):
    """Room to work in."""

    found: I64
    """[room, sides at most]: combinations."""
    of_pair: I64
    """[PAIR_FIELDS, room + 1]."""
    hits: I64
    heard: I64
    """[room, HEARD_FIELDS]."""
    groups: I64
    table: I64
    """[a power of two, at least twice the room of `heard`]: tails of one use, by hash of their changes."""
    mark: I64
    """[slots]: the group of a subscription, NONE before and after each use."""
    looks: I64
    """[projections, LOOK_FIELDS]."""
    x: I64
    """[2, axes, VECTOR_FIELDS]: the vectors to stab with."""
    own: I64
    """[2, 1 + 2 * columns at most, VECTOR_FIELDS]: the vectors to stab the index of sides with."""
    has: I64
    walk: I64


@uncounted
def _compare(rows: Rows, tables: I64, found: I64, a: Int, b: Int) -> Int:
    """Order of two combinations: by the keys of their rows, side by side."""
    for side in range(len(tables)):
        if tables[side] == NONE:
            break
        one, two = found[a, side], found[b, side]
        if one != two:
            order = compare_keys(rows, record_of(rows, one), record_of(rows, two), tables[side])
            if order != 0:
                return order
    return 0


@uncounted
def _sort(rows: Rows, tables: I64, found: I64, order: I64, spare: I64, start: Int, stop: Int) -> None:
    """Merge sort of order[start:stop], numbers of combinations."""
    for low in range(start, stop, 8):
        for i in range(low + 1, min(low + 8, stop)):
            moved, j = order[i], i
            while j > low and _compare(rows, tables, found, order[j - 1], moved) > 0:
                order[j] = order[j - 1]
                j -= 1
            order[j] = moved
    width = 8
    while width < stop - start:
        for low in range(start, stop, 2 * width):
            middle, high = min(low + width, stop), min(low + 2 * width, stop)
            i, j = low, middle
            for at in range(low, high):
                if i < middle and (j == high or _compare(rows, tables, found, order[i], order[j]) <= 0):
                    spare[at] = order[i]
                    i += 1
                else:
                    spare[at] = order[j]
                    j += 1
        for at in range(start, stop):
            order[at] = spare[at]
        width *= 2


@uncounted
def _shows(
    rows: Rows, projections: Projections, projection: Int, side: Int, old: Int, new: Int, looks: I64, stamp: Int
) -> bool:
    """Whether a projection shows the difference between two versions of one side; found out once per use."""
    if looks[projection, SHOWS] >> 1 == stamp:
        return bool(looks[projection, SHOWS] & 1 != 0)
    is_shown = False
    if old != NONE and new != NONE:
        a, b = record_of(rows, old), record_of(rows, new)
        for i in range(projections.starts[projection], projections.starts[projection + 1]):
            if projections.side[i] == side and not same_value(rows, a, b, projections.table[i], projections.column[i]):
                is_shown = True
                break
    looks[projection, SHOWS] = stamp << 1 | np.int64(is_shown)
    return is_shown


@uncounted
def _item(out: Output, scratch: Scratch, pair: Int, field: Int, side: Int, version: Int) -> Int:
    """The number of the old or new joined row of a pair."""
    item = scratch.of_pair[field, pair]
    if item == NONE:
        item = out.counts[ITEMS]
        out.counts[ITEMS] += 1
        scratch.of_pair[field, pair] = item
        add_source(out, scratch.found, pair, item)
        out.sources[item, side] = version
    return item


@uncounted
def add_source(out: Output, found: I64, pair: Int, item: Int) -> None:
    """Notes the versions that a joined row is made of."""
    for side in range(out.sources.shape[1]):
        version = found[pair, side]
        out.sources[item, side] = found[pair, 0] if version == NONE else version


@uncounted
def _add_change(out: Output, scratch: Scratch, pair: Int, bits: Int, side: Int, old: Int, new: Int, at: Int) -> None:
    """Writes the change that a pair is to those who select its old joined row, its new one, or both."""
    out.changes[at, 0] = _item(out, scratch, pair, np.int64(OLD_ITEM), side, old) if bits & OLD else NONE
    out.changes[at, 1] = _item(out, scratch, pair, np.int64(NEW_ITEM), side, new) if bits & NEW else NONE


@uncounted
def add_tail(out: Output, event: Int, projection: Int, first: Int, stop: Int) -> Int:
    tail = out.counts[TAILS]
    out.tails[tail, 0], out.tails[tail, 1], out.tails[tail, 2], out.tails[tail, 3] = event, projection, first, stop
    out.counts[TAILS], out.counts[CHANGES] = tail + 1, stop
    return tail


@uncounted
def add_told(out: Output, event: Int, slot: Int, tail: Int) -> None:
    told = out.counts[TOLD]
    out.told[told, 0], out.told[told, 1], out.told[told, 2] = event, slot, tail
    out.counts[TOLD] = told + 1


@uncounted
def tell_one(
    rows: Rows,
    lives: Lives,
    projections: Projections,
    out: Output,
    scratch: Scratch,
    event: Int,
    side: Int,
    old: Int,
    new: Int,
    heard_count: Int,
) -> None:
    """Tells all who have heard of the only pair there is; what they are told depends on projection and kind alone."""
    heard, mark, looks = scratch.heard, scratch.mark, scratch.looks
    stamp = out.counts[STAMP]
    count = 0
    for i in range(heard_count):
        slot = heard[i, SLOT]
        if mark[slot] == NONE:
            mark[slot] = count
            heard[count, SLOT], heard[count, BITS] = slot, heard[i, BITS]
            count += 1
        else:
            heard[mark[slot], BITS] |= heard[i, BITS]
    for i in range(count):
        slot, bits = heard[i, SLOT], heard[i, BITS]
        mark[slot] = NONE
        projection = lives[slot, PROJECTION]
        if bits == BOTH and not _shows(rows, projections, projection, side, old, new, looks, stamp):
            continue
        if looks[projection, TAIL_STAMP + bits] != stamp:
            at = out.counts[CHANGES]
            _add_change(out, scratch, FIRST, bits, side, old, new, at)
            looks[projection, TAIL_STAMP + bits] = stamp
            looks[projection, TAIL + bits] = add_tail(out, event, projection, at, at + 1)
        add_told(out, event, slot, looks[projection, TAIL + bits])


@uncounted
def _look_alike(rows: Rows, projections: Projections, projection: Int, found: I64, a: Int, b: Int) -> bool:
    for i in range(projections.starts[projection], projections.starts[projection + 1]):
        side = projections.side[i]
        one, two = found[a, side], found[b, side]
        if one != two and not same_value(
            rows, record_of(rows, one), record_of(rows, two), projections.table[i], projections.column[i]
        ):
            return False
    return True


# It allocates, and says so: it would otherwise be compiled as its callers are.
@kernel(_nrt=True)
def _cancel(rows: Rows, projections: Projections, projection: Int, scratch: Scratch, first: Int) -> None:
    """Of a list of what goes, comes, or stays, silences what looks alike before and after: takes bits away.

    What stays looks as it did. Of several that look alike the first are told.
    """
    heard, found = scratch.heard, scratch.found
    count, at = 0, first
    while at != NONE:
        count, at = count + 1, heard[at, NEXT]
    size = 4
    while size < 2 * count:
        size *= 2
    table, hashes = np.full(size, NONE, np.int64), np.empty(size, np.int64)
    balance, look, entries = np.zeros(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    at = first
    for i in range(count):
        pair = heard[at, PAIR]
        hashed = np.int64(0)
        for j in range(projections.starts[projection], projections.starts[projection + 1]):
            record = record_of(rows, found[pair, projections.side[j]])
            if is_valid(rows, record, projections.column[j]):
                hashed = mix(hashed, equal_at(rows, record, projections.table[j], projections.column[j]))
            else:
                hashed = mix(hashed, np.int64(j) + 1)
        place = hashed & (size - 1)
        while table[place] != NONE and not (
            hashes[place] == hashed
            and _look_alike(rows, projections, projection, found, pair, heard[entries[table[place]], PAIR])
        ):
            place = (place + 1) & (size - 1)
        entries[i] = at
        if table[place] == NONE:
            table[place], hashes[place] = i, hashed
        look[i] = table[place]
        balance[look[i]] += np.int64(heard[at, BITS] & NEW != 0) - np.int64(heard[at, BITS] & OLD != 0)
        at = heard[at, NEXT]
    for i in range(count):
        bits, kept = heard[entries[i], BITS], np.int64(0)
        if bits & OLD and balance[look[i]] < 0:
            balance[look[i]] += 1
            kept = np.int64(OLD)
        elif bits & NEW and balance[look[i]] > 0:
            balance[look[i]] -= 1
            kept = np.int64(NEW)
        heard[entries[i], BITS] = kept


@uncounted
def _group(scratch: Scratch, pairs: Int) -> Int:
    """Chains what was heard by subscription, pairs in their order; gives the number of groups."""
    heard, groups, mark, of_pair = scratch.heard, scratch.groups, scratch.mark, scratch.of_pair
    count = 0
    for i in range(pairs):
        pair = of_pair[ORDER, i]
        for at in range(of_pair[HEARD, pair], of_pair[HEARD, pair + 1]):
            slot = heard[at, SLOT]
            heard[at, NEXT] = NONE
            group = mark[slot]
            if group == NONE:
                mark[slot] = count
                groups[count, GROUP_SLOT], groups[count, GROUP_FIRST], groups[count, GROUP_LAST] = slot, at, at
                count += 1
                continue
            last = groups[group, GROUP_LAST]
            if heard[last, PAIR] == pair:
                heard[last, BITS] |= heard[at, BITS]
            else:
                heard[last, NEXT] = at
                groups[group, GROUP_LAST] = at
    for group in range(count):
        mark[groups[group, GROUP_SLOT]] = NONE
    return count


@uncounted
def tell_many(
    rows: Rows,
    plans: Plans,
    lives: Lives,
    projections: Projections,
    out: Output,
    scratch: Scratch,
    event: Int,
    signature: Int,
    side: Int,
    old: Int,
    new: Int,
    old_pairs: Int,
    pairs: Int,
    is_part: bool,
) -> None:
    """Tells all who have heard of several pairs, the first `old_pairs` of which have no new joined row.

    is_part: of a commit with several changes (`is_netted`).
    """
    heard, of_pair, table = scratch.heard, scratch.of_pair, scratch.table
    stamp = out.counts[STAMP]
    ordered = old_ordered = np.int64(0)
    for pair in range(pairs):
        if pair == old_pairs:
            old_ordered = ordered
        if of_pair[HEARD, pair] < of_pair[HEARD, pair + 1]:
            of_pair[ORDER, ordered] = pair
            ordered += 1
    if old_pairs == pairs:
        old_ordered = ordered
    tables = plans.tables[signature]
    _sort(rows, tables, scratch.found, of_pair[ORDER], of_pair[SPARE], FIRST, old_ordered)
    _sort(rows, tables, scratch.found, of_pair[ORDER], of_pair[SPARE], old_ordered, ordered)
    groups = _group(scratch, ordered)
    size = 4
    while size < 2 * groups:
        size *= 2
    table[:size] = NONE
    for group in range(groups):
        slot, first = scratch.groups[group, GROUP_SLOT], scratch.groups[group, GROUP_FIRST]
        projection = lives[slot, PROJECTION]
        # Alternatives may select some combinations before, others after, others both before and after the change.
        kind, is_mixed, at = heard[first, BITS], False, heard[first, NEXT]
        while at != NONE and not is_mixed:
            is_mixed = heard[at, BITS] != kind
            at = heard[at, NEXT]
        if (
            old != NONE
            and new != NONE
            and not _shows(rows, projections, projection, side, old, new, scratch.looks, stamp)
        ):
            if kind == BOTH and not is_mixed:
                continue
            if is_mixed and not is_part and lives[slot, IS_NET] == 0:
                _cancel(rows, projections, projection, scratch, first)
        start = out.counts[CHANGES]
        hashed, stop = mix(np.int64(0), projection), start
        # Updates are told first, then what goes, then what comes.
        for bits in _TOLD_IN_ORDER:
            at = first if is_mixed or bits == kind else np.int64(NONE)
            while at != NONE:
                if heard[at, BITS] == bits:
                    _add_change(out, scratch, heard[at, PAIR], bits, side, old, new, stop)
                    hashed = mix(mix(hashed, out.changes[stop, 0]), out.changes[stop, 1])
                    stop += 1
                at = heard[at, NEXT]
        if stop == start:
            continue
        place = hashed & (size - 1)
        while table[place] != NONE and not _is_tail(out, table[place], projection, start, stop):
            place = (place + 1) & (size - 1)
        if table[place] == NONE:
            table[place] = add_tail(out, event, projection, start, stop)
        add_told(out, event, slot, table[place])


@uncounted
def _is_tail(out: Output, tail: Int, projection: Int, start: Int, stop: Int) -> bool:
    """Whether a tail says the same as the changes from start to stop."""
    if out.tails[tail, 1] != projection or out.tails[tail, 3] - out.tails[tail, 2] != stop - start:
        return False
    offset = out.tails[tail, 2] - start
    for i in range(start, stop):
        if out.changes[i, 0] != out.changes[offset + i, 0] or out.changes[i, 1] != out.changes[offset + i, 1]:
            return False
    return True
