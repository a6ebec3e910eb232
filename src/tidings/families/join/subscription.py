"""Join subscriptions as points: coordinates are the ends of every predicate, in one space for all tables of the query.

A row of one table does not determine the columns of other tables, so a message about it cannot name a channel of columns of
several tables. So equalities are ranges of one value here, and the region of a message is open along other tables' axes.

A query with OR, `<>` or IS NULL has one point too: the smallest box that holds all its alternatives, along the columns that all
of them bound. The alternatives are in the details.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import msgspec

from tidings.families.join.result import shown_columns, shown_names
from tidings.families.size import check_size
from tidings.families.spec import Form, FormSpec
from tidings.model.catalog import Catalog, Column, Table
from tidings.model.channel import channel_component
from tidings.model.codes import CODE_MAX, CODE_MIN, code_of
from tidings.model.points import Placement
from tidings.model.space import ParameterSpace, range_axes
from tidings.model.types import ColumnType
from tidings.sql.constants import Constants, Interval
from tidings.sql.shape import ColumnRef, Shape

BOXES_MAX = 256
"""Highest number of boxes that an evaluator makes of one subscription; with more combinations of IN, boxes are wider."""
Selection = tuple[str, tuple[str, ...], tuple[int, ...]]
Wanted = tuple[str, tuple[str, ...], tuple[int, ...], tuple[str, ...]]


@dataclass(frozen=True)
class Side:
    """One table of the join."""

    table: Table
    columns: tuple[Column, ...]
    """Columns with a predicate, each with a lower and an upper end among the coordinates."""
    first: int
    """Coordinate of the first lower end."""
    pinned: tuple[int, ...]
    """Indexes in `columns` of those with = or IN."""
    payload: tuple[str, ...]
    """Columns in a message about a row of this table: those shown, joined, with a predicate, and the key."""

    @property
    def ranged(self) -> tuple[int, ...]:
        """Indexes in `columns` of those with a range."""
        return tuple(i for i in range(len(self.columns)) if i not in self.pinned)

    @property
    def coords(self) -> slice:
        return slice(self.first, self.first + 2 * len(self.columns))

    @property
    def selection(self) -> Selection:
        """Key: sides of several spaces have equal ones if they are of the same table with predicates on the same columns."""
        return self.table.name, tuple(column.name for column in self.columns), self.pinned

    @property
    def rows(self) -> Wanted:
        """Key: as `selection`, and messages about a row have the same columns as well."""
        return *self.selection, self.payload


@dataclass(frozen=True)
class Edge:
    """An equality of columns of two sides."""

    sides: tuple[int, int]
    columns: tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True)
class Space:
    """A join form resolved against the catalog."""

    key: str
    sides: tuple[Side, ...]
    edges: tuple[Edge, ...]
    shown: tuple[tuple[int, str], ...]
    """(side, column) of every shown column of a joined row."""
    names: tuple[str, ...]
    """Name of every shown column."""
    dims: int

    @cached_property
    def axes(self) -> tuple[str, ...]:
        """Names of the coordinates."""
        return tuple(
            axis
            for side in self.sides
            for axis in range_axes(side.table.name, (column.name for column in side.columns))
        )

    @property
    def join_columns(self) -> dict[tuple[int, int], tuple[tuple[str, ...], tuple[str, ...]]]:
        """(side, other side) -> (columns, other columns) of all edges between them."""
        found: dict[tuple[int, int], tuple[tuple[str, ...], tuple[str, ...]]] = {}
        for edge in self.edges:
            (one, two), (left, right) = edge.sides, edge.columns
            if one > two:
                one, two, left, right = two, one, right, left
            known = found.get((one, two), ((), ()))
            found[one, two] = (known[0] + left, known[1] + right)
        return found

    def side_of(self, table: str) -> int:
        return next(i for i, side in enumerate(self.sides) if side.table.name == table)


class Predicate(msgspec.Struct, array_like=True, frozen=True):
    """The part of a predicate that coordinates do not express: the values of IN, the exact ends of a text range."""

    values: list[str | int] | None = None
    lo: str | None = None
    hi: str | None = None
    lo_closed: bool = True
    hi_closed: bool = True


class Condition(msgspec.Struct, array_like=True, frozen=True):
    """What an alternative demands of a column, given by number: a code within [lo, hi] that the predicate allows, or null."""

    side: int
    column: int
    lo: int
    hi: int
    predicate: Predicate | None = None
    is_null: bool = False


class AnyOf(msgspec.Struct, array_like=True, frozen=True):
    """Details of a point with alternatives, of which a joined row must satisfy one. box: details of the point without them."""

    box: bytes
    alternatives: list[list[Condition]]


ANY_OF = "or"
"""Prefix of the variant of forms with alternatives. All columns that these compare follow, as JSON."""


def is_any_of(form: Form) -> bool:
    return form.variant.startswith(ANY_OF)


def compared_columns(form: Form) -> list[ColumnRef]:
    """The columns that the alternatives of a form compare."""
    if not is_any_of(form):
        return []
    return [ColumnRef(*ref) for ref in msgspec.json.decode(form.variant.removeprefix(ANY_OF))]


@lru_cache(maxsize=4096)
def space_of(form: Form, catalog: Catalog) -> Space:
    shape = form.shape
    shown = shown_columns(shape, catalog)
    edges = tuple(
        Edge(
            (shape.tables.index(edge.left), shape.tables.index(edge.right)),
            (edge.left_columns, edge.right_columns),
        )
        for edge in shape.joins
    )
    sides: list[Side] = []
    first = 0
    for number, name in enumerate(shape.tables):
        table = catalog.table(name)
        refs = [ref for ref in predicates_of(shape) if ref.table == name]
        columns = tuple(table.column(ref.column) for ref in refs)
        pinned = tuple(i for i, ref in enumerate(refs) if ref in shape.equalities)
        joined = [
            c
            for edge in edges
            for at, names in zip(edge.sides, edge.columns, strict=True)
            if at == number
            for c in names
        ]
        wanted = [*table.key, *joined, *(c.name for c in columns), *(ref.column for ref in shown if ref.table == name)]
        payload = tuple(n for n in table.column_names if n in wanted)
        sides.append(Side(table, columns, first, pinned, payload))
        first += 2 * len(columns)
    places = tuple((shape.tables.index(ref.table), ref.column) for ref in shown)
    return Space(form.key, tuple(sides), edges, places, shown_names(shown), first)


def spec_of(form: Form, catalog: Catalog) -> FormSpec:
    shape = form.shape
    shown = shown_columns(shape, catalog)
    named = tuple(zip(shown, shown_names(shown), strict=True))
    return FormSpec(ParameterSpace(space_of(form, catalog).axes), shape.tables, named)


def predicates_of(shape: Shape) -> tuple[ColumnRef, ...]:
    """Columns with a predicate, in the order of the coordinates."""
    refs = (*shape.equalities, *shape.ranges)
    return tuple(sorted(refs, key=lambda ref: (shape.tables.index(ref.table), refs.index(ref))))


def place(shape: Shape, constants: Constants, catalog: Catalog) -> Placement:
    """The form and point of a query."""
    if not shape.is_plain or not constants.is_single:
        check_size(constants, BOXES_MAX, is_boxed=True)
    if not shape.is_plain:
        return _place_alternatives(shape, constants, catalog)
    form, coords, predicates = _point(shape, constants, "", catalog)
    return Placement(form.key, ((),), coords, _details(predicates))


def _details(predicates: list[Predicate | None]) -> bytes:
    return msgspec.msgpack.encode(predicates) if any(predicates) else b""


def _place_alternatives(shape: Shape, constants: Constants, catalog: Catalog) -> Placement:
    alternatives = [
        _conditions(one, own, catalog)
        for one, own in zip(shape.conjunctions, constants.disjuncts or (constants,), strict=True)
    ]
    first, *others = alternatives
    pinned: dict[ColumnRef, tuple[Any, ...]] = {}
    bounded: dict[ColumnRef, Interval] = {}
    for ref in first:
        everywhere = [each[ref] for each in alternatives if ref in each and not each[ref].is_null]
        if len(everywhere) < len(alternatives):
            continue
        values = _pinned(shape.conjunctions[0], (constants.disjuncts or (constants,))[0]).get(ref)
        if values is not None and all(each[ref] == first[ref] for each in others):
            pinned[ref] = values
        else:
            lo, hi = min(each.lo for each in everywhere), max(each.hi for each in everywhere)
            bounded[ref] = Interval(lo, hi, None, None, True, True)
    box = replace(shape, equalities=tuple(pinned), ranges=tuple(bounded), nulls=(), disjuncts=())
    compared = sorted({ref for each in alternatives for ref in each})
    variant = ANY_OF + msgspec.json.encode(compared).decode()
    form, coords, predicates = _point(box, Constants(tuple(pinned.values()), tuple(bounded.values())), variant, catalog)
    sorted_by_side = [sorted(each.values(), key=lambda one: (one.side, one.column)) for each in alternatives]
    return Placement(form.key, ((),), coords, msgspec.msgpack.encode(AnyOf(_details(predicates), sorted_by_side)))


def _pinned(shape: Shape, constants: Constants) -> dict[ColumnRef, tuple[Any, ...]]:
    return dict(zip(shape.equalities, constants.equalities, strict=True))


def _conditions(shape: Shape, constants: Constants, catalog: Catalog) -> dict[ColumnRef, Condition]:
    """The conditions of a conjunction."""
    found: dict[ColumnRef, Condition] = {}
    _, coords, predicates = _point(replace(shape, nulls=()), constants, "", catalog)
    for i, ref in enumerate(predicates_of(shape)):
        found[ref] = Condition(*_place_of(shape, ref, catalog), coords[2 * i], coords[2 * i + 1], predicates[i])
    for ref in shape.nulls:
        found[ref] = Condition(*_place_of(shape, ref, catalog), CODE_MIN, CODE_MAX, None, True)
    return found


def _place_of(shape: Shape, ref: ColumnRef, catalog: Catalog) -> tuple[int, int]:
    """(side, number of the column in its table)"""
    return shape.tables.index(ref.table), catalog.table(ref.table).column_names.index(ref.column)


def _point(
    shape: Shape, constants: Constants, variant: str, catalog: Catalog
) -> tuple[Form, tuple[int, ...], list[Predicate | None]]:
    """(form, coordinates, predicates) of a conjunction of equalities and ranges."""
    form, sources = _form(shape, variant, catalog)
    coords: list[int] = []
    predicates: list[Predicate | None] = []
    for type, is_pinned, at in sources:
        if is_pinned:
            values = constants.equalities[at]
            codes = [code_of(type, value) for value in values]
            coords += (min(codes, default=CODE_MAX), max(codes, default=CODE_MIN))
            says_all = len(values) == 1 and not type.is_lossy
            predicates.append(None if says_all else Predicate([channel_component(type, value) for value in values]))
        else:
            lo_code, hi_code, lo, hi, lo_closed, hi_closed = constants.intervals[at]
            coords += (lo_code, hi_code)
            predicates.append(Predicate(None, lo, hi, lo_closed, hi_closed) if type.is_lossy else None)
    return form, tuple(coords), predicates


@lru_cache(maxsize=4096)
def _form(shape: Shape, variant: str, catalog: Catalog) -> tuple[Form, tuple[tuple[ColumnType, bool, int], ...]]:
    """The form, and for each column with a predicate its type, whether it is pinned, and its index among the constants."""
    sources = []
    for ref in predicates_of(shape):
        is_pinned = ref in shape.equalities
        at = (shape.equalities if is_pinned else shape.ranges).index(ref)
        sources.append((catalog.table(ref.table).column(ref.column).type, is_pinned, at))
    return Form("join", shape, variant), tuple(sources)
