"""Top-k subscriptions as points: coordinates are the two ends of every range, the channel has the equality constants.

The plane of a form with one range has axes l (right) and r (up); several ranges make a space (l_1, r_1, l_2, r_2, ..). k, the
ranking column and its direction belong to the form. Without a range all subscriptions are at the same point of a plane: the
range that contains everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import pyarrow as pa

from tidings.families.optional import Objection
from tidings.families.size import check_size
from tidings.families.spec import Form, FormSpec, shown_of_table
from tidings.model.catalog import Catalog, Column, Table
from tidings.model.channel import ChannelKey, channel_component, channel_type
from tidings.model.codes import CODE_MAX, CODE_MIN
from tidings.model.points import Placement
from tidings.model.space import ParameterSpace, range_axes
from tidings.sql.constants import Constants
from tidings.sql.shape import Shape

SEVERAL_CHANNELS = "in"
"""`Form.variant` of forms with several channels."""
DIMS = 2
"""Number of axes of the plane of one range."""
RANGES_MAX = 8


@dataclass(frozen=True)
class Space:
    """A top-k form resolved against the catalog."""

    key: str
    table: Table
    equalities: tuple[Column, ...]
    ranges: tuple[Column, ...]
    rank: Column
    descending: bool
    k: int
    projection: tuple[str, ...]
    has_several_channels: bool

    @property
    def range(self) -> Column | None:
        """The range column of a form with one range; None if there is none."""
        return self.ranges[0] if self.ranges else None

    @property
    def channel_types(self) -> tuple[pa.DataType, ...]:
        return tuple(channel_type(column.type) for column in self.equalities)

    @property
    def payload(self) -> tuple[str, ...]:
        """Columns of a message: those shown, and those that views need to rank rows."""
        looked_at = [self.rank.name, *self.table.key]
        if self.has_several_channels:
            looked_at.extend(column.name for column in self.equalities)
        return tuple(dict.fromkeys((*self.projection, *looked_at)))


@lru_cache(maxsize=4096)
def space_of(form: Form, catalog: Catalog) -> Space:
    shape = form.shape
    assert shape.order is not None
    table = catalog.table(shape.tables[0])
    return Space(
        form.key,
        table,
        tuple(table.column(ref.column) for ref in shape.equalities),
        tuple(table.column(ref.column) for ref in shape.ranges),
        table.column(shape.order.column.column),
        shape.order.descending,
        shape.order.limit,
        table.column_names if shape.projection is None else tuple(ref.column for ref in shape.projection),
        has_several_channels(form),
    )


def spec_of(form: Form, catalog: Catalog) -> FormSpec:
    space = space_of(form, catalog)
    table = space.table.name
    # A form without a range has the plane too.
    axes = range_axes(table, (column.name for column in space.ranges)) or (f"lo {table}", f"hi {table}")
    channel = tuple((f"{table}.{column.name}", channel_type(column.type)) for column in space.equalities)
    return FormSpec(ParameterSpace(axes, channel), form.shape.tables, shown_of_table(form.shape, catalog))


def has_several_channels(form: Form) -> bool:
    return form.variant == SEVERAL_CHANNELS


def objection(shape: Shape, catalog: Catalog) -> Objection | None:
    assert shape.order is not None
    table = catalog.table(shape.tables[0])
    for ref in shape.ranges:
        if table.column(ref.column).type.is_lossy:
            problem = f"ORDER BY .. LIMIT with a range of {ref.column!r}, which is TEXT"
            return Objection(problem, "order", "use a range of a column of another type, or = or IN")
    if len(shape.ranges) > RANGES_MAX:
        problem = f"ORDER BY .. LIMIT with ranges of {len(shape.ranges)} columns"
        return Objection(problem, "order", f"use ranges of at most {RANGES_MAX} columns; = and IN are not counted")
    if table.column(shape.order.column.column).type.is_lossy:
        problem = f"ORDER BY {shape.order.column.column}, which is TEXT"
        return Objection(problem, "order", "rank by a column of another type")
    return None


def place(shape: Shape, constants: Constants, catalog: Catalog) -> Placement:
    """The form, channels and point of a query."""
    equalities, intervals, *_ = constants
    form, space = _form(shape, "" if constants.is_single else SEVERAL_CHANNELS, catalog)
    if not constants.is_single:
        check_size(constants)
    components = [
        [channel_component(column.type, value) for value in values]
        for column, values in zip(space.equalities, equalities, strict=True)
    ]
    channels: tuple[ChannelKey, ...] = tuple(product(*components))
    coords = tuple([end for interval in intervals for end in interval[:2]])
    return Placement(form.key, channels, coords or (CODE_MIN, CODE_MAX))


@lru_cache(maxsize=4096)
def _form(shape: Shape, variant: str, catalog: Catalog) -> tuple[Form, Space]:
    form = Form("topk", shape, variant)
    return form, space_of(form, catalog)
