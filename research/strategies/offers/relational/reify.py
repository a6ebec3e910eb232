"""Constraints as rows of the relational tables: one for each disjunct, and one for each attribute that it compares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Any

from research.strategies.offers.relational.operators import KIND_OF, KINDS
from tidings.families.offers.constraint import Box, TextEnds
from tidings.model.catalog import Table, axes_of
from tidings.model.codes import CODE_MAX, CODE_MIN, double_of

Id = Any
"""What a constraint is known by: a text, or a number."""


@dataclass(frozen=True)
class Reified:
    """Rows of one side's tables. masters: (id, disjunct, count). predicates: per kind (id, disjunct, field, op, values ..).

    A field is the number of an attribute in `Table.attributes`.
    """

    masters: list[tuple[Id, int, int]]
    predicates: dict[str, list[tuple[Any, ...]]]


def reify(constraints: Iterable[tuple[Id, Sequence[Box]]], table: Table) -> Reified:
    """The rows of constraints, given as ids and boxes. Ids must differ."""
    layout = _layout(table)
    masters: list[tuple[Id, int, int]] = []
    predicates: dict[str, list[tuple[Any, ...]]] = {kind: [] for kind in KINDS}
    appends = {kind: rows.append for kind, rows in predicates.items()}
    for id, boxes in constraints:
        for disjunct, box in enumerate(boxes):
            place = count = 0
            while place < len(box.axes):
                field, kind, width = layout[box.axes[place]]
                appends[kind]((id, disjunct, field, *_predicate(kind, box, place)))
                place += width
                count += 1
            masters.append((id, disjunct, count))
    return Reified(masters, predicates)


@lru_cache(maxsize=64)
def _layout(table: Table) -> list[tuple[int, str, int]]:
    """For each axis the attribute's number and kind, and how many axes it has, which a box has all or none of."""
    found = []
    for field, attribute in enumerate(table.attributes):
        width = len(axes_of(attribute))
        found += [(field, KIND_OF[attribute.type], width)] * width
    return found


def _predicate(kind: str, box: Box, place: int) -> tuple[Any, ...]:
    """(op, values ..) of the attribute whose axes begin at a place of a box."""
    lo, hi = box.lo[place], box.hi[place]
    if kind == "integer":
        if lo == hi:
            return "=", lo, None
        if lo == CODE_MIN:
            return ("any", None, None) if hi == CODE_MAX else ("<=", hi, None)
        return (">=", lo, None) if hi == CODE_MAX else ("[]", lo, hi)
    if kind == "text":
        return _text(box.texts[place])
    if kind == "double":
        if lo == hi:
            return "=", double_of(lo), None
        if lo == CODE_MIN:
            return ("any", None, None) if hi == CODE_MAX else ("<=", double_of(hi), None)
        return (">=", double_of(lo), None) if hi == CODE_MAX else ("[]", double_of(lo), double_of(hi))
    return _point(box, place) if kind == "point" else _boxes(box, place)


def _text(ends: TextEnds | None) -> tuple[Any, ...]:
    lo, hi = ends or (None, None)
    if lo is None:
        return ("any", None, None) if hi is None else ("<", hi, None)
    if hi is None:
        return ">=", lo, None
    return ("=", lo, None) if hi == lo + b"\0" else ("[)", lo, hi)


def _point(box: Box, place: int) -> tuple[Any, ...]:
    x1, y1, x2, y2 = (_coordinate(ends[at]) for ends in (box.lo, box.hi) for at in (place, place + 1))
    return ("=" if x1 == x2 and y1 == y2 else "within"), x1, y1, x2, y2


def _boxes(box: Box, place: int) -> tuple[Any, ...]:
    """The operator that a set of boxes was made by, if it was one alone.

    Axes are x1, x2, the extent from the least x1 to the greatest x2, and likewise y: the extents say nothing new.
    """
    (x1, y1), (x1_most, y1_most) = ([_coordinate(ends[place + at]) for at in (0, 3)] for ends in (box.lo, box.hi))
    (x2_least, y2_least), (x2, y2) = ([_coordinate(ends[place + at]) for at in (1, 4)] for ends in (box.lo, box.hi))
    if (x1, y1, x2, y2) == (-inf, -inf, inf, inf):
        if x2_least <= x1_most and y2_least <= y1_most:
            return "overlaps", x2_least, y2_least, x1_most, y1_most, None, None, None, None
        if x1_most <= x2_least and y1_most <= y2_least:
            return "contains", x1_most, y1_most, x2_least, y2_least, None, None, None, None
    elif (x1_most, y1_most, x2_least, y2_least) == (inf, inf, -inf, -inf):
        return "within", x1, y1, x2, y2, None, None, None, None
    elif (x1, y1, x2, y2) == (x1_most, y1_most, x2_least, y2_least):
        return "=", x1, y1, x2, y2, None, None, None, None
    return "sides", x1, y1, x2, y2, x1_most, y1_most, x2_least, y2_least


def _coordinate(code: int) -> float:
    if code == CODE_MIN:
        return -inf
    return inf if code == CODE_MAX else double_of(code)
