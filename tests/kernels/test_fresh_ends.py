"""Ends that say something new are counted as their definition says; digits as a division would."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.kernels.digits import count_digits
from tidings.kernels.fresh_ends import OPEN_HI, OPEN_LO, count_fresh

ENDS = st.sampled_from([int(OPEN_LO), int(OPEN_HI), -1, 0, 1])


def plain(groups, known):
    """The definition, end by end."""
    fresh, found = [], []
    for boxes, numbers in zip(groups, known, strict=True):
        counts = [0, 0]
        for number, box in enumerate(boxes):
            last = None
            for i, end in enumerate(box):
                if end == (OPEN_LO, OPEN_HI)[i % 2]:
                    continue
                if end != last and (number == 0 or end != boxes[number - 1][i]):
                    counts[int(number == 0 and end in numbers and end != OPEN_LO)] += 1
                last = end
        fresh.append(counts[0])
        found.append(counts[1])
    return fresh, found


@given(st.data(), st.integers(0, 7), st.integers(0, 3))
def test_counts_are_those_of_the_definition(data, dims, width):
    boxes = st.lists(st.lists(ENDS, min_size=2 * dims, max_size=2 * dims), max_size=4)
    groups = data.draw(st.lists(boxes, max_size=5))
    known = [data.draw(st.lists(ENDS, min_size=width, max_size=width)) for _ in groups]
    ends = np.array([box for boxes in groups for box in boxes], np.int64).reshape(sum(map(len, groups)), 2 * dims)
    lo, hi = np.ascontiguousarray(ends[:, 0::2]), np.ascontiguousarray(ends[:, 1::2])
    starts = np.cumsum([0, *map(len, groups)])
    counted = count_fresh(lo, hi, starts, np.array(known, np.int64).reshape(len(groups), width))
    assert tuple(counts.tolist() for counts in counted) == plain(groups, known)


@given(
    st.lists(
        st.integers(0, 2**64 - 1) | st.builds(lambda bits, near: 2**bits - near, st.integers(1, 63), st.integers(0, 1))
    )
)
def test_digits(numbers):
    expected = [max(1, -(-number.bit_length() // 7)) for number in numbers]
    assert count_digits(np.array(numbers, np.uint64)).tolist() == expected
