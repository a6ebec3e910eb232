"""Sequence order: which changes are accepted, given the highest sequence number accepted before.

Every shard calls `admit` with the same pairs (position, seq), so that all shards decide alike without communication.
"""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np

from tidings.model.change import SEQ_MAX, SEQ_NEXT, ChangeBatch
from tidings.model.codes import BoolArray, Int64Array

_BLOCK_LINES_MAX = 2**40


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


def by_number(batch: ChangeBatch) -> ChangeBatch:
    """The batch with positions for a source that has none: records are ordered by seq.

    Records without a seq come first, in the order of their block.
    """
    return replace(batch, position=np.where(batch.seq == SEQ_NEXT, batch.position - _BLOCK_LINES_MAX, batch.seq))


def ties_of(batch: ChangeBatch) -> Int64Array:
    """A hash of each record's text, [records]: orders records of equal position the same way in every process."""
    raws = [b""] * len(batch) if batch.raw is None else batch.raw.to_pylist()
    return np.array([zlib.crc32(raw) for raw in raws], np.int64)
