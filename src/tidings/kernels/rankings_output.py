"""Arrays for what changes have to tell: large, and used again as soon as nobody looks at them any more.

A batch of changes may tell megabytes, and fresh memory costs as much time as all that is computed for it.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np

from tidings.kernels.rankings_arrays import I64, U8

KEPT = 2
"""So many outputs are kept: the one before is often still looked at while the next is made."""

LARGE = 1 << 20
"""An output with room for no more than this is used for any batch, be it small."""


class Output(NamedTuple):
    """Room for sends and boxes, as many of each, as every send has a box."""

    sent: I64
    is_gone: U8
    box_starts: I64
    box_lo: I64
    """[room, 2]"""
    box_hi: I64
    """[room, 2]"""


class Outputs:
    """The outputs used last."""

    def __init__(self) -> None:
        self._kept: list[Output] = []

    def get(self, room: int) -> Output:
        """One with at least so much room, but not far more; it is kept."""
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

    def _keep(self, output: Output) -> None:
        self._kept = [output, *self._kept[: KEPT - 1]]


def _new_output(room: int) -> Output:
    box_starts = np.zeros(room + 1, np.int64)
    boxes = (np.empty((room, 2), np.int64), np.empty((room, 2), np.int64))
    return Output(np.empty(room, np.int64), np.empty(room, np.uint8), box_starts, *boxes)


def _is_seen(output: Output) -> bool:
    """True if there are views of the arrays, or other references to them, beside the output's own."""
    # What one reference counts as depends on the version of Python.
    alone = (np.empty(0),)
    return any(sys.getrefcount(output[i]) > sys.getrefcount(alone[0]) for i in range(len(output)))
