"""The side index: predicates of subscriptions on single sides of their joins, to find the subscriptions that may select a row.

A box of the main index, restricted to the columns of one side, is a box here, owned by the former. Equalities are ranges of
equality codes, and ends of text ranges are their codes only, so that more boxes may contain a row than select it.

Most rows have few combinations and are never looked up here. So boxes of a side are entered only when it is first used: it is
then open.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidings.families.join.kernels.candidates import SIDE_BITS
from tidings.families.join.predicates import Tested
from tidings.kernels.rows import I64, NONE
from tidings.kernels.stabbing import Boxes, BoxShape, StabbingIndex, ranges_of


class SideIndex:
    """Mirrors the main index for the sides that are open. columns: highest number of columns of a table."""

    def __init__(self, columns: int) -> None:
        self.axes = 1 + 2 * columns
        """Number of axes: one for signature and side, then code and equality code of each column."""
        self._index = StabbingIndex(self.axes)
        self._opened: dict[int, set[int]] = {}
        """Signature -> its open sides."""
        self._entered: dict[int, I64] = {}
        """Side -> [boxes of the main index]: number of the box here; NONE for none."""

    @property
    def boxes(self) -> Boxes:
        return self._index.boxes

    @property
    def nbytes(self) -> int:
        return self._index.nbytes + sum(array.nbytes for array in self._entered.values())

    def opened(self, signatures: int) -> I64:
        """[signatures]: mask of the open sides."""
        masks = np.zeros(signatures, np.int64)
        for signature, sides in self._opened.items():
            masks[signature] = sum(1 << side for side in sides)
        return masks

    def open(self, signature: int, side: int) -> None:
        """Opens a side. The caller must enter the boxes that exist already."""
        self._opened.setdefault(signature, set()).add(side)

    def close(self, signature: int) -> None:
        """Closes all sides of a signature, whose boxes must have been removed."""
        self._opened.pop(signature, None)
        if not self._opened:
            self._entered.clear()

    def sides(self, signature: int) -> set[int]:
        return self._opened.get(signature, set())

    def add(
        self, subscriptions: Boxes, boxes: I64, signature: int, side: int, tested: Sequence[Tested], axes: Sequence[int]
    ) -> None:
        """Enters boxes of one form for one side. tested, axes: the form's columns with a predicate, and their axes."""
        if not len(boxes):
            return
        own = [i for i, one in enumerate(tested) if one.side == side]
        is_equal = [tested[i].is_equal for i in own]
        ends = ranges_of(subscriptions, boxes, np.array([axes[i] for i in own], np.int64), np.array(is_equal, np.int64))
        range_axes = tuple(1 + 2 * tested[i].column + tested[i].is_equal for i in own)
        key = signature << SIDE_BITS | side
        shape = BoxShape((0,), range_axes, ())
        kinds = np.full(len(boxes), self._index.kind(shape, 0))
        entered = self._index.add(shape, boxes, kinds, np.full((len(boxes), 1), key), [None], ends)
        known = self._entered.get(side, np.empty(0, np.int64))
        top = int(boxes.max()) + 1
        if top > len(known):
            longer = np.full(max(top, 3 * len(known) // 2), NONE, np.int64)
            longer[: len(known)] = known
            known = self._entered[side] = longer
        known[boxes] = entered

    def remove(self, boxes: I64) -> None:
        """Removes boxes of the main index from all sides."""
        for known in self._entered.values():
            there = boxes[boxes < len(known)]
            entered = known[there]
            entered = entered[entered != NONE]
            if len(entered):
                self._index.remove(entered)
                known[there] = NONE
