"""Tombstones: rows removed from a join value. Subscriptions that had a removed row as a partner may still hold rows that were
joined with it.

If a join value has few rows, as keys of other tables have, each removed row leaves a tombstone. A partner row that is removed
later must then be dropped only by subscriptions that have, or had, a partner for it. If a join value has many rows, only the
time of the last removal is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidings.kernels.arrays import covering
from tidings.model.codes import BoolArray, Int64Array

if TYPE_CHECKING:
    from research.strategies.join.relations.join_index import JoinIndex

FEW = 4
"""Join values with fewer rows than this leave tombstones, and keep at most this many."""
NEVER = -1


class Tombstones:
    """Removed rows by number of the join value. Clocks must not decrease between calls."""

    def __init__(self) -> None:
        self._unknown = np.empty(0, np.int64)
        """[values]: clock of the last removal without a tombstone, or whose tombstone was discarded."""
        self._gone: dict[int, list[tuple[int, Int64Array]]] = {}
        """Value -> (clock of the removal, codes of the row) of each tombstone."""

    def add(self, values: Int64Array, codes: Int64Array, is_few: BoolArray, clock: int) -> None:
        """Records the removal of rows. is_few: [rows], whether the join value has few rows."""
        self._unknown = covering(self._unknown, values, NEVER)
        self._unknown[values[~is_few]] = clock
        for at in np.flatnonzero(is_few).tolist():
            gone = self._gone.setdefault(int(values[at]), [])
            gone.append((clock, codes[at]))
            if len(gone) > FEW:
                self._unknown[values[at]] = max(self._unknown[values[at]], gone.pop(0)[0])

    def known_since(self, values: Int64Array) -> Int64Array:
        """[values]: clock after which every removed row has a tombstone."""
        known = np.full(len(values), NEVER, np.int64)
        inside = (values >= 0) & (values < len(self._unknown))
        known[inside] = self._unknown[values[inside]]
        return known

    def after(self, value: int, clock: int) -> list[Int64Array]:
        """Codes of the rows removed from a join value after `clock`."""
        return [codes for when, codes in self._gone.get(value, ()) if when > clock]


class PastPartners(NamedTuple):
    """Pairs of a row and a partner, in the order of rows. A row whose partners are unknown has one pair, not `is_known`."""

    row: Int64Array
    codes: Int64Array
    is_known: BoolArray


def past_partners(
    index: JoinIndex, codes: Int64Array, values: Int64Array, is_sure: BoolArray, arrived: Int64Array
) -> PastPartners:
    """The partners that rows with these join values have in an index, or have had since they arrived.

    codes: [entries], of the rows of the index. is_sure: [rows], whether every partner removed since has a tombstone.
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
