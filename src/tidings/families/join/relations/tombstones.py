"""Tombstones: rows that have gone from a join value, because subscribers who had them as partners may still hold the rows
they joined.

Where a value has few rows, as keys of other tables do, each row that goes leaves a tombstone; a row that goes later need
then be dropped only by those who have, or have had, a partner for it. Where a value has many rows, all that is kept is when
the last went.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidings.kernels.arrays import covering
from tidings.model.codes import BoolArray, Int64Array

if TYPE_CHECKING:
    from tidings.families.join.relations.join_index import JoinIndex

FEW = 4
"""Rows of a value, gone ones included, that are looked at one by one."""
NEVER = -1


class Tombstones:
    """Rows gone, by number of the join value. Clocks only go forward."""

    def __init__(self) -> None:
        self._unknown = np.empty(0, np.int64)
        """By value: when a row went last that left no tombstone, or whose tombstone was forgotten."""
        self._gone: dict[int, list[tuple[int, Int64Array]]] = {}
        """By value: (when, codes of the row)"""

    def add(self, values: Int64Array, codes: Int64Array, is_few: BoolArray, clock: int) -> None:
        """Rows with these codes go; `is_few`: whether their join value has few rows."""
        self._unknown = covering(self._unknown, values, NEVER)
        self._unknown[values[~is_few]] = clock
        for at in np.flatnonzero(is_few).tolist():
            gone = self._gone.setdefault(int(values[at]), [])
            gone.append((clock, codes[at]))
            if len(gone) > FEW:
                self._unknown[values[at]] = max(self._unknown[values[at]], gone.pop(0)[0])

    def known_since(self, values: Int64Array) -> Int64Array:
        """The clock after which every row that went has a tombstone."""
        known = np.full(len(values), NEVER, np.int64)
        inside = (values >= 0) & (values < len(self._unknown))
        known[inside] = self._unknown[values[inside]]
        return known

    def after(self, value: int, clock: int) -> list[Int64Array]:
        """Codes of the rows that have gone from a value since."""
        return [codes for when, codes in self._gone.get(value, ()) if when > clock]


class PastPartners(NamedTuple):
    """Pairs of a row and a partner of it, in the order of rows; a row of which too much is unknown has one pair, not known."""

    row: Int64Array
    codes: Int64Array
    is_known: BoolArray


def past_partners(
    index: JoinIndex, codes: Int64Array, values: Int64Array, is_sure: BoolArray, arrived: Int64Array
) -> PastPartners:
    """The partners that rows with these join values have in an index, or have had since they arrived.

    `codes`: of the rows of the index, by entry. `is_sure`: for which rows every partner gone since has a tombstone.
    """
    at = np.flatnonzero(is_sure)
    at = at[index.counts_at(values[at]) <= FEW]
    starts, entries = index.entries_at(values[at])
    gone = [
        (int(i), codes_gone)
        for i, value, clock in zip(at.tolist(), values[at].tolist(), arrived[at].tolist(), strict=True)
        for codes_gone in index.tombstones.after(value, clock)
    ]
    rest = np.ones(len(values), np.bool_)
    rest[at] = False
    others = np.flatnonzero(rest)
    row = np.concatenate([np.repeat(at, np.diff(starts)), np.array([i for i, _ in gone], np.int64), others])
    width = codes.shape[1]
    left = np.array([codes_gone for _, codes_gone in gone], np.int64).reshape(len(gone), width)
    found = np.concatenate([codes[entries], left, np.zeros((len(others), width), np.int64)])
    is_known = np.arange(len(row)) < len(row) - len(others)
    order = np.argsort(row, kind="stable")
    return PastPartners(row[order], found[order], is_known[order])
