"""Which row views can help to compute which: what a source knows of the rows of a target.

A source embeds in a target if the target's conditions imply the source's: both are over one table, and every range of the
source contains the target's range of that column. Then the source's rows contain the target's. A set of sources that covers all
a target needs is a rewriting: intersect their rows by id, and drop those outside of ranges whose ends no source has.

This module is the definition, for one pair of queries; `rewriting/row_rewritings.py` does the same for all pairs of a set.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from tidings.relay.row_views.query import ColumnRange, RowQuery


class RowNeed(IntEnum):
    """What a target needs to know of rows. Of columns of the key nothing: ids tell."""

    ID = 0
    """Which there are."""
    LOWER = 1
    """Whether a column's values are not below the range: the source has the same lower bound, or the values."""
    UPPER = 2
    PRESENT = 3
    """Whether a column is not null, where there are no bounds: the source asks for the same, or has the values."""
    VALUE = 4


def row_needs(target: RowQuery) -> list[tuple[RowNeed, str]]:
    """All that is to be covered, with the column; the place in this list is the number of the bit in `row_coverage`."""
    found = [(RowNeed.ID, "")]
    key = {column.name for column in target.key}
    for each in target.ranges:
        name = each.column.name
        if name in key:
            continue
        if each.has_lower:
            found.append((RowNeed.LOWER, name))
        if each.has_upper:
            found.append((RowNeed.UPPER, name))
        if not each.has_lower and not each.has_upper:
            found.append((RowNeed.PRESENT, name))
    return [*found, *((RowNeed.VALUE, name) for name in target.carried)]


def embeds(source: RowQuery, target: RowQuery) -> bool:
    """Whether the target's conditions imply the source's. Those of a query that no row can satisfy imply all."""
    if source.table != target.table:
        return False
    if target.is_empty or source.is_empty:
        return target.is_empty
    return all(_contains(each, target.range_of.get(each.column.name)) for each in source.ranges)


def row_coverage(source: RowQuery, target: RowQuery) -> int | None:
    """What the source knows of what the target needs: a bit for each of `row_needs`. None: it does not embed."""
    if not embeds(source, target):
        return None
    mask = 0
    for bit, need in enumerate(row_needs(target)):
        if _covers(source, target, *need):
            mask |= 1 << bit
    return mask


def is_row_rewriting(sources: Sequence[RowQuery], target: RowQuery) -> bool:
    """Whether the target can be computed from the sources alone; all of them must embed in it."""
    covered = 0
    for source in sources:
        mask = row_coverage(source, target)
        if mask is None:
            return False
        covered |= mask
    return covered == (1 << len(row_needs(target))) - 1


def _contains(outer: ColumnRange, inner: ColumnRange | None) -> bool:
    """inner: None where a column may be anything, null too."""
    if inner is None or inner.start < outer.start:  # type: ignore[operator] # both are ranges of one column
        return False
    return outer.stop is None or (inner.stop is not None and inner.stop <= outer.stop)  # type: ignore[operator]


def _covers(source: RowQuery, target: RowQuery, need: RowNeed, column: str) -> bool:
    if need is RowNeed.ID or column in source.carried:
        return True
    own, wanted = source.range_of.get(column), target.range_of.get(column)
    if own is None or wanted is None:
        return False
    match need:
        case RowNeed.LOWER:
            return own.start == wanted.start
        case RowNeed.UPPER:
            return own.stop == wanted.stop
        case RowNeed.PRESENT:
            return True
        case _:
            return False
