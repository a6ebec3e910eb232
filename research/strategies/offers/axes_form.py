"""Forms of messages of offers: each set of axes that subscriptions compare makes one, the ends on each axis are coordinates.

Two intervals meet iff neither ends before the other begins, so a publication concerns the points with lo <= its hi and
hi >= its lo on each of its axes: a box of the space, open towards -inf along lo and towards +inf along hi, and along axes that
the publication does not have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from tidings.families.offers.constraint import unpack
from tidings.families.offers.subscription import SEVERAL
from tidings.families.spec import Form, FormSpec
from tidings.model.catalog import Catalog, Table
from tidings.model.points import PointBatch
from tidings.model.space import ParameterSpace, range_axes
from tidings.sql.shape import ColumnRef, Shape

AXES = "axes"
"""Variant of the forms of messages, whose axes are the shape's ranges."""


@dataclass(frozen=True)
class Space:
    """An offers form resolved against the catalog."""

    key: str
    table: Table
    axes: tuple[int, ...]
    """Numbers of `Table.axes`, ascending."""
    is_lossy: bool
    """Whether codes on some axis are lossy."""
    projection: tuple[str, ...]


@lru_cache(maxsize=4096)
def space_of(form: Form, catalog: Catalog) -> Space:
    table = catalog.table(form.shape.tables[0])
    axes = tuple(table.axis_numbers[ref.column] for ref in form.shape.ranges)
    return Space(
        form.key,
        table,
        axes,
        any(table.axes[axis].type.is_lossy for axis in axes),
        tuple(ref.column for ref in _shown(form.shape, table)),
    )


def _shown(shape: Shape, table: Table) -> tuple[ColumnRef, ...]:
    return shape.projection or tuple(ColumnRef(table.name, column.name) for column in table.shown)


def spec_of(form: Form, catalog: Catalog) -> FormSpec:
    space = space_of(form, catalog)
    axes = range_axes(space.table.name, (space.table.axes[axis].name for axis in space.axes))
    shown = tuple((ref, ref.column) for ref in _shown(form.shape, space.table))
    return FormSpec(ParameterSpace(axes), form.shape.tables, shown)


def gathered(points: PointBatch, catalog: Catalog) -> list[PointBatch]:
    """Points of the door as points of the forms of messages, each of which has one box."""
    form = Form.from_key(points.form)
    if form.variant == AXES:
        return [points]
    assert form.variant != SEVERAL, "subscriptions with several boxes are served over shared rows alone"
    table = catalog.table(form.shape.tables[0])
    boxes = [unpack(details)[0] for details in points.details.to_pylist()]
    by_axes: dict[tuple[int, ...], list[int]] = {}
    for i, box in enumerate(boxes):
        by_axes.setdefault(box.axes, []).append(i)
    batches = []
    for axes, own in by_axes.items():
        ranges = tuple(ColumnRef(table.name, table.axes[axis].name) for axis in axes)
        key = Form("offers", replace(form.shape, ranges=ranges), AXES).key
        coords = np.array([[end for ends in zip(boxes[i].lo, boxes[i].hi, strict=True) for end in ends] for i in own])
        taken = points.take(np.array(own, np.int64))
        batches.append(replace(taken, form=key, coords=coords.astype(np.int64)))
    return batches
