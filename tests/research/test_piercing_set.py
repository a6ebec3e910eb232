"""A piercing set against the plain greedy: every interval is pierced, and by few anchors, whatever comes and goes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from piercing_set_reference import Interval, check, fewest

from research.strategies.join.kernels.piercing_set import BULK_MIN, PiercingSet

pytestmark = pytest.mark.extended


CODE_MIN, CODE_MAX = np.iinfo(np.int64).min, np.iinfo(np.int64).max
ENDS = st.one_of(
    st.integers(-30, 30), st.integers(-30, 30), st.sampled_from([CODE_MIN, CODE_MIN + 1, CODE_MAX - 1, CODE_MAX])
)
INTERVALS = st.one_of(
    st.tuples(ENDS, ENDS).map(lambda ends: (min(ends), max(ends))),
    # Small ones, so that many anchors are needed.
    st.tuples(st.integers(-200, 200), st.integers(0, 2)).map(lambda drawn: (drawn[0], sum(drawn))),
)


def change(index: PiercingSet, held: Counter[Interval], intervals: list[Interval], *, is_added: bool) -> None:
    los, his = [lo for lo, _ in intervals], [hi for _, hi in intervals]
    (index.add if is_added else index.remove)(los, his)
    for interval in intervals:
        held[interval] += 1 if is_added else -1


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_any_interleaving_keeps_few_anchors(data: st.DataObject) -> None:
    index, held = PiercingSet(), Counter[Interval]()
    for _ in range(data.draw(st.integers(1, 8), label="steps")):
        present = sorted(held.elements())
        if present and data.draw(st.booleans(), label="remove"):
            first, step = data.draw(st.integers(0, len(present) - 1)), data.draw(st.sampled_from([-3, -1, 1, 2, 10]))
            change(index, held, present[first::step], is_added=False)
        else:
            few = data.draw(st.booleans(), label="few")
            new = data.draw(st.lists(INTERVALS, max_size=BULK_MIN - 1 if few else 4 * BULK_MIN))
            change(index, held, new, is_added=True)
        check(index, held)


def test_all_at_once_gives_the_fewest_anchors() -> None:
    rng = np.random.default_rng(1)
    los = rng.integers(0, 100_000, 20_000)
    his = los + rng.integers(0, 3000, len(los))
    index = PiercingSet()
    index.add(los[:50], his[:50])
    index.add(los[50:], his[50:])
    assert len(index.anchors()) == fewest(list(zip(los.tolist(), his.tolist(), strict=True)))


@pytest.mark.parametrize("width", [1, 300, 20_000])
def test_one_by_one_and_oldest_first(width: int) -> None:
    rng = np.random.default_rng(width)
    n = 3000
    los = rng.integers(0, 50_000, n)
    his = los + rng.integers(0, width, n)
    listed = list(zip(los.tolist(), his.tolist(), strict=True))
    index, held = PiercingSet(), Counter[Interval]()
    for i, interval in enumerate(listed):
        change(index, held, [interval], is_added=True)
        if i >= n // 3:
            change(index, held, [listed[i - n // 3]], is_added=False)
        if i % 250 == 0:
            check(index, held)
    for interval in list(held.elements()):
        change(index, held, [interval], is_added=False)
    check(index, held)
    assert index.anchors().tolist() == []


def test_room_of_removed_intervals_is_given_back() -> None:
    index = PiercingSet()
    los = np.arange(100_000)
    index.add(los, los + 10)
    index.remove(los[100:], los[100:] + 10)
    assert index.nbytes < 200_000
    check(index, Counter({(lo, lo + 10): 1 for lo in range(100)}))


def test_misuse_is_refused() -> None:
    index = PiercingSet()
    index.add([1, 1], [2, 2])
    index.remove([1], [2])
    with pytest.raises(KeyError, match="no interval from 1 to 3"):
        index.remove([1], [3])
    index.remove([1], [2])
    with pytest.raises(KeyError, match="no interval from 1 to 2"):
        index.remove([1], [2])
    with pytest.raises(ValueError, match="end before it begins"):
        index.add([2], [1])
    with pytest.raises(ValueError, match="2 lower ends for 1"):
        index.add([2, 3], [4])
    check(index, Counter())
