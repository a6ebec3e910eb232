"""The index of sides: conditions of subscriptions on single sides of their joins, to find who can want a row by itself.

A box of the index of subscriptions, cut down to the columns of one side, makes a box here, whose owner it is. An equality is
a range of equality codes, and exact ends of text ranges count as their codes: more boxes may hold a row than want it.

Most rows have few combinations, and nobody asks. So a side is opened, and its boxes are entered, when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidings.families.join.kernels.candidates import SIDE_BITS
from tidings.families.join.predicates import Tested
from tidings.kernels.rows import I64, NONE
from tidings.kernels.stabbing import Boxes, BoxShape, StabbingIndex, ranges_of


class SideIndex:
    """Keeps step with the index of subscriptions in the sides that are open. columns: how many a table has at most."""

    def __init__(self, columns: int) -> None:
        self.axes = 1 + 2 * columns
        """A signature's side; then code and equality code of each column."""
        self._index = StabbingIndex(self.axes)
        self._opened: dict[int, set[int]] = {}
        """By signature."""
        self._entered: dict[int, I64] = {}
        """By side: the number here of each box of the index of subscriptions, NONE for none."""

    @property
    def boxes(self) -> Boxes:
        return self._index.boxes

    @property
    def nbytes(self) -> int:
        return self._index.nbytes + sum(array.nbytes for array in self._entered.values())

    def opened(self, signatures: int) -> I64:
        """By signature: mask of the sides that are open."""
        masks = np.zeros(signatures, np.int64)
        for signature, sides in self._opened.items():
            masks[signature] = sum(1 << side for side in sides)
        return masks

    def open(self, signature: int, side: int) -> None:
        """From now on boxes of this side are entered; the caller enters those there are."""
        self._opened.setdefault(signature, set()).add(side)

    def close(self, signature: int) -> None:
        """Forgets a signature, whose boxes have been removed."""
        self._opened.pop(signature, None)

    def sides(self, signature: int) -> set[int]:
        return self._opened.get(signature, set())

    def add(
        self, subscriptions: Boxes, boxes: I64, signature: int, side: int, tested: Sequence[Tested], axes: Sequence[int]
    ) -> None:
        """Enters boxes of subscriptions of one form on one side. tested, axes: the form's columns with a predicate."""
        if not len(boxes):
            return
        own = [i for i, one in enumerate(tested) if one.side == side]
        is_equal = [tested[i].is_equal for i in own]
        ends = ranges_of(subscriptions, boxes, np.array([axes[i] for i in own], np.int64), np.array(is_equal, np.int64))
        range_axes = tuple(1 + 2 * tested[i].column + tested[i].is_equal for i in own)
        key = signature << SIDE_BITS | side
        entered = self._index.add(
            BoxShape((0,), range_axes, ()),
            boxes,
            np.full((len(boxes), 1), key),
            [(None,)] * len(boxes),
            ends,
            np.zeros(len(boxes), np.int64),
        )
        known = self._entered.get(side, np.empty(0, np.int64))
        top = int(boxes.max()) + 1
        if top > len(known):
            longer = np.full(max(top, 3 * len(known) // 2), NONE, np.int64)
            longer[: len(known)] = known
            known = self._entered[side] = longer
        known[boxes] = entered

    def remove(self, boxes: I64) -> None:
        """Boxes that leave the index of subscriptions leave all sides."""
        for known in self._entered.values():
            there = boxes[boxes < len(known)]
            entered = known[there]
            entered = entered[entered != NONE]
            if len(entered):
                self._index.remove(entered)
                known[there] = NONE
