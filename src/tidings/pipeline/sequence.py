"""Sequence order: which changes may pass, given the highest sequence number that has passed before.

Every shard runs this on the same (position, seq) pairs, so that all agree without talking to each other.
"""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np

from tidings.model.change import SEQ_MAX, SEQ_NEXT, ChangeBatch
from tidings.model.codes import BoolArray, Int64Array

_BLOCK_LINES_MAX = 2**40


def admit(seq: Int64Array, passed: int) -> tuple[BoolArray, Int64Array]:
    """Which of the records, in order of position, pass: those above every one before. Also gives final seqs.

    Refused records do not move the mark. A record without a number (SEQ_NEXT) gets the next one, while there is one.
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
    """The batch for a source that does not say in which order its records came: they are taken in order of their numbers.

    Records without a number come first, in the order of their block.
    """
    return replace(batch, position=np.where(batch.seq == SEQ_NEXT, batch.position - _BLOCK_LINES_MAX, batch.seq))


def ties_of(batch: ChangeBatch) -> Int64Array:
    """What orders records of equal position the same way in every process: a hash of their text."""
    raws = [b""] * len(batch) if batch.raw is None else batch.raw.to_pylist()
    return np.array([zlib.crc32(raw) for raw in raws], np.int64)
