"""The workloads of the paper with joins of up to four tables: a general schema, and a star.

    R --- S --- T
          |
          U

S, in the centre, has a link to each of the others. Subscriptions join some of the tables, with a range on each.

The paper does not say how often each table changes. In the general schema all tables change equally often, which reproduces the
order of costs that the paper reports. In the star facts are inserted and deleted, and dimensions are rarely updated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from research.workloads.draws import TruncatedNormal
from research.workloads.join.binary import A_VALUES, A_WIDTH, C_VALUES, C_WIDTH, SIGMA_A, SIGMA_C
from research.workloads.join.draws import HotRanges, HotSpots, Values, below, generator, widths
from tidings.model.change import Op
from tidings.workloads.draws import FloatArray, IntArray

R, S, T, U = range(4)
SIGNATURES = ((R, S), (R, S, T), (R, S, T, U), (S, T, U))
"""Which tables a subscription joins; those of the paper."""


@dataclass(frozen=True)
class Images:
    """All versions (images) of the rows of a table in order of appearance; an update makes a new image of a row."""

    key: IntArray
    links: IntArray
    """[images, links]: join values."""
    value: FloatArray
    start: int
    """Number of images that are rows at the start."""

    def __len__(self) -> int:
        return len(self.key)


@dataclass(frozen=True)
class TableSteps:
    """Changes to several tables; all arrays [changes]."""

    table: IntArray
    op: IntArray
    image: IntArray
    """Index of the new image or, of a delete, of the deleted one."""

    def __len__(self) -> int:
        return len(self.table)

    @staticmethod
    def draw(
        seed: int, shares: Sequence[float], starts: Sequence[int], updated: Sequence[bool], changes: int
    ) -> TableSteps:
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
        return TableSteps(table, op.astype(np.int64), np.where(is_second, turn, np.array(starts)[table] + turn))

    def images_of(self, table: int, start: int) -> int:
        """Number of images that a table needs if it starts with `start` rows."""
        return start + int(((self.table == table) & (self.op != Op.DELETE)).sum())


@dataclass(frozen=True)
class MultiScene:
    """`tables` are R, S, T and U; R, T and U have one link, S has one to each of them, in this order."""

    tables: tuple[Images, Images, Images, Images]
    steps: TableSteps
    signature: IntArray
    """[subscriptions]: index in `SIGNATURES`."""
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


Four = tuple[int, int, int, int]
FourShares = tuple[float, float, float, float]

VALUES: tuple[Values, Values, Values, Values] = (A_VALUES, C_VALUES, A_VALUES, A_VALUES)
"""Values of S are drawn as in the binary workload, those of all other tables as of R there."""


@dataclass(frozen=True)
class Mix:
    """Distribution of subscriptions: shares of the signatures, and ranges on every table."""

    shares: FourShares = (50, 50, 50, 20)
    width: TruncatedNormal = A_WIDTH
    width_s: TruncatedNormal = C_WIDTH

    def draw_signatures(self, seed: int, count: int) -> IntArray:
        bounds = np.cumsum(self.shares) / np.sum(self.shares)
        return np.searchsorted(bounds[:-1], generator([seed, 2], 0).random(count), "right")

    def draw_ranges(self, seed: int, signature: IntArray) -> FloatArray:
        """[subscriptions, 8]"""
        ranges = np.full((len(signature), 8), np.nan)
        for table in range(4):
            of = (SIGMA_C, self.width_s) if table == S else (SIGMA_A, self.width)
            drawn = HotRanges(HotSpots(of[0]), of[1]).draw([seed, 3, table], len(signature))
            joined = np.array([table in tables for tables in SIGNATURES])[signature]
            ranges[joined, 2 * table : 2 * table + 2] = drawn[joined]
        return ranges


@dataclass(frozen=True)
class GeneralCase:
    """What can be varied in an experiment. Tables are R, S, T, U."""

    join_values: int = 100
    per_value: Four = (10, 70, 70, 30)
    """Rows per value of a link."""
    shares: FourShares = (1, 1, 1, 1)
    """Of the changes."""
    payloads: Four = (100, 100, 100, 100)
    mix: Mix = Mix()

    @property
    def rows_max(self) -> int:
        """Rows of the largest table."""
        return self.join_values * max(self.per_value)

    def sized(self, rows: int) -> GeneralCase:
        """The same case with about `rows` rows in the largest table: fewer join values or, with one left, fewer rows of it."""
        most = max(self.per_value)
        if rows >= most:
            return replace(self, join_values=rows // most)
        r, s, t, u = (max(1, count * rows // most) for count in self.per_value)
        return replace(self, join_values=1, per_value=(r, s, t, u))

    def scene(self, *, seed: int, subscriptions: int, changes: int) -> MultiScene:
        """`changes` are those after the rows that are there at the start."""
        starts = [self.join_values * count for count in self.per_value]
        steps = TableSteps.draw(seed, self.shares, starts, (False,) * 4, changes)

        def images(table: int) -> Images:
            count = steps.images_of(table, starts[table])
            links = [
                below(generator([seed, 4, table], link), self.join_values, count)
                for link in range(3 if table == S else 1)
            ]
            value = VALUES[table].draw([seed, 5, table], count)
            return Images(np.arange(count), np.stack(links, axis=1), value, starts[table])

        return _scene((images(0), images(1), images(2), images(3)), steps, self.mix, self.payloads, seed, subscriptions)


@dataclass(frozen=True)
class StarCase:
    """What can be varied in an experiment. S has the facts, the others are dimensions; every fact has one row in each."""

    facts: int = 25_000
    rows: int = 1_000
    """Of each dimension."""
    shares: FourShares = (2, 94, 2, 2)
    """Of the changes; an insertion with the deletion that follows counts once."""
    payloads: Four = (100, 0, 100, 100)
    mix: Mix = Mix(width=widths(8_000.0), width_s=widths(80_000.0))
    """Ranges on facts (S) are wide."""

    @property
    def rows_max(self) -> int:
        return self.facts

    def sized(self, facts: int) -> StarCase:
        """The same case with `facts` facts, and dimensions in proportion."""
        return replace(self, facts=facts, rows=max(1, facts * self.rows // self.facts))

    def scene(self, *, seed: int, subscriptions: int, changes: int) -> MultiScene:
        """`changes` are those after the rows that are there at the start."""
        starts = [self.facts if table == S else self.rows for table in range(4)]
        steps = TableSteps.draw(seed, self.shares, starts, [table != S for table in range(4)], changes)

        def dimension(table: int) -> Images:
            count = steps.images_of(table, self.rows)
            again = below(generator([seed, 4, table], 0), self.rows, count - self.rows)
            key = np.concatenate([np.arange(self.rows), again])
            return Images(key, key[:, None], VALUES[table].draw([seed, 5, table], count), self.rows)

        count = steps.images_of(S, self.facts)
        links = [below(generator([seed, 4, S], link), self.rows, count) for link in range(3)]
        facts = Images(np.arange(count), np.stack(links, axis=1), VALUES[S].draw([seed, 5, S], count), self.facts)
        tables = (dimension(0), facts, dimension(2), dimension(3))
        return _scene(tables, steps, self.mix, self.payloads, seed, subscriptions)


def _scene(
    tables: tuple[Images, Images, Images, Images],
    steps: TableSteps,
    mix: Mix,
    payloads: Four,
    seed: int,
    subscriptions: int,
) -> MultiScene:
    signature = mix.draw_signatures(seed, subscriptions)
    return MultiScene(tables, steps, signature, mix.draw_ranges(seed, signature), payloads)
