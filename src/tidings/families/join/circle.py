"""One semijoin: rows of a base table, filtered by some neighbours, for subscriptions of all forms that want just that.

A circle has a form of its own, of its tables alone: the space in which its messages are addressed, whatever else the forms
in it are joined to.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidings.families.join.rows import SIDE, carried
from tidings.families.join.subscription import Space, space_of
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.codes import Int64Array
from tidings.model.message import MessageBatch
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


def sides_of(space: Space, messages: MessageBatch) -> Int64Array:
    """The side of a space that each message tells a row of."""
    if messages.to:
        return np.full(len(messages), space.side_of(Form.from_key(messages.form).variant))
    sides: Int64Array = messages.payload.column(SIDE).to_numpy()
    return sides


def payload_of(form: Form, messages: MessageBatch, catalog: Catalog) -> pa.RecordBatch:
    """What messages of a circle carry, as one of the forms in it would have it."""
    space = space_of(form, catalog)
    return carried(space, space.side_of(Form.from_key(messages.form).variant), messages.payload)
