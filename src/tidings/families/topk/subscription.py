"""Top-k subscriptions as points: the two ends of the range, on the channel of the equality constants.

The plane of a form has l to the right and r upwards; k, the ranking column and its direction belong to the form. Without a
range all subscriptions are one point that holds everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod

import pyarrow as pa

from tidings.families.base import Form, Objection
from tidings.model.catalog import Catalog, Column, Table
from tidings.model.channel import ChannelKey, channel_component, channel_type
from tidings.model.codes import CODE_MAX, CODE_MIN
from tidings.model.errors import SqlError
from tidings.model.points import Placement
from tidings.sql.constants import Constants
from tidings.sql.shape import Shape

SEVERAL_CHANNELS = "in"
CHANNELS_MAX = 1_000
DIMS = 2


@dataclass(frozen=True)
class Space:
    """A top-k form resolved against the catalog."""

    key: str
    table: Table
    equalities: tuple[Column, ...]
    range: Column | None
    rank: Column
    descending: bool
    k: int
    projection: tuple[str, ...]
    has_several_channels: bool

    @property
    def channel_types(self) -> tuple[pa.DataType, ...]:
        return tuple(channel_type(column.type) for column in self.equalities)

    @property
    def payload(self) -> tuple[str, ...]:
        """Columns a message carries: what is shown, and what views must look at to rank rows."""
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
        table.column(shape.ranges[0].column) if shape.ranges else None,
        table.column(shape.order.column.column),
        shape.order.descending,
        shape.order.limit,
        table.column_names if shape.projection is None else tuple(ref.column for ref in shape.projection),
        form.variant == SEVERAL_CHANNELS,
    )


def objection(shape: Shape, catalog: Catalog) -> Objection | None:
    assert shape.order is not None
    table = catalog.table(shape.tables[0])
    if len(shape.ranges) > 1:
        names = " and ".join(ref.column for ref in shape.ranges)
        return Objection(f"ORDER BY .. LIMIT with ranges of {names}", "order", "use a range of one column")
    if shape.ranges and table.column(shape.ranges[0].column).type.is_lossy:
        problem = f"ORDER BY .. LIMIT with a range of {shape.ranges[0].column!r}, which is TEXT"
        return Objection(problem, "order", "use a range of a column of another type, or = or IN")
    if table.column(shape.order.column.column).type.is_lossy:
        problem = f"ORDER BY {shape.order.column.column}, which is TEXT"
        return Objection(problem, "order", "rank by a column of another type")
    return None


def place(shape: Shape, constants: Constants, catalog: Catalog) -> Placement:
    """The form, channels and point of a query."""
    counts = [len(values) for values in constants.equalities]
    form, space = _form(shape, "" if all(count == 1 for count in counts) else SEVERAL_CHANNELS, catalog)
    components = [
        [channel_component(column.type, value) for value in values]
        for column, values in zip(space.equalities, constants.equalities, strict=True)
    ]
    if prod(counts) > CHANNELS_MAX:
        hint = f"at most {CHANNELS_MAX:,} combinations are possible; split the subscription"
        raise SqlError(f"the IN lists combine to {prod(counts):,} channels", construct="IN", hint=hint)
    channels: tuple[ChannelKey, ...] = tuple(product(*components))
    ends = (CODE_MIN, CODE_MAX)
    if constants.intervals:
        ends = constants.intervals[0].lo_code, constants.intervals[0].hi_code
    return Placement(form.key, channels, ends)


@lru_cache(maxsize=4096)
def _form(shape: Shape, variant: str, catalog: Catalog) -> tuple[Form, Space]:
    form = Form("topk", shape, variant)
    return form, space_of(form, catalog)
