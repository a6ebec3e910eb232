"""Changes as stages and region servers take them: batches as they arrive, and runs of changes with both images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.model.change import TableChanges, concat_batches
from tidings.model.codes import BoolArray, Int64Array


@dataclass(frozen=True)
class ChangeBatch:
    """Typed changes of one table in arrival order; a delete's row may hold the key alone.

    `position` orders records of the whole input; `raw` keeps each record's text for quarantine (None: not kept).
    """

    table: str
    position: Int64Array
    seq: Int64Array
    op: npt.NDArray[np.int8]
    rows: pa.RecordBatch
    raw: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.seq)

    def take(self, at: Int64Array | BoolArray) -> ChangeBatch:
        picked = np.flatnonzero(at) if at.dtype == np.bool_ else at
        if len(picked) == len(self) and (len(picked) == 0 or bool((picked == np.arange(len(picked))).all())):
            return self
        chosen = pa.array(picked)
        raw = None if self.raw is None else self.raw.take(chosen)
        return ChangeBatch(
            self.table, self.position[picked], self.seq[picked], self.op[picked], self.rows.take(chosen), raw
        )

    def slice(self, start: int, stop: int) -> ChangeBatch:
        raw = None if self.raw is None else self.raw.slice(start, stop - start)
        rows = self.rows.slice(start, stop - start)
        return ChangeBatch(self.table, self.position[start:stop], self.seq[start:stop], self.op[start:stop], rows, raw)

    @staticmethod
    def concat(batches: Sequence[ChangeBatch]) -> ChangeBatch:
        """Joins batches of one table, in the order given."""
        if len(batches) == 1:
            return batches[0]
        raws = [batch.raw for batch in batches]
        return ChangeBatch(
            batches[0].table,
            np.concatenate([batch.position for batch in batches]),
            np.concatenate([batch.seq for batch in batches]),
            np.concatenate([batch.op for batch in batches]),
            concat_batches([batch.rows for batch in batches]),
            None if any(raw is None for raw in raws) else pa.concat_arrays(raws),
        )


def known_rows(changes: TableChanges, names: Sequence[str] | None = None) -> pa.RecordBatch:
    """The new row of each change, or the old row of a delete. names: columns; None: all."""
    after, before = ((rows if names is None else rows.select(names)) for rows in (changes.after, changes.before))
    if changes.has.all():
        return after
    at = np.where(changes.has, 0, len(changes)) + np.arange(len(changes))
    return concat_batches([after, before]).take(pa.array(at))


def concat_changes(batches: Sequence[TableChanges]) -> TableChanges:
    """Joins batches of one table, in the order given."""
    if len(batches) == 1:
        return batches[0]
    return TableChanges(
        batches[0].table,
        np.concatenate([batch.seq for batch in batches]),
        np.concatenate([batch.had for batch in batches]),
        concat_batches([batch.before for batch in batches]),
        np.concatenate([batch.has for batch in batches]),
        concat_batches([batch.after for batch in batches]),
    )


def take_changes(changes: TableChanges, at: Int64Array) -> TableChanges:
    if len(at) == len(changes) and bool((at == np.arange(len(at))).all()):
        return changes
    chosen = pa.array(at)
    return TableChanges(
        changes.table,
        changes.seq[at],
        changes.had[at],
        changes.before.take(chosen),
        changes.has[at],
        changes.after.take(chosen),
    )


def runs_of(batches: Sequence[TableChanges]) -> Iterator[TableChanges]:
    """Changes of several tables in sequence order, as runs of one table. batches: one per table, sorted by seq."""
    if len(batches) == 1:
        yield batches[0]
        return
    seq = np.concatenate([np.empty(0, np.int64), *(batch.seq for batch in batches)])
    source = np.concatenate([np.empty(0, np.int64), *(np.full(len(b), i) for i, b in enumerate(batches))])
    place = np.concatenate([np.empty(0, np.int64), *(np.arange(len(batch)) for batch in batches)])
    order = np.argsort(seq, kind="stable")
    source, place = source[order], place[order]
    cuts = [*np.flatnonzero(np.diff(source, prepend=-1)).tolist(), len(source)]
    for start, stop in pairwise(cuts):
        yield take_changes(batches[source[start]], place[start:stop])


def null_rows(like: pa.RecordBatch) -> pa.RecordBatch:
    """As many rows of nulls as the batch has rows."""
    arrays = [pa.nulls(like.num_rows, field.type) for field in like.schema]
    return pa.RecordBatch.from_arrays(arrays, schema=like.schema)
