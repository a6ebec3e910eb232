"""The binary workload of the paper on select-join subscriptions: pairs of an R row and an S row with the same join value `b`,
R's `a` in one range and S's `c` in another.

The paper's table of distributions is missing. What its text states is kept: the numbers of rows and of join values, the
deviations of the ranges' centres, low and high hot spots. The rest is chosen such that its statements on overlap hold: many
R rows are at hot spots, so that a row lies in more ranges the more these overlap; but few S rows are, so that fewer of them
join.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from research.workloads.draws import TruncatedNormal
from research.workloads.join.draws import HotRanges, HotSpots, Middle, Values, below, generator, widths, zipf_counts
from tidings.model.codes import BoolArray
from tidings.workloads.draws import FloatArray, IntArray

SIGMA_A, SIGMA_C = 13_000.0, 7_500.0
A_VALUES: Values = HotSpots(SIGMA_A)
C_VALUES: Values = Middle(8_000.0)
A_WIDTH, C_WIDTH = widths(4_000.0), widths(2_500.0)


@dataclass(frozen=True)
class BinaryScene:
    """A row's key is its index. S does not change; of R, the oldest row is deleted after every insertion."""

    ranges: FloatArray
    """[subscriptions, 4]: a_lo, a_hi, c_lo, c_hi, all ends included; doubles, as the columns are."""
    s_b: IntArray
    s_c: FloatArray
    r_b: IntArray
    r_a: FloatArray
    """r_b, r_a: [all R rows ever inserted], in the order of insertion."""
    r_size: int
    """Number of R rows at the start."""
    changed: IntArray
    """[changes]: the R row."""
    is_insert: BoolArray
    """[changes]: whether the change inserts the row; else it deletes it."""
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
        """Mean number of S rows with the join value of an inserted R row, ignoring ranges: the paper's RJOR."""
        partners = np.bincount(self.s_b, minlength=int(self.r_b.max(initial=0)) + 1)
        inserted = self.changed[self.is_insert]
        return float(partners[self.r_b[inserted]].mean()) if len(inserted) else 0.0


def first_in_first_out(start: int, changes: int) -> tuple[IntArray, BoolArray]:
    """(row, whether it is inserted) of every change to a table of `start` rows: the oldest row is deleted after each insert."""
    turn, is_delete = np.divmod(np.arange(changes), 2)
    is_insert = is_delete == 0
    return np.where(is_insert, start + turn, turn), is_insert


@dataclass(frozen=True)
class BinaryCase:
    """What can be varied in an experiment."""

    r_size: int = 16_000
    s_size: int = 5_100
    join_values: int = 100
    """Join values of R rows; S has rows for a part of these."""
    partner_share: float = 0.7
    """Share of the inserted R rows that have an S row with their join value."""
    zipf_exponent: float = 0.8
    """Of the S rows per join value."""
    overlap: float = 0.0
    """Reduction of the deviations of the ranges' centres: 0 for the usual ones."""
    width_a: TruncatedNormal = A_WIDTH
    width_c: TruncatedNormal = C_WIDTH
    payload: int = 100

    def sized(self, r_size: int) -> BinaryCase:
        """The same case with `r_size` R rows, and S rows in proportion."""
        return replace(self, r_size=r_size, s_size=max(1, round(r_size * self.s_size / self.r_size)))

    def scene(self, *, seed: int, subscriptions: int, changes: int) -> BinaryScene:
        """changes: number of changes after the rows at the start."""
        changed, is_insert = first_in_first_out(self.r_size, changes)
        r_rows = self.r_size + int(is_insert.sum())
        counts = self._partners()
        s_b = generator([seed, 1], 0).permutation(np.repeat(np.arange(len(counts)), counts))
        return BinaryScene(
            self.draw_ranges(seed, subscriptions),
            s_b,
            C_VALUES.draw([seed, 2], len(s_b)),
            self._draw_join_values(seed, r_rows, np.flatnonzero(counts)),
            A_VALUES.draw([seed, 3], r_rows),
            self.r_size,
            changed,
            is_insert,
            self.payload,
        )

    def draw_ranges(self, seed: int, count: int) -> FloatArray:
        a = HotRanges(HotSpots(SIGMA_A - self.overlap), self.width_a).draw([seed, 4], count)
        c = HotRanges(HotSpots(SIGMA_C - self.overlap), self.width_c).draw([seed, 5], count)
        return np.concatenate([a, c], axis=1)

    def _partners(self) -> IntArray:
        """S rows of every join value that is meant to have some; where S is small, the last may get none."""
        with_partner = max(1, round(self.join_values * self.partner_share))
        return zipf_counts(self.s_size, with_partner, self.zipf_exponent)

    def _draw_join_values(self, seed: int, count: int, with_partner: IntArray) -> IntArray:
        """Join values of `count` rows: uniform among those with partners, and among those without."""
        finds = generator([seed, 6], 0).random(count) < self.partner_share
        first_without = int(with_partner[-1]) + 1
        without = first_without + below(generator([seed, 6], 1), max(1, self.join_values - first_without), count)
        return np.where(finds, with_partner[below(generator([seed, 6], 2), len(with_partner), count)], without)
