"""Versions of the rows of all tables, in arrays that grow; current rows are found by primary key.

Kernels in `tidings.kernels.rows` write and read the arrays; `RowVersions` owns them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from json.encoder import encode_basestring
from typing import Any

import numpy as np

from tidings.kernels.handles import handles_of
from tidings.kernels.rows import BINARY as BINARY_KIND
from tidings.kernels.rows import CODES, ENDS, EXACT, I64, LIVE, NONE, PAGE, PAGE_BITS, VALID, WIDTH, Rows
from tidings.kernels.rows import TEXT as TEXT_KIND
from tidings.kernels.rows.change import (
    COUNTS,
    EMPTY,
    FOREVER,
    INDEXED,
    PAGES,
    TEXT_END,
    WORDS,
    Keys,
    current_versions,
    reindex,
    take_version,
)
from tidings.kernels.rows.read import (
    COLUMNS,
    EQUALS,
    FIRST_PAGE,
    FREE,
    I32,
    IS_KEPT,
    LAYOUT_FIELDS,
    RECORD_TEXT,
    RECORD_VALID,
)
from tidings.kernels.rows.scan import (
    BIGINT,
    BOOLEAN,
    COMPILED,
    DATE,
    DOUBLE,
    INT,
    OTHER,
    TEXT_TYPE,
    TIMESTAMP,
    Names,
    write_versions,
)
from tidings.model.catalog import Catalog, Table
from tidings.model.types import ColumnType
from tidings.pipeline.replica.row_dump import described, former_tables, widened
from tidings.pipeline.replica.row_texts import bytes_of

_TYPES = {
    ColumnType.BIGINT: BIGINT,
    ColumnType.INT: INT,
    ColumnType.DOUBLE: DOUBLE,
    ColumnType.TEXT: TEXT_TYPE,
    ColumnType.BOOLEAN: BOOLEAN,
    ColumnType.DATE: DATE,
    ColumnType.TIMESTAMP: TIMESTAMP,
}
_KINDS = {ColumnType.TEXT: TEXT_KIND, ColumnType.BINARY: BINARY_KIND}
Record = tuple[int, Sequence[bytes | None], Sequence[int]]
"""Table, texts and codes of a row that is to be written."""
_PACKED_MAX = 1 << 17
"""Versions packed into one part: all together could be more than a part of a message may have, which is 4 GiB."""


class RowVersions:
    """Versions of the rows of all tables."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._former = former_tables(described(catalog), catalog)
        """Tables of packed rows, by their numbers there: those of the dump that was loaded, if there was one."""
        self._numbers = {table.name: number for number, table in enumerate(catalog.tables)}
        columns_max = max((len(table.columns) for table in catalog.tables), default=1)
        self._layout = np.full((len(catalog.tables), LAYOUT_FIELDS), NONE, np.int64)
        self._kinds = np.full((len(catalog.tables), columns_max), EXACT, np.int32)
        self._key_columns = np.full((len(catalog.tables), columns_max), NONE, np.int32)
        for number, table in enumerate(catalog.tables):
            self._lay_out(number, table)
        self._widest = int(self._layout[:, WIDTH].max(initial=1))
        self._pages: tuple[Any, ...] = (np.zeros(4, np.int64), np.zeros(4, np.int32), np.full(4, NONE, np.int32))
        self._words = np.zeros(4 * PAGE * self._widest, np.int64)
        self._text = np.zeros(1 << 16, np.uint8)
        self._versions = self._version_arrays(4 * PAGE)
        self.keys = Keys(np.full(1024, EMPTY, np.int64), np.zeros(COUNTS, np.int64))
        self.traffic = np.zeros((len(catalog.tables), 2), np.int64)
        """[tables, 2]: accepted changes, and bytes of their values."""
        self._names = self._named()
        self._retained = np.empty(0, np.int64)
        self._retained_kept = 0
        self._removed = 0
        """Rows that the micro-batch has removed from `keys` so far, and that `current` still gives."""
        self._renew()

    @property
    def nbytes(self) -> int:
        parts = (self._words, self._text, *self._versions, *self._pages, self.keys.places, self._retained)
        return sum(part.nbytes for part in parts)

    @property
    def types(self) -> I32:
        """Types of columns as `tidings.kernels.rows.scan` numbers them, [tables, columns at most]."""
        return self._names.types

    def number(self, table: str) -> int:
        return self._numbers[table]

    def count(self, table: int) -> int:
        """How many rows the table has."""
        return int(self._layout[table, LIVE])

    @property
    def row_count(self) -> int:
        """How many rows all tables have."""
        return int(self._layout[:, LIVE].sum())

    def current(self, table: int) -> I64:
        """Versions of the table's current rows as before the micro-batch that is being applied, if there is one."""
        room = np.empty(self.count(table) + self._removed + 1, np.int64)
        return room[: current_versions(self.rows, table, room)]

    def texts(self, table: str) -> Iterator[list[bytes]]:
        """The values of the table's rows as in the output, `null` for null; as after the lines that were read last."""
        number, places = self.number(table), self.keys.places
        known = places[places >= 0]
        versions = known[self._pages[1][known >> PAGE_BITS] == number]
        return (self._texts(number, version) for version in np.sort(versions).tolist())

    def texts_of(self, version: int) -> list[bytes]:
        """The values of a version, as `texts` gives them."""
        return self._texts(int(self._pages[1][version >> PAGE_BITS]), version)

    def _texts(self, table: int, version: int) -> list[bytes]:
        layout = self._layout[table]
        record = int(self._pages[0][version >> PAGE_BITS]) + (version & (PAGE - 1)) * int(layout[WIDTH])
        first = record + int(layout[ENDS])
        cuts = [0, *self._words[first : first + int(layout[COLUMNS])].tolist()]
        start = int(self._words[record + RECORD_TEXT])
        text = self._text[start : start + cuts[-1]].tobytes()
        return [text[a:b] for a, b in pairwise(cuts)]

    def put(self, table: int, texts: Sequence[bytes | None], codes: Sequence[int]) -> int:
        """Makes a version from values and returns it. texts: as in the output, None for null; codes: as from `code_of`."""
        return int(self._put_all([(table, texts, codes)])[0])

    def _put_all(self, records: Sequence[Record]) -> I64:
        """Makes versions from (table, texts, codes) of each, as `put` does."""
        parts: list[bytes] = []
        cells = np.zeros((len(records), self._kinds.shape[1], 4), np.int64)
        end = 0
        for number, (_, texts, codes) in enumerate(records):
            row = []
            for text, code in zip(texts, codes, strict=True):
                start, end = end, end + len(text or b"")
                row.append((start, end, code, text is not None))
            parts += [text for text in texts if text]
            cells[number, : len(row)] = row
        self._reserve_text(end + 4 * self._kinds.shape[1] * len(records))
        tables = np.array([table for table, _, _ in records], np.int64)
        versions = np.empty(len(records), np.int64)
        data, done = bytes_of(b"".join(parts)), 0
        while True:
            done = write_versions(self.rows, self.keys, tables, data, cells, versions, done)
            if done == len(records):
                return versions
            self._grow_pages(1)

    def pack(self, versions: I64) -> Any:
        """The values of these versions, for `unpack`, as something `tidings.model.blob.pack` takes."""
        return [
            self._pack_some(versions[start : start + _PACKED_MAX]) for start in range(0, len(versions), _PACKED_MAX)
        ]

    def _pack_some(self, versions: I64) -> dict[str, Any]:
        tables = self._pages[1][versions >> PAGE_BITS]
        order = np.argsort(tables, kind="stable")
        parts: dict[str, Any] = {"order": order}
        for number in np.unique(tables).tolist():
            parts[str(number)] = self._pack_table(number, versions[order[tables[order] == number]])
        return parts

    def unpack(self, state: Any) -> I64:
        """Makes new versions with the values that `pack` was given, in the same order. None of them is current."""
        versions = np.concatenate([np.empty(0, np.int64), *map(self._unpack_some, state)])
        self.rows.until[versions] = NONE
        self.rows.since[versions] = NONE
        self._retained = np.concatenate([self._retained, versions])
        return versions

    def _unpack_some(self, parts: dict[str, Any]) -> I64:
        order = parts["order"]
        made = []
        for key in sorted((key for key in parts if key.isdigit()), key=int):
            table = self._former[key]
            columns = int(self._layout[table.number, COLUMNS])
            made.append(self._unpack_table(table.number, widened(parts[key], table.columns, columns)))
        versions = np.empty(len(order), np.int64)
        versions[order] = np.concatenate([np.empty(0, np.int64), *made])
        return versions

    def _lay_out(self, number: int, table: Table) -> None:
        count = len(table.columns)
        codes = RECORD_VALID + (count + 63) // 64
        self._layout[number, [COLUMNS, VALID, CODES]] = count, RECORD_VALID, codes
        self._layout[number, [EQUALS, ENDS, WIDTH, LIVE]] = codes + count, codes + 2 * count, codes + 3 * count, 0
        self._layout[number, [FIRST_PAGE, FREE]] = NONE
        self._layout[number, IS_KEPT] = table.constraints.is_kept
        for at, column in enumerate(table.columns):
            self._kinds[number, at] = _KINDS.get(column.type, EXACT)
        for at, name in enumerate(table.key):
            self._key_columns[number, at] = table.column_names.index(name)

    def _named(self) -> Names:
        texts: list[bytes] = []
        size = 0

        def place(name: str) -> tuple[int, int]:
            nonlocal size
            text = encode_basestring(name).encode()
            texts.append(text)
            size += len(text)
            return size - len(text), size

        tables = self.catalog.tables
        names = np.array([place(table.name) for table in tables], np.int64).reshape(len(tables), 2)
        columns = np.zeros((*self._kinds.shape, 2), np.int64)
        types = np.full(self._kinds.shape, OTHER, np.int32)
        is_key = np.zeros(self._kinds.shape, np.int32)
        for number, table in enumerate(tables):
            for at, column in enumerate(table.columns):
                columns[number, at] = place(column.name)
                is_compiled = column.is_internal and column.type is ColumnType.BINARY
                types[number, at] = COMPILED if is_compiled else _TYPES.get(column.type, OTHER)
                is_key[number, at] = column.name in table.key
        is_read = np.array([not table.has_constraints for table in tables], np.int32)
        return Names(bytes_of(b"".join(texts)), names, columns.reshape(-1, 2), types, is_key, is_read)

    def _renew(self) -> None:
        """Gathers the arrays again, after some were replaced."""
        parts = (*self._pages, self._words, self._text, *self._versions, self._layout, self._kinds, self._key_columns)
        self.rows = Rows._make(parts)
        self.handles = handles_of((*parts, *self.keys, self.traffic, *self._names))
        """Of rows, keys, traffic and names: what compiled functions are given in place of two dozen arrays."""

    @staticmethod
    def _version_arrays(count: int) -> tuple[Any, ...]:
        return (
            np.zeros(count, np.uint8),
            np.zeros(count, np.int32),
            np.full(count, FOREVER, np.int64),
            np.full(count, NONE, np.int64),
        )

    def _grow_pages(self, more: int) -> None:
        """Makes room for `more` further pages; arrays that must grow at least double."""
        pages = max(2 * len(self._pages[0]), int(self.keys.counts[PAGES]) + more)
        if len(self._pages[0]) < int(self.keys.counts[PAGES]) + more:
            self._pages = tuple(longer(array, pages) for array in self._pages)
            fresh = self._version_arrays(pages * PAGE)
            for array, wide in zip(self._versions, fresh, strict=True):
                wide[: len(array)] = array
            self._versions = fresh
        needed = int(self.keys.counts[WORDS]) + more * PAGE * self._widest
        if needed > len(self._words):
            self._words = longer(self._words, max(needed, 2 * len(self._words)))
        self._renew()

    def _reserve_text(self, more: int) -> None:
        needed = int(self.keys.counts[TEXT_END]) + more
        if needed > len(self._text):
            self._text = longer(self._text, max(needed, 2 * len(self._text)))
            self._renew()

    def _reserve_keys(self, more: int) -> None:
        counts = self.keys.counts
        if 2 * (int(counts[INDEXED]) + more) <= len(self.keys.places):
            return
        live = int(self._layout[:, LIVE].sum())
        size = 1 << int(4 * (live + more)).bit_length()
        old, self.keys = self.keys.places, Keys(np.full(size, EMPTY, np.int64), counts)
        reindex(self.rows, old, self.keys)
        self._renew()

    def records(self, table: str, versions: I64) -> tuple[I64, I64]:
        """(records of versions of a table, [versions, words], how they are laid out)."""
        layout = self._layout[self.number(table)]
        return self._records(layout, versions), layout

    def _records(self, layout: I64, versions: I64) -> I64:
        width = int(layout[WIDTH])
        places = self._pages[0][versions >> PAGE_BITS] + (versions & (PAGE - 1)) * width
        found: I64 = self._words[places[:, None] + np.arange(width)]
        return found

    def _pack_table(self, number: int, versions: I64) -> dict[str, Any]:
        layout = self._layout[number]
        words = self._records(layout, versions)
        sizes = words[:, int(layout[ENDS]) + int(layout[COLUMNS]) - 1]
        starts = np.cumsum(sizes) - sizes
        text = np.empty(int(sizes.sum()), np.uint8)
        for start, to, size in zip(words[:, 1].tolist(), starts.tolist(), sizes.tolist(), strict=True):
            text[to : to + size] = self._text[start : start + size]
        words[:, 1] = starts
        return {"words": words[:, 1:], "text": text}

    def _unpack_table(self, number: int, part: Any) -> I64:
        words, text = part["words"], part["text"]
        width = int(self._layout[number, WIDTH])
        self._reserve_text(len(text))
        self._grow_pages(len(words) // PAGE + 2)
        end = int(self.keys.counts[TEXT_END])
        self._text[end : end + len(text)] = text
        self.keys.counts[TEXT_END] += len(text)
        versions = np.empty(len(words), np.int64)
        for i in range(len(words)):
            versions[i] = take_version(self.rows, self.keys, number)
        records = self._pages[0][versions >> PAGE_BITS] + (versions & (PAGE - 1)) * width
        if len(words):
            self._words[records[:, None] + np.arange(1, width)] = words
            self._words[records + 1] += end
        return versions


def longer(array: Any, size: int) -> Any:
    """The array, followed by so many new entries that it has this size."""
    found = np.full(size, NONE, array.dtype) if array.dtype == np.int32 else np.zeros(size, array.dtype)
    found[: len(array)] = array
    return found
