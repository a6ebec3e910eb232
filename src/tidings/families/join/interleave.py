"""Changes of several tables, put into as few batches of one table as their order allows.

What a change sends depends on its own row and on rows with the same join values. So changes of different tables keep their
order only where they have a join value in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tidings.families.join.junction import Junction
from tidings.families.join.rows import can_join
from tidings.families.join.subscription import Space
from tidings.kernels.rounds import NOTHING, rounds
from tidings.model.change import TableChanges, take_changes
from tidings.model.channel import channel_column, group_channels
from tidings.model.codes import Int64Array


def interleaved(space: Space, junctions: Sequence[Junction], batches: Sequence[TableChanges]) -> Iterator[TableChanges]:
    """The same changes, each table's a batch in sequence order, in batches that may be handled one after the other."""
    seq = np.concatenate([batch.seq for batch in batches])
    kind = np.repeat(np.arange(len(batches)), [len(batch) for batch in batches])
    place = np.concatenate([np.arange(len(batch)) for batch in batches])
    touched, size = _touched(space, junctions, batches)
    order = np.argsort(seq, kind="stable")
    at = rounds(kind[order], touched[order], size)
    # By round, then table; within these in sequence.
    chosen = np.lexsort((kind[order], at))
    key = at[chosen] * len(batches) + kind[order][chosen]
    for part in np.split(order[chosen], np.flatnonzero(np.diff(key)) + 1):
        yield take_changes(batches[kind[part[0]]], place[part])


def _touched(space: Space, junctions: Sequence[Junction], batches: Sequence[TableChanges]) -> tuple[Int64Array, int]:
    """What each change touches, as numbers: join values of its old and new row, and the row itself."""
    columns: list[Int64Array] = []
    first = 0
    for junction in junctions:
        for images in ("before", "after"):
            columns.append(_values(space, junction, batches, images))
    for junction, before, after in zip(junctions, columns[0::2], columns[1::2], strict=True):
        for column in (before, after):
            column[column != NOTHING] += first
        first += junction.values
    rows = [_rows(space, batch) for batch in batches]
    starts = first + np.cumsum([0, *(int(part.max(initial=-1)) + 1 for part in rows)])
    columns.append(np.concatenate([part + start for part, start in zip(rows, starts.tolist(), strict=False)]))
    return np.stack(columns, axis=1), int(starts[-1])


def _values(space: Space, junction: Junction, batches: Sequence[TableChanges], images: str) -> Int64Array:
    found = []
    for batch in batches:
        number = space.side_of(batch.table)
        if number not in junction.sides:
            found.append(np.full(len(batch), NOTHING, np.int64))
            continue
        rows, is_there = getattr(batch, images), batch.had if images == "before" else batch.has
        found.append(junction.end(number).number(rows, is_there & can_join(space, number, rows)))
    return np.concatenate(found)


def _rows(space: Space, batch: TableChanges) -> Int64Array:
    """Numbers of the rows that are changed."""
    table = space.sides[space.side_of(batch.table)].table
    keys = batch.known_rows(table.key)
    group, _ = group_channels([channel_column(table.column(n).type, keys.column(n))[0] for n in table.key], len(batch))
    return group
