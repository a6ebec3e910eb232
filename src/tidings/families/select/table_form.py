"""The form that message strategies use: all select subscriptions on a table lie in one space, whatever they constrain or show.

Axes are `lo t.c`, `hi t.c` for all comparable columns. A subscription has one point: the smallest box that contains all rows it
may select, open along columns without a predicate. So it lies in exactly one zone and gets a message once. What the point
does not say of its condition is a `Predicate`, encoded in the details of the point.

The door has a form for each shape (`subscription`): `gathered` turns points of these forms into points of the table's form,
`spread` turns predicates back into points of shapes, as `SelectEvaluator` takes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from tidings.families.select.subscription import space_of
from tidings.families.spec import Form, FormSpec, shown_of_table
from tidings.model.catalog import Catalog, Column, Table
from tidings.model.channel import channel_columns, channel_keys, group_channels
from tidings.model.codes import CODE_MAX, CODE_MIN, Int64Array, codes_of
from tidings.model.points import PointBatch
from tidings.model.space import ParameterSpace, range_axes
from tidings.model.types import ColumnType
from tidings.sql.shape import ColumnRef, Shape

TABLE = "table"
"""Variant of the form of a whole table."""


class Predicate(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What a subscription selects and shows, without the numbers that its point says: few distinct ones for many points.

    Columns are given by number: those it shows, those with an equality, those with a range. The ends of ranges are those of
    the point, and so are the constants of equalities if `channels` is None.
    """

    shown: tuple[int, ...]
    equalities: tuple[int, ...]
    ranges: tuple[int, ...]
    channels: tuple[tuple[str | int | None, ...], ...] | None
    """Combinations of constants for the equality columns; one of nulls if nothing can match."""
    texts: bytes
    """Exact ends of text ranges, encoded as `subscription.Details`."""


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(Predicate)


class Predicates(NamedTuple):
    """The predicates of some points: that of point i is distinct[number[i]]."""

    distinct: list[Predicate]
    number: Int64Array


def predicates_of(details: pa.Array) -> Predicates:
    if len(details) == 1:
        # Dictionaries are made for many: for a single point they would take most of the time.
        return Predicates([_decoder.decode(details[0].as_py())], np.zeros(1, np.int64))
    encoded = details.dictionary_encode()
    distinct = [_decoder.decode(each) for each in encoded.dictionary.to_pylist()]
    return Predicates(distinct, np.asarray(encoded.indices).astype(np.int64))


@dataclass(frozen=True)
class TableSpace:
    """The space of all select subscriptions on a table. Columns are given by their numbers in the table."""

    key: str
    table: Table

    @cached_property
    def comparable(self) -> tuple[int, ...]:
        """Numbers of the columns that have axes."""
        return tuple(i for i, column in enumerate(self.table.columns) if column.type.is_comparable)

    @cached_property
    def place_of(self) -> dict[int, int]:
        """Number of a comparable column -> place of the lower end of its range in coordinates; the upper end is next to it."""
        return {column: 2 * i for i, column in enumerate(self.comparable)}

    @cached_property
    def catalog(self) -> Catalog:
        """A catalog with this table only."""
        return Catalog((self.table,))

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.table.columns

    def axes(self, columns: Sequence[int]) -> tuple[str, ...]:
        return range_axes(self.table.name, (self.columns[i].name for i in columns))

    def shape(self, shown: Sequence[int], equalities: Sequence[int], ranges: Sequence[int]) -> Shape:
        equal, within, seen = (
            tuple(ColumnRef(self.table.name, self.columns[i].name) for i in part)
            for part in (equalities, ranges, shown)
        )
        return Shape((self.table.name,), equalities=equal, ranges=within, projection=seen)


@lru_cache(maxsize=1024)
def table_space(table: Table) -> TableSpace:
    return TableSpace(Form("select", Shape((table.name,)), TABLE).key, table)


def table_spec(form: Form, catalog: Catalog) -> FormSpec:
    space = table_space(catalog.table(form.shape.tables[0]))
    shown = shown_of_table(form.shape, catalog)
    return FormSpec(ParameterSpace(space.axes(space.comparable)), form.shape.tables, shown)


def gathered(points: PointBatch, catalog: Catalog) -> PointBatch:
    """Points of a shape's form as points of the table's form. Several points of one subscription become one."""
    shape = space_of(Form.from_key(points.form), catalog)
    space = table_space(shape.table)
    names = shape.table.column_names
    equalities, ranges, shown = (
        tuple(names.index(name) for name in part)
        for part in (
            [column.name for column in shape.equalities],
            [column.name for column in shape.ranges],
            shape.projection,
        )
    )
    homes = np.flatnonzero(points.home)
    coords = np.tile(np.array([CODE_MIN, CODE_MAX]), (len(homes), len(space.comparable)))
    for i, column in enumerate(ranges):
        place = space.place_of[column]
        coords[:, place : place + 2] = points.coords[homes, 2 * i : 2 * i + 2]
    for column, components in zip(equalities, points.channel, strict=True):
        is_text = space.columns[column].type is ColumnType.TEXT
        codes, valid = codes_of(ColumnType.TEXT if is_text else ColumnType.BIGINT, components)
        lo, hi = np.where(valid, codes, CODE_MAX), np.where(valid, codes, CODE_MIN)
        place = space.place_of[column]
        coords[:, place] = np.minimum.reduceat(lo, homes) if len(homes) else lo
        coords[:, place + 1] = np.maximum.reduceat(hi, homes) if len(homes) else hi
    chosen = pa.array(homes)
    return PointBatch(
        space.key,
        points.event[homes],
        points.after[homes],
        points.order[homes],
        points.id.take(chosen),
        (),
        coords,
        np.ones(len(homes), np.bool_),
        _details(points, homes, (shown, equalities, ranges)),
    )


def _details(points: PointBatch, homes: Int64Array, columns: tuple[tuple[int, ...], ...]) -> pa.Array:
    """The encoded predicate of each subscription, [homes]. Equal ones are encoded once."""
    texts = points.details.take(pa.array(homes))
    has_plain_constants = not any(pa.types.is_string(column.type) or column.null_count for column in points.channel)
    if len(homes) < len(points):
        # Somebody has several channels (IN): each has a combination of its own.
        channels = channel_keys(points.channel, len(points))
        cuts = [*homes.tolist(), len(points)]
        encoded = [
            _encode((*columns, channels[start:stop], text))
            for start, stop, text in zip(cuts[:-1], cuts[1:], texts.to_pylist(), strict=True)
        ]
        return pa.array(encoded, pa.binary())
    number, keys = group_channels([texts] if has_plain_constants else [*points.channel, texts], len(homes))
    distinct = [_encode((*columns, None if has_plain_constants else [key[:-1]], key[-1])) for key in keys]
    return pa.array(distinct, pa.binary()).take(pa.array(number))


def spread(
    space: TableSpace, points: PointBatch, predicates: Predicates
) -> Iterator[tuple[tuple[int, ...], PointBatch, Int64Array]]:
    """Predicates as points of shapes: (columns shown, points of one shape, index of each one's subscription)."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number, each in enumerate(predicates.distinct):
        groups.setdefault((each.shown, each.equalities, each.ranges, each.channels is None), []).append(number)
    for (shown, equalities, ranges, has_plain_constants), members in groups.items():
        owner, member = np.arange(len(points)), predicates.number
        if len(groups) > 1:
            of = np.full(len(predicates.distinct), -1, np.int64)
            of[members] = np.arange(len(members))
            member = of[member]
            owner = np.flatnonzero(member >= 0)
            member = member[owner]
        is_home = np.ones(len(owner), np.bool_)
        if has_plain_constants:
            channel = [pa.array(points.coords[owner, space.place_of[i]]) for i in equalities]
        else:
            keys = [predicates.distinct[number].channels or () for number in members]
            place = member
            if any(len(each) != 1 for each in keys):
                counts = np.array([len(each) for each in keys], np.int64)
                copies = counts[member]
                starts = np.cumsum(copies) - copies
                owner, member = np.repeat(owner, copies), np.repeat(member, copies)
                is_home = np.zeros(len(owner), np.bool_)
                is_home[starts] = True
                place = (np.cumsum(counts) - counts)[member] + np.arange(len(owner)) - np.repeat(starts, copies)
            types = [pa.string() if space.columns[i].type is ColumnType.TEXT else pa.int64() for i in equalities]
            every: Any = [key for each in keys for key in each]
            channel = [_taken(column, place) for column in channel_columns(types, every)]
        own = points.take(owner)
        ends = [place for i in ranges for place in (space.place_of[i], space.place_of[i] + 1)]
        texts = pa.array([predicates.distinct[number].texts for number in members], pa.binary())
        batch = PointBatch(
            _form_key(space, shown, equalities, ranges),
            own.event,
            own.after,
            own.order,
            own.id,
            tuple(channel),
            own.coords[:, ends],
            is_home,
            _taken(texts, member),
        )
        yield shown, batch, owner


def _taken(column: pa.Array, at: Int64Array) -> pa.Array:
    return column if len(column) == len(at) == 1 else column.take(pa.array(at))


@lru_cache(maxsize=4096)
def _form_key(space: TableSpace, shown: tuple[int, ...], equalities: tuple[int, ...], ranges: tuple[int, ...]) -> str:
    """Key of the form of a shape."""
    return Form("select", space.shape(shown, equalities, ranges)).key
