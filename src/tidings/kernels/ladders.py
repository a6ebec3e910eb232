"""Ladders: many sorted lists of (code, entry), most of them small, that tell what stands beside each entry put in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tidings.kernels import ladders_change, ladders_pack, ladders_read
from tidings.kernels.arguments import as_argument, as_ints
from tidings.kernels.ladders_arrays import (
    CODE_MAX,
    CODE_MIN,
    DONE,
    FREE,
    FREE_LISTS,
    HEAD_FIELDS,
    I64,
    LADDER_FIELDS,
    LADDERS,
    MISFIT,
    NEEDED,
    PROGRESS,
    SIZE,
    TOP,
    Flags,
)

__all__ = ["CODE_MAX", "CODE_MIN", "Ladders", "Neighbours"]


class Neighbours(NamedTuple):
    """For each change, the gap around its code among the other entries of its ladder at that moment.

    No other entry has a code from lo_from to hi_to, and none could be added to this range: it ends beside the next codes,
    or at CODE_MIN and CODE_MAX. Where another entry has the very code, has_twin is set and the range means nothing.
    """

    lo_from: I64
    hi_to: I64
    has_twin: Flags


class Ladders:
    """Lists of (code, entry) in ascending order, numbered from 0.

    Codes are any int64 and may repeat. Entries are integers chosen by the caller; an entry is in a ladder at most once at
    a code. Ladders of up to a few hundred entries are one sorted run; larger ones are cut into blocks, so that a change
    moves a few hundred entries at most.

    Not safe for use by several threads at a time.
    """

    def __init__(self) -> None:
        self._head = np.zeros(HEAD_FIELDS, np.int64)
        self._head[FREE_LISTS:] = -1
        self._ladders = np.zeros((0, LADDER_FIELDS), np.int64)
        self._codes = np.zeros(0, np.int64)
        self._entries = np.zeros(0, np.int64)

    def __len__(self) -> int:
        """Number of ladders."""
        return int(self._head[LADDERS])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        return sum(array.nbytes for array in self.arrays)

    @property
    def arrays(self) -> tuple[I64, I64, I64, I64]:
        """All state, as kernels want it: head, ladders, codes and entries. The last two are replaced by `make_room`."""
        return self._head, self._ladders, self._codes, self._entries

    def new(self, count: int) -> int:
        """Make so many empty ladders; returns the number of the first."""
        first = len(self)
        top = first + count
        if top > len(self._ladders):
            grown = np.zeros((max(top, len(self._ladders) * 3 // 2), LADDER_FIELDS), np.int64)
            grown[:first] = self._ladders[:first]
            self._ladders = grown
        self._head[LADDERS] = top
        return first

    def change(self, ladders: ArrayLike, entries: ArrayLike, codes: ArrayLike, is_present: ArrayLike) -> Neighbours:
        """Put entries[i] into ladders[i] at codes[i] if is_present[i], else take it out; one after the other.

        If an entry to put is there already, or one to take out is not there at that code, an error is raised; the changes
        before it are made.
        """
        which = self._which(ladders)
        step_entries, step_codes = as_ints(entries), as_ints(codes)
        present = as_argument(is_present, np.bool_).reshape(-1)
        if not len(which) == len(step_entries) == len(step_codes) == len(present):
            raise ValueError("there must be as many ladders as entries, codes and is_present")
        n = len(which)
        told = Neighbours(np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.bool_))
        at = 0
        while (status := self._change(which, step_entries, step_codes, present, at, told)) != DONE:
            at = int(self._head[PROGRESS])
            if status == MISFIT:
                what = f"entry {step_entries[at]} at code {step_codes[at]}"
                if present[at]:
                    raise ValueError(f"{what} is in ladder {which[at]} already")
                raise KeyError(f"{what} is not in ladder {which[at]}")
            self.make_room(int(self._head[NEEDED]))
        return told

    def gather(self, ladders: ArrayLike) -> tuple[I64, I64, I64]:
        """(starts, entries, codes): ladders[i] has those from starts[i] to starts[i + 1], by code and then by entry."""
        starts, entries, codes = ladders_read.gather(self._ladders, self._codes, self._entries, self._which(ladders))
        return starts, entries, codes

    def distinct(self, ladders: ArrayLike) -> tuple[I64, I64]:
        """(starts, codes): the different codes of ladders[i], ascending, are codes[starts[i]:starts[i + 1]]."""
        starts, codes = ladders_read.distinct(self._ladders, self._codes, self._entries, self._which(ladders))
        return starts, codes

    def nearest(self, ladders: ArrayLike, marks: ArrayLike) -> tuple[I64, I64]:
        """(starts, codes): those codes of ladders[i] that are next to a mark, each once, ascending.

        Next to a mark are the greatest code not above it and the least not below it. The marks are ascending.
        """
        starts, codes = ladders_read.nearest(
            self._ladders, self._codes, self._entries, self._which(ladders), as_ints(marks)
        )
        return starts, codes

    def size(self, ladder: int) -> int:
        """Number of entries of a ladder."""
        return int(self._ladders[ladder, SIZE])

    def sizes(self, ladders: ArrayLike) -> I64:
        """Numbers of entries of ladders."""
        sizes: I64 = self._ladders[self._which(ladders), SIZE]
        return sizes

    def _which(self, ladders: ArrayLike) -> I64:
        which = as_ints(ladders)
        if len(which) and (which.min() < 0 or which.max() >= len(self)):
            raise IndexError(f"there are {len(self)} ladders, asked for {which.min()} to {which.max()}")
        return which

    def _change(self, which: I64, entries: I64, codes: I64, present: Flags, at: int, told: Neighbours) -> int:
        status: int = ladders_change.change(
            *self.arrays,
            which,
            entries,
            codes,
            present,
            at,
            told.lo_from,
            told.hi_to,
            told.has_twin,
        )
        return status

    def make_room(self, needed: int) -> None:
        """Have so many words of the pool beyond the top, in new arrays without gaps."""
        used = int(self._head[TOP] - self._head[FREE])
        codes, entries = (np.empty(used + used // 2 + needed, np.int64) for _ in range(2))
        ladders_pack.pack(*self.arrays, codes, entries)
        self._codes, self._entries = codes, entries
