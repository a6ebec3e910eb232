"""Changes to tables: what they do, when, and columnar batches with full before and after images."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import pyarrow as pa

from tidings.model.codes import BoolArray, Int64Array

SEQ_MAX = 2**63 - 2
NO_TIME = -(2**63)
"""Instead of the time of a change, in microseconds, where it is not known."""
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
SEQ_NEXT = 0
"""Means "the next free sequence number", for sources that order their records but do not number them."""


class Op(IntEnum):
    INSERT = 0
    UPDATE = 1
    UPSERT = 2
    DELETE = 3


OP_NAMES = {op.name.lower(): op for op in Op}


@dataclass(frozen=True)
class TableChanges:
    """Accepted changes of one table in sequence order, each with the row before and the row after.

    Where `had[i]` (`has[i]`) is false there was (is) no row, and the image holds nulls.
    """

    table: str
    seq: Int64Array
    had: BoolArray
    before: pa.RecordBatch
    has: BoolArray
    after: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.seq)

    def slice(self, start: int, stop: int) -> TableChanges:
        before, after = (rows.slice(start, stop - start) for rows in (self.before, self.after))
        return TableChanges(self.table, self.seq[start:stop], self.had[start:stop], before, self.has[start:stop], after)


def concat_batches(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """One record batch out of several with the same schema."""
    if len(batches) == 1:
        return batches[0]
    schema = batches[0].schema
    return pa.RecordBatch.from_arrays(
        [pa.concat_arrays([batch.column(i) for batch in batches]) for i in range(len(schema))], schema=schema
    )


def micros_of(time: dt.datetime) -> int:
    """Microseconds since 1970."""
    return (time - _EPOCH) // dt.timedelta(microseconds=1)
