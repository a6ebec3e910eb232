"""Parameter spaces as regions and zones need them.

Axes with the same meaning have the same name in all spaces. So a region given along some axes can be read in every space that
has these: it is open along all other axes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from tidings.model.codes import CODE_MAX, CODE_MIN, BoolArray, Int64Array
from tidings.model.region import Regions
from tidings.model.space import ParameterSpace

CHANNEL = "channel"
"""Name of the channel as an axis along which zones may be cut."""


@dataclass(frozen=True)
class ServedSpace(ParameterSpace):
    """A space that may be cut into zones, and that regions along some of its axes can be read in."""

    uncut: frozenset[str] = frozenset()
    """Axes, or CHANNEL, along which zones must not be cut.

    These are axes whose coordinates a server chooses, as a drop must find the zone without the server; and axes that
    separate points of one subscription, if its view needs all of them.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        assert self.uncut <= {CHANNEL, *self.axes}, f"there are no such axes: {self.uncut}"

    @property
    def zone_axes(self) -> tuple[str, ...]:
        """Axes along which zones may be cut."""
        return tuple(axis for axis in (CHANNEL, *self.axes) if axis not in self.uncut)

    @cached_property
    def may_cut(self) -> BoolArray:
        """[1 + axes]: whether zones may be cut along the channel, and along each axis."""
        return np.array([axis not in self.uncut for axis in (CHANNEL, *self.axes)], np.bool_)

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
