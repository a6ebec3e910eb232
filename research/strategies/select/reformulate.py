"""A change becomes one message: the row before and after, and the region of all points whose answers it may alter.

A row with value v in a column is selected by points with lo <= v <= hi; a row with null there only by points that are open
along the column. Over all columns with a predicate this is one box. So the region of an update is the union of the new row's
box (tag NEW) and the old row's box (tag OLD): a point in both may see an update, in one only an insert or a delete.

        hi |        :::NEW::::
           |   ::::OLD:::
           +---------------- lo
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from research.servers.message import MessageBatch
from research.strategies.select.table_form import TableSpace
from tidings.model.change import TableChanges
from tidings.model.codes import CODE_MAX, CODE_MIN, BoolArray, Int64Array, codes_of
from tidings.model.region import Regions

OLD, NEW = 1, 2
BOTH = OLD | NEW


def reformulate(
    space: TableSpace,
    changes: TableChanges,
    constrained: Sequence[int],
    shown: Sequence[int],
    apart: Sequence[str] | None = None,
) -> MessageBatch | None:
    """Messages for the changes that alter a constrained or shown column; None if there are none.

    constrained, shown: numbers of the columns that some subscription has a predicate on, or shows. apart: if not
    None, names of columns that messages do not carry, which then have the primary key: receivers hold these columns.
    """
    looked_at = [space.columns[i].name for i in sorted({*constrained, *shown})]
    told = ~(changes.had & changes.has & same_rows(changes, looked_at))
    at = np.flatnonzero(told)
    if not len(at):
        return None
    # Columns of the region's axes come first, so that encoded boxes can refer to their values (`network/wire`).
    first = [space.columns[i].name for i in constrained]
    carried = dict.fromkeys([*first, *([] if apart is None else space.table.key), *looked_at])
    return MessageBatch(
        space.key,
        changes.seq[at],
        (),
        _regions(space, changes, constrained, at),
        _payload(changes, at, [name for name in carried if name not in (apart or ())]),
        to=(space.key,),
        axes=space.axes(constrained),
    )


def same_rows(changes: TableChanges, columns: Sequence[str]) -> BoolArray:
    """Whether the old and the new row are equal in these columns, [changes]. Null equals null."""
    same = np.ones(len(changes), np.bool_)
    for name in columns:
        same &= same_values(changes.before.column(name), changes.after.column(name))
    return same


def same_values(a: pa.Array, b: pa.Array) -> BoolArray:
    """Whether values of two columns are equal, [values]. Null equals null."""
    if pa.types.is_fixed_size_list(a.type):
        return np.fromiter((x == y for x, y in zip(a.to_pylist(), b.to_pylist(), strict=True)), np.bool_, len(a))
    equal = pc.equal(a, b)
    same: BoolArray = np.asarray(equal.fill_null(False) if equal.null_count else equal)
    return same | np.asarray(a.is_null()) & np.asarray(b.is_null()) if equal.null_count else same


def _regions(space: TableSpace, changes: TableChanges, constrained: Sequence[int], at: Int64Array) -> Regions:
    """One region per change at `at`: one box if both rows have the same, else the new row's box and the old row's."""
    new, old = codes_of_rows(space, changes, constrained)
    (new_lo, new_hi), (old_lo, old_hi) = boxes_of(new, at), boxes_of(old, at)
    has, had = changes.has[at], changes.had[at]
    # An end of a box is as another box's exactly if the other end is.
    is_moved = has & had & (new_lo != old_lo).any(axis=1)
    counts = 1 + is_moved
    starts = np.zeros(len(at) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    lo, hi = np.empty((2, int(starts[-1]), 2 * len(constrained)), np.int64)
    tags = np.empty(len(lo), np.uint8)
    first, second = starts[:-1], starts[1:][is_moved] - 1
    if has.all():
        lo[first], hi[first] = new_lo, new_hi
    else:
        lo[first], hi[first] = np.where(has[:, None], new_lo, old_lo), np.where(has[:, None], new_hi, old_hi)
    tags[first] = has * NEW | (had & ~is_moved) * OLD
    lo[second], hi[second], tags[second] = old_lo[is_moved], old_hi[is_moved], OLD
    return Regions(lo, hi, tags, starts)


_Codes = list[tuple[Int64Array, BoolArray]]
"""Codes and validity of the values of some columns."""


def codes_of_rows(space: TableSpace, changes: TableChanges, constrained: Sequence[int]) -> tuple[_Codes, _Codes]:
    """Codes of the new rows and of the old rows. Columns that did not change are encoded once."""
    new, old = [], []
    for number in constrained:
        column = space.columns[number]
        after, before = changes.after.column(column.name), changes.before.column(column.name)
        new.append(codes_of(column.type, after))
        old.append(new[-1] if after.equals(before) else codes_of(column.type, before))
    return new, old


def boxes_of(columns: _Codes, at: Int64Array) -> tuple[Int64Array, Int64Array]:
    """(lower ends, upper ends), both [n, 2 * columns], of the boxes of points that select the n rows at `at`."""
    lo = np.full((len(at), 2 * len(columns)), CODE_MIN, np.int64)
    hi = np.full_like(lo, CODE_MAX)
    for i, (codes, valid) in enumerate(columns):
        hi[:, 2 * i] = np.where(valid, codes, CODE_MIN)[at]
        lo[:, 2 * i + 1] = np.where(valid, codes, CODE_MAX)[at]
    return lo, hi


def _payload(changes: TableChanges, at: Int64Array, columns: Sequence[str]) -> pa.RecordBatch:
    arrays, names = [], []
    chosen = None if len(at) == len(changes) else pa.array(at)
    for side, rows in (("old", changes.before), ("new", changes.after)):
        for name in columns:
            column = rows.column(name)
            arrays.append(column if chosen is None else column.take(chosen))
            names.append(f"{side}.{name}")
    return pa.RecordBatch.from_arrays(arrays, names)
