"""Contained intervals against a plain scan: additions, removals and queries in any order; many equal and nested intervals."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from contained_intervals_reference import Interval, any_within, check_invariants
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from research.strategies.join.kernels.contained_intervals import BLOCK, BULK_MIN, ContainedIntervals
from tidings.model.codes import CODE_MAX, CODE_MIN

pytestmark = pytest.mark.extended


ENDS = st.one_of(
    st.integers(-20, 20), st.integers(-20, 20), st.sampled_from([CODE_MIN, CODE_MIN + 1, CODE_MAX - 1, CODE_MAX])
)
INTERVALS = st.tuples(ENDS, ENDS).map(lambda ends: (min(ends), max(ends)))
QUERIES = st.one_of(st.tuples(ENDS, ENDS, ENDS).map(lambda drawn: tuple(sorted(drawn))), st.tuples(ENDS, ENDS, ENDS))


def change(index: ContainedIntervals, held: Counter[Interval], intervals: list[Interval], *, is_added: bool) -> None:
    los, his = [lo for lo, _ in intervals], [hi for _, hi in intervals]
    (index.add if is_added else index.remove)(los, his)
    for interval in intervals:
        held[interval] += 1 if is_added else -1


def compare(index: ContainedIntervals, held: Counter[Interval], queries: list[tuple[int, int, int]]) -> None:
    check_invariants(index, held)
    lo_from, at, hi_to = np.array(queries, np.int64).reshape(-1, 3).T
    assert index.any_within(lo_from, at, hi_to).tolist() == [any_within(held, *query) for query in queries]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_any_interleaving_agrees_with_a_plain_scan(data: st.DataObject) -> None:
    index, held = ContainedIntervals(), Counter[Interval]()
    for _ in range(data.draw(st.integers(1, 8), label="steps")):
        present = sorted(held.elements())
        if present and data.draw(st.booleans(), label="remove"):
            first, step = data.draw(st.integers(0, len(present) - 1)), data.draw(st.sampled_from([-3, -1, 1, 2, 10]))
            change(index, held, present[first::step], is_added=False)
        else:
            few = data.draw(st.booleans(), label="few")
            new = data.draw(st.lists(INTERVALS, max_size=BULK_MIN - 1 if few else 4 * BULK_MIN))
            change(index, held, new, is_added=True)
        compare(index, held, data.draw(st.lists(QUERIES, min_size=1, max_size=10)))


@pytest.mark.parametrize("domain", [1, 3, 60, 100_000])
@pytest.mark.parametrize("one_by_one", [True, False])
def test_many_blocks_grow_and_shrink(domain: int, one_by_one: bool) -> None:
    rng = np.random.default_rng(domain)
    n = 12 * BLOCK
    los = rng.integers(0, domain, n)
    his = los + rng.integers(0, max(2, domain // 20), n)
    listed = list(zip(los.tolist(), his.tolist(), strict=True))
    index, held = ContainedIntervals(), Counter[Interval]()
    for is_added in (True, False):
        for part in np.array_split(rng.permutation(n), 5):
            for few in np.array_split(part, len(part) // 50 if one_by_one else 1):
                change(index, held, [listed[i] for i in few.tolist()], is_added=is_added)
            starts = rng.integers(-1, domain + 1, 30)
            widths = rng.integers(0, max(2, domain // 30), (2, 30))
            queries = np.stack((starts, starts + widths[0], starts + widths.sum(axis=0)), axis=1)
            compare(index, held, [(a, b, c) for a, b, c in queries.tolist()])
    assert len(index) == 0
    assert index.nbytes < 100_000


def test_equal_intervals_at_the_low_edge_in_many_blocks() -> None:
    """Separators equal to the pair sought, also after the intervals behind them are gone."""
    index, held = ContainedIntervals(), Counter[Interval]()
    edge = (CODE_MIN, CODE_MIN)
    change(index, held, [edge] * (3 * BLOCK) + [(CODE_MIN, 5)] * BLOCK, is_added=True)
    for left in (2 * BLOCK, 10, 1):
        change(index, held, [edge] * (held[edge] - left), is_added=False)
        compare(index, held, [(CODE_MIN, CODE_MIN, CODE_MIN), (CODE_MIN, 0, 4), (CODE_MIN, 0, 5)])
    change(index, held, [edge], is_added=False)
    compare(index, held, [(CODE_MIN, CODE_MIN, CODE_MIN), (CODE_MIN, CODE_MIN, CODE_MAX)])


def test_misuse_is_refused() -> None:
    index = ContainedIntervals()
    with pytest.raises(KeyError, match="no interval from 1 to 2"):
        index.remove([1], [2])
    index.add([1], [2])
    with pytest.raises(KeyError, match="no interval from 1 to 3"):
        index.remove([1], [3])
    with pytest.raises(KeyError, match="no interval from 0 to 3"):
        index.remove([0], [3])
    with pytest.raises(ValueError, match="end before it begins"):
        index.add([2], [1])
    with pytest.raises(ValueError, match="as many"):
        index.any_within([2], [1], [])
    check_invariants(index, Counter({(1, 2): 1}))
