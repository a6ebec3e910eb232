"""Who may hold a row that goes: those for whom it has, or has had, a partner since it came, as far as that is known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.families.join.departures import FEW
from tidings.families.join.junction import End
from tidings.model.codes import BoolArray, Int64Array


class Partners(NamedTuple):
    """Pairs of a row and a partner of it, in the order of rows; a row of which too much is unknown has one, not known."""

    row: Int64Array
    codes: Int64Array
    is_known: BoolArray


def partners_had(end: End, known: Int64Array, values: Int64Array, is_sure: BoolArray, arrived: Int64Array) -> Partners:
    """The partners at an end, since they came, of rows with these join values.

    `known`: codes of the rows at the end, by entry. `is_sure`: of which rows all is known that happened since.
    """
    at = np.flatnonzero(is_sure)
    at = at[end.counts_at(values[at]) <= FEW]
    starts, entries = end.entries_at(values[at])
    gone = [
        (int(i), codes)
        for i, value, clock in zip(at.tolist(), values[at].tolist(), arrived[at].tolist(), strict=True)
        for codes in end.departures.after(value, clock)
    ]
    rest = np.ones(len(values), np.bool_)
    rest[at] = False
    others = np.flatnonzero(rest)
    row = np.concatenate([np.repeat(at, np.diff(starts)), np.array([i for i, _ in gone], np.int64), others])
    width = known.shape[1]
    left = np.array([codes for _, codes in gone], np.int64).reshape(len(gone), width)
    codes = np.concatenate([known[entries], left, np.zeros((len(others), width), np.int64)])
    is_known = np.arange(len(row)) < len(row) - len(others)
    order = np.argsort(row, kind="stable")
    return Partners(row[order], codes[order], is_known[order])
