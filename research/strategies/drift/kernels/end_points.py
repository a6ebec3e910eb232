"""The baselines B-tree(lr) and B-tree(c) of the paper on value-based notification: an index of what moves with who is told.

`EndPoints` (its section 2.3) has both ends of the interval of every member in a B-tree: a value tells those whose ends lie
between the last one and itself, and each of them gets new ends. `Centres` (4.1), for one radius, has the value last told: those
told are a range of these, taken out and put in again as one.
"""

from __future__ import annotations

import numpy as np

from research.strategies.drift.kernels.btree import (
    FREE,
    LEAF_MAX,
    LEAVES,
    BTree,
    delete,
    empty_tree,
    find,
    insert,
    next_entry,
    put_run,
    room_for,
    take_between,
)
from tidings.kernels.arrays import F64, I64, Float, Int, grow
from tidings.kernels.jit import kernel


class EndPoints:
    """The members of one item with a value, numbered in order of creation."""

    has_one_radius = False

    def __init__(self, value: float) -> None:
        self.value = value
        self.count = 0
        self.reach, self.centre = np.empty(64), np.empty(64)
        self.told = np.empty(64, np.int64)
        """The members that the last move told, in front."""
        self._tree = empty_tree()

    def add(self, reaches: F64) -> None:
        first, self.count = self.count, self.count + len(reaches)
        for array in (self.reach, self.centre, self.told):
            grow(array, self.count)
        self.reach[first : self.count] = reaches
        self.centre[first : self.count] = self.value
        for begin in range(first, self.count, LEAF_MAX):
            self._tree = room_for(self._tree, 2 * self.count)
            self._add(begin, min(begin + LEAF_MAX, self.count))

    def _add(self, first: int, stop: int) -> None:
        add_ends(self._tree, self.reach, self.centre, first, stop)

    def move(self, values: F64) -> I64:
        """Moves to these values, one after the other. Returns how many members each tells."""
        counts = np.zeros(len(values), np.int64)
        done = 0
        while done < len(values):
            self._tree = room_for(self._tree, 2 * self.count)
            done = self._move(values, done, counts)
        if len(values):
            self.value = float(values[-1])
        return counts

    def _move(self, values: F64, done: int, counts: I64) -> int:
        last = self.value if done == 0 else float(values[done - 1])
        return int(move_ends(self._tree, self.reach, self.centre, self.count, last, values, done, self.told, counts))


class Centres(EndPoints):
    """The same for members that all have one radius."""

    has_one_radius = True

    def _add(self, first: int, stop: int) -> None:
        put_run(self._tree, self.value, np.arange(first, stop), stop - first)

    def _move(self, values: F64, done: int, counts: I64) -> int:
        last = self.value if done == 0 else float(values[done - 1])
        return int(
            move_centres(self._tree, self.reach[0], self.centre, self.count, last, values, done, self.told, counts)
        )


# --- Kernels ---


@kernel
def has_room(t: BTree, entries: Int) -> bool:
    """Whether all entries may move without need for more leaves."""
    return bool(t.head[FREE] >= t.head[LEAVES] + 4 * (entries // LEAF_MAX) + 4)


@kernel
def add_ends(t: BTree, reach: F64, centre: F64, first: Int, stop: Int) -> None:
    for member in range(first, stop):
        insert(t, centre[member] - reach[member], member)
        insert(t, centre[member] + reach[member], member)


@kernel
def move_ends(
    t: BTree, reach: F64, centre: F64, size: Int, last: Float, values: F64, start: Int, told: I64, counts: I64
) -> Int:
    """Moves from place `start` of the values on; returns the place where there is no room, or their number."""
    for i in range(start, len(values)):
        if not has_room(t, 2 * size):
            return np.int64(i)
        value = values[i]
        # Ends between the last value and this one; those of the other side are not there.
        low, high = (last, value) if value > last else (value, last)
        at, place = find(t, low, np.int64(-1))
        count = 0
        while True:
            at, place = next_entry(t, at, place)
            if at >= t.head[LEAVES] or t.key[t.order[at], place] > high:
                break
            key = t.key[t.order[at], place]
            if key != last:
                told[count] = t.member[t.order[at], place]
                count += 1
            place += 1
        for k in range(count):
            member = told[k]
            delete(t, centre[member] - reach[member], member)
            delete(t, centre[member] + reach[member], member)
            insert(t, value - reach[member], member)
            insert(t, value + reach[member], member)
            centre[member] = value
        counts[i] = count
        last = value
    return np.int64(len(values))


@kernel
def reaching(value: Float, radius: Float) -> tuple[Float, Float]:
    """The highest centre that a rise to the value tells, and the lowest that a fall tells, exactly as doubles are rounded."""
    high = value - radius
    while high + radius > value:
        high = np.nextafter(high, -np.inf)
    while np.nextafter(high, np.inf) + radius <= value:
        high = np.nextafter(high, np.inf)
    low = value + radius
    while low - radius < value:
        low = np.nextafter(low, np.inf)
    while np.nextafter(low, -np.inf) - radius >= value:
        low = np.nextafter(low, -np.inf)
    return high, low


@kernel
def move_centres(
    t: BTree, radius: Float, centre: F64, size: Int, last: Float, values: F64, start: Int, told: I64, counts: I64
) -> Int:
    """As `move_ends`, for centres."""
    for i in range(start, len(values)):
        if not has_room(t, size):
            return np.int64(i)
        value = values[i]
        high, low = reaching(value, radius)
        if value > last:
            count = take_between(t, -np.inf, high, told)
        else:
            count = take_between(t, low, np.inf, told)
        if count:
            members = np.sort(told[:count])
            told[:count] = members
            put_run(t, value, members, count)
            for k in range(count):
                centre[members[k]] = value
        counts[i] = count
        last = value
    return np.int64(len(values))
