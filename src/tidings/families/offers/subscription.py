"""Offers subscriptions as points: each box of the constraint is a point, with the two ends on each axis as coordinates.

A form is a set of axes: subscriptions that constrain the same attributes lie in one space. Two intervals meet iff neither ends
before the other begins, so a publication concerns the points with lo <= its hi and hi >= its lo on each of its axes: a box of
the space, open towards -inf along lo and towards +inf along hi, and along axes that the publication does not have.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from tidings.families.offers.constraint import Box, TextEnds, boxes_of
from tidings.families.optional import Objection
from tidings.families.spec import ByRow, Form, FormSpec
from tidings.model.catalog import Catalog, Table
from tidings.model.points import Placement
from tidings.model.space import ParameterSpace, range_axes
from tidings.model.types import ColumnType
from tidings.sql.constants import Constants
from tidings.sql.shape import ColumnRef, Order, Shape

SEVERAL = "several"
"""Variant of the forms of subscriptions with several boxes."""
_ONE_CHANNEL = ((),)
_new = tuple.__new__  # Takes half the time of calling Placement.


@dataclass(frozen=True)
class Space:
    """An offers form resolved against the catalog."""

    key: str
    table: Table
    axes: tuple[int, ...]
    """Numbers of `Table.axes`, ascending."""
    texts: tuple[int, ...]
    """Places of TEXT axes among `axes`."""
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
        tuple(place for place, axis in enumerate(axes) if table.axes[axis].type is ColumnType.TEXT),
        tuple(ref.column for ref in _shown(form.shape, table)),
        form.shape.order,
    )


def _shown(shape: Shape, table: Table) -> tuple[ColumnRef, ...]:
    return shape.projection or tuple(ColumnRef(table.name, column.name) for column in table.shown)


def spec_of(form: Form, catalog: Catalog) -> FormSpec:
    space = space_of(form, catalog)
    axes = range_axes(space.table.name, (space.table.axes[axis].name for axis in space.axes))
    shown = tuple((ref, ref.column) for ref in _shown(form.shape, space.table))
    return FormSpec(ParameterSpace(axes), form.shape.tables, ByRow(), shown)


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
    """The form and point of each box."""
    table = catalog.table(shape.tables[0])
    boxes = boxes_of(shape, constants, table)
    variant = SEVERAL if len(boxes) > 1 else ""
    places = [_point(box, _form(shape, box.axes, variant, table, catalog)) for box in boxes]
    return places[0] if len(places) == 1 else places[0]._replace(others=tuple(places[1:]))


def _point(box: Box, space: Space) -> Placement:
    coords = tuple([end for ends in zip(box.lo, box.hi, strict=True) for end in ends])
    details = encode_texts([box.texts[place] for place in space.texts]) if space.texts else b""
    return _new(Placement, (space.key, _ONE_CHANNEL, coords, details, ()))


@lru_cache(maxsize=16384)
def _form(shape: Shape, axes: tuple[int, ...], variant: str, table: Table, catalog: Catalog) -> Space:
    ranges = tuple(ColumnRef(table.name, table.axes[axis].name) for axis in axes)
    plain = replace(shape, equalities=(), ranges=ranges, nulls=(), disjuncts=())
    return space_of(Form("offers", plain, variant), catalog)


def encode_texts(texts: Sequence[TextEnds | None]) -> bytes:
    """Exact ends of text intervals as bytes: for each end its length, -1 for none, and the text itself."""
    parts = []
    for ends in texts:
        for end in ends or (None, None):
            parts.append(struct.pack("<i", -1) if end is None else struct.pack("<i", len(end)) + end)
    return b"".join(parts)


def decode_texts(data: bytes) -> list[TextEnds]:
    """What `encode_texts` was given; (None, None) for None."""
    ends: list[bytes | None] = []
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<i", data, at)
        at += 4
        ends.append(None if length < 0 else data[at : at + length])
        at += max(length, 0)
    return list(zip(ends[::2], ends[1::2], strict=True))
