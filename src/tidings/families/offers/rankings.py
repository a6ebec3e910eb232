"""The lists of subscriptions with ORDER BY .. LIMIT: owns the arrays of `kernels/rankings.py`, and lets them grow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tidings.families.offers.difference import Change, Look, difference
from tidings.families.offers.kernels.rankings import (
    COUNT,
    IS_HIGHEST,
    ITEM_FIELDS,
    LIMIT,
    LIST_FIELDS,
    NEW,
    NEW_RANK,
    OLD,
    OLD_RANK,
    ORDER_AXIS,
    ROOM,
    SIDE,
    SLOT,
    START,
    VERSION,
    put_all,
    take_out_all,
    take_steps,
)
from tidings.families.offers.kernels.rankings import EVENT as STEP_EVENT
from tidings.kernels.arrays import I64, grow
from tidings.kernels.events import Events, Projections, Told
from tidings.kernels.lives import Lives

_ROOM_MIN = 4


class Rankings:
    """Offers of ranked subscriptions, best first. `lists` [slots, LIST_FIELDS] covers all slots."""

    def __init__(self) -> None:
        self.lists = np.zeros((64, LIST_FIELDS), np.int64)
        self._items = np.zeros((64, ITEM_FIELDS), np.int64)
        self._stop = 0
        self._wasted = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        return self.lists.nbytes + self._items.nbytes

    def cover(self, slots: int) -> None:
        grow(self.lists, slots)

    def add(self, slots: I64, limit: int, axis: int, *, is_highest: bool) -> None:
        """New subscriptions, ordered by an axis."""
        self.lists[slots] = 0
        self.lists[slots, LIMIT], self.lists[slots, ORDER_AXIS] = limit, axis
        self.lists[slots, IS_HIGHEST] = is_highest
        self._count += len(slots)

    def remove(self, slots: I64) -> None:
        own = slots[self.lists[slots, LIMIT] > 0]
        self._wasted += int(self.lists[own, ROOM].sum())
        self._count -= len(own)
        self.lists[own] = 0
        if not self._count:
            self._stop = self._wasted = 0
        elif self._wasted > 1024 and 2 * self._wasted > self._stop:
            self._pack()

    def fill(self, handles: I64, slots: I64, ranks: I64, versions: I64) -> None:
        """Puts offers into lists."""
        done = 0
        while done < len(slots):
            done = put_all(handles, self.lists, self._items, slots, ranks, versions, done)
            if done < len(slots):
                self._make_room(int(slots[done]))

    def shown(self, slot: int) -> I64:
        """Versions of the shown offers, in order."""
        start, count, limit = self.lists[slot, [START, COUNT, LIMIT]].tolist()
        return self._items[start : start + min(count, limit), VERSION].copy()

    def take(self, handles: I64, steps: I64, events: Events, lives: Lives, projections: Projections) -> Told:
        """Carries out steps in order; what subscriptions are told."""
        n = len(steps)
        told, tails = np.empty((3, n), np.int64), np.empty((n, 4), np.int64)
        changes, counts = np.empty((2 * n, 2), np.int64), np.zeros(2, np.int64)
        done = 0
        while done < n:
            done = take_steps(
                handles,
                self.lists,
                self._items,
                steps,
                events.old,
                events.new,
                lives,
                projections.starts,
                projections.column,
                events.is_part,
                done,
                counts,
                told,
                tails,
                changes,
            )
            if done < n:
                self._make_room(int(steps[done, SLOT]))
        return Told(told, int(counts[0]), tails[: counts[0]], changes[: counts[1]])

    def take_together(
        self, handles: I64, steps: I64, events: Events, ids: Callable[[int], str], look: Look
    ) -> list[Change]:
        """Carries out steps of one subscription as one; what it is told. ids: names of versions."""
        slot = int(steps[0, SLOT])
        before = {ids(version): version for version in self.shown(slot).tolist()}
        for step in steps:
            own = step[SLOT : SLOT + 1].copy()
            if step[SIDE] & OLD:
                gone = events.old[step[STEP_EVENT]]
                take_out_all(
                    handles, self.lists, self._items, own, step[OLD_RANK : OLD_RANK + 1].copy(), np.array([gone])
                )
            if step[SIDE] & NEW:
                come = events.new[step[STEP_EVENT]]
                self.fill(handles, own, step[NEW_RANK : NEW_RANK + 1].copy(), np.array([come]))
        after = {ids(version): version for version in self.shown(slot).tolist()}
        return difference(before, after, look)

    def _make_room(self, slot: int) -> None:
        """Moves a list to the end, with twice the room."""
        start, count, room = self.lists[slot, [START, COUNT, ROOM]].tolist()
        wanted = max(_ROOM_MIN, 2 * room)
        grow(self._items, self._stop + wanted)
        self._items[self._stop : self._stop + count] = self._items[start : start + count]
        self.lists[slot, [START, ROOM]] = self._stop, wanted
        self._stop += wanted
        self._wasted += room

    def _pack(self) -> None:
        own = np.flatnonzero(self.lists[:, LIMIT])
        rooms = self.lists[own, ROOM]
        items = np.zeros((int(rooms.sum()) + _ROOM_MIN, ITEM_FIELDS), np.int64)
        at = 0
        for slot, room in zip(own.tolist(), rooms.tolist(), strict=True):
            start, count = self.lists[slot, [START, COUNT]].tolist()
            items[at : at + count] = self._items[start : start + count]
            self.lists[slot, START] = at
            at += room
        self._items, self._stop, self._wasted = items, at, 0
