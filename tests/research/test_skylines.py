"""Skylines reach everyone with a partner and nobody without, and are as small as they promise to be."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from research.strategies.join.skylines import fewest, smallest

pytestmark = pytest.mark.extended


TOP = 9
values_of = st.sets(st.integers(1, TOP - 1), max_size=5).map(lambda found: np.array(sorted(found), np.int64))
ranges = st.tuples(st.integers(0, TOP), st.integers(0, TOP)).map(sorted)
ranges_of = st.lists(ranges, max_size=6).map(lambda found: np.array(found, np.int64).reshape(-1, 2))


def tuples(values, lo, hi):
    return np.stack([values, values], axis=1)


WAYS = {"tup": tuples, "sub": smallest, "min": fewest}


def reached(points, ends):
    return [any(lo <= x and hi >= y for x, y in points) for lo, hi in ends]


def has_partner(values, ends):
    return [any(lo <= value <= hi for value in values) for lo, hi in ends]


@pytest.mark.parametrize("way", WAYS)
@given(values_of, ranges_of)
def test_everyone_with_a_partner_is_reached_and_nobody_else(way, values, ends):
    points = WAYS[way](values, *ends.T)
    assert reached(points, ends) == has_partner(values, ends)


@settings(max_examples=40)
@given(values_of, ranges_of)
def test_no_skyline_has_fewer_points_than_the_fewest(values, ends):
    wanted = has_partner(values, ends)
    candidates = [
        point
        for point in product(range(TOP + 1), repeat=2)
        if all(is_wanted or not found for is_wanted, found in zip(wanted, reached([point], ends), strict=True))
    ]
    covers = {tuple(reached([point], ends)) for point in candidates}
    least = next(
        count
        for count in range(len(values) + 1)
        if any(
            [any(column) for column in zip([False] * len(wanted), *some, strict=True)] == wanted
            for some in combinations(covers, count)
        )
    )
    assert len(fewest(values, *ends.T)) == least


@given(values_of, ranges_of)
def test_the_smallest_covers_no_more_of_the_plane_than_the_tuples(values, ends):
    small, whole = (WAYS[way](values, *ends.T) for way in ("sub", "tup"))
    plane = [(lo, hi) for lo, hi in product(range(TOP + 1), repeat=2) if lo <= hi]
    assert all(b or not a for a, b in zip(reached(small, plane), reached(whole, plane), strict=True))
