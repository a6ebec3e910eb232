"""Subscriptions as points bring them: the exact ends of text intervals, read from the details of points."""

from __future__ import annotations

import numpy as np

from tidings.families.offers.kernels.box_index.layout import TEXT_FIELDS
from tidings.kernels.arrays import I64, U8, Int
from tidings.kernels.jit import kernel
from tidings.kernels.rows.read import hash_bytes


@kernel
def _length(data: U8, at: Int) -> Int:
    """The signed number of 32 bits at a place."""
    value = np.uint32(0)
    for i in range(4):
        value |= np.uint32(data[at + i]) << np.uint32(8 * i)
    return np.int64(np.int32(value))


@kernel
def count_texts(data: U8, starts: I64, ends: I64) -> Int:
    """Bytes of all texts; `ends` [points, TEXT_FIELDS * TEXT axes] gets where each will begin and end, -1 for none."""
    total = np.int64(0)
    for i in range(len(ends)):
        at = starts[i]
        for end in range(ends.shape[1] // 2):
            length = _length(data, at)
            at += 4
            ends[i, 2 * end], ends[i, 2 * end + 1] = -1, -1
            if length >= 0:
                ends[i, 2 * end], ends[i, 2 * end + 1] = total, total + length
                total += length
                at += length
    return total


@kernel
def read_points(data: U8, starts: I64, places: I64, ends: I64, text: U8, codes: I64, equal: I64) -> None:
    """Copies the texts, and completes equality codes and masks on TEXT axes. places: of these among the axes."""
    for i in range(len(ends)):
        at = starts[i]
        for end in range(ends.shape[1] // 2):
            at += 4
            for place in range(ends[i, 2 * end], ends[i, 2 * end + 1]):
                text[place] = data[at]
                at += 1
        for number in range(len(places)):
            lo, lo_stop, hi, hi_stop = ends[i, TEXT_FIELDS * number : TEXT_FIELDS * number + TEXT_FIELDS]
            if lo < 0 or hi < 0 or hi_stop - hi != lo_stop - lo + 1 or text[hi_stop - 1] != 0:
                continue
            is_single = True
            for j in range(lo_stop - lo):
                if text[lo + j] != text[hi + j]:
                    is_single = False
                    break
            if is_single:
                equal[i] |= np.int64(1) << places[number]
                codes[i, places[number]] = hash_bytes(text, lo, lo_stop)


@kernel
def hash_texts(text: U8, starts: I64, stops: I64, hashes: I64) -> None:
    """Equality codes of texts."""
    for i in range(len(starts)):
        hashes[i] = hash_bytes(text, starts[i], stops[i])
