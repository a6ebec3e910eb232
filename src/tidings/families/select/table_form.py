"""The form that message strategies use: all select subscriptions on a table lie in one space, whatever they constrain or show.

Axes are `lo t.c`, `hi t.c` for all comparable columns. A subscription has one point: the smallest box that contains all rows it
may select, open along columns without a predicate. So it lies in exactly one zone and gets a message once. Its exact
condition is a `Predicate`, encoded in the details of the point.

The door has a form for each shape (`subscription`): `gathered` turns points of these forms into points of the table's form,
`spread` turns predicates back into points of shapes, as `SelectEvaluator` takes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from tidings.families.select.subscription import space_of
from tidings.families.spec import ByRow, Form, FormSpec, shown_of_table
from tidings.model.catalog import Catalog, Column, Table
from tidings.model.channel import channel_columns, channel_keys
from tidings.model.codes import CODE_MAX, CODE_MIN, Int64Array, codes_of
from tidings.model.points import PointBatch
from tidings.model.space import ParameterSpace, range_axes
from tidings.model.types import ColumnType
from tidings.sql.shape import ColumnRef, Shape

TABLE = "table"
"""Variant of the form of a whole table."""


class Disjunct(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A conjunction of equalities and ranges. Columns are given by number."""

    equalities: tuple[int, ...]
    ranges: tuple[int, ...]
    channels: tuple[tuple[str | int | None, ...], ...]
    """Combinations of constants for the equality columns; one of nulls if nothing can match."""
    ends: tuple[int, ...]
    """Codes of the ends of the ranges: lo, hi, lo, hi, .."""
    texts: bytes
    """Exact ends of text ranges, encoded as `subscription.Details`."""


class Predicate(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The exact condition of a subscription (a row must satisfy any of the disjuncts), and the columns it shows."""

    shown: tuple[int, ...]
    disjuncts: tuple[Disjunct, ...]


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(Predicate)


def predicates_of(details: pa.Array) -> list[Predicate]:
    return [_decoder.decode(each) for each in details.to_pylist()]


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
    return FormSpec(ParameterSpace(space.axes(space.comparable)), form.shape.tables, ByRow(), shown)


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
    place_of = {column: 2 * i for i, column in enumerate(space.comparable)}
    coords = np.tile(np.array([CODE_MIN, CODE_MAX]), (len(homes), len(place_of)))
    for i, column in enumerate(ranges):
        coords[:, place_of[column] : place_of[column] + 2] = points.coords[homes, 2 * i : 2 * i + 2]
    for column, components in zip(equalities, points.channel, strict=True):
        is_text = space.columns[column].type is ColumnType.TEXT
        codes, valid = codes_of(ColumnType.TEXT if is_text else ColumnType.BIGINT, components)
        lo, hi = np.where(valid, codes, CODE_MAX), np.where(valid, codes, CODE_MIN)
        coords[:, place_of[column]] = np.minimum.reduceat(lo, homes) if len(homes) else lo
        coords[:, place_of[column] + 1] = np.maximum.reduceat(hi, homes) if len(homes) else hi
    chosen = pa.array(homes)
    channels = channel_keys(points.channel, len(points))
    cuts = [*homes.tolist(), len(points)]
    details = [
        _encode((shown, [(equalities, ranges, channels[start:stop], ends, texts)]))
        for start, stop, ends, texts in zip(
            cuts[:-1], cuts[1:], points.coords[homes].tolist(), points.details.take(chosen).to_pylist(), strict=True
        )
    ]
    return PointBatch(
        space.key,
        points.event[homes],
        points.after[homes],
        points.order[homes],
        points.id.take(chosen),
        (),
        coords,
        np.ones(len(homes), np.bool_),
        pa.array(details, pa.binary()),
    )


def spread(
    space: TableSpace, points: PointBatch, predicates: Sequence[Predicate]
) -> Iterator[tuple[tuple[int, ...], PointBatch, Int64Array]]:
    """Predicates as points of shapes: (columns shown, points of one shape, index of each one's subscription)."""
    groups: dict[tuple[tuple[int, ...], ...], list[tuple[int, Disjunct]]] = {}
    for at, predicate in enumerate(predicates):
        for disjunct in predicate.disjuncts:
            key = (predicate.shown, disjunct.equalities, disjunct.ranges)
            groups.setdefault(key, []).append((at, disjunct))
    for (shown, equalities, ranges), members in groups.items():
        counts = [len(disjunct.channels) for _, disjunct in members]
        owner = np.repeat(np.array([at for at, _ in members], np.int64), counts)
        member = np.repeat(np.arange(len(members)), counts)
        types = [pa.string() if space.columns[i].type is ColumnType.TEXT else pa.int64() for i in equalities]
        keys: Any = [channel for _, disjunct in members for channel in disjunct.channels]
        ends = np.array([disjunct.ends for _, disjunct in members], np.int64).reshape(len(members), 2 * len(ranges))
        texts = pa.array([disjunct.texts for _, disjunct in members], pa.binary())
        chosen = pa.array(owner)
        yield (
            shown,
            PointBatch(
                Form("select", space.shape(shown, equalities, ranges)).key,
                points.event[owner],
                points.after[owner],
                points.order[owner],
                points.id.take(chosen),
                tuple(channel_columns(types, keys)),
                ends[member],
                np.diff(member, prepend=-1) != 0,
                texts.take(pa.array(member)),
            ),
            owner,
        )
