"""B-trees that follow what moves, against a look at all members."""

from __future__ import annotations

import numpy as np
import pytest

from research.strategies.drift.kernels.btree import LEAF_MAX, LEAVES, entries_of
from research.strategies.drift.kernels.end_points import Centres, EndPoints, reaching


@pytest.mark.parametrize("kind", [EndPoints, Centres])
@pytest.mark.parametrize("seed", range(4))
def test_those_are_told_whose_interval_is_left(kind, seed):
    rng = np.random.default_rng(seed)
    index, value = kind(1_000.0), 1_000.0
    reach, centre = np.empty(0), np.empty(0)
    most = 0
    for _ in range(300):
        if rng.random() < 0.3:
            count = int(rng.choice([1, 2, 400]))
            new = np.full(count, 60.0) if index.has_one_radius else rng.integers(1, 200, count).astype(np.float64)
            index.add(new)
            reach, centre = np.append(reach, new), np.append(centre, np.full(count, value))
        # Whole numbers, so that thresholds are met exactly; also the same value again.
        values = value + np.cumsum(rng.integers(-30, 31, rng.integers(1, 4))).astype(np.float64)
        counts = index.move(values)
        for to, found in zip(values.tolist(), counts.tolist(), strict=True):
            is_told = (to >= centre + reach) | (to <= centre - reach)
            assert found == is_told.sum()
            centre[is_told] = to
        value = float(values[-1])
        if len(values) == 1:
            assert sorted(index.told[: counts[-1]].tolist()) == np.flatnonzero(is_told).tolist()
        np.testing.assert_equal(index.centre[: index.count], centre)
        entries = entries_of(index._tree)
        expected = [*zip(centre, range(len(centre)), strict=True)]
        if not index.has_one_radius:
            ends = zip(centre - reach, centre + reach, strict=True)
            expected = [(end, i) for i, both in enumerate(ends) for end in both]
            assert entries == sorted(entries)
        assert sorted(entries) == sorted(expected)
        assert [key for key, _ in entries] == sorted(key for key, _ in entries)
        most = max(most, len(entries))
    # Leaves are joined as they empty.
    assert most > 4 * LEAF_MAX
    assert index._tree.head[LEAVES] <= 8 * most / LEAF_MAX


def test_thresholds_of_centres_are_exact_in_doubles():
    rng = np.random.default_rng(3)
    for value, radius in zip(rng.uniform(0.01, 1e6, 500), rng.uniform(0.01, 1e3, 500), strict=True):
        high, low = reaching(value, radius)
        assert high + radius <= value < np.nextafter(high, np.inf) + radius
        assert low - radius >= value > np.nextafter(low, -np.inf) - radius
