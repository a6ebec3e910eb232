"""Regions of a form's parameter space: unions of closed boxes of int64 codes, columnar, one region per message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidings.model.codes import Int64Array

TagArray = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Regions:
    """n regions; region i is the union of boxes `starts[i]:starts[i+1]`, which may overlap.

    lo, hi: (boxes, dims) closed ends; a box with lo > hi in some dimension is empty. `tags[j]` is a family's own note on
    box j: a point inside several boxes of a region gets the union (bitwise or) of their tags.
    """

    lo: Int64Array
    hi: Int64Array
    tags: TagArray
    starts: Int64Array

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def dims(self) -> int:
        return int(self.lo.shape[1])

    def take(self, at: Int64Array) -> Regions:
        counts = np.diff(self.starts)[at]
        starts = np.zeros(len(at) + 1, np.int64)
        np.cumsum(counts, out=starts[1:])
        boxes = np.repeat(self.starts[at] - starts[:-1], counts) + np.arange(starts[-1])
        return Regions(self.lo[boxes], self.hi[boxes], self.tags[boxes], starts)

    @staticmethod
    def grouped(owner: Int64Array, lo: Int64Array, hi: Int64Array, tags: TagArray) -> tuple[Int64Array, Regions]:
        """(owners, the region of each), where box i is of region owner[i]; owners are ascending and not negative."""
        starts = np.flatnonzero(np.diff(owner, prepend=-1))
        return owner[starts], Regions(lo, hi, tags, np.append(starts, len(owner)))

    @staticmethod
    def concat(parts: Sequence[Regions]) -> Regions:
        if len(parts) == 1:
            return parts[0]
        ends = np.cumsum([0] + [int(part.starts[-1]) for part in parts])
        starts = [part.starts[:-1] + end for part, end in zip(parts, ends, strict=False)]
        return Regions(
            np.concatenate([part.lo for part in parts]),
            np.concatenate([part.hi for part in parts]),
            np.concatenate([part.tags for part in parts]),
            np.concatenate([*starts, ends[-1:]]).astype(np.int64),
        )

    def contains(self, region: int, point: Sequence[int]) -> int:
        """Union of the tags of all boxes of one region that contain the point, or 0. Slow: for tests and explanations."""
        tags = 0
        for box in range(int(self.starts[region]), int(self.starts[region + 1])):
            if all(int(a) <= x <= int(b) for a, x, b in zip(self.lo[box], point, self.hi[box], strict=True)):
                tags |= int(self.tags[box])
        return tags
