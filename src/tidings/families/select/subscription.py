"""Select subscriptions as the door places them: a form for each shape; ends of ranges are coordinates, equalities the channel.

A form with range columns a, b has the space (lo a, hi a, lo b, hi b). A query with IN lies on several channels. Codes of text
are lossy, so points of forms with text ranges have the exact ends in `details`.

A query of several disjuncts has the points of each disjunct. The form of a disjunct also names the columns that other disjuncts
compare.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import msgspec

from tidings.families.size import check_size
from tidings.families.spec import Form, FormSpec, shown_of_table
from tidings.model.catalog import Catalog, Column, Table
from tidings.model.channel import ChannelKey, channel_component, channel_type
from tidings.model.points import Placement
from tidings.model.space import ParameterSpace, range_axes
from tidings.sql.constants import Constants, Interval
from tidings.sql.shape import Shape

_new = tuple.__new__  # Takes half the time of calling Placement.

DISJUNCT = "or"
"""Prefix of the variant of a disjunct's form. All columns that the query compares follow, as JSON."""


@dataclass(frozen=True)
class Space:
    """A select form resolved against the catalog."""

    key: str
    table: Table
    equalities: tuple[Column, ...]
    ranges: tuple[Column, ...]
    projection: tuple[str, ...]
    is_lossy: bool
    """Whether codes are lossy: a box of codes may contain rows that the exact values exclude."""
    nulls: tuple[Column, ...] = ()
    compared: tuple[str, ...] = ()
    """If this is the form of a disjunct: the columns that any disjunct of the query compares."""

    @property
    def dims(self) -> int:
        return 2 * len(self.ranges)


class TextRange(msgspec.Struct, array_like=True, frozen=True):
    """The exact ends of a text range, to compare with values whose code equals that of an end."""

    lo: str | None
    hi: str | None
    lo_closed: bool
    hi_closed: bool

    def holds(self, text: str) -> bool:
        if self.lo is not None and (text < self.lo or (text == self.lo and not self.lo_closed)):
            return False
        return not (self.hi is not None and (text > self.hi or (text == self.hi and not self.hi_closed)))


class Details(msgspec.Struct, array_like=True, frozen=True):
    """What the coordinates of a point with text ranges do not express."""

    texts: list[TextRange | None]
    """[ranges]; None if the codes of the range are exact."""


@lru_cache(maxsize=4096)
def space_of(form: Form, catalog: Catalog) -> Space:
    shape = form.shape
    table = catalog.table(shape.tables[0])
    shown = table.column_names if shape.projection is None else tuple(ref.column for ref in shape.projection)
    ranges = tuple(table.column(ref.column) for ref in shape.ranges)
    return Space(
        form.key,
        table,
        tuple(table.column(ref.column) for ref in shape.equalities),
        ranges,
        shown,
        any(column.type.is_lossy for column in ranges),
        tuple(table.column(ref.column) for ref in shape.nulls),
        tuple(msgspec.json.decode(form.variant.removeprefix(DISJUNCT))) if is_disjunct(form) else (),
    )


def is_disjunct(form: Form) -> bool:
    return form.variant.startswith(DISJUNCT)


def spec_of(form: Form, catalog: Catalog) -> FormSpec:
    space = space_of(form, catalog)
    axes = range_axes(space.table.name, (column.name for column in space.ranges))
    channel = tuple((f"{space.table.name}.{column.name}", channel_type(column.type)) for column in space.equalities)
    return FormSpec(ParameterSpace(axes, channel), form.shape.tables, shown_of_table(form.shape, catalog))


def place(shape: Shape, constants: Constants, catalog: Catalog) -> Placement:
    """The form, channels and point of a query, for each of its disjuncts."""
    return _place_disjuncts(shape, constants, catalog) if shape.disjuncts else _place(shape, constants, "", catalog)


def _place(shape: Shape, constants: Constants, variant: str, catalog: Catalog) -> Placement:
    equalities, intervals, _, _ = constants
    form, space = _form(shape, variant, catalog)
    channels: tuple[ChannelKey, ...]
    if constants.is_single:
        columns = space.equalities
        channels = (tuple([channel_component(columns[i].type, value) for i, (value,) in enumerate(equalities)]),)
    else:
        if not variant:
            check_size(constants)
        channels = _several_channels(space, equalities)
    coords = tuple([end for interval in intervals for end in interval[:2]])
    details = _details(space, intervals) if space.is_lossy else b""
    return _new(Placement, (form.key, channels, coords, details, ()))


def _place_disjuncts(shape: Shape, constants: Constants, catalog: Catalog) -> Placement:
    check_size(constants)
    variant = _variant(shape)
    first, *others = [
        _place(one, own, variant, catalog) for one, own in zip(shape.disjuncts, constants.disjuncts, strict=True)
    ]
    return first._replace(others=tuple(others))


@lru_cache(maxsize=4096)
def _variant(shape: Shape) -> str:
    compared = {ref.column for one in shape.disjuncts for ref in (*one.equalities, *one.ranges, *one.nulls)}
    return DISJUNCT + msgspec.json.encode(sorted(compared)).decode()


def _several_channels(space: Space, equalities: tuple[tuple[Any, ...], ...]) -> tuple[ChannelKey, ...]:
    components = [
        [channel_component(column.type, value) for value in values]
        for column, values in zip(space.equalities, equalities, strict=True)
    ]
    return tuple(product(*components))


def _details(space: Space, intervals: tuple[Interval, ...]) -> bytes:
    texts = [
        TextRange(interval.lo, interval.hi, interval.lo_closed, interval.hi_closed) if column.type.is_lossy else None
        for column, interval in zip(space.ranges, intervals, strict=True)
    ]
    return msgspec.msgpack.encode(Details(texts))


@lru_cache(maxsize=4096)
def _form(shape: Shape, variant: str, catalog: Catalog) -> tuple[Form, Space]:
    form = Form("select", shape, variant)
    return form, space_of(form, catalog)
