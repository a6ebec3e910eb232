"""Sends and their boxes, in arrays that grow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from research.strategies.topk.kernels.box_topk.layout import I64, U8, Int
from tidings.kernels.jit import kernel


class Output(NamedTuple):
    """Room for sends and their boxes; `ends` are the numbers of sends and of boxes written."""

    ends: I64
    sent: I64
    is_gone: U8
    box_starts: I64
    box_lo: I64
    """[boxes, 2 * dims]"""
    box_hi: I64
    """[boxes, 2 * dims]"""


@kernel
def new_output(room: Int, width: Int) -> Output:
    sent, is_gone, box_starts = np.empty(room, np.int64), np.empty(room, np.uint8), np.zeros(room + 1, np.int64)
    return Output(
        np.zeros(2, np.int64),
        sent,
        is_gone,
        box_starts,
        np.empty((room, width), np.int64),
        np.empty((room, width), np.int64),
    )


@kernel
def with_room_for(out: Output, more: Int) -> Output:
    """The output with room for so many more sends and boxes."""
    sends, boxes = out.ends[0], out.ends[1]
    if max(sends, boxes) + more <= len(out.sent):
        return out
    longer: Output = new_output(2 * len(out.sent) + more, out.box_lo.shape[1])
    longer.ends[:] = out.ends
    longer.sent[:sends], longer.is_gone[:sends] = out.sent[:sends], out.is_gone[:sends]
    longer.box_starts[: sends + 1] = out.box_starts[: sends + 1]
    longer.box_lo[:boxes], longer.box_hi[:boxes] = out.box_lo[:boxes], out.box_hi[:boxes]
    return longer


@kernel
def end_send(out: Output, entry: Int, is_gone: bool) -> None:
    """Makes the boxes written since the last send those of an entry; without boxes there is no send."""
    at, boxes = out.ends[0], out.ends[1]
    if boxes > out.box_starts[at]:
        out.sent[at], out.is_gone[at] = entry, is_gone
        out.box_starts[at + 1] = boxes
        out.ends[0] = at + 1
