"""Rankings whose changes are told in batches: only what they come to in the end."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tidings.kernels import rankings_net_gather, rankings_net_steps, rankings_net_tell
from tidings.kernels.arguments import as_argument, as_ints
from tidings.kernels.rankings import Rankings, Sends, _check_lengths, _error
from tidings.kernels.rankings_arrays import (
    BOXES,
    DONE,
    ENTRY_TIE,
    ENTRY_X,
    ENTRY_Y,
    I64,
    NEEDS_ROOM,
    OWNER,
    PROGRESS,
    SENDS,
)
from tidings.kernels.rankings_net_gather import NEW, NUMBER, OLD, TOUCHED_FIELDS
from tidings.kernels.rankings_net_steps import SEND_BOXES, steps_width
from tidings.kernels.rankings_net_tell import SCRATCH
from tidings.kernels.rankings_output import Output

__all__ = ["NetRankings"]


class NetRankings(Rankings):
    """Rankings that can also tell of many changes at once, to those who need to know only what they come to.

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
        self._boxes_per_touched = 2 * k

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
    ) -> tuple[I64, Sends]:
        """Make changes as `change` does, and tell what they come to: the sends, as of one change, and the set of each.

        An entry named whose numbers are the same in the end is sent to those who hold it. One that is still there but
        has another x, or is in another set, is sent as gone to those who hold it no more. A send may have several times
        k boxes. If something is wrong with a change, an error is raised, and none is made.
        """
        of, changed = as_ints(sets), as_ints(entries)
        numbers = (as_ints(xs), as_ints(ys), as_ints(ties))
        present = as_argument(is_present, np.bool_).reshape(-1)
        _check_lengths(of, changed, *numbers, present)
        self._cover_entries(changed)
        if len(self._slots) < len(self._arrays.entries):
            self._slots = np.zeros(len(self._arrays.entries), np.int64)
            self._met = np.empty(len(self._arrays.entries), np.int64)
        room = np.empty((2 * len(of), TOUCHED_FIELDS), np.int64)
        status, count = rankings_net_gather.gather(
            *self._arrays[:3], of, changed, *numbers, present.view(np.uint8), self._slots, room
        )
        if status != DONE:
            at = int(self._head[PROGRESS])
            raise _error(status, int(of[at]), int(changed[at]), int(numbers[0][at]))
        touched = room[:count]
        try:
            sends = self._tell(touched)
            # An entry that is gone is in no set, or in another.
            before, now = touched[self._slots[sends.entry] - 1, OLD + OWNER], self._arrays.entries[sends.entry, OWNER]
            return np.where(sends.is_gone, before, now) - 1, sends
        finally:
            rankings_net_gather.forget(touched, count, self._slots)

    def _tell(self, touched: I64) -> Sends:
        order, gone, fallen = _order(touched)
        width = steps_width(self.k)
        kept = np.empty((gone + fallen + SCRATCH, width), np.int64)
        rankings_net_steps.keep(*self._arrays, touched[order[: gone + fallen], NUMBER], kept)
        self._settle(touched, NEW)
        self._head[SENDS] = self._head[BOXES] = 0
        output = self._outputs.get(len(touched) * self._boxes_per_touched + 2 * SEND_BOXES * (self.k + 1))
        at, count = 0, 0
        while True:
            status, count = rankings_net_tell.tell(
                *self._arrays, touched, self._slots, self._met, kept, order, gone, fallen, *output, at, count
            )
            if status == DONE:
                break
            output, at = self._longer(output), int(self._head[PROGRESS])
        met = self._met[:count]
        if count:
            output = self._expose(touched, met, output)
        self._slots[met] = 0
        sends, boxes = int(self._head[SENDS]), int(self._head[BOXES])
        self._boxes_per_touched = max(
            boxes * 5 // (4 * max(len(touched), 1)) + self.k, self._boxes_per_touched - self._boxes_per_touched // 8
        )
        sent, is_gone, box_starts, box_lo, box_hi = output
        return Sends(
            np.array([0, sends]),
            sent[:sends],
            is_gone[:sends].view(np.bool_),
            box_starts[: sends + 1],
            box_lo[:boxes],
            box_hi[:boxes],
        )

    def _expose(self, touched: I64, met: I64, output: Output) -> Output:
        """Tell of entries that have not been touched: go back to the old state to see who had them."""
        kept = np.empty((len(met) + 1, steps_width(self.k)), np.int64)
        rankings_net_steps.keep(*self._arrays, met, kept)
        self._settle(touched, OLD)
        at = 0
        while rankings_net_tell.expose(*self._arrays, met, kept, *output, at) != DONE:
            output, at = self._longer(output), int(self._head[PROGRESS])
        self._settle(touched, NEW)
        return output

    def _longer(self, output: Output) -> Output:
        return self._outputs.longer(output, int(self._head[SENDS]), int(self._head[BOXES]))

    def _settle(self, touched: I64, state: int) -> None:
        """Make the sets what they are in the old or the new state; ValueError, and back in the old one, if not possible."""
        while (status := rankings_net_gather.settle(*self._arrays, touched, state)) != DONE:
            if status == NEEDS_ROOM:
                self._make_room()
                continue
            refused = touched[self._head[PROGRESS]]
            self._settle(touched, OLD)
            raise _error(status, int(refused[NEW + OWNER]) - 1, int(refused[NUMBER]), int(refused[NEW + ENTRY_X]))


def _order(touched: I64) -> tuple[I64, int, int]:
    """In which order to tell: first those gone from their x, or their set, then the fallen ones; how many of each."""
    old, new = touched[:, OLD:NEW], touched[:, NEW:]
    was, is_there = old[:, OWNER] > 0, new[:, OWNER] > 0
    stayed = was & is_there & (old[:, ENTRY_X] == new[:, ENTRY_X])
    y_old, y = old[:, ENTRY_Y], new[:, ENTRY_Y]
    fell = stayed & ((y > y_old) | ((y == y_old) & (new[:, ENTRY_TIE] > old[:, ENTRY_TIE])))
    gone, fallen = np.flatnonzero(was & ~stayed), np.flatnonzero(fell)
    fallen = fallen[np.lexsort((new[fallen, ENTRY_TIE], new[fallen, ENTRY_Y]))[::-1]]
    return np.concatenate([gone, fallen, np.flatnonzero(is_there & ~fell)]), len(gone), len(fallen)
