"""The nearest points around a point stand for all others."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from research.strategies.join.semijoin.first_partners import holds_none, nearest_around

points = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 2))
many = st.lists(points, max_size=12).map(lambda found: np.array(found, np.int64).reshape(-1, 3))


def holders_of(center, reach):
    """Ranges that hold the center, and reach further by some."""
    ends = [end for at, (low, high) in zip(center, reach, strict=True) for end in (at - low, at + high)]
    return np.array([ends], np.int64)


@given(points, many, st.tuples(*[st.tuples(st.integers(0, 4), st.integers(0, 4))] * 3))
def test_who_holds_none_of_the_nearest_holds_nothing_but_the_center(center, others, reach):
    holder = holders_of(center, reach)
    inside = ((others >= holder[0, 0::2]) & (others <= holder[0, 1::2])).all(axis=1)
    assert holds_none(holder, nearest_around(np.array(center), others)).tolist() == [not inside.any()]


@given(points, many)
def test_none_of_the_nearest_can_be_left_out(center, others):
    around = nearest_around(np.array(center), others)
    assert {tuple(point) for point in around.tolist()} <= {tuple(point) for point in others.tolist()}
    for point in around:
        ends = np.stack([np.minimum(point, center), np.maximum(point, center)], axis=1).reshape(1, -1)
        rest = around[(around != point).any(axis=1)]
        assert holds_none(ends, rest).all(), "only this point tells that this range holds more than the center"
