"""Offers subscriptions as points.

At the door all subscriptions on a table that show the same have one form, of no axes: the boxes of a subscription, packed, are
the details of its point. Over shared rows that is all that is needed.

For messages, each set of axes makes a form: the ends on each axis are the coordinates of a point. Two intervals meet iff
neither ends before the other begins, so a publication concerns the points with lo <= its hi and hi >= its lo on each of its
axes: a box of the space, open towards -inf along lo and towards +inf along hi, and along axes that the publication does not
have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.families.offers.constraint import packed, unpack
from tidings.families.optional import Objection
from tidings.families.spec import Form, FormSpec
from tidings.model.catalog import Catalog, Table
from tidings.model.codes import Int64Array
from tidings.model.points import Placement, PointBatch
from tidings.model.space import ParameterSpace, range_axes
from tidings.sql.constants import Constants
from tidings.sql.shape import ColumnRef, Order, Shape

SEVERAL = "several"
"""Variant of the forms of subscriptions with several boxes."""
AXES = "axes"
"""Variant of the forms of messages, whose axes are the shape's ranges."""
_ONE_CHANNEL = ((),)
_new = tuple.__new__  # Takes half the time of calling Placement.


@dataclass(frozen=True)
class Space:
    """An offers form resolved against the catalog."""

    key: str
    table: Table
    axes: tuple[int, ...]
    """Numbers of `Table.axes`, ascending; none for a form of the door."""
    is_lossy: bool
    """Whether codes on some axis are lossy."""
    projection: tuple[str, ...]
    order: Order | None


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
        form.shape.order,
    )


def _shown(shape: Shape, table: Table) -> tuple[ColumnRef, ...]:
    return shape.projection or tuple(ColumnRef(table.name, column.name) for column in table.shown)


def spec_of(form: Form, catalog: Catalog) -> FormSpec:
    space = space_of(form, catalog)
    axes = range_axes(space.table.name, (space.table.axes[axis].name for axis in space.axes))
    shown = tuple((ref, ref.column) for ref in _shown(form.shape, space.table))
    return FormSpec(ParameterSpace(axes), form.shape.tables, shown)


def objection(shape: Shape, catalog: Catalog) -> Objection | None:
    """Best offers first need an attribute whose ends can be compared by their codes."""
    if shape.order is None:
        return None
    column = catalog.table(shape.tables[0]).axis(shape.order.column.column)
    if not column.type.is_lossy:
        return None
    problem = f"offers cannot be ordered by {column.name!r}, which is {column.type.value}"
    return Objection(problem, "order", "order by a number, a date or a time")


def place(shape: Shape, constants: Constants, catalog: Catalog) -> Placement:
    """The form and the packed boxes of a subscription."""
    data, boxes = packed(shape, constants, catalog.table(shape.tables[0]))
    key = _form_key(shape.tables[0], shape.projection, shape.order, SEVERAL if boxes > 1 else "")
    return _new(Placement, (key, _ONE_CHANNEL, (), data, ()))


@lru_cache(maxsize=4096)
def _form_key(table: str, projection: tuple[ColumnRef, ...] | None, order: Order | None, variant: str) -> str:
    return Form("offers", Shape((table,), projection=projection, order=order), variant).key


def packed_points(points: PointBatch) -> tuple[npt.NDArray[np.uint8], Int64Array]:
    """(bytes, where the packed boxes of each point begin there)."""
    return packed_column(points.details)


def packed_column(column: pa.Array) -> tuple[npt.NDArray[np.uint8], Int64Array]:
    """(bytes, where each value of a column of packed constraints begins there)."""
    _, offsets, data = column.buffers()
    starts = np.frombuffer(offsets, np.int32, len(column), 4 * column.offset).astype(np.int64)
    return np.frombuffer(bytearray(data), np.uint8), starts


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
