"""Sequence order: which changes are accepted, given the highest sequence number accepted before.

Every shard calls `admit` with the same pairs (position, seq), so that all shards decide alike without communication.
"""

from __future__ import annotations

import numpy as np

from tidings.model.change import SEQ_MAX, SEQ_NEXT
from tidings.model.codes import BoolArray, Int64Array


def admit(seq: Int64Array, passed: int) -> tuple[BoolArray, Int64Array]:
    """Returns (whether each record is accepted, final seqs), both [records]. seq: [records], in order of position.

    passed: highest seq accepted before. A record is accepted if its seq is above all seqs before it. A record without a seq
    (SEQ_NEXT) gets the highest accepted seq plus 1, and is refused beyond SEQ_MAX.
    """
    if len(seq) and bool((seq == SEQ_NEXT).any()):
        return _admit_unnumbered(seq, passed)
    mark = np.maximum.accumulate(np.concatenate([[passed], seq[:-1]])) if len(seq) else seq
    return seq > mark, seq


def _admit_unnumbered(seq: Int64Array, passed: int) -> tuple[BoolArray, Int64Array]:
    final = seq.copy()
    admitted = np.zeros(len(seq), np.bool_)
    for i, number in enumerate(seq.tolist()):
        if number == SEQ_NEXT:
            final[i] = number = passed + 1
        if passed < number <= SEQ_MAX:
            admitted[i] = True
            passed = number
    return admitted, final
