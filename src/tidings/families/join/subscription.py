"""Join subscriptions as points: coordinates are the ends of every predicate, in one space for all tables of the query.

A row of one table does not determine the columns of other tables, so a message about it cannot name a channel of columns of
several tables. So equalities are ranges of one value here, and the region of a message is open along other tables' axes.

A query with OR, `<>` or IS NULL has one point too: the smallest box that holds all its alternatives, along the columns that all
of them bound. The alternatives are in the details.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import msgspec

from tidings.families.join.result import shown_columns, shown_names
from tidings.families.size import check_size
from tidings.families.spec import Form, FormSpec
from tidings.model.catalog import Catalog
from tidings.model.channel import channel_component
from tidings.model.codes import CODE_MAX, CODE_MIN, code_of
from tidings.model.points import Placement
from tidings.model.space import ParameterSpace, range_axes
from tidings.model.types import ColumnType
from tidings.sql.constants import Constants, Interval
from tidings.sql.shape import ColumnRef, Shape

BOXES_MAX = 256
"""Highest number of boxes that an evaluator makes of one subscription; with more combinations of IN, boxes are wider."""


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


def spec_of(form: Form, catalog: Catalog) -> FormSpec:
    shape = form.shape
    shown = shown_columns(shape, catalog)
    axes = tuple(axis for ref in predicates_of(shape) for axis in range_axes(ref.table, (ref.column,)))
    return FormSpec(ParameterSpace(axes), shape.tables, tuple(zip(shown, shown_names(shown), strict=True)))


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
