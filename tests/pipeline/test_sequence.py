"""Admission is a running maximum: however the input is cut, the same records pass with the same numbers."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tidings.model.change import SEQ_MAX, SEQ_NEXT
from tidings.pipeline.sequence import admit

numbers = st.lists(st.sampled_from([SEQ_NEXT, 1, 2, 3, 5, 8, SEQ_MAX - 1, SEQ_MAX]), max_size=10)


def plainly(seqs, passed):
    result = []
    for seq in seqs:
        final = passed + 1 if seq == SEQ_NEXT else seq
        is_admitted = passed < final <= SEQ_MAX
        result.append((is_admitted, final))
        passed = final if is_admitted else passed
    return result, passed


@given(numbers, st.sampled_from([0, 1, 4, SEQ_MAX]))
@example([SEQ_MAX, SEQ_NEXT, SEQ_NEXT], 0)
def test_admission(seqs, passed):
    admitted, final = admit(np.array(seqs, np.int64), passed)
    expected, _ = plainly(seqs, passed)
    assert list(zip(admitted.tolist(), final.tolist(), strict=True)) == expected


@given(numbers, st.integers(0, 10))
def test_cutting_the_input_changes_nothing(seqs, cut):
    whole = [ok for ok, _ in plainly(seqs, 0)[0]]
    first, passed = plainly(seqs[:cut], 0)
    admitted, _ = admit(np.array(seqs[cut:], np.int64), passed)
    assert [ok for ok, _ in first] + admitted.tolist() == whole
