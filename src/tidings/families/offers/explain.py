"""What `tidings explain` says about an offers subscription."""

from __future__ import annotations

from collections.abc import Sequence

from tidings.families.offers.constraint import Box, TextEnds, unpack
from tidings.families.offers.subscription import space_of
from tidings.families.optional import ChannellessExplanation
from tidings.families.spec import Form
from tidings.model.catalog import Catalog, Table, axes_of
from tidings.model.codes import value_of
from tidings.model.points import Placement
from tidings.model.types import ColumnType
from tidings.sql.shape import Order

_POINTS_MAX = 5


class OffersExplanation(ChannellessExplanation):
    summary = "publications that are constraints themselves: SELECT .. FROM market WHERE a = x AND b BETWEEN y AND z"
    costs = (
        "one search among all points with fitting attributes, by a hash of single values, then down a tree;"
        " and a line for each that is told"
    )

    def lines(self, form: Form, placement: Placement, catalog: Catalog) -> Sequence[tuple[str, str]]:
        space, boxes = space_of(form, catalog), unpack(placement.details)
        lines = [*_points(space.table, boxes), ("matches", _matches(space.table, boxes))]
        if not space.table.constraints.is_kept:
            lines.append(("kept", "by nobody: a publication is told at its seq to those whom it meets, and is gone"))
        if space.order is not None:
            lines.append(("best first", _best(space.order)))
        return lines


def _points(table: Table, boxes: Sequence[Box]) -> list[tuple[str, str]]:
    """A line for each disjunct: two coordinates for each axis it compares, the ends of its interval there."""
    if len(boxes) == 1:
        return [("point", _point(table, boxes[0]))]
    lines = [(f"point {number}", _point(table, box)) for number, box in enumerate(boxes[:_POINTS_MAX], 1)]
    more = len(boxes) - _POINTS_MAX
    return lines if more <= 0 else [*lines, ("", f"and {more} more")]


def _point(table: Table, box: Box) -> str:
    ends = zip(*box, strict=True)
    intervals = [f"{table.axes[axis].name}: {_interval(table, axis, lo, hi, text)}" for axis, lo, hi, text in ends]
    return f"({', '.join(intervals)}) in {2 * len(intervals)} dimensions"


def _interval(table: Table, axis: int, lo: int, hi: int, text: TextEnds | None) -> str:
    type = table.axes[axis].type
    if type is ColumnType.TEXT:
        return _text_interval(*(text or (None, None)))
    low, high = (value_of(type, code) for code in (lo, hi))
    return low if lo == hi else f"{low} .. {high}"


def _text_interval(lo: bytes | None, hi: bytes | None) -> str:
    """A text s + "\\0" is the next one after s: as an end it stands for s itself, closed above and open below."""
    if lo is not None and hi == lo + b"\0":
        return repr(lo.decode())
    low = "-inf" if lo is None else f"after {lo[:-1].decode()!r}" if lo.endswith(b"\0") else repr(lo.decode())
    high = "+inf" if hi is None else repr(hi[:-1].decode()) if hi.endswith(b"\0") else f"before {hi.decode()!r}"
    return f"{low} .. {high}"


def _matches(table: Table, boxes: Sequence[Box]) -> str:
    attributes = {_attributes(table, box) for box in boxes}
    names = min(attributes) if len(attributes) == 1 else ()
    which = ", ".join(names)
    if len(names) == 1 and not table.constraints.is_classic:
        return f"publications on {which} alone, if their values and these meet"
    if table.constraints.is_classic:
        return (
            f"publications on {which or 'all attributes of one of these points'}, and maybe on others,"
            " if their values and these meet on each"
        )
    subject = f"one or more of {which}" if which else "attributes that one of these points has"
    return f"publications on {subject}, and on no other attribute, if their values and these meet on each"


def _attributes(table: Table, box: Box) -> tuple[str, ...]:
    """Those that a disjunct compares."""
    own = {table.axes[axis].name for axis in box.axes}
    return tuple(each.name for each in table.attributes if any(axis.name in own for axis in axes_of(each)))


def _best(order: Order) -> str:
    side = "greatest" if order.descending else "least"
    return f"the first {order.limit} by the {side} {order.column.column} that both sides allow, then by id"
