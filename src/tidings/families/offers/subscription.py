"""Offers subscriptions as points: all on a table that show the same have one form, of no axes.

The boxes of a subscription, packed, are the details of its point.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.families.offers.constraint import packed
from tidings.families.optional import Objection
from tidings.families.spec import Form, FormSpec
from tidings.model.catalog import Catalog, Table
from tidings.model.codes import Int64Array
from tidings.model.points import Placement, PointBatch
from tidings.model.space import ParameterSpace
from tidings.sql.constants import Constants
from tidings.sql.shape import ColumnRef, Order, Shape

SEVERAL = "several"
"""Variant of the forms of subscriptions with several boxes."""
_ONE_CHANNEL = ((),)
_new = tuple.__new__  # Takes half the time of calling Placement.


@dataclass(frozen=True)
class Space:
    """An offers form resolved against the catalog."""

    table: Table
    order: Order | None


@lru_cache(maxsize=4096)
def space_of(form: Form, catalog: Catalog) -> Space:
    return Space(catalog.table(form.shape.tables[0]), form.shape.order)


def spec_of(form: Form, catalog: Catalog) -> FormSpec:
    table = catalog.table(form.shape.tables[0])
    shown = form.shape.projection or tuple(ColumnRef(table.name, column.name) for column in table.shown)
    return FormSpec(ParameterSpace(()), form.shape.tables, tuple((ref, ref.column) for ref in shown))


def objection(shape: Shape, catalog: Catalog) -> Objection | None:
    """Best offers first need an attribute whose ends can be compared by their codes, and offers that stay."""
    if shape.order is None:
        return None
    table = catalog.table(shape.tables[0])
    if not table.constraints.is_kept:
        problem = f"publications of {table.name!r} are not kept, so that none is the first"
        return Objection(problem, "order", "leave out ORDER BY and LIMIT")
    column = table.axis(shape.order.column.column)
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
