"""What changes have to send; and arrays for it, which are used again as soon as nobody looks at them any more.

A batch of changes may send megabytes, and fresh memory costs as much time as all that is computed for it.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from research.strategies.topk.kernels.range_topk.layout import I64, U8

Flags = NDArray[np.bool_]

KEPT = 2
"""So many outputs are kept: the one before is often still looked at while the next is made."""
LARGE = 1 << 20
"""An output with room for no more than this is used for any batch, be it small."""


class Sends(NamedTuple):
    """What changes have to send, in order.

    Those of change i are send_starts[i]:send_starts[i + 1]. Send j is of an entry, as it is after the change or gone,
    to the points in the boxes box_starts[j]:box_starts[j + 1], which are closed and disjoint, at least one, and not more
    than some times k. Points and boxes are (lo, hi), or that for each of several axes.
    """

    send_starts: I64
    entry: I64
    is_gone: Flags
    box_starts: I64
    box_lo: I64
    """[boxes, 2 * axes]"""
    box_hi: I64
    """[boxes, 2 * axes]"""

    @property
    def lo_min(self) -> I64:
        """Least lo of each box; lo_max, hi_min and hi_max are its other bounds."""
        return self.box_lo[:, 0]

    @property
    def lo_max(self) -> I64:
        return self.box_hi[:, 0]

    @property
    def hi_min(self) -> I64:
        return self.box_lo[:, 1]

    @property
    def hi_max(self) -> I64:
        return self.box_hi[:, 1]


class Output(NamedTuple):
    """Room for sends and boxes, as many of each, as every send has a box."""

    sent: I64
    is_gone: U8
    box_starts: I64
    box_lo: I64
    """[room, 2]"""
    box_hi: I64
    """[room, 2]"""

    def sends(self, send_starts: I64, sends: int, boxes: int) -> Sends:
        """The first sends, with so many boxes together."""
        is_gone, box_starts = self.is_gone[:sends].view(np.bool_), self.box_starts[: sends + 1]
        return Sends(send_starts, self.sent[:sends], is_gone, box_starts, self.box_lo[:boxes], self.box_hi[:boxes])


class Outputs:
    """The outputs used last."""

    def __init__(self, boxes_per_change: int) -> None:
        self.boxes_per_change = boxes_per_change
        """As expected of the next batch."""
        self._kept: list[Output] = []

    def get(self, changes: int, more: int) -> Output:
        """One with room for what so many changes are expected to send, and for some more boxes; it is kept."""
        room = changes * self.boxes_per_change + more
        for output in self._kept:
            if room <= len(output.sent) <= max(4 * room, LARGE) and not _is_seen(output):
                return output
        output = _new_output(room)
        self._keep(output)
        return output

    def longer(self, output: Output, sends: int, boxes: int) -> Output:
        """One with double the room, that is kept instead, and the first sends and boxes of the given one."""
        longer = _new_output(2 * len(output.sent))
        for field, used in enumerate((sends, sends, sends + 1, boxes, boxes)):
            longer[field][:used] = output[field][:used]
        self._kept = [other for other in self._kept if other is not output]
        self._keep(longer)
        return longer

    def expect(self, changes: int, boxes: int, more: int) -> None:
        """Learns from a batch: rather too much than too little, as copying costs more than pages that are not used."""
        seen = boxes * 5 // (4 * max(changes, 1)) + more
        self.boxes_per_change = max(seen, self.boxes_per_change - self.boxes_per_change // 8)

    def _keep(self, output: Output) -> None:
        self._kept = [output, *self._kept[: KEPT - 1]]


def _new_output(room: int) -> Output:
    box_starts = np.zeros(room + 1, np.int64)
    boxes = (np.empty((room, 2), np.int64), np.empty((room, 2), np.int64))
    return Output(np.empty(room, np.int64), np.empty(room, np.uint8), box_starts, *boxes)


def _is_seen(output: Output) -> bool:
    """Whether there are views of the arrays, or other references to them, beside the output's own."""
    # What one reference counts as depends on the version of Python.
    alone = (np.empty(0),)
    return any(sys.getrefcount(output[i]) > sys.getrefcount(alone[0]) for i in range(len(output)))
