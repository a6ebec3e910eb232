"""Texts and binaries that are in a message twice, as in the old and the new row of an update, are sent once.

Which columns may repeat which follows from their names and is not sent: `new.note` may repeat `old.note`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from research.wire.layout import is_text
from tidings.model.codes import BoolArray

REPEATED_BYTES_MIN = 16
"""Shorter values are sent twice: a repeat mark would save little."""


@lru_cache(maxsize=1024)
def repeatable(payload: pa.Schema) -> tuple[tuple[int, int], ...]:
    """(earlier, later) columns of one type whose names agree behind the first dot; each is in at most one pair."""
    found = []
    waiting: dict[tuple[str, pa.DataType], int] = {}
    for number, field in enumerate(payload):
        side, dot, name = field.name.partition(".")
        if dot and side and is_text(field.type):
            earlier = waiting.pop((name, field.type), None)
            if earlier is None:
                waiting[name, field.type] = number
            else:
                found.append((earlier, number))
    return tuple(found)


def repeated(payload: pa.RecordBatch) -> BoolArray:
    """[messages, pairs]: whether the later column has the same long value as the earlier one."""
    pairs = repeatable(payload.schema)
    found = np.zeros((payload.num_rows, len(pairs)), np.bool_)
    for i, (earlier, later) in enumerate(pairs):
        a, b = payload.column(earlier), payload.column(later)
        is_long = pc.greater_equal(pc.binary_length(a), REPEATED_BYTES_MIN)
        found[:, i] = np.asarray(pc.and_(is_long, pc.equal(a, b)).fill_null(False))
    return found


def restored(columns: Sequence[pa.Array], pairs: Sequence[tuple[int, int]], repeats: BoolArray) -> list[pa.Array]:
    """The columns of a payload with repeated values filled in. repeats: [messages, pairs]."""
    whole = list(columns)
    for i, (earlier, later) in enumerate(pairs):
        if repeats[:, i].any():
            whole[later] = pc.if_else(pa.array(repeats[:, i]), whole[earlier], whole[later])
    return whole
