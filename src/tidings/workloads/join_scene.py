"""A workload of binary joins as arrays: two tables, a stream of changes to one of them, and ranges on both.

Everybody wants the pairs of an R row and an S row with the same join value `b`, R's `a` in one range and S's `c` in another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidings.model.codes import BoolArray
from tidings.workloads.drift_walk import FloatArray, IntArray


@dataclass(frozen=True)
class BinaryScene:
    """A row's key is its index. S does not change; of R, the oldest row is deleted after every insertion."""

    ranges: FloatArray
    """[subscriptions, 4]: a_lo, a_hi, c_lo, c_hi, all ends included; doubles, as the columns are."""
    s_b: IntArray
    s_c: FloatArray
    r_b: IntArray
    r_a: FloatArray
    """`r_b` and `r_a` have an element for every R row there ever is, in the order of insertion."""
    r_size: int
    """So many R rows are there at the start."""
    changed: IntArray
    """Which R row, for every change."""
    is_insert: BoolArray
    """Whether the change brings the row; it takes it away otherwise."""
    payload: int
    """Bytes of text in every row."""

    @property
    def size(self) -> int:
        """Number of subscriptions."""
        return len(self.ranges)

    @property
    def changes(self) -> int:
        return len(self.changed)

    @property
    def join_output_rate(self) -> float:
        """S rows that an inserted R row finds, on average and before any ranges are looked at: the paper's RJOR."""
        partners = np.bincount(self.s_b, minlength=int(self.r_b.max(initial=0)) + 1)
        inserted = self.changed[self.is_insert]
        return float(partners[self.r_b[inserted]].mean()) if len(inserted) else 0.0


def first_in_first_out(start: int, changes: int) -> tuple[IntArray, BoolArray]:
    """(which row, whether it comes) of every change to a table that starts with so many rows."""
    turn, is_delete = np.divmod(np.arange(changes), 2)
    is_insert = is_delete == 0
    return np.where(is_insert, start + turn, turn), is_insert
