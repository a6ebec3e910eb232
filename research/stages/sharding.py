"""How the stages share out a form: which shard handles which of its rows, and along which axes zones may be cut."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa

from tidings.families.drift import subscription as drift
from tidings.families.registry import family_of, spec_of
from tidings.families.spec import Form
from tidings.families.topk import subscription as topk
from tidings.model.catalog import Catalog
from tidings.model.channel import ChannelKey, channel_column
from tidings.model.codes import BoolArray, Int64Array
from tidings.model.space import ParameterSpace
from tidings.model.types import ColumnType
from tidings.sql.shape import ColumnRef, Shape

CHANNEL = "channel"
"""Name of the channel as an axis along which zones may be cut."""
_TYPES = {type.arrow: type for type in ColumnType if type.is_comparable}


@dataclass(frozen=True)
class ByRow:
    """Served in the tables stage, in every shard: a change is handled knowing its own row only. All shards know all points."""


@dataclass(frozen=True)
class ByKey:
    """Served in the tables stage, in the shard of the row that a point follows. Only that shard knows the point, and may choose
    its coordinates.
    """

    components: tuple[int, ...]
    """For each column of the row's primary key, its place among the components of the channel."""


@dataclass(frozen=True)
class ByValues:
    """Served in the forms stage; rows with equal values in these columns meet in one shard."""

    columns: tuple[tuple[str, tuple[str, ...]], ...]
    """(table, its columns) for each table."""


@dataclass(frozen=True)
class Together:
    """Served in the forms stage, all rows of the tables in one shard. Colocation key: forms with equal keys share the shard."""

    key: str


Sharding = ByRow | ByKey | ByValues | Together


@lru_cache(maxsize=4096)
def sharding_of(form_key: str, catalog: Catalog) -> Sharding:
    _, form = family_of(form_key)
    rule = _RULES.get(form.family)
    return ByRow() if rule is None else rule(form, catalog)


def is_with_rows(form_key: str, catalog: Catalog) -> bool:
    """Whether the form is served in the tables stage; else in the forms stage."""
    return isinstance(sharding_of(form_key, catalog), ByRow | ByKey)


def _drift(form: Form, catalog: Catalog) -> Sharding:
    space = drift.space_of(form, catalog)
    pinned = [column.name for column in space.pinned]
    return ByKey(tuple(map(pinned.index, space.table.key))) if space.follows_one_row else ByRow()


def _topk(form: Form, catalog: Catalog) -> Sharding:
    space = topk.space_of(form, catalog)
    pinned = tuple(column.name for column in space.equalities)
    return ByValues(((space.table.name, pinned),)) if pinned else Together(form.key)


def _join(form: Form, catalog: Catalog) -> Sharding:
    common = common_columns(form.shape)
    return ByValues(tuple(common.items())) if common else Together(_center_of(form.shape))


_RULES: dict[str, Callable[[Form, Catalog], Sharding]] = {"drift": _drift, "topk": _topk, "join": _join}


def _center_of(shape: Shape) -> str:
    """The table that most others are joined to. Forms with the same center probably send rows of the same tables."""
    counts = Counter(table for edge in shape.joins for table in (edge.left, edge.right))
    return min(shape.tables, key=lambda table: (-counts[table], table))


def common_columns(shape: Shape) -> dict[str, tuple[str, ...]]:
    """Table -> one column, such that these columns are equal in every joined row; empty if there is no such choice."""
    equal: dict[ColumnRef, set[ColumnRef]] = {}
    for edge in shape.joins:
        for left, right in zip(edge.left_columns, edge.right_columns, strict=True):
            first, second = ColumnRef(edge.left, left), ColumnRef(edge.right, right)
            merged = equal.get(first, {first}) | equal.get(second, {second})
            equal.update(dict.fromkeys(merged, merged))
    for refs in equal.values():
        by_table = {ref.table: ref.column for ref in sorted(refs, reverse=True)}
        if len(by_table) == len(shape.tables):
            return {table: (by_table[table],) for table in shape.tables}
    return {}


def shard_of_values(rows: pa.RecordBatch, names: Iterable[str], shards: int) -> Int64Array:
    """Shard of each row, [rows], by a hash of its values in the columns `names`.

    The same in every process; equal values give equal shards even if their column types differ.
    """
    keys = zip(*(components(rows.column(name)).to_pylist() for name in names), strict=True)
    return np.array([shard_of_key(key, shards) for key in keys], np.int64)


def shard_of_key(key: ChannelKey, shards: int) -> int:
    """Shard of the rows with these values, encoded as components of channels."""
    return zlib.crc32(repr(key).encode()) % shards


def components(column: pa.Array) -> pa.Array:
    """Values of a column encoded as components of channels: two are equal exactly if the values are."""
    type = _TYPES.get(column.type)
    if type is None:
        return column
    components, valid = channel_column(type, column)
    return components if valid.all() or type is ColumnType.TEXT else pa.array(components.to_numpy(), mask=~valid)


@dataclass(frozen=True)
class ZonedSpace(ParameterSpace):
    """A space of points that zones are cut in."""

    uncut: frozenset[str] = frozenset()
    """Axes, or CHANNEL, along which zones must not be cut.

    These are axes whose coordinates a server chooses, as a drop must find the zone without the server; and axes that
    separate points of one subscription, if its view needs all of them.
    """

    @property
    def zone_axes(self) -> tuple[str, ...]:
        """Axes along which zones may be cut."""
        return tuple(axis for axis in (CHANNEL, *self.axes) if axis not in self.uncut)

    @cached_property
    def may_cut(self) -> BoolArray:
        """[1 + axes]: whether zones may be cut along the channel, and along each axis."""
        return np.array([axis not in self.uncut for axis in (CHANNEL, *self.axes)], np.bool_)


def zoned_space(form_key: str, catalog: Catalog) -> ZonedSpace:
    """The space of a form, and how it may be cut."""
    family, form = family_of(form_key)
    space = spec_of(form_key, catalog).space
    uncut: tuple[str, ...] = ()
    if family.name == "drift":
        # The server chooses labels, the second axis, later. A snapshot needs all points of its subscription in one zone.
        is_whole = drift.space_of(form, catalog).has_several_channels
        uncut = (CHANNEL, *space.axes) if is_whole else space.axes[1:]
    elif family.name == "topk" and topk.has_several_channels(form):
        # A subscription shows the first rows of all its channels together.
        uncut = (CHANNEL, *space.axes)
    return ZonedSpace(space.axes, space.channel, frozenset(uncut))
