"""Parameter spaces: the named axes of the points of a form.

Axes with the same meaning have the same name in all spaces. So a region given along some axes can be read in every space that
has these: it is open along all other axes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa

from tidings.model.codes import CODE_MAX, CODE_MIN, Int64Array
from tidings.model.region import Regions


@dataclass(frozen=True)
class ParameterSpace:
    """axes: names of the coordinates of a point, in order. channel: its equality columns."""

    axes: tuple[str, ...]
    channel: tuple[tuple[str, pa.DataType], ...] = ()
    """(name, Arrow type) of every component."""

    def __post_init__(self) -> None:
        assert len(set(self.axes)) == len(self.axes), f"two axes have one name: {self.axes}"

    @property
    def dims(self) -> int:
        return len(self.axes)

    @cached_property
    def channel_types(self) -> tuple[pa.DataType, ...]:
        return tuple(type for _, type in self.channel)

    def read(self, regions: Regions, axes: tuple[str, ...]) -> Regions:
        """Regions along some of the axes as regions of this space, open along all others."""
        at = places(self.axes, axes)
        lo, hi = (np.full((len(regions.lo), self.dims), end) for end in (CODE_MIN, CODE_MAX))
        lo[:, at], hi[:, at] = regions.lo, regions.hi
        return Regions(lo, hi, regions.tags, regions.starts)


@lru_cache(maxsize=4096)
def places(among: tuple[str, ...], axes: tuple[str, ...]) -> Int64Array:
    """Index of each of `axes` in `among`, which must include them."""
    missing = [axis for axis in axes if axis not in among]
    if missing:
        raise ValueError(f"a space without {', '.join(missing)} cannot hear messages about them; it has {among}")
    return np.array([among.index(axis) for axis in axes], np.int64)


def range_axes(table: str, columns: Iterable[str]) -> tuple[str, ...]:
    """Axes of the ends of ranges: the lower and the upper one of each column."""
    return tuple(f"{end} {table}.{column}" for column in columns for end in ("lo", "hi"))
