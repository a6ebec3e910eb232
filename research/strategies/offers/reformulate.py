"""A publication becomes regions: the points with lo <= its hi and hi >= its lo on each axis, for each of its boxes.

       hi |    :::::::::        points (lo, hi) that meet [a, b]
        a +----:::::::::---
          |        b      lo

A form sees those boxes of a publication whose axes it has all (classic matching: those that have all its axes). Forms that see
the same boxes hear one message, along the axes of these boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from research.strategies.offers.axes_form import Space
from tidings.families.offers.constraint import Box
from tidings.model.codes import CODE_MAX, CODE_MIN
from tidings.model.region import Regions
from tidings.model.space import range_axes

OLD, NEW = 1, 2
"""Tags of the boxes of the row before and of the row after."""
PAYLOAD = pa.schema(
    [
        ("id", pa.string()),
        ("old where", pa.string()),
        ("old constraint", pa.binary()),
        ("where", pa.string()),
        ("constraint", pa.binary()),
    ]
)


class Target(NamedTuple):
    """Forms that hear a message, and the axes along which it is given: by number and by name."""

    forms: tuple[str, ...]
    axes: tuple[int, ...]
    names: tuple[str, ...]


def target_of(
    forms: Sequence[Space], before: Sequence[Box], after: Sequence[Box]
) -> dict[Target, tuple[list[Box], list[Box]]]:
    """Who hears of a change of a publication, with the boxes before and after that each sees."""
    alike: dict[tuple[tuple[int, ...], tuple[int, ...]], list[Space]] = {}
    both = (*before, *after)
    for space in forms:
        is_classic = space.table.constraints.is_classic
        own = set(space.axes)
        seen = tuple(
            i for i, box in enumerate(both) if (own.issubset(box.axes) if is_classic else own.issuperset(box.axes))
        )
        if seen:
            axes = space.axes if is_classic else tuple(sorted({axis for i in seen for axis in both[i].axes}))
            alike.setdefault((seen, axes), []).append(space)
    found = {}
    for (seen, axes), spaces in alike.items():
        table = spaces[0].table
        names = range_axes(table.name, (table.axes[axis].name for axis in axes))
        target = Target(tuple(space.key for space in spaces), axes, names)
        found[target] = ([both[i] for i in seen if i < len(before)], [both[i] for i in seen if i >= len(before)])
    return found


def regions_of(target: Target, changes: Sequence[tuple[list[Box], list[Box]]]) -> Regions:
    """A region for each change, given by its boxes before and after."""
    counts = [len(before) + len(after) for before, after in changes]
    starts = np.cumsum([0, *counts])
    lo = np.full((int(starts[-1]), 2 * len(target.axes)), CODE_MIN, np.int64)
    hi = np.full_like(lo, CODE_MAX)
    tags = np.empty(len(lo), np.uint8)
    at = 0
    for before, after in changes:
        for tag, boxes in ((OLD, before), (NEW, after)):
            for box in boxes:
                for place, axis in enumerate(target.axes):
                    if axis in box.axes:
                        own = box.axes.index(axis)
                        hi[at, 2 * place], lo[at, 2 * place + 1] = box.hi[own], box.lo[own]
                tags[at] = tag
                at += 1
    return Regions(lo, hi, tags, starts.astype(np.int64))
