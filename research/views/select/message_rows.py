"""The rows that messages carry, as versions that kernels read (`tidings.kernels.rows`): all old rows, then all new rows.

Most messages may match no subscription of a gateway. So `take` makes rows with only what matching needs: codes, and texts of
the columns whose codes are lossy. `shown` makes the rows that are in notifications again, with the texts of the output.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from research.strategies.select.reformulate import same_values
from tidings.families.select.kernels.match import hash_texts
from tidings.kernels.handles import handles_of
from tidings.kernels.rows import (
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


class _Texts(NamedTuple):
    """Texts of a column: that of version i is distinct[number[i]]."""

    distinct: pa.Array
    """Of large_binary."""
    number: NDArray[Any]


class MessageRows:
    """A `RowSource` of one table with the rows of n messages: versions 0 to n - 1 are old rows, n to 2n - 1 new rows."""

    def __init__(self, table: Table) -> None:
        self._table = table
        count = len(table.columns)
        self._layout = np.full((1, LAYOUT_FIELDS), NONE, np.int64)
        codes = RECORD_VALID + (count + 63) // 64
        self._layout[0, [COLUMNS, VALID, CODES]] = count, RECORD_VALID, codes
        self._layout[0, [EQUALS, ENDS, WIDTH]] = codes + count, codes + 2 * count, codes + 3 * count
        self._kinds = np.full((1, count), EXACT, np.int32)
        self._keys = np.full((1, count), NONE, np.int32)
        self.rows = self._rows(np.zeros((0, codes + 3 * count), np.int64), np.zeros(1, np.uint8))

    @property
    def handles(self) -> I64:
        """Of the arrays of `rows`."""
        return handles_of(self.rows)

    def number(self, table: str) -> int:
        assert table == self._table.name
        return 0

    def take(self, payload: pa.RecordBatch, constrained: Collection[int]) -> None:
        """Makes the versions of a payload, with what matching needs. constrained: numbers of columns with a predicate.

        Of other columns, equality codes only say whether the two rows of a message differ there.
        """
        count, layout, kinds = payload.num_rows, self._layout[0], self._kinds.copy()
        words = np.zeros((2 * count, int(layout[WIDTH])), np.int64)
        valid = np.zeros((2 * count, int(layout[CODES]) - RECORD_VALID), np.int64)
        texts: dict[int, _Texts] = {}
        for i, column in enumerate(self._table.columns):
            if payload.schema.get_field_index(f"new.{column.name}") < 0:
                continue
            old, new = (payload.column(f"{side}.{column.name}") for side in ("old", "new"))
            valid[:count, i >> 6] |= _bits(old, i)
            valid[count:, i >> 6] |= _bits(new, i)
            codes, equals = words[:, layout[CODES] + i], words[:, layout[EQUALS] + i]
            if i not in constrained:
                equals[count:] = ~same_values(old, new)
            elif column.type is ColumnType.TEXT:
                kinds[0, i] = TEXT
                encoded = pa.concat_arrays([old, new]).fill_null("").dictionary_encode()
                texts[i] = _Texts(json_texts(encoded.dictionary).cast(pa.large_binary()), np.asarray(encoded.indices))
                codes[:] = codes_of(column.type, encoded.dictionary)[0][texts[i].number]
                equals[:] = _hashes(texts[i].distinct)[texts[i].number]
            else:
                codes[:] = equals[:] = codes_of(column.type, pa.concat_arrays([old, new]))[0]
        words[:, RECORD_VALID : layout[CODES]] = valid
        self.rows = self._with_texts(words, texts)._replace(kinds=kinds)

    def shown(self, payload: pa.RecordBatch, versions: Int64Array, columns: Sequence[int]) -> Rows:
        """Rows whose version i is versions[i] of the payload, with the texts of `columns` as the output shows them."""
        chosen = pa.array(versions)
        names = {i: self._table.columns[i].name for i in columns}
        texts = {
            i: _shown_texts(
                pa.concat_arrays([payload.column(f"{side}.{name}") for side in ("old", "new")]).take(chosen)
            )
            for i, name in names.items()
        }
        return self._with_texts(np.zeros((len(versions), int(self._layout[0, WIDTH])), np.int64), texts)

    def _with_texts(self, words: I64, texts: dict[int, _Texts]) -> Rows:
        """Rows from records [versions, words] and the texts of some columns; the texts of other columns are empty."""
        data, ends = np.zeros(1, np.uint8), words[:, self._layout[0, ENDS] : self._layout[0, WIDTH]]
        if len(texts) == 1:
            (i, (distinct, number)) = next(iter(texts.items()))
            offsets, data = _buffers(distinct)
            words[:, RECORD_TEXT] = offsets[:-1][number]
            ends[:, i:] = np.diff(offsets)[number, None]
        elif texts and len(words):
            columns = {i: distinct.take(pa.array(number)) for i, (distinct, number) in texts.items()}
            offsets, data = _buffers(pc.binary_join_element_wise(*columns.values(), pa.scalar(b"", pa.large_binary())))
            words[:, RECORD_TEXT] = offsets[:-1]
            for i, column in columns.items():
                ends[:, i] = np.diff(_buffers(column)[0])
            np.cumsum(ends, axis=1, out=ends)
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
    """The valid bit of each value at its column's place in the mask, [values]; one for all if all have the same."""
    bit = np.ones(1, np.int64) << np.int64(column & 63)
    if values.null_count in (0, len(values)):
        return bit if values.null_count == 0 else bit * 0
    bits: I64 = np.asarray(values.is_valid()) * bit
    return bits


def _shown_texts(values: pa.Array) -> _Texts:
    """Texts as the output shows them. Equal values, as of columns that did not change, become text once."""
    number = np.arange(len(values))
    if pa.types.is_float64(values.type) or pa.types.is_int64(values.type) or pa.types.is_string(values.type):
        encoded = values.dictionary_encode(null_encoding="encode")
        values, number = encoded.dictionary, np.asarray(encoded.indices)
    return _Texts(pa.array(value_texts(values), pa.large_string()).cast(pa.large_binary()), number)


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
