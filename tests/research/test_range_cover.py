"""Numbers in ranges, list by list, as plain search finds them."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from research.strategies.join.kernels.range_cover import covered

pytestmark = pytest.mark.extended


NUMBERS = st.integers(-5, 5)
LISTS = st.lists(
    st.tuples(st.lists(NUMBERS, max_size=6).map(sorted), st.lists(st.tuples(NUMBERS, NUMBERS), max_size=4)), max_size=5
)


def flat(parts):
    return np.array([value for part in parts for value in part], np.int64)


def starts_of(parts):
    return np.cumsum([0, *map(len, parts)])


@given(lists=LISTS)
def test_a_number_is_covered_if_a_range_of_its_list_holds_it(lists):
    numbers, ranges = [part for part, _ in lists], [part for _, part in lists]
    lo, hi = ([[pair[end] for pair in part] for part in ranges] for end in (0, 1))
    found = covered(starts_of(numbers), flat(numbers), starts_of(ranges), flat(lo), flat(hi))
    expected = [any(lo <= number <= hi for lo, hi in of) for part, of in lists for number in part]
    assert found.tolist() == expected
