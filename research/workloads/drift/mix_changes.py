"""Changes of the mixed drift workload, in blocks: computed columnar, only the text is made line by line."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from research.workloads.draws import BLOCK
from research.workloads.drift.mix_queries import Items
from research.workloads.drift.quotes import change, clock, row, volumes
from tidings.workloads.draws import FloatArray, IntArray, draw

StrArray = npt.NDArray[np.str_]

_MISSING = 0.1
"""Share of the items that appear only later."""
_DELETED, _UPSERTED, _STILL = 0.01, 0.03, 0.15
"""Shares of deletions, of upserts, and of changes that leave the price as it was."""
_STEP, _JUMP, _JUMPS = 0.01, 0.2, 0.005
"""Size of a price's step and of a rare jump, next to the price, and the share of jumps."""
_PULL = 0.01
"""Strength of the pull of a price back to its item's mean."""
_CENT = 0.01

_PAUSE_SECONDS, _PAUSES = 900, 0.0005
"""Length of a rare pause without quotes, longer than the times in `silent_for` predicates, and the share of pauses."""
_GAP, _GAP_EVERY = 2, 40


def seq_of(position: IntArray) -> IntArray:
    """Sequence number of the n-th change, with a gap at regular intervals."""
    return position + _GAP * (position // _GAP_EVERY)


class QuoteLife:
    """Makes blocks of change lines. State per item: its price, and whether its row exists."""

    def __init__(self, items: Items, seed: int) -> None:
        self._items = items
        self._rng = np.random.default_rng([seed, 4])
        self._log_price = items.log_price.copy()
        self._is_there = self._rng.random(len(items)) >= _MISSING
        self._position = 0
        self._seconds = 0

    def blocks(self) -> Iterator[list[bytes]]:
        """Endless blocks of lines; the first ones insert the items that exist at the start."""
        there = np.flatnonzero(self._is_there)
        for start in range(0, len(there), BLOCK):
            item = there[start : start + BLOCK]
            yield self._lines(item, self._log_price[item], np.full(len(item), "insert"))
        while True:
            yield self._lines(*self._live())

    def _live(self) -> tuple[IntArray, FloatArray, StrArray]:
        """(item, price, operation) of a block's changes. A quote of a deleted item inserts it again."""
        rng = self._rng
        item = draw(self._items.popularity, rng.random(BLOCK))
        wants_out = rng.random(BLOCK) < _DELETED
        # Sorted by item, the changes of each item in order.
        order = np.argsort(item, kind="stable")
        own, wants_out = item[order], wants_out[order]
        is_first = np.diff(own, prepend=-1) != 0
        starts = np.flatnonzero(is_first)
        lengths = np.diff(starts, append=BLOCK)
        ends = starts + lengths - 1
        # No item is deleted by two changes in a row. So a deleted item exists, unless it did not when the block began.
        wants_out &= is_first | ~np.roll(wants_out, 1)
        was_there = self._is_there[own]
        is_out = wants_out & (was_there | ~is_first)
        is_there = np.where(is_first, was_there, ~np.roll(is_out, 1))
        op = np.where(rng.random(BLOCK) < _UPSERTED, "upsert", np.where(is_there, "update", "insert"))
        op[is_out] = "delete"
        log_price = self._walked(own, starts, lengths)
        self._log_price[own[ends]] = log_price[ends]
        self._is_there[own[ends]] = ~is_out[ends]
        back = np.empty(BLOCK, np.int64)
        back[order] = np.arange(BLOCK)
        return item, log_price[back], op[back]

    def _walked(self, own: IntArray, starts: IntArray, lengths: IntArray) -> FloatArray:
        """Prices after each change; `own` has the items in runs that begin at `starts`."""
        rng = self._rng
        steps = _STEP * rng.standard_t(4, size=BLOCK)
        jumps = rng.random(BLOCK) < _JUMPS
        steps[jumps] = _JUMP * rng.standard_normal(int(jumps.sum()))
        # The pull is part of the steps: a price without a step must not move at all.
        home = self._items.log_price[own]
        steps += _PULL * (home - self._log_price[own]) / (1 + _PULL * np.repeat(lengths, lengths))
        steps[rng.random(BLOCK) < _STILL] = 0.0
        # Sums within each run: the running sum of all, less its value before the run's first step.
        walked = np.cumsum(steps)
        walked -= np.repeat((walked - steps)[starts], lengths)
        return self._log_price[own] + walked

    def _lines(self, item: IntArray, log_price: FloatArray, op: StrArray) -> list[bytes]:
        rng, count = self._rng, len(item)
        seq = seq_of(self._position + 1 + np.arange(count))
        pauses = rng.random(count) < _PAUSES
        seconds = self._seconds + np.cumsum(rng.integers(0, 4, size=count) + _PAUSE_SECONDS * pauses)
        self._position += count
        self._seconds = int(seconds[-1])
        prices = np.maximum(np.exp(log_price), _CENT).round(2)
        names = self._items.symbols
        columns = (seq.tolist(), item.tolist(), prices.tolist(), volumes(rng, count).tolist(), clock(seconds))
        return [
            change(
                number, name, f'"symbol": "{names[at]}"' if name == "delete" else row(names[at], price, volume, time)
            )
            for number, at, price, volume, time, name in zip(*columns, op.tolist(), strict=True)
        ]
