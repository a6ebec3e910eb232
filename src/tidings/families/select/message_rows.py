"""The rows that messages carry, as versions that kernels read (`tidings.kernels.rows`): all old rows, then all new rows.

Most messages may match no subscription of a gateway. So `take` makes rows with only what matching needs: codes, and texts of
the columns whose codes are lossy. `shown` makes the rows that are in notifications again, with the texts of the output.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.families.select.kernels.match import hash_texts
from tidings.kernels.handles import handles_of
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
    """A `Store` of one table with the rows of n messages: versions 0 to n - 1 are old rows, n to 2n - 1 new rows."""

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

    @property
    def handles(self) -> I64:
        """Of the arrays of `rows`."""
        return handles_of(self.rows)

    def number(self, table: str) -> int:
        assert table == self._table.name
        return 0

    def current(self, table: int) -> I64:
        """Returns no versions: rows of messages are not current."""
        return np.empty(0, np.int64)

    def pack(self, versions: I64) -> Any:
        raise NotImplementedError("rows of messages are not kept")

    def unpack(self, state: Any) -> I64:
        raise NotImplementedError("rows of messages are not kept")

    def take(self, payload: pa.RecordBatch, constrained: Collection[int]) -> None:
        """Makes the versions of a payload, with what matching needs. constrained: numbers of columns with a predicate.

        Equality codes of other TEXT and BINARY columns only say whether the two rows of a message differ there.
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
        """Rows whose version i is versions[i] of the payload, with the texts of `columns` as the output shows them."""
        chosen = pa.array(versions)
        texts = {}
        for i in columns:
            values = _both(payload, self._table.columns[i].name)
            texts[i] = _shown_texts(values.take(chosen))
        return self._with_texts(np.zeros((len(versions), int(self._layout[0, WIDTH])), np.int64), texts)

    def _with_texts(self, words: I64, texts: dict[int, pa.Array]) -> Rows:
        """Rows from records [versions, words] and the texts of some columns; the texts of other columns are empty."""
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
    """The valid bit of the column, shifted to its place in the mask, [rows]."""
    return np.asarray(values.is_valid()).astype(np.int64) << np.int64(column & 63)


def _both(payload: pa.RecordBatch, name: str) -> pa.Array:
    """A column of the old rows, then of the new rows."""
    return pa.concat_arrays([payload.column(f"old.{name}"), payload.column(f"new.{name}")])


def _comparable_texts(type: ColumnType, values: pa.Array) -> pa.Array:
    """Texts that are equal exactly if the values are; TEXT as JSON, like the constants of predicates."""
    if type is ColumnType.TEXT:
        return json_texts(values.fill_null("") if values.null_count else values).cast(pa.large_binary())
    if type is ColumnType.BINARY:
        return (values.fill_null(b"") if values.null_count else values).cast(pa.large_binary())
    return pa.array(value_texts(values), pa.large_string()).cast(pa.large_binary())


def _shown_texts(values: pa.Array) -> pa.Array:
    """Texts as the output shows them. Equal values, as of columns that did not change, become text once."""
    if not (pa.types.is_float64(values.type) or pa.types.is_int64(values.type) or pa.types.is_string(values.type)):
        return pa.array(value_texts(values), pa.large_string()).cast(pa.large_binary())
    # Doubles are told apart by their bits: 0.0 equals -0.0, but does not look the same.
    keys = values.view(pa.int64()) if pa.types.is_float64(values.type) else values
    encoded = keys.dictionary_encode(null_encoding="encode")
    texts = pa.array(value_texts(encoded.dictionary.view(values.type)), pa.large_string()).cast(pa.large_binary())
    return texts.take(encoded.indices)


def _hashes(texts: pa.Array) -> I64:
    offsets, data = _buffers(texts)
    hashes = np.empty(len(texts), np.int64)
    hash_texts(data, offsets[1:], hashes)
    return hashes


def _buffers(texts: pa.Array) -> tuple[I64, U8]:
    """(offsets of the texts, from 0 on; their bytes), as arrays for kernels, which want them writable and not empty."""
    _, offsets_buffer, data_buffer = texts.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int64, len(texts) + 1, texts.offset * 8)
    start, stop = int(offsets[0]), int(offsets[-1])
    if stop == start:
        return offsets - start, np.zeros(1, np.uint8)
    return offsets - start, np.frombuffer(data_buffer, np.uint8, stop - start, start).copy()
