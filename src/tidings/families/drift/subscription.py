"""Drift subscriptions as points (radius, label) on the channel of the pinned key columns. The server chooses the label.

Subscriptions with equal radius and equal last notified value get the same notifications from then on. Labels distinguish
subscriptions of one radius whose last values differ: if they pin the whole primary key, the server assigns labels in the
(circular) order of the last values; if they follow many rows, the label is the seq of creation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import pyarrow as pa

from tidings.families.drift.movement import roundest_between
from tidings.families.optional import Objection
from tidings.families.size import check_size
from tidings.families.spec import Form, FormSpec, shown_of_table
from tidings.model.catalog import Catalog, Column, Table
from tidings.model.channel import ChannelKey, channel_component, channel_type
from tidings.model.codes import code_of
from tidings.model.points import Placement
from tidings.model.space import ParameterSpace
from tidings.model.types import ColumnType
from tidings.sql.constants import Constants
from tidings.sql.shape import MovementKind, Shape

SEVERAL_CHANNELS = "in"
DIMS = 2


@dataclass(frozen=True)
class Space:
    """A drift form resolved against the catalog. pinned: key columns with = or IN. patience: ticks of `clock`, or None."""

    key: str
    table: Table
    pinned: tuple[Column, ...]
    column: Column
    kind: MovementKind
    clock: Column | None
    patience: int | None
    projection: tuple[str, ...]
    has_several_channels: bool

    @property
    def follows_one_row(self) -> bool:
        """Whether all key columns are pinned, so that a point follows the one row whose key is its channel."""
        return len(self.pinned) == len(self.table.key)

    @property
    def key_columns(self) -> tuple[Column, ...]:
        """The columns of the primary key, the pinned ones first."""
        named = [column.name for column in self.pinned]
        others = (self.table.column(name) for name in self.table.key if name not in named)
        return (*self.pinned, *others)

    @property
    def channel_types(self) -> tuple[pa.DataType, ...]:
        return tuple(channel_type(column.type) for column in self.pinned)


@lru_cache(maxsize=4096)
def space_of(form: Form, catalog: Catalog) -> Space:
    shape = form.shape
    movement = shape.movement
    assert movement is not None
    table = catalog.table(shape.tables[0])
    silence = movement.silence
    return Space(
        form.key,
        table,
        tuple(table.column(ref.column) for ref in shape.equalities),
        table.column(movement.column.column),
        movement.kind,
        None if silence is None else table.column(silence.column.column),
        None if silence is None else silence.ticks,
        table.column_names if shape.projection is None else tuple(ref.column for ref in shape.projection),
        form.variant == SEVERAL_CHANNELS,
    )


def spec_of(form: Form, catalog: Catalog) -> FormSpec:
    space = space_of(form, catalog)
    # Labels of different forms are not comparable, so the axis has the form's name.
    radius, label = f"{space.kind} {space.table.name}.{space.column.name}", f"label {form.key}"
    channel = tuple((f"{space.table.name}.{column.name}", channel_type(column.type)) for column in space.pinned)
    return FormSpec(ParameterSpace((radius, label), channel), form.shape.tables, shown_of_table(form.shape, catalog))


def objection(shape: Shape, catalog: Catalog) -> Objection | None:
    """Objects to predicates on columns outside the key, and to ranges: rows may enter and leave by insert and delete only."""
    key = catalog.table(shape.tables[0]).key
    others = [ref.column for ref in (*shape.equalities, *shape.ranges) if ref.column not in key]
    if others:
        problem = f"a movement cannot be combined with a predicate on {others[0]!r}, which may change"
    elif shape.ranges:
        problem = f"a movement cannot be combined with a range of {shape.ranges[0].column!r}"
    else:
        return None
    names = " and ".join(key)
    hint = f"pin the primary key ({names}) with = or IN, or name no other column and follow every row"
    return Objection(problem, "movement", hint)


def place(shape: Shape, constants: Constants, catalog: Catalog) -> Placement:
    """The form, channels and point of a query. The label is 0 until the server chooses one."""
    equalities, _, movement, _ = constants
    form, space = _form(shape, "" if constants.is_single else SEVERAL_CHANNELS, catalog)
    if not constants.is_single:
        check_size(constants)
    components = [
        [channel_component(column.type, value) for value in values]
        for column, values in zip(space.pinned, equalities, strict=True)
    ]
    channels: tuple[ChannelKey, ...] = tuple(product(*components))
    radius = roundest_between(movement[0], movement[-1])
    return Placement(form.key, channels, (code_of(ColumnType.DOUBLE, radius), 0))


@lru_cache(maxsize=4096)
def _form(shape: Shape, variant: str, catalog: Catalog) -> tuple[Form, Space]:
    assert shape.movement is not None
    # A query with BETWEEN gets a fixed radius and shares the form of queries with >=.
    form = Form("drift", replace(shape, movement=shape.movement._replace(form="at_least")), variant)
    return form, space_of(form, catalog)
