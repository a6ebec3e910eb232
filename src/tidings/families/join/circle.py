"""One semijoin: rows of a base table, filtered by some neighbours, for subscriptions of all forms that want just that.

A circle has a form of its own, of its tables alone: the space in which its messages are addressed, whatever else the forms
in it are joined to.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tidings.families.base import Form
from tidings.families.join.rows import SIDE, carried
from tidings.families.join.subscription import Space, space_of
from tidings.model.catalog import Catalog
from tidings.model.codes import CODE_MAX, CODE_MIN, Int64Array
from tidings.model.message import MessageBatch
from tidings.model.region import Regions
from tidings.sql.shape import ColumnRef, JoinEdge, Shape


def circle_form(space: Space, base: int, filters: tuple[int, ...]) -> Form:
    """The form of a circle, the same for all spaces that have the like sides."""
    sides = sorted((space.sides[number] for number in (base, *filters)), key=lambda side: side.table.name)
    edges = []
    for (one, two), columns in space.junctions.items():
        if base in (one, two) and {one, two} <= {base, *filters}:
            ends = sorted(zip((space.sides[n].table.name for n in (one, two)), columns, strict=True))
            edges.append(JoinEdge(ends[0][0], ends[0][1], ends[1][0], ends[1][1], using=False))
    pinned: list[ColumnRef] = []
    ranged: list[ColumnRef] = []
    for side in sides:
        for number, column in enumerate(side.columns):
            (pinned if number in side.pinned else ranged).append(ColumnRef(side.table.name, column.name))
    of = space.sides[base]
    shape = Shape(
        tables=tuple(side.table.name for side in sides),
        joins=tuple(sorted(edges)),
        equalities=tuple(pinned),
        ranges=tuple(ranged),
        projection=tuple(ColumnRef(of.table.name, name) for name in of.payload),
    )
    return Form("join", shape, of.table.name)


def base_of(form: Form) -> int:
    """The side whose rows a circle's messages are about."""
    return form.shape.tables.index(form.variant)


@lru_cache(maxsize=4096)
def columns_of(circle: Space, space: Space) -> Int64Array:
    """Where the coordinates of a circle are among those of a space that has its sides."""
    found = [
        np.arange(own.coords.start, own.coords.stop)
        for own in (space.sides[space.side_of(side.table.name)] for side in circle.sides)
    ]
    return np.concatenate([np.empty(0, np.int64), *found])


def sides_of(space: Space, messages: MessageBatch) -> Int64Array:
    """The side of a space that each message tells a row of."""
    if messages.to:
        return np.full(len(messages), space.side_of(Form.from_key(messages.form).variant))
    sides: Int64Array = messages.payload.column(SIDE).to_numpy()
    return sides


def heard(form: Form, messages: MessageBatch, catalog: Catalog) -> MessageBatch:
    """Messages of a circle, as one of the forms in it would have them."""
    own, other = Form.from_key(messages.form), space_of(form, catalog)
    circle = space_of(own, catalog)
    boxes, columns = len(messages.regions.lo), columns_of(circle, other)
    lo, hi = np.full((boxes, other.dims), CODE_MIN), np.full((boxes, other.dims), CODE_MAX)
    lo[:, columns], hi[:, columns] = messages.regions.lo, messages.regions.hi
    regions = Regions(lo, hi, messages.regions.tags, messages.regions.starts)
    payload = carried(other, other.side_of(own.variant), messages.payload)
    return MessageBatch(form.key, messages.seq, (), regions, payload, messages.target)
