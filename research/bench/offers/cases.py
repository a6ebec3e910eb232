"""Data of the offers bench: the paper's workloads as intervals on axes, which the index, peers and tests are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from research.workloads.offers import paper
from research.workloads.offers.paper import PaperCase
from tidings.families.offers.constraint import (
    AXIS,
    AXIS_WORDS,
    BOX_AXES,
    BOX_EQUAL,
    BOX_WORDS,
    BOXES,
    HEADER_WORDS,
    HI,
    LO,
    WORDS,
    Box,
)
from tidings.families.offers.kernels.box_index.box_layout import TEXT_FIELDS, Queries
from tidings.kernels.arrays import I64, U8
from tidings.model.codes import CODE_MAX, CODE_MIN, codes_of_doubles

BLOCK = 100_000
"""Constraints that are packed at a time."""
_NO_TEXT = np.zeros(1, np.uint8)


@dataclass(frozen=True)
class Case:
    key: str
    label: str
    make: Callable[[int, int], PaperCase[Any]]
    """(subscriptions, publications at a time) -> the workload."""
    peer_size_max: int
    """With more subscriptions PostgreSQL is left out, as it would take minutes."""


CASES = {
    case.key: case
    for case in (
        Case("fixed", "fixed", paper.fixed, 1_000_000),
        Case("proportional", "proportional", paper.proportional, 1_000_000),
        Case("conjunctions", "conjunctions", paper.conjunctions, 100_000),
        Case("geometric", "geometric", paper.geometric, 1_000_000),
    )
}


@dataclass(frozen=True)
class Intervals:
    """Constraints of one disjunct each, which all compare the first axes of the table, none of them TEXT.

    [constraints, axes]: closed intervals of codes.
    """

    lo: I64
    hi: I64

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(range(self.lo.shape[1]))

    @property
    def equal(self) -> int:
        """Mask of the axes on which all of them have a single value."""
        single = (self.lo == self.hi).all(axis=0)
        return sum(1 << axis for axis in np.flatnonzero(single).tolist())

    def __len__(self) -> int:
        return len(self.lo)

    def part(self, start: int, stop: int) -> Intervals:
        return Intervals(self.lo[start:stop], self.hi[start:stop])

    def packed(self) -> tuple[U8, I64]:
        """Bytes as `tidings.families.offers.constraint.pack` makes them, and where each constraint begins there."""
        count, axes = self.lo.shape
        words = np.full((count, HEADER_WORDS + BOX_WORDS + AXIS_WORDS * axes), -1, np.int64)
        words[:, WORDS], words[:, BOXES] = words.shape[1], 1
        words[:, HEADER_WORDS + BOX_AXES] = axes
        words[:, HEADER_WORDS + BOX_EQUAL] = (self.lo == self.hi) @ (np.int64(1) << np.arange(axes))
        fields = words[:, HEADER_WORDS + BOX_WORDS :].reshape(count, axes, AXIS_WORDS)
        fields[:, :, AXIS], fields[:, :, LO], fields[:, :, HI] = np.arange(axes), self.lo, self.hi
        return words.reshape(-1).view(np.uint8), np.arange(count) * words.shape[1] * 8

    def queries(self) -> Queries:
        """To be searched with; all must have a single value on the same axes."""
        count, axes = self.lo.shape
        q = np.stack([self.hi, ~self.lo], axis=2).reshape(count, 2 * axes)
        return Queries(q, self.lo, np.full((count, TEXT_FIELDS * axes), -1, np.int64), _NO_TEXT)

    def boxes(self) -> Iterator[tuple[Box]]:
        """The boxes of each constraint."""
        axes, texts = self.axes, (None,) * self.lo.shape[1]
        for start in range(0, len(self), BLOCK):
            part = self.part(start, start + BLOCK)
            for lo, hi in zip(part.lo.tolist(), part.hi.tolist(), strict=True):
                yield (Box(axes, tuple(lo), tuple(hi), texts),)


@dataclass(frozen=True)
class OffersData:
    """A workload for some number of subscriptions, and publications that are matched so many at a time."""

    case: Case
    size: int
    per_match: int
    seed: int

    @cached_property
    def paper(self) -> PaperCase[Any]:
        return self.case.make(self.size, self.per_match)

    def drawn_for(self, per_match: int) -> OffersData:
        return self if per_match == self.per_match else OffersData(self.case, self.size, per_match, self.seed)

    @cached_property
    def subscriptions(self) -> Intervals:
        return self._intervals(self.paper.subscriptions(self.seed), is_publication=False)

    def publications(self, count: int) -> Intervals:
        """The first ones."""
        return self._intervals(self.paper.publications(self.seed, count), is_publication=True)

    def stranger(self) -> Intervals:
        """A publication that meets no subscription."""
        numbers = self.paper.publications(self.seed, 1)
        return self._intervals(numbers * 0 - 1 if numbers.dtype.kind == "i" else numbers + 10, is_publication=True)

    def queries(self) -> Iterator[str]:
        """SQL of subscriptions."""
        return self.paper.queries(self.paper.subscriptions(self.seed))

    def constraints(self, count: int) -> Iterator[str]:
        """Texts of the first publications."""
        return self.paper.constraints(self.paper.publications(self.seed, count))

    def _intervals(self, numbers: Any, *, is_publication: bool) -> Intervals:
        if isinstance(self.paper, paper.Equalities):
            return Intervals(numbers, numbers)
        x1, y1, x2, y2 = codes_of_doubles(numbers).T
        if is_publication:
            # Single values of x1 and x2, and the extent between them; likewise of y.
            ends = (x1, x2, x1, y1, y2, y1), (x1, x2, x2, y1, y2, y2)
        else:
            least, most = np.full_like(x1, CODE_MIN), np.full_like(x1, CODE_MAX)
            ends = (least, x1, least, least, y1, least), (x2, most, most, y2, most, most)
        return Intervals(*(np.ascontiguousarray(np.stack(side, axis=1)) for side in ends))
