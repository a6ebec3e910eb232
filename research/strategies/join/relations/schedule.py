"""Changes of several tables, put into as few batches of one table as their order allows.

The messages of a change depend on its own row and on rows with the same join values. So changes of different tables must keep
their order only if they have a join value in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from research.servers.changes import known_rows, take_changes
from research.strategies.join.kernels.schedule import schedule
from research.strategies.join.relations.join_index import JoinIndex
from tidings.kernels.rows import NONE
from tidings.model.change import TableChanges
from tidings.model.channel import channel_column, group_channels
from tidings.model.codes import Int64Array

Edges = Sequence[Mapping[str, JoinIndex]]
"""For each edge: table -> its index."""


def scheduled(edges: Edges, batches: Sequence[TableChanges]) -> Iterator[TableChanges]:
    """The changes in batches of one table each, to be handled one after the other. batches: one per table, sorted by seq."""
    seq = np.concatenate([batch.seq for batch in batches])
    kind = np.repeat(np.arange(len(batches)), [len(batch) for batch in batches])
    place = np.concatenate([np.arange(len(batch)) for batch in batches])
    touched, size = _touched(edges, batches)
    order = np.argsort(seq, kind="stable")
    at = schedule(kind[order], touched[order], size)
    # By round, then by table, then by seq.
    chosen = np.lexsort((kind[order], at))
    key = at[chosen] * len(batches) + kind[order][chosen]
    for part in np.split(order[chosen], np.flatnonzero(np.diff(key)) + 1):
        yield take_changes(batches[kind[part[0]]], place[part])


def _touched(edges: Edges, batches: Sequence[TableChanges]) -> tuple[Int64Array, int]:
    """(numbers of the join values of each change's old and new row and of the row itself, [changes, columns]; their count)."""
    columns: list[Int64Array] = []
    first = 0
    for edge in edges:
        both = [_values(edge, batches, images) for images in ("before", "after")]
        for column in both:
            column[column != NONE] += first
        columns += both
        first += next(iter(edge.values())).values
    tables = {index.side.table.name: index.side.table for edge in edges for index in edge.values()}
    rows = []
    for batch in batches:
        table = tables[batch.table]
        keys = known_rows(batch, table.key)
        names = [channel_column(table.column(n).type, keys.column(n))[0] for n in table.key]
        rows.append(group_channels(names, len(batch))[0])
    starts = first + np.cumsum([0, *(int(part.max(initial=-1)) + 1 for part in rows)])
    columns.append(np.concatenate([part + start for part, start in zip(rows, starts.tolist(), strict=False)]))
    return np.stack(columns, axis=1), int(starts[-1])


def _values(edge: Mapping[str, JoinIndex], batches: Sequence[TableChanges], images: str) -> Int64Array:
    found = []
    for batch in batches:
        if batch.table in edge:
            rows, is_there = getattr(batch, images), batch.had if images == "before" else batch.has
            found.append(edge[batch.table].number(rows, is_there))
        else:
            found.append(np.full(len(batch), NONE, np.int64))
    return np.concatenate(found)
