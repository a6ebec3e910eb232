"""What a network is given to do: ranges hold those told and nobody else, and entries move as their members' keys do."""

from __future__ import annotations

import numpy as np
import pytest

from research.bench.drift.data import Timeline
from research.experiments.drift.cases import CASES
from research.experiments.drift.dissemination import dissemination

CONFIG = {"events": 400}
FITTING = [
    ("radii", "r"),
    ("radii", "lr"),
    ("radii", "unicast"),
    ("same", "lid"),
    ("same", "c"),
    ("same", "lr"),
    ("all", "r,lid"),
    ("all", "lr"),
    ("stocks", "r,lid"),
    ("stocks", "lr"),
    ("crowded", "lid"),
]


def crowded():
    """Newcomers always between the first and the last, until labels there are renewed; then all are told, some at a time."""
    values = np.array([64.0, *(64 + 0.5**at for at in range(46)), *(72 + 0.5**at for at in range(45, 0, -7))])
    count = 46
    after, nothing = np.arange(1, count + 1), np.zeros(count, np.int64)
    return Timeline(("S0",), np.zeros(len(values), np.int64), values, nothing, np.full(count, 8.0), after), 2


class Network:
    """Entries in the order of keys."""

    def __init__(self):
        self.entries = set()

    def take_out(self, registered):
        gone = set(zip(map(tuple, registered.key.tolist()), registered.member.tolist(), strict=True))
        assert gone <= self.entries
        self.entries -= gone

    def put_in(self, registered):
        self.entries |= set(zip(map(tuple, registered.key.tolist()), registered.member.tolist(), strict=True))

    def reached(self, ranges):
        return sorted({m for k, m in self.entries for low, high in ranges.tolist() if tuple(low) <= k <= tuple(high)})


@pytest.mark.extended
@pytest.mark.parametrize(("case", "way"), FITTING)
def test_ranges_reach_those_told(case, way):
    timeline, begin = crowded() if case == "crowded" else CASES[case](CONFIG, 250, 3)
    centre = np.full(timeline.size, np.nan)
    network, moves, renewed = Network(), 0, 0
    steps = iter(dissemination(timeline, begin, way))
    value = {}
    for move in range(timeline.moves):
        item, now = int(timeline.move_item[move]), float(timeline.move_value[move])
        is_here = timeline.member_after <= move
        new = is_here & np.isnan(centre)
        centre[new] = [value.get(each, np.nan) for each in timeline.member_item[new].tolist()]
        reach, mine = timeline.member_reach, is_here & (timeline.member_item == item)
        first = mine & np.isnan(centre)
        told = np.flatnonzero(first | (mine & ((now >= centre + reach) | (now <= centre - reach))))
        value[item] = now
        if move >= begin:
            sent = next(steps)
            assert sent.move == move and sent.told.tolist() == told.tolist()
            before, after = sent.renewed
            network.take_out(before)
            network.put_in(after)
            renewed += len(before.member)
            network.put_in(sent.joined)
            assert len(sent.ranges) == 0 if way == "unicast" else network.reached(sent.ranges) == told.tolist()
            assert len(sent.ranges) <= {"lr": 1, "c": 1, "lid": 2}.get(way, 100)
            network.take_out(sent.left)
            network.put_in(sent.entered)
            moves += len(sent.left.key)
            assert len(sent.left.key) == len(sent.entered.key) == len(told) * {"lr": 2, "c": 1}.get(way, 0)
        centre[told] = now
    assert next(steps, None) is None
    assert (moves > 0) == (way in ("lr", "c"))
    assert case != "crowded" or renewed > 0
