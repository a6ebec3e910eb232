"""The server of subscriptions that want only the net effect of each micro-batch.

A row that changes ten times is sent once, a row that overtakes another and falls back not at all. What is sent carries the
seq of the last change, after which all views are what their queries say.
"""

from __future__ import annotations

import numpy as np

from tidings.families.topk.index import Ranked
from tidings.families.topk.strategies import DenseServer
from tidings.families.topk.subscription import Space
from tidings.kernels.rankings import Sends
from tidings.kernels.rankings_net import NetRankings
from tidings.model.change import SEQ_MAX
from tidings.model.codes import BoolArray, Int64Array


class _NetRanked(Ranked):
    """Rankings told of a whole batch at once."""

    def __init__(self, space: Space) -> None:
        self._net = NetRankings(space.k)
        super().__init__(space, self._net)

    def _tell(
        self,
        sets: Int64Array,
        entries: Int64Array,
        xs: Int64Array,
        ys: Int64Array,
        ties: Int64Array,
        is_present: BoolArray,
    ) -> tuple[Sends, Int64Array, Int64Array]:
        of_set, sends = self._net.net(sets, entries, xs, ys, ties, is_present)
        return sends, np.full(len(sends.entry), len(sets) - 1), of_set


class NetServer(DenseServer):
    """Tiles as few as the net effect of a batch needs."""

    at_a_time = SEQ_MAX

    def __init__(self, space: Space) -> None:
        super().__init__(space, _NetRanked(space))
