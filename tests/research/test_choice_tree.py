"""Whoever must be told is told, and those that may be between two of them: the tree against a look at all members."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from research.strategies.drift.kernels.choice_tree import ChoiceTree
from tidings.families.drift.movement import has_moved

KINDS = ("moved", "moved_percent", "moved_ratio")


def runs_by_hand(kind, members, anchors, value):
    """(first, last) of each run, as in the definition; moves the anchors."""
    runs, is_open = [], False
    for i, (may, must) in enumerate(members):
        if has_moved(kind, anchors[i], value, must):
            if is_open:
                runs[-1] = runs[-1][0], i
            else:
                runs.append((i, i))
            is_open = True
        elif not has_moved(kind, anchors[i], value, may):
            is_open = False
    for first, last in runs:
        anchors[first : last + 1] = [value] * (last - first + 1)
    return runs


REACHES = {"moved": [0.5, 1.0, 2.0, 3.0, 5.0, 0.1], "moved_percent": [1.0, 5.0, 10.0, 30.0, 120.0]}
REACHES["moved_ratio"] = [1.01, 1.1, 1.5, 2.0, 3.0]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_runs_are_those_of_the_definition(data):
    kind = data.draw(st.sampled_from(KINDS))
    reach = st.sampled_from(REACHES[kind])
    members = data.draw(st.lists(st.tuples(reach, reach).map(lambda pair: tuple(sorted(pair))), max_size=20))
    members.sort()
    value = st.sampled_from([float(v) for v in range(1, 15)] + ([0.0, -3.0, 0.1] if kind != "moved_ratio" else [0.1]))
    anchors = [data.draw(value)] * len(members)
    may, must = (np.array(column, np.float64) for column in (zip(*members, strict=True) if members else ((), ())))
    number = KINDS.index(kind)
    tree = ChoiceTree(number, may, must, np.array(anchors, np.float64), np.zeros(len(members), np.int64))
    moves = data.draw(st.lists(value, max_size=25))
    for time, to in enumerate(moves, 1):
        expected = runs_by_hand(kind, members, anchors, to)
        assert [tuple(run) for run in tree.move(to, time).tolist()] == expected
        if data.draw(st.integers(0, 3)) == 0:
            held, times = tree.anchors()
            assert held.tolist() == anchors
            assert all(anchor == to for anchor, at in zip(anchors, times.tolist(), strict=True) if at == time)


@pytest.mark.parametrize("kind", KINDS)
def test_many_members_on_a_long_walk(kind):
    rng = np.random.default_rng(5)
    low = np.sort(rng.uniform(*{"moved": (1, 20), "moved_percent": (1, 20), "moved_ratio": (1.01, 1.2)}[kind], 300))
    high = 1 + (low - 1) * 1.5 if kind == "moved_ratio" else low * 1.5
    members, anchors = list(zip(low.tolist(), high.tolist(), strict=True)), [100.0] * 300
    tree = ChoiceTree(KINDS.index(kind), low, high, np.full(300, 100.0), np.zeros(300, np.int64))
    told = musts = 0
    for time, to in enumerate((100 + np.cumsum(rng.normal(0, 1, 400))).tolist(), 1):
        before = list(anchors)
        expected = runs_by_hand(kind, members, anchors, to)
        assert [tuple(run) for run in tree.move(to, time).tolist()] == expected
        told += sum(last - first + 1 for first, last in expected)
        musts += sum(has_moved(kind, before[i], to, must) for i, (_, must) in enumerate(members))
    # Some were told who need not have been.
    assert 0 < musts < told
