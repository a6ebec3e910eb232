"""A range top-k index that sends the net effect of many changes at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from research.strategies.topk.kernels import net, sparse_net
from research.strategies.topk.kernels.net import NEW, NUMBER, OLD, SCRATCH, SEND_BOXES, TOUCHED_FIELDS
from research.strategies.topk.kernels.plane_kdtree import PlaneKdTree
from research.strategies.topk.kernels.range_topk import RangeTopkIndex, Sends
from research.strategies.topk.kernels.range_topk.index import error_of
from research.strategies.topk.kernels.range_topk.layout import (
    BOXES,
    DONE,
    ENTRY_TIE,
    ENTRY_X,
    ENTRY_Y,
    I64,
    INT64_MAX,
    INT64_MIN,
    NEEDS_ROOM,
    OWNER,
    PROGRESS,
    SENDS,
)
from research.strategies.topk.kernels.range_topk.output import Output
from research.strategies.topk.kernels.rectangle_cover import RectangleCover
from tidings.kernels.arguments import as_argument, as_ints, check_lengths


class NetRangeTopkIndex(RangeTopkIndex):
    """A range top-k index that can also send the net effect of many changes at once, to those who need no more.

    All points hold what they should after all sends of a batch; in between, they may not. Each is sent as little as
    possible: an entry that it is to hold if that was changed, or was not held before, once; and one that it is to hold
    no more, if it would not drop that by itself, once.
    """

    def __init__(self, k: int) -> None:
        super().__init__(k)
        self._slots = np.zeros(0, np.int64)
        """[entries] zero between batches; within one, who is touched or met."""
        self._met = np.zeros(0, np.int64)
        """[entries] room for those met."""

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held, but for those of the last sends."""
        return super().nbytes + self._slots.nbytes + self._met.nbytes

    def net(
        self,
        sets: ArrayLike,
        entries: ArrayLike,
        xs: ArrayLike,
        ys: ArrayLike,
        ties: ArrayLike,
        is_present: ArrayLike,
        among: PlaneKdTree | RectangleCover | None = None,
    ) -> tuple[I64, Sends]:
        """Makes changes as `change` does; returns the set of each send, and what they come to: sends as of one change.

        An entry named whose numbers are the same in the end is sent to those who hold it. One that is still there but
        has another x, or is in another set, is sent as gone to those who hold it no more. A send may have several times
        k boxes. If something is wrong with a change, an error is raised, and none is made.

        among: the only points that count, if given. Boxes are then drawn around these, joined where no other point is in
        between, and left out where there is none.
        """
        of, changed = as_ints(sets), as_ints(entries)
        numbers = (as_ints(xs), as_ints(ys), as_ints(ties))
        present = as_argument(is_present, np.bool_).reshape(-1)
        check_lengths(of, changed, *numbers, present)
        self._cover_entries(changed)
        if len(self._slots) < len(self._arrays.entries):
            self._slots = np.zeros(len(self._arrays.entries), np.int64)
            self._met = np.empty(len(self._arrays.entries), np.int64)
        room = np.empty((2 * len(of), TOUCHED_FIELDS), np.int64)
        status, count = net.gather(
            self._head, self._arrays.entries, of, changed, *numbers, present.view(np.uint8), self._slots, room
        )
        touched = room[:count]
        try:
            if status != DONE:
                at = int(self._head[PROGRESS])
                raise error_of(status, int(of[at]), int(changed[at]), int(numbers[0][at]))
            sends = self._send(touched, among)
            # An entry that is gone is in no set, or in another.
            before, now = touched[self._slots[sends.entry] - 1, OLD + OWNER], self._arrays.entries[sends.entry, OWNER]
            owner = np.where(sends.is_gone, before, now) - 1
            return (owner, sends) if among is None else _drawn_in(owner, sends, among)
        finally:
            self._slots[touched[:, NUMBER]] = 0

    def _send(self, touched: I64, among: PlaneKdTree | RectangleCover | None) -> Sends:
        order, gone, fallen = _order(touched)
        kept = np.empty((gone + fallen + SCRATCH, net.profile_words(self.k)), np.int64)
        net.keep(*self._arrays, touched[order[: gone + fallen], NUMBER], kept)
        crowd = PlaneKdTree() if among is None else among
        limits = np.tile([INT64_MIN, INT64_MAX], (gone + fallen, 1))
        if among is not None:
            sparse_net.limit(*among.arrays, touched[order[: gone + fallen]], kept, self.k, limits)
        self._settle(touched, NEW)
        self._head[SENDS] = self._head[BOXES] = 0
        output = self._outputs.get(len(touched), 2 * SEND_BOXES * (self.k + 1))
        at, count = 0, 0
        while True:
            status, count = net.send_batch(
                *self._arrays,
                *crowd.arrays,
                among is not None,
                touched,
                self._slots,
                self._met,
                kept,
                limits,
                order,
                gone,
                fallen,
                *output,
                at,
                count,
            )
            if status == DONE:
                break
            output, at = self._longer(output), int(self._head[PROGRESS])
        met = self._met[:count]
        if count:
            output = self._send_met(touched, met, output)
        self._slots[met] = 0
        sends, boxes = int(self._head[SENDS]), int(self._head[BOXES])
        self._outputs.expect(len(touched), boxes, self.k)
        return output.sends(np.array([0, sends]), sends, boxes)

    def _send_met(self, touched: I64, met: I64, output: Output) -> Output:
        """Sends entries that have not been touched: goes back to the old state to see who had them."""
        kept = np.empty((len(met) + 1, net.profile_words(self.k)), np.int64)
        net.keep(*self._arrays, met, kept)
        self._settle(touched, OLD)
        at = 0
        while net.send_met(*self._arrays, met, kept, *output, at) != DONE:
            output, at = self._longer(output), int(self._head[PROGRESS])
        self._settle(touched, NEW)
        return output

    def _settle(self, touched: I64, state: int) -> None:
        """Makes the sets what they are in the old or the new state; ValueError, and back in the old one, if not possible."""
        while (status := net.settle(*self._arrays, touched, state)) != DONE:
            if status == NEEDS_ROOM:
                self._make_room()
                continue
            refused = touched[self._head[PROGRESS]]
            self._settle(touched, OLD)
            raise error_of(status, int(refused[NEW + OWNER]) - 1, int(refused[NUMBER]), int(refused[NEW + ENTRY_X]))


def _drawn_in(owner: I64, sends: Sends, among: PlaneKdTree | RectangleCover) -> tuple[I64, Sends]:
    """The sends, of these sets, to the points there are; without those that nobody gets."""
    lo, hi, starts = sends.box_lo.copy(), sends.box_hi.copy(), sends.box_starts.copy()
    sparse_net.draw_in(*among.arrays, owner, starts, lo, hi)
    told = np.flatnonzero(np.diff(starts))
    rest, boxes = np.append(starts[told], starts[-1]), starts[-1]
    return owner[told], Sends(
        np.array([0, len(told)]), sends.entry[told], sends.is_gone[told], rest, lo[:boxes], hi[:boxes]
    )


def _order(touched: I64) -> tuple[I64, int, int]:
    """In which order to send: first those gone from their x, or their set, then the fallen ones; how many of each."""
    old, new = touched[:, OLD:NEW], touched[:, NEW:]
    was, is_there = old[:, OWNER] > 0, new[:, OWNER] > 0
    stayed = was & is_there & (old[:, ENTRY_X] == new[:, ENTRY_X])
    y_old, y = old[:, ENTRY_Y], new[:, ENTRY_Y]
    fell = stayed & ((y > y_old) | ((y == y_old) & (new[:, ENTRY_TIE] > old[:, ENTRY_TIE])))
    gone, fallen = np.flatnonzero(was & ~stayed), np.flatnonzero(fell)
    fallen = fallen[np.lexsort((new[fallen, ENTRY_TIE], new[fallen, ENTRY_Y]))[::-1]]
    return np.concatenate([gone, fallen, np.flatnonzero(is_there & ~fell)]), len(gone), len(fallen)
