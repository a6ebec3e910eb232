"""Stabs: a set of few numbers that keeps at least one in each of many changing intervals."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tidings.kernels import stabs_build, stabs_change
from tidings.kernels.ladders import Ladders
from tidings.kernels.stabs_arrays import (
    ANCHORS,
    DONE,
    HEAD_FIELDS,
    I64,
    INTERVALS,
    NEEDED,
    NEEDS_ROOM,
    NOT_THERE,
    PROGRESS,
    TABLE_FIELDS,
    WITNESSES,
)
from tidings.kernels.stabs_intervals import as_intervals

__all__ = ["Stabs"]

TABLE_MIN = 64
BULK_MIN = 64
"""Fewer new intervals than this are added one by one."""


class Stabs:
    """A multiset of closed intervals of int64, and *anchors*: numbers such that every interval contains one.

    Anchors made at once are the fewest possible. An interval added later is stabbed by the first anchor it contains, or by
    a new one at its upper end; anchors that stab nothing more are dropped. *Witnesses* are intervals no two of which meet:
    there can be no fewer anchors than these. When there are more than 1.5 anchors for each witness, and SLACK, all anchors
    are made anew. That sorts all intervals, but after chance changes only once they have changed by about a third.

    Not safe for use by several threads at a time.
    """

    def __init__(self) -> None:
        self._head = np.zeros(HEAD_FIELDS, np.int64)
        self._table = _new_table(TABLE_MIN)
        self._stabbed = _new_table(TABLE_MIN)
        self._lists = Ladders()
        self._lists.new(2)

    def __len__(self) -> int:
        """Number of different intervals."""
        return int(self._head[INTERVALS])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        return self._head.nbytes + self._table.nbytes + self._stabbed.nbytes + self._lists.nbytes

    def anchors(self) -> I64:
        """The anchors, ascending."""
        return self._lists.distinct([ANCHORS])[1]

    def add(self, los: ArrayLike, his: ArrayLike) -> None:
        """Add intervals, each with lo <= hi."""
        lo, hi = as_intervals(los, his)
        self._table = _with_room(self._table, len(self), len(lo))
        if len(lo) >= BULK_MIN and 2 * len(lo) >= len(self):
            stabs_build.fill(self._head, self._table, lo, hi)
            self._rebuild()
            return
        self._stabbed = _with_room(self._stabbed, self._lists.size(ANCHORS), len(lo))
        at = 0
        while (status := stabs_change.add(*self._arrays(), lo, hi, at)) != DONE:
            at = int(self._head[PROGRESS])
            self._oblige(status)
            self._stabbed = _with_room(self._stabbed, self._lists.size(ANCHORS), len(lo) - at)

    def remove(self, los: ArrayLike, his: ArrayLike) -> None:
        """Remove intervals that are present; KeyError if one is not, after those before it have been removed."""
        lo, hi = as_intervals(los, his)
        at = 0
        while (status := stabs_change.remove(*self._arrays(), lo, hi, at)) != DONE:
            at = int(self._head[PROGRESS])
            if status == NOT_THERE:
                raise KeyError(f"there is no interval from {lo[at]} to {hi[at]}")
            self._oblige(status)
        needed = 2 * max(len(self), TABLE_MIN)
        if 4 * needed < len(self._table):
            self._table = _resized(self._table, needed)
            self._rebuild()

    def _arrays(self) -> tuple[I64, ...]:
        return self._head, self._table, self._stabbed, *self._lists.arrays

    def _oblige(self, status: int) -> None:
        """Do what an update kernel asked for."""
        if status == NEEDS_ROOM:
            self._lists.make_room(int(self._head[NEEDED]))
        else:
            self._rebuild()

    def _rebuild(self) -> None:
        slots, his = stabs_build.list_slots(self._head, self._table)
        anchors, witness_los, counts = stabs_build.stab_all(self._table, slots, np.argsort(his))
        self._stabbed = _new_table(TABLE_MIN + 2 * len(anchors))
        stabs_build.fill_stabbed(self._stabbed, anchors, counts)
        self._lists = Ladders()
        self._lists.new(2)
        which = np.repeat([ANCHORS, WITNESSES], len(anchors))
        # A witness ends at its anchor.
        self._lists.change(
            which,
            np.concatenate((np.zeros(len(anchors), np.int64), witness_los)),
            np.tile(anchors, 2),
            np.ones(len(which), np.bool_),
        )


def _new_table(size: int) -> I64:
    return np.zeros((size, TABLE_FIELDS), np.int64)


def _resized(table: I64, size: int) -> I64:
    resized = _new_table(size)
    stabs_build.rehash(table, resized)
    return resized


def _with_room(table: I64, held: int, more: int) -> I64:
    """A table with room for so many more; a third of the slots stays free, as searches end there."""
    return table if 3 * (held + more) < 2 * len(table) else _resized(table, 2 * (held + more))
