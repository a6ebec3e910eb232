"""Corners stand for all wanted vectors and no unwanted one; ranges contain points as they say."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from research.strategies.join.kernels.cover import corners, holding
from tidings.model.codes import CODE_MAX, CODE_MIN

numbers = st.one_of(st.integers(0, 5), st.sampled_from([CODE_MIN, CODE_MAX]))
vectors = st.lists(st.tuples(numbers, numbers, numbers), max_size=12).map(
    lambda found: np.array(found, np.int64).reshape(-1, 3)
)


def below(vectors, found):
    return np.array([any((vector <= corner).all() for corner in found) for vector in vectors], np.bool_)


@given(vectors, vectors)
def test_corners_stand_for_the_wanted_and_for_nobody_else(wanted, unwanted):
    # A vector above an unwanted one cannot be separated from it.
    is_apart = np.array([not below(unwanted, [vector]).any() for vector in wanted], np.bool_)
    wanted = wanted[is_apart]
    found = corners(wanted, unwanted)
    assert below(wanted, found).all() and not below(unwanted, found).any()
    assert len(found) <= len(wanted)
    assert len(corners(wanted, unwanted[:0])) == min(1, len(wanted))


@given(vectors, vectors)
def test_there_are_never_more_corners_than_allowed(wanted, unwanted):
    found = corners(wanted, unwanted, most=2)
    assert len(found) <= 2 and below(wanted, found).all()


def test_as_many_corners_as_wanted_vectors_may_be_needed():
    stairs = np.array([[i, 9 - i] for i in range(10)])
    between = np.array([[i + 1, 9 - i] for i in range(9)])
    assert len(corners(stairs, between)) == 10
    assert len(corners(stairs, between[::2])) == 6


@given(
    st.lists(st.tuples(*[st.integers(0, 5)] * 4), max_size=8), st.lists(st.tuples(*[st.integers(0, 5)] * 2), max_size=8)
)
def test_ranges_contain_points(ranges, points):
    found = holding(np.array(ranges, np.int64).reshape(-1, 4), np.array(points, np.int64).reshape(-1, 2))
    assert found.tolist() == [any(a <= x <= b and c <= y <= d for x, y in points) for a, b, c, d in ranges]
