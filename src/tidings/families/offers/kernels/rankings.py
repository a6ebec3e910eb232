"""Best offers first: all offers that a subscription with ORDER BY .. LIMIT matches, in order, and how the first ones change.

An offer ranks by the best value of the ordering attribute that both constraints allow, then by its id. All matches are kept,
as the offer that comes up when another goes must be found at once.
"""

from __future__ import annotations

import numpy as np

from tidings.families.offers.constraint import AXIS, AXIS_WORDS, BOX_AXES, BOX_WORDS
from tidings.families.offers.constraint import HI as PACKED_HI
from tidings.families.offers.constraint import LO as PACKED_LO
from tidings.families.offers.kernels.box_index.box_layout import LO, NOT_HI, axis_at, entries_at
from tidings.families.offers.kernels.packed import AT
from tidings.kernels.arrays import I64, Int
from tidings.kernels.events import is_netted
from tidings.kernels.jit import kernel
from tidings.kernels.lives import PROJECTION, Lives
from tidings.kernels.rows.read import NONE, Rows, compare_keys, record_of, rows_at, same_value, table_of

# Fields of a subscription's list: where it is, how long, room; how many offers are shown, 0 for a subscription without an
# order; the axis they are ordered by, and whether the highest value is best.
START, COUNT, ROOM, LIMIT, ORDER_AXIS, IS_HIGHEST, LIST_FIELDS = range(7)

# Fields of an item of a list.
RANK, VERSION, ITEM_FIELDS = range(3)

# Fields of a step: a change that concerns a ranked subscription, with the rank of the row before and after.
EVENT, SIDE, SLOT, OLD_RANK, NEW_RANK, STEP_FIELDS = range(6)
OLD, NEW = 1, 2

CODE_MIN, CODE_MAX = -(2**63), 2**63 - 1


@kernel
def rank_matches(handles: I64, matches: I64, slots: I64, words: I64, boxes: I64, lists: I64, ranks: I64) -> None:
    """The rank by which each match of a ranked subscription is ordered: least is best.

    matches: [n, 4] (constraint, owner, box, entry), as `BoxIndex.match` gives them; slots: [n], the subscriptions, which may
    be on either side.
    """
    entries = entries_at(handles)
    for i in range(len(matches)):
        own = lists[slots[i]]
        if own[LIMIT] == 0:
            continue
        lo, hi = np.int64(CODE_MIN), np.int64(CODE_MAX)
        head = boxes[matches[i, 2], AT]
        for place in range(words[head + BOX_AXES]):
            at = head + BOX_WORDS + AXIS_WORDS * place
            if words[at + AXIS] == own[ORDER_AXIS]:
                lo, hi = words[at + PACKED_LO], words[at + PACKED_HI]
        entry = matches[i, 3]
        place = entries.places[entries.group[entry], own[ORDER_AXIS]]
        if place != NONE:
            at = axis_at(entries, entry, place)
            lo, hi = max(lo, entries.words[at + LO]), min(hi, ~entries.words[at + NOT_HI])
        ranks[i] = ~hi if own[IS_HIGHEST] else lo


@kernel
def _find(rows: Rows, items: I64, start: Int, count: Int, rank: Int, version: Int) -> Int:
    """The place of an offer in a list, or where it belongs."""
    record, table = record_of(rows, version), table_of(rows, version)
    lo, hi = np.int64(0), count
    while lo < hi:
        middle = (lo + hi) >> 1
        other = start + middle
        is_before = items[other, RANK] < rank
        if items[other, RANK] == rank:
            is_before = compare_keys(rows, record_of(rows, items[other, VERSION]), record, table) < 0
        if is_before:
            lo = middle + 1
        else:
            hi = middle
    return lo


@kernel
def put(rows: Rows, lists: I64, items: I64, slot: Int, rank: Int, version: Int) -> Int:
    """Puts an offer into a list, which has room; its place."""
    start, count = lists[slot, START], lists[slot, COUNT]
    place = _find(rows, items, start, count, rank, version)
    for i in range(start + count, start + place, -1):
        items[i, RANK], items[i, VERSION] = items[i - 1, RANK], items[i - 1, VERSION]
    items[start + place, RANK], items[start + place, VERSION] = rank, version
    lists[slot, COUNT] += 1
    return place


@kernel
def take_out(rows: Rows, lists: I64, items: I64, slot: Int, rank: Int, version: Int) -> Int:
    """Takes an offer out of a list; the place it had."""
    start, count = lists[slot, START], lists[slot, COUNT]
    place = _find(rows, items, start, count, rank, version)
    for i in range(start + place, start + count - 1):
        items[i, RANK], items[i, VERSION] = items[i + 1, RANK], items[i + 1, VERSION]
    lists[slot, COUNT] -= 1
    return place


@kernel
def put_all(handles: I64, lists: I64, items: I64, slots: I64, ranks: I64, versions: I64, first: Int) -> Int:
    """Puts offers into lists, from number `first` on; the first that found no room, or how many there are."""
    rows = rows_at(handles)
    for i in range(first, len(slots)):
        if lists[slots[i], COUNT] == lists[slots[i], ROOM]:
            return i
        put(rows, lists, items, slots[i], ranks[i], versions[i])
    return len(slots)


@kernel
def take_out_all(handles: I64, lists: I64, items: I64, slots: I64, ranks: I64, versions: I64) -> None:
    """Takes offers out of lists."""
    rows = rows_at(handles)
    for i in range(len(slots)):
        take_out(rows, lists, items, slots[i], ranks[i], versions[i])


@kernel
def looks_alike(rows: Rows, starts: I64, column: I64, projection: Int, a: Int, b: Int) -> bool:
    """Whether a projection shows the same of two versions."""
    x, y, table = record_of(rows, a), record_of(rows, b), table_of(rows, a)
    for entry in range(starts[projection], starts[projection + 1]):
        if not same_value(rows, x, y, table, column[entry]):
            return False
    return True


@kernel
def take_steps(
    handles: I64,
    lists: I64,
    items: I64,
    steps: I64,
    old: I64,
    new: I64,
    lives: Lives,
    starts: I64,
    column: I64,
    is_part: I64,
    first: Int,
    counts: I64,
    told: I64,
    tails: I64,
    changes: I64,
) -> Int:
    """Carries out steps in order, from number `first` on, and tells how the shown offers change.

    The number of the first step whose list has no room, or of all. counts: [2], how many are told and changes so far; there is
    room for all: one notification and two changes for each step. old, new: [events], versions.
    """
    rows = rows_at(handles)
    for i in range(first, len(steps)):
        slot, event, sides = steps[i, SLOT], steps[i, EVENT], steps[i, SIDE]
        if sides & NEW and lists[slot, COUNT] == lists[slot, ROOM]:
            return i
        start, limit, before = lists[slot, START], lists[slot, LIMIT], lists[slot, COUNT]
        # The last shown one before, which may be pushed out, and the next, which may come up.
        was_last = items[start + limit - 1, VERSION] if before >= limit else np.int64(NONE)
        gone = come = np.int64(NONE)
        place = limit
        if sides & OLD:
            place = take_out(rows, lists, items, slot, steps[i, OLD_RANK], old[event])
        was_shown = place < limit
        place = limit
        if sides & NEW:
            place = put(rows, lists, items, slot, steps[i, NEW_RANK], new[event])
        is_shown = place < limit
        if was_shown:
            gone = old[event]
        elif is_shown:
            gone = was_last
        if is_shown:
            come = new[event]
        elif was_shown and lists[slot, COUNT] >= limit:
            come = items[start + limit - 1, VERSION]
        if gone == NONE and come == NONE:
            continue
        projection = lives[slot, PROJECTION]
        is_one = (was_shown and is_shown) or not is_netted(is_part, lives, event, slot)
        if is_one and gone != NONE and come != NONE and looks_alike(rows, starts, column, projection, gone, come):
            continue
        n, change = counts[0], counts[1]
        tails[n, 0], tails[n, 1], tails[n, 2] = event, projection, change
        if was_shown and is_shown:
            changes[change, 0], changes[change, 1] = gone, come
            change += 1
        else:
            if gone != NONE:
                changes[change, 0], changes[change, 1] = gone, NONE
                change += 1
            if come != NONE:
                changes[change, 0], changes[change, 1] = NONE, come
                change += 1
        tails[n, 3] = change
        told[0, n], told[1, n], told[2, n] = event, slot, n
        counts[0], counts[1] = n + 1, change
    return len(steps)
