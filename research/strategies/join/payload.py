"""What join messages carry: rows of any side in one schema, the number of the side and the columns of each side (else null)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from research.servers.message import MessageBatch
from research.strategies.join.space import Side, Space, space_of
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges, concat_batches
from tidings.model.codes import BoolArray, Int64Array, codes_of

SIDE = "side"
PLACED, GONE = 1, 2
"""Tags of boxes: subscriptions in a PLACED box hold the row, those in GONE boxes only drop it."""
ALL_SIDES = -1
"""Number of the side of whole joined rows."""


@lru_cache(maxsize=4096)
def schema_of(space: Space) -> pa.Schema:
    """The schema of payloads of messages and snapshots."""
    fields = [pa.field(SIDE, pa.int8())]
    for number, side in enumerate(space.sides):
        fields.extend(pa.field(f"{number}.{name}", side.table.schema.field(name).type) for name in side.payload)
    return pa.schema(fields)


def project(space: Space, number: int, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of one side as a payload of a space."""
    columns: list[pa.Array] = []
    for field in schema_of(space):
        side, _, name = field.name.partition(".")
        if field.name == SIDE:
            columns.append(pa.array(np.full(rows.num_rows, number, np.int8)))
        elif int(side) == number:
            columns.append(rows.column(name))
        else:
            columns.append(pa.nulls(rows.num_rows, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema_of(space))


def payload_of(form: Form, messages: MessageBatch, catalog: Catalog) -> pa.RecordBatch:
    """The payload of messages of a shared semijoin, in the schema of one of the forms that share it."""
    space = space_of(form, catalog)
    return project(space, space.side_of(Form.from_key(messages.form).variant), messages.payload)


def keys_of(side: Side, rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with all columns null except the key."""
    columns = [
        rows.column(name) if name in side.table.key else pa.nulls(rows.num_rows, rows.schema.field(name).type)
        for name in rows.schema.names
    ]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def told_rows(side: Side, changes: TableChanges, told: Int64Array, is_placed: BoolArray) -> pa.RecordBatch:
    """Payload rows of the changes `told`: the new row if the change is placed, else the key of the old row."""
    after, before = (rows.select(side.payload) for rows in (changes.after, changes.before))
    if is_placed[told].all():
        return after.take(pa.array(told))
    if not is_placed[told].any():
        return keys_of(side, before.take(pa.array(told)))
    rows = concat_batches([after, keys_of(side, before)])
    return rows.take(pa.array(np.where(is_placed[told], told, told + len(changes))))


@dataclass(frozen=True)
class Codes:
    """Codes of the columns with a predicate, and which rows can be selected at all: those without null there."""

    codes: Int64Array
    """[rows, columns]"""
    counts: BoolArray


def codes_in(side: Side, rows: pa.RecordBatch, present: BoolArray) -> Codes:
    counts = present.copy()
    codes = np.empty((rows.num_rows, len(side.columns)), np.int64)
    for i, column in enumerate(side.columns):
        codes[:, i], valid = codes_of(column.type, rows.column(column.name))
        counts &= valid
    return Codes(codes, counts)


def fits(side: Side, codes: Int64Array, coords: Int64Array) -> BoolArray:
    """Whether each row satisfies the predicates of one point on the side, [rows]."""
    ends = coords[side.coords]
    fitting = np.ones(len(codes), np.bool_)
    for i in range(codes.shape[1]):
        fitting &= (codes[:, i] >= ends[2 * i]) & (codes[:, i] <= ends[2 * i + 1])
    return fitting
