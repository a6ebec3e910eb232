"""A piercing set: few numbers, *anchors*, such that each of many changing intervals contains one.

The fewest anchors for intervals known at once are found greedily by upper ends; as many intervals no two of which meet, the
*witnesses*, prove that there are no fewer (Gupta, Lee, Leung, 1982; also called a minimum stabbing or hitting set of
intervals). An interval added later is pierced by the first anchor it contains, or by a new one at its upper end; an anchor
that pierces nothing more is dropped. When there are more than 1.5 anchors per witness, and SLACK, all anchors are made
anew. That sorts all intervals, but after chance changes only once about a third of them have changed.

    table[slot]:   LO HI TIMES ANCHOR     an interval, how often it is present (0: the slot is free), which anchor pierces it
    pierced[slot]: LO HI TIMES -          an anchor as LO and HI, and how many different intervals it pierces

    list ANCHORS:  (anchor, 0)            list WITNESSES:  (hi, lo)

Both tables are hash tables with linear probing and backward-shift deletion. (`tidings.kernels.stabbing` is another thing:
an index of boxes that is asked which boxes contain a point.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from research.strategies.join.kernels.sorted_lists import (
    NOWHERE,
    SIZE,
    SortedLists,
    first_from,
    locate,
    put,
    room_needed,
    take,
)
from tidings.kernels.arguments import as_ints
from tidings.kernels.extents import has_room
from tidings.kernels.jit import kernel
from tidings.kernels.rows import I64, Int
from tidings.model.codes import CODE_MIN

# Fields of a row of `table`.
LO, HI, TIMES, ANCHOR, TABLE_FIELDS = range(5)
# The two sorted lists.
ANCHORS, WITNESSES = 0, 1
# Fields of `head`: different intervals, where the last kernel stopped.
INTERVALS, PROGRESS, HEAD_FIELDS = range(3)
# What `change` reports; where it stopped is in head[PROGRESS].
DONE, NEEDS_REBUILD, NEEDS_ROOM, NOT_THERE = range(4)

SLACK = 8
"""So many anchors may there be at any time beyond half as many again as there are witnesses."""
TABLE_MIN = 64
BULK_MIN = 64
"""Fewer new intervals than this are added one by one."""


class PiercingSet:
    """A multiset of closed intervals of int64, and its anchors.

    Not safe for use by several threads at a time.
    """

    def __init__(self) -> None:
        self._head = np.zeros(HEAD_FIELDS, np.int64)
        self._table = _new_table(TABLE_MIN)
        self._pierced = _new_table(TABLE_MIN)
        self._lists = SortedLists()
        self._lists.new(2)

    def __len__(self) -> int:
        """Number of different intervals."""
        return int(self._head[INTERVALS])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        return self._head.nbytes + self._table.nbytes + self._pierced.nbytes + self._lists.nbytes

    def anchors(self) -> I64:
        """The anchors, ascending."""
        return self._lists.distinct([ANCHORS])[1]

    def add(self, los: ArrayLike, his: ArrayLike) -> None:
        """Adds intervals, each with lo <= hi."""
        lo, hi = as_intervals(los, his)
        self._table = _with_room(self._table, len(self), len(lo))
        if len(lo) >= BULK_MIN and 2 * len(lo) >= len(self):
            self._head[INTERVALS] += insert_rows(self._table, _rows(lo, hi, 1))
            self._rebuild()
        else:
            self._change(lo, hi, is_added=True)

    def remove(self, los: ArrayLike, his: ArrayLike) -> None:
        """Removes intervals that are present; KeyError if one is not, after those before it have been removed."""
        lo, hi = as_intervals(los, his)
        self._change(lo, hi, is_added=False)
        needed = 2 * max(len(self), TABLE_MIN)
        if 4 * needed < len(self._table):
            self._table = _resized(self._table, needed)
            self._rebuild()

    def _change(self, lo: I64, hi: I64, *, is_added: bool) -> None:
        at, status = 0, NEEDS_ROOM
        while status != DONE:
            if is_added:
                self._pierced = _with_room(self._pierced, self._lists.size(ANCHORS), len(lo) - at)
            status = change(self._head, self._table, self._pierced, *self._lists.arrays, lo, hi, is_added, at)
            at = int(self._head[PROGRESS])
            if status == NOT_THERE:
                raise KeyError(f"there is no interval from {lo[at]} to {hi[at]}")
            if status == NEEDS_ROOM:
                self._lists.make_room()
            elif status == NEEDS_REBUILD:
                self._rebuild()

    def _rebuild(self) -> None:
        slots = np.flatnonzero(self._table[:, TIMES])
        anchors, witness_los, counts = pierce_all(self._table, slots[np.argsort(self._table[slots, HI])])
        self._pierced = _new_table(TABLE_MIN + 2 * len(anchors))
        insert_rows(self._pierced, _rows(anchors, anchors, counts))
        self._lists = SortedLists()
        self._lists.new(2)
        which = np.repeat([ANCHORS, WITNESSES], len(anchors))
        # A witness ends at its anchor.
        self._lists.change(
            which,
            np.concatenate((np.zeros(len(anchors), np.int64), witness_los)),
            np.tile(anchors, 2),
            np.ones(len(which), np.bool_),
        )


def as_intervals(los: ArrayLike, his: ArrayLike) -> tuple[I64, I64]:
    """Lower and upper ends as kernels take them; ValueError if some interval ends before it begins."""
    lo, hi = as_ints(los), as_ints(his)
    if len(lo) != len(hi):
        raise ValueError(f"{len(lo)} lower ends for {len(hi)} upper ends")
    if (lo > hi).any():
        raise ValueError("an interval must not end before it begins")
    return lo, hi


def _new_table(size: int) -> I64:
    return np.zeros((size, TABLE_FIELDS), np.int64)


def _rows(lo: I64, hi: I64, times: int | I64) -> I64:
    rows = _new_table(len(lo))
    rows[:, LO], rows[:, HI], rows[:, TIMES] = lo, hi, times
    return rows


def _resized(table: I64, size: int) -> I64:
    resized = _new_table(size)
    insert_rows(resized, table[table[:, TIMES] > 0])
    return resized


def _with_room(table: I64, held: int, more: int) -> I64:
    """A table with room for so many more; a third of the slots stays free, as searches end there."""
    return table if 3 * (held + more) < 2 * len(table) else _resized(table, 2 * (held + more))


# The hash tables


@kernel
def home_of(table: I64, lo: Int, hi: Int) -> Int:
    """The slot at which the search for an interval starts."""
    mixed = np.uint64(lo) * np.uint64(0x9E3779B97F4A7C15)
    mixed = ((mixed >> np.uint64(29)) ^ mixed ^ np.uint64(hi)) * np.uint64(0xD6E8FEB86659FD93)
    mixed = ((mixed >> np.uint64(32)) ^ mixed) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64(((mixed >> np.uint64(32)) * np.uint64(table.shape[0])) >> np.uint64(32))


@kernel
def slot_of(table: I64, lo: Int, hi: Int) -> Int:
    """The slot of an interval, or the free one where it would be put."""
    slot = home_of(table, lo, hi)
    while table[slot, TIMES] and (table[slot, LO] != lo or table[slot, HI] != hi):
        slot += 1
        if slot == table.shape[0]:
            slot = 0
    return slot


@kernel
def clear_slot(table: I64, slot: Int) -> None:
    """Frees a slot, and shifts back those behind it that would not be found any more."""
    size = table.shape[0]
    gap = slot
    table[gap, TIMES] = 0
    slot = gap + 1 if gap + 1 < size else 0
    while table[slot, TIMES]:
        home = home_of(table, table[slot, LO], table[slot, HI])
        # How far it is from its home, and how far the gap is behind it, going round.
        away = slot - home if slot >= home else slot - home + size
        behind = slot - gap if slot >= gap else slot - gap + size
        if away >= behind:
            for field in range(TABLE_FIELDS):
                table[gap, field] = table[slot, field]
            table[slot, TIMES] = 0
            gap = slot
        slot += 1
        if slot == size:
            slot = 0


@kernel
def insert_rows(table: I64, rows: I64) -> Int:
    """Adds rows to a table with room for them, the TIMES of equal intervals together; gives how many are new."""
    new = 0
    for i in range(rows.shape[0]):
        slot = slot_of(table, rows[i, LO], rows[i, HI])
        if table[slot, TIMES]:
            table[slot, TIMES] += rows[i, TIMES]
        else:
            new += 1
            for field in range(TABLE_FIELDS):
                table[slot, field] = rows[i, field]
    return new


# Anchors


@kernel
def pierce_all(table: I64, slots: I64) -> tuple[I64, I64, I64]:
    """Gives every interval its anchor anew; `slots` are in the order of upper ends.

    An interval that no anchor pierces yet gets one at its upper end. It is a witness: it meets none of the witnesses before.
    Returns the anchors, the lower ends of their witnesses, and how many intervals each pierces.
    """
    anchors = np.empty(slots.shape[0], np.int64)
    witness_los = np.empty(slots.shape[0], np.int64)
    counts = np.empty(slots.shape[0], np.int64)
    last = -1
    for slot in slots:
        if last < 0 or table[slot, LO] > anchors[last]:
            last += 1
            anchors[last], witness_los[last], counts[last] = table[slot, HI], table[slot, LO], 0
        table[slot, ANCHOR] = anchors[last]
        counts[last] += 1
    return anchors[: last + 1], witness_los[: last + 1], counts[: last + 1]


@kernel
def set_pair(
    pool: I64, lists: I64, codes: I64, entries: I64, number: Int, code: Int, entry: Int, is_wanted: bool
) -> None:
    """Lets a list have a pair, or not have it."""
    block, offset, size, place = locate(lists, codes, entries, number, code, entry)
    is_there = place < size and codes[offset + place] == code and entries[offset + place] == entry
    if is_wanted and not is_there:
        put(pool, lists, codes, entries, number, block, place, code, entry)
    elif is_there and not is_wanted:
        take(pool, lists, codes, entries, number, block, place)


@kernel
def change(
    head: I64,
    table: I64,
    pierced: I64,
    pool: I64,
    lists: I64,
    codes: I64,
    entries: I64,
    los: I64,
    his: I64,
    is_added: bool,
    first: Int,
) -> Int:
    """Adds the intervals from `first` on to tables with room for them, or removes them; returns DONE or why it stopped."""
    for i in range(first, los.shape[0] + 1):
        head[PROGRESS] = i
        if 2 * lists[ANCHORS, SIZE] > 3 * lists[WITNESSES, SIZE] + 2 * SLACK:
            return NEEDS_REBUILD
        if i == los.shape[0]:
            break
        if not has_room(pool, room_needed(lists, ANCHORS) + room_needed(lists, WITNESSES)):
            return NEEDS_ROOM
        lo, hi = los[i], his[i]
        slot = slot_of(table, lo, hi)
        times = table[slot, TIMES] + (1 if is_added else -1)
        if times < 0:
            return NOT_THERE
        table[slot, TIMES] = times
        if times > (1 if is_added else 0):
            continue
        head[INTERVALS] += 1 if is_added else -1
        # The interval has come, or has gone: so may its anchor.
        if is_added:
            at = first_from(lists, codes, entries, ANCHORS, lo, 0)
            anchor = codes[at] if at != NOWHERE and codes[at] <= hi else hi
            table[slot, LO], table[slot, HI], table[slot, ANCHOR] = lo, hi, anchor
        else:
            anchor = table[slot, ANCHOR]
            clear_slot(table, slot)
        slot = slot_of(pierced, anchor, anchor)
        if is_added:
            pierced[slot, LO], pierced[slot, HI] = anchor, anchor
        pierced[slot, TIMES] += 1 if is_added else -1
        is_pierced = pierced[slot, TIMES] > 0
        if not is_pierced:
            clear_slot(pierced, slot)
        if not is_pierced or (is_added and pierced[slot, TIMES] == 1):
            set_pair(pool, lists, codes, entries, ANCHORS, anchor, 0, is_pierced)
        at = first_from(lists, codes, entries, WITNESSES, lo, CODE_MIN) if is_added else NOWHERE
        if at == NOWHERE or entries[at] > hi:
            set_pair(pool, lists, codes, entries, WITNESSES, hi, lo, is_added)
    return DONE
