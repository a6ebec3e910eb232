"""Kinds of values, the operators of their predicates, and when two predicates on one attribute can both hold.

A predicate stands for an interval on each axis of its kind, and an operator says which columns of its row are the ends:

    integer, double    =  [val, val]    <=  .. val]     >=  [val ..    []  [val, upper]    any  all values
    text               =  [val, val]    <   .. val)     >=  [val ..    [)  [val, upper)    any  all values
    point              =  (x1, y1)      within  the points in the box x1, y1, x2, y2
    box                =, within, overlaps, contains  the box x1, y1, x2, y2;    sides  several of these at once

Two predicates can both hold iff their intervals meet on each axis: neither begins behind the end of the other. An end that
there is not needs no test, so that some pairs of operators, as <= with <=, need none at all.

Integers are int64 codes of BIGINT, INT, BOOLEAN, DATE and TIMESTAMP; an attribute has one type, and only predicates on the same
attribute are compared. All open ends of numbers are closed ones of their neighbours (x > 1 is x >= 2, on DOUBLE x >= the next
number). Texts are their UTF-8 bytes, which sort as the texts do and, unlike TEXT of PostgreSQL, may have NULs: x <= 'a' is
x < 'a' with a NUL behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tidings.model.types import ColumnType

Storage = Literal["integer", "double", "bytes"]

BOX_COLUMNS = ("x1", "y1", "x2", "y2")
"""Corners of a box; databases that have boxes keep them as one value."""


class End(NamedTuple):
    """An end of an interval: the column that has it, and whether it belongs to the interval."""

    column: str
    is_open: bool = False


Axis = tuple[End | None, End | None]
"""Lower and upper end of an interval on one axis; None: none."""


@dataclass(frozen=True)
class Kind:
    """Values that share a pair of tables."""

    name: str
    storage: Storage
    columns: tuple[str, ...]
    """What a predicate's values are called, in the order in which `reify` gives them."""
    operators: Mapping[str, tuple[Axis, ...]]

    @property
    def has_boxes(self) -> bool:
        return self.columns[: len(BOX_COLUMNS)] == BOX_COLUMNS


def _ordered(name: str, storage: Storage) -> Kind:
    val, upper = End("val"), End("upper")
    operators: dict[str, tuple[Axis, ...]] = {
        "=": ((val, val),),
        "<=": ((None, val),),
        ">=": ((val, None),),
        "[]": ((val, upper),),
        "any": ((None, None),),
    }
    return Kind(name, storage, ("val", "upper"), operators)


def _text() -> Kind:
    val, below_val, below_upper = End("val"), End("val", is_open=True), End("upper", is_open=True)
    operators: dict[str, tuple[Axis, ...]] = {
        "=": ((val, val),),
        "<": ((None, below_val),),
        ">=": ((val, None),),
        "[)": ((val, below_upper),),
        "any": ((None, None),),
    }
    return Kind("text", "bytes", ("val", "upper"), operators)


def _point() -> Kind:
    x1, y1, x2, y2 = (End(column) for column in BOX_COLUMNS)
    return Kind("point", "double", BOX_COLUMNS, {"=": ((x1, x1), (y1, y1)), "within": ((x1, x2), (y1, y2))})


def _box() -> Kind:
    """The axes are those of `tidings.sql.geometry`: per direction the lower side, the upper side and the extent.

    sides: of boxes that lie in x1, y1, x2, y2, whose lower sides are `x1_most` at most, and so on.
    """
    more = ("x1_most", "y1_most", "x2_least", "y2_least")
    operators: dict[str, tuple[Axis, ...]] = dict.fromkeys(("=", "within", "overlaps", "contains", "sides"), ())
    for direction in "xy":
        lower, upper = End(f"{direction}1"), End(f"{direction}2")
        most, least = End(f"{direction}1_most"), End(f"{direction}2_least")
        for name, axes in {
            "=": ((lower, lower), (upper, upper), (None, None)),
            "within": ((lower, None), (None, upper), (lower, upper)),
            "overlaps": ((None, upper), (lower, None), (None, None)),
            "contains": ((None, lower), (upper, None), (None, None)),
            "sides": ((lower, most), (least, upper), (lower, upper)),
        }.items():
            operators[name] += axes
    return Kind("box", "double", (*BOX_COLUMNS, *more), operators)


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (_ordered("integer", "integer"), _ordered("double", "double"), _text(), _point(), _box())
}

KIND_OF: Mapping[ColumnType, str] = {
    **dict.fromkeys(
        (ColumnType.BIGINT, ColumnType.INT, ColumnType.BOOLEAN, ColumnType.DATE, ColumnType.TIMESTAMP), "integer"
    ),
    ColumnType.DOUBLE: "double",
    ColumnType.TEXT: "text",
    ColumnType.POINT: "point",
    ColumnType.BOX: "box",
}
"""The kind of an attribute by its type."""


class Comparison(NamedTuple):
    """A column of one side's row compared with a column of the other's."""

    left: str
    operator: Literal["=", "<=", "<"]
    right: str
    is_publication_left: bool


def comparisons_of(kind: Kind, publication: str, subscription: str) -> Iterator[Comparison]:
    """What must be true of a publication's and a subscription's row with these operators for both to be possible."""
    for ours, theirs in zip(kind.operators[publication], kind.operators[subscription], strict=True):
        if ours[0] is not None and theirs[0] is not None and ours[0] == ours[1] and theirs[0] == theirs[1]:
            yield Comparison(ours[0].column, "=", theirs[0].column, True)
            continue
        for (lower, _), (_, upper), is_publication_left in ((ours, theirs, True), (theirs, ours, False)):
            if lower is not None and upper is not None:
                yield Comparison(lower.column, "<" if upper.is_open else "<=", upper.column, is_publication_left)
