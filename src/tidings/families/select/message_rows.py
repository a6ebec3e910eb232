"""The rows that messages carry, as versions that compiled loops read (`tidings.kernels.rows`): the old ones, then the new.

Most of a micro-batch's messages may concern nobody here. So rows first get only what is needed to decide that: codes, and
texts of the columns that codes do not say all of. Those that somebody is told of are made again, as output shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.families.select.kernels.match import hash_texts
from tidings.kernels.rows import (
    BINARY,
    CODES,
    COLUMNS,
    ENDS,
    EQUALS,
    EXACT,
    I64,
    NONE,
    PAGE,
    RECORD_TEXT,
    RECORD_VALID,
    TEXT,
    U8,
    VALID,
    WIDTH,
    Rows,
)
from tidings.kernels.rows.read import LAYOUT_FIELDS
from tidings.model.catalog import Table
from tidings.model.codes import Int64Array, codes_of
from tidings.model.render import json_texts, value_texts
from tidings.model.types import ColumnType

_KINDS = {ColumnType.TEXT: TEXT, ColumnType.BINARY: BINARY, ColumnType.POINT: BINARY, ColumnType.BOX: BINARY}


class MessageRows:
    """Old and new rows of n messages of one table: versions 0 to n, and n to 2n. It is a `Store` of one table."""

    def __init__(self, table: Table) -> None:
        self._table = table
        count = len(table.columns)
        self._layout = np.full((1, LAYOUT_FIELDS), NONE, np.int64)
        codes = RECORD_VALID + (count + 63) // 64
        self._layout[0, [COLUMNS, VALID, CODES]] = count, RECORD_VALID, codes
        self._layout[0, [EQUALS, ENDS, WIDTH]] = codes + count, codes + 2 * count, codes + 3 * count
        self._kinds = np.array([[_KINDS.get(column.type, EXACT) for column in table.columns]], np.int32)
        self._keys = np.full((1, count), NONE, np.int32)
        self.rows = self._rows(np.zeros((0, codes + 3 * count), np.int64), np.zeros(1, np.uint8))

    def number(self, table: str) -> int:
        assert table == self._table.name
        return 0

    def current(self, table: int) -> I64:
        """No row of a message is current."""
        return np.empty(0, np.int64)

    def pack(self, versions: I64) -> Any:
        raise NotImplementedError("rows of messages are not kept")

    def unpack(self, state: Any) -> I64:
        raise NotImplementedError("rows of messages are not kept")

    def take(self, payload: pa.RecordBatch, constrained: Collection[int]) -> None:
        """Makes the rows that a payload carries, with what is needed to find out whom they concern.

        Of texts that nobody constrains this is whether the two rows of a message differ: their equality codes say no more.
        """
        count, layout, kinds = payload.num_rows, self._layout[0], self._kinds.copy()
        words = np.zeros((2 * count, int(layout[WIDTH])), np.int64)
        texts: dict[int, pa.Array] = {}
        for i, column in enumerate(self._table.columns):
            if payload.schema.get_field_index(f"new.{column.name}") < 0:
                continue
            if i not in constrained and column.type in (ColumnType.TEXT, ColumnType.BINARY):
                old, new = (payload.column(f"{side}.{column.name}") for side in ("old", "new"))
                for first, part in ((0, old), (count, new)):
                    words[first : first + count, RECORD_VALID + (i >> 6)] |= _bits(part, i)
                words[count:, layout[EQUALS] + i] = np.asarray(pc.not_equal(old, new).fill_null(True))
                kinds[0, i] = EXACT
                continue
            values = _both(payload, column.name)
            if column.type.is_comparable:
                codes, valid = codes_of(column.type, values)
                words[:, layout[CODES] + i] = words[:, layout[EQUALS] + i] = codes
            else:
                valid = np.asarray(values.is_valid())
            words[:, RECORD_VALID + (i >> 6)] |= valid.astype(np.int64) << np.int64(i & 63)
            if self._kinds[0, i] != EXACT:
                texts[i] = _comparable_texts(column.type, values)
                words[:, layout[EQUALS] + i] = _hashes(texts[i])
        self.rows = self._with_texts(words, texts)._replace(kinds=kinds)

    def shown(self, payload: pa.RecordBatch, versions: Int64Array, columns: Sequence[int]) -> Rows:
        """Some of the versions made again, numbered as they come here, with the texts that output shows of some columns."""
        chosen = pa.array(versions)
        texts = {}
        for i in columns:
            values = _both(payload, self._table.columns[i].name)
            texts[i] = pa.array(value_texts(values.take(chosen)), pa.large_string()).cast(pa.large_binary())
        return self._with_texts(np.zeros((len(versions), int(self._layout[0, WIDTH])), np.int64), texts)

    def _with_texts(self, words: I64, texts: dict[int, pa.Array]) -> Rows:
        """Records with the texts of some columns; of others they are empty."""
        data = np.zeros(1, np.uint8)
        if texts and len(words):
            joined = pc.binary_join_element_wise(*texts.values(), pa.scalar(b"", pa.large_binary()))
            offsets, data = _buffers(joined)
            words[:, RECORD_TEXT] = offsets[:-1]
            ends = int(self._layout[0, ENDS])
            for i, column in texts.items():
                words[:, ends + i] = np.diff(_buffers(column)[0])
            np.cumsum(words[:, ends : ends + len(self._table.columns)], axis=1, out=words[:, ends:])
        return self._rows(words, data)

    def _rows(self, words: I64, text: U8) -> Rows:
        total, width = words.shape
        pages = total // PAGE + 1
        make: Callable[[int, Any], Any] = np.zeros
        return Rows(
            np.arange(pages) * (PAGE * width),
            make(pages, np.int32),
            np.full(pages, NONE, np.int32),
            words.reshape(-1),
            text,
            make(total, np.uint8),
            make(total, np.int32),
            make(total, np.int64),
            make(total, np.int64),
            self._layout,
            self._kinds,
            self._keys,
        )


def _bits(values: pa.Array, column: int) -> I64:
    """The valid bits of a column."""
    return np.asarray(values.is_valid()).astype(np.int64) << np.int64(column & 63)


def _both(payload: pa.RecordBatch, name: str) -> pa.Array:
    """A column of the old rows and of the new ones."""
    return pa.concat_arrays([payload.column(f"old.{name}"), payload.column(f"new.{name}")])


def _comparable_texts(type: ColumnType, values: pa.Array) -> pa.Array:
    """Texts that are equal where values are; of TEXT as predicates have them."""
    if type is ColumnType.TEXT:
        return json_texts(values.fill_null("") if values.null_count else values).cast(pa.large_binary())
    if type is ColumnType.BINARY:
        return (values.fill_null(b"") if values.null_count else values).cast(pa.large_binary())
    return pa.array(value_texts(values), pa.large_string()).cast(pa.large_binary())


def _hashes(texts: pa.Array) -> I64:
    offsets, data = _buffers(texts)
    hashes = np.empty(len(texts), np.int64)
    hash_texts(data, offsets[1:], hashes)
    return hashes


def _buffers(texts: pa.Array) -> tuple[I64, U8]:
    """Offsets of texts, from 0 on, and their bytes, as kernels take them: writable, and never empty."""
    _, offsets_buffer, data_buffer = texts.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64, len(texts) + 1, texts.offset * 8)
    start, stop = int(offsets[0]), int(offsets[-1])
    if stop == start:
        return offsets - start, np.zeros(1, np.uint8)
    return offsets - start, np.frombuffer(data_buffer, np.uint8, stop - start, start).copy()
