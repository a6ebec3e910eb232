"""A workload of joins of up to four tables as arrays.

    R --- S --- T
          |
          U

S, in the centre, has a link to each of the others. Subscriptions join some of the tables, with a range on each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidings.model.change import Op
from tidings.workloads.drift_walk import FloatArray, IntArray
from tidings.workloads.join_draws import generator

R, S, T, U = range(4)
SIGNATURES = ((R, S), (R, S, T), (R, S, T, U), (S, T, U))
"""Which tables a subscription joins; those of the paper."""


@dataclass(frozen=True)
class Images:
    """What the rows of a table ever look like, in the order of appearance: an update makes another image of a row."""

    key: IntArray
    links: IntArray
    """[images, links]: join values."""
    value: FloatArray
    start: int
    """So many images are rows at the start."""

    def __len__(self) -> int:
        return len(self.key)


@dataclass(frozen=True)
class Steps:
    """Changes to several tables, an array element each."""

    table: IntArray
    op: IntArray
    image: IntArray
    """The one that comes or, of a delete, the one that goes."""

    def __len__(self) -> int:
        return len(self.table)

    @staticmethod
    def draw(seed: int, shares: Sequence[float], starts: Sequence[int], updated: Sequence[bool], changes: int) -> Steps:
        """Tables change in proportion to their shares.

        Rows of a table that is `updated` get new images; in others every insertion is followed by the deletion of the
        oldest row.
        """
        bounds = np.cumsum(shares) / np.sum(shares)
        table = np.searchsorted(bounds[:-1], generator([seed, 1], 0).random(changes), "right")
        turn = np.empty(changes, np.int64)
        for number in range(len(shares)):
            own = table == number
            turn[own] = np.arange(int(own.sum()))
        length = np.where(np.array(updated)[table], 1, 2)
        is_second = np.arange(int(length.sum())) != np.repeat(np.cumsum(length) - length, length)
        table, turn, is_second = (
            np.repeat(table, length)[:changes],
            np.repeat(turn, length)[:changes],
            is_second[:changes],
        )
        op = np.where(is_second, Op.DELETE, np.where(np.array(updated)[table], Op.UPDATE, Op.INSERT))
        return Steps(table, op.astype(np.int64), np.where(is_second, turn, np.array(starts)[table] + turn))

    def images_of(self, table: int, start: int) -> int:
        """How many images a table needs that starts with so many."""
        return start + int(((self.table == table) & (self.op != Op.DELETE)).sum())


@dataclass(frozen=True)
class MultiScene:
    """`tables` are R, S, T and U; R, T and U have one link, S has one to each of them, in this order."""

    tables: tuple[Images, Images, Images, Images]
    steps: Steps
    signature: IntArray
    """Which of `SIGNATURES`, for every subscription."""
    ranges: FloatArray
    """[subscriptions, 8]: low and high end on R, S, T and U; NaN on tables that are not joined."""
    payloads: tuple[int, int, int, int]
    """Bytes of text in a row of every table."""

    @property
    def size(self) -> int:
        """Number of subscriptions."""
        return len(self.ranges)

    @property
    def changes(self) -> int:
        return len(self.steps)
