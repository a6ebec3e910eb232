"""A schedule keeps the order of steps of different kinds that touch the same, in as few rounds as possible."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.strategies.join.kernels.schedule import schedule
from tidings.kernels.rows import NONE

pytestmark = pytest.mark.extended


SIZE = 4
steps = st.lists(
    st.tuples(st.integers(0, 2), st.lists(st.integers(NONE, SIZE - 1), min_size=2, max_size=2)), max_size=20
)


def plain(found):
    """The earliest rounds there can be."""
    at = []
    for i, (kind, touched) in enumerate(found):
        shared = [(at[j], found[j][0]) for j in range(i) if set(found[j][1]) & set(touched) - {NONE}]
        at.append(max((round + (other != kind) for round, other in shared), default=0))
    return at


@given(steps)
def test_rounds_are_as_early_as_order_allows(found):
    kind = np.array([kind for kind, _ in found], np.int64)
    touched = np.array([marks for _, marks in found], np.int64).reshape(len(found), 2)
    assert schedule(kind, touched, SIZE).tolist() == plain(found)
