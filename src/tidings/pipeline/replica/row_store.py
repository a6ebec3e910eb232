"""The rows of all tables in one process: records in, versions of rows and the events of a micro-batch out.

Kernels in `tidings.kernels.rows` do the work. `RowStore` owns and grows their arrays, parses records that are too unusual for
the kernels, and finds the reason why a record is refused.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from json.encoder import encode_basestring
from typing import Any

import numpy as np

from tidings.kernels.events import Events
from tidings.kernels.handles import handles_of
from tidings.kernels.lives import Lives
from tidings.kernels.rows import BINARY as BINARY_KIND
from tidings.kernels.rows import CODES, ENDS, EXACT, I64, LIVE, NONE, PAGE, PAGE_BITS, VALID, WIDTH, Rows
from tidings.kernels.rows import TEXT as TEXT_KIND
from tidings.kernels.rows.change import (
    ACCEPTED,
    COUNTS,
    EMPTY,
    FOREVER,
    INDEXED,
    OUT_OF_ORDER,
    PAGES,
    PASSED,
    TEXT_DEAD,
    TEXT_END,
    WORDS,
    Keys,
    admit,
    apply_records,
    compact_texts,
    current_versions,
    current_with_key,
    enter,
    free_unpinned,
    look_up,
    merge_events,
    reindex,
    settle,
    take_version,
)
from tidings.kernels.rows.read import COLUMNS, EQUALS, FIRST_PAGE, FREE, LAYOUT_FIELDS, RECORD_TEXT, RECORD_VALID
from tidings.kernels.rows.scan import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    HAS_ODD,
    INT,
    NEW,
    NO_ROOM,
    OLD,
    OP,
    OTHER,
    OUTCOME,
    READ,
    SEQ,
    STATUS,
    TEXT_TYPE,
    TIMESTAMP,
    VERSION,
    Names,
    run_lines,
    write_versions,
)
from tidings.model.catalog import Catalog, Table
from tidings.model.change import Op
from tidings.model.codes import plain_key
from tidings.model.quarantine import Quarantined, contradiction, out_of_order, raw_text, repeated
from tidings.model.types import ColumnType
from tidings.pipeline.expiry import EXPIRES, Expiry, Key, Publication
from tidings.pipeline.ingest import Ingest
from tidings.pipeline.replica.batch import Batch, Origin
from tidings.pipeline.replica.row_dump import described, former_tables, widened
from tidings.pipeline.replica.row_texts import bytes_of, cells_of, key_cells

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
_Record = tuple[int, Sequence[bytes | None], Sequence[int]]
"""Table, texts and codes of a row that is to be written."""
_NO_PARTITIONS = np.empty(0, np.int64)
_DEAD_TEXT_MIN = 1 << 20
_RETAINED_MIN = 1024
_PACKED_MAX = 1 << 17
"""Versions packed into one part: all together could be more than a part of a message may have, which is 4 GiB."""


class RowStore:
    """Versions of the rows of all tables; current rows are found by primary key."""

    def __init__(self, catalog: Catalog, *, is_stream: bool = False) -> None:
        """is_stream: records come from partitions of a stream, and are numbered here (`admit`)."""
        self.catalog = catalog
        self._ingest = Ingest(catalog, needs_seq=not is_stream)
        self._partitions: dict[str, int] = {}
        """Name of a partition -> its place in `_latest`."""
        self._latest = np.zeros(16, np.int64)
        """[partitions]: the last seq that records of the partition had of their own."""
        self._came_by = np.zeros(0, np.int32)
        """[versions]: the partition by which a version came; empty while all came by the first one."""
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
        self._retained = np.empty(0, np.int64)
        self._retained_kept = 0
        self._batch: I64 | None = None
        self._expiry = Expiry()
        self.traffic = np.zeros((len(catalog.tables), 2), np.int64)
        """[tables, 2]: accepted changes, and bytes of their values."""
        self._renew()

    @property
    def passed(self) -> int:
        """The last sequence number accepted."""
        return int(self.keys.counts[PASSED])

    @property
    def nbytes(self) -> int:
        parts = (self._words, self._text, *self._versions, *self._pages, self.keys.places, self._retained)
        return sum(part.nbytes for part in parts)

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
        room = np.empty(self.count(table) + 1, np.int64)
        return room[: current_versions(self.rows, table, room)]

    def take(self, lines: Sequence[bytes], origin: Origin, due: int) -> Batch:
        """Reads a micro-batch and decides which records are in order. due: lowest `after` of the pending subscription events.

        If all records are below `due` and plainly written, the batch is applied at once and has `events`; else the caller
        must call `apply`.
        """
        batch = Batch(lines, origin)
        partition = _NO_PARTITIONS if isinstance(origin, int) else self._enter(origin.names)[origin.partition]
        count, numbers = len(lines), batch.numbers
        data = bytes_of(bytearray().join(lines))
        bounds = np.empty((count, 2), np.int64)
        if count == 1:
            bounds[0, 0], bounds[0, 1] = 0, len(data)
        else:
            np.cumsum(np.fromiter(map(len, lines), np.int64, count), out=bounds[:, 1])
            bounds[1:, 0], bounds[:1, 0] = bounds[:-1, 1], 0
        self._reserve_text(len(data) + 4 * self._kinds.shape[1] * count)
        self._reserve_keys(count)
        out = np.empty((6, count), np.int64)
        done = 0
        while True:
            found, done = run_lines(
                self.handles,
                self.keys,
                self._names,
                data,
                bounds,
                done,
                numbers,
                min(due, self._expiry.next_seq),
                self.traffic,
                out,
                partition,
                self._latest,
            )
            if found != NO_ROOM:
                break
            self._grow_pages(1)
        publications: dict[int, Publication] = {}
        if found == HAS_ODD:
            publications = self._read_odd(batch)
        batch.partition = partition if batch.at is None or not len(partition) else partition[batch.at]
        if found == HAS_ODD:
            admit(self.keys, batch.numbers[SEQ], batch.numbers[OUTCOME], batch.partition, self._latest)
        if found >= 0:
            self._finish(batch, out, found)
        elif len(self._expiry) or any(any(values[EXPIRES:]) for _, values in publications.values()):
            self._expire(batch, publications)
        return batch

    def _expire(self, batch: Batch, publications: dict[int, Publication]) -> None:
        """Puts deletes of rows that expire into an admitted batch, each before the record with which it expires.

        publications: records of tables of constraints, which may expire themselves, by line.
        """
        numbers = batch.numbers
        lines = np.arange(numbers.shape[1]) if batch.at is None else batch.at
        admitted = np.flatnonzero(numbers[OUTCOME] != OUT_OF_ORDER)

        def has_row(place: int, _: Key) -> bool:
            return bool(current_with_key(self.rows, self.keys, numbers[VERSION, admitted[place]]) != NONE)

        records = zip(
            numbers[SEQ, admitted].tolist(),
            numbers[OP, admitted].tolist(),
            (publications.get(line) for line in lines[admitted].tolist()),
            strict=True,
        )
        gone = list(self._expiry.walk(records, has_row))
        if not gone:
            return
        places = admitted[[place for place, _ in gone]]
        deleted = [(self.number(name), *key_cells(self.catalog.table(name), id)) for _, (name, id) in gone]
        added = np.zeros((len(numbers), len(places)), np.int64)
        added[STATUS], added[SEQ], added[OP] = READ, numbers[SEQ, places], Op.DELETE
        added[VERSION], added[OUTCOME] = self._put_all(deleted), ACCEPTED
        batch.numbers = np.ascontiguousarray(np.insert(numbers, places, added, axis=1))
        batch.at = np.insert(lines, places, lines[places])
        batch.is_expired = np.insert(np.zeros(numbers.shape[1], np.bool_), places, True)
        if len(batch.partition):
            batch.partition = np.insert(batch.partition, places, batch.partition[places])

    def advance(self) -> None:
        """Takes a seq that no change has."""
        self.keys.counts[PASSED] += 1

    def _enter(self, partitions: list[str]) -> I64:
        """Numbers of partitions, which are entered if they are new."""
        numbers = [self._partitions.setdefault(name, len(self._partitions)) for name in partitions]
        if len(self._partitions) > len(self._latest):
            self._latest = _longer(self._latest, 2 * len(self._partitions))
        return np.array(numbers, np.int64)

    def take_seq(self, partition: str, seq: int) -> bool:
        """Whether a record of a partition may have this seq of its own: it is above those before. It counts from now on."""
        number = int(self._enter([partition])[0])
        if seq <= self._latest[number]:
            return False
        self._latest[number] = seq
        return True

    def apply(self, batch: Batch, after: I64, kind: I64, slot: I64, lives: Lives) -> None:
        """Applies a micro-batch merged with subscription events (after, kind, slot: [events]) and sets `batch.events`.

        `lives` gets the seqs at which subscriptions begin and end.
        """
        _, seq, op, version, outcome, old, new = batch.numbers
        apply_records(self.rows, self.keys, op, version, outcome, old, new)
        out = np.empty((6, len(seq) + len(after)), np.int64)
        changes = (outcome, seq, old, new, version)
        total = merge_events(self.rows, *changes, after, kind, slot, lives, self.traffic, out)
        self._finish(batch, out, total)

    def _finish(self, batch: Batch, out: I64, count: int) -> None:
        batch.events = Events(*(out if count == out.shape[1] else out[:, :count]))
        self._batch = batch.numbers
        if len(self._partitions) > 1:
            self._find_shared(batch)
        if count < out.shape[1]:
            batch.refused.extend(self._refusals(batch))
            batch.refused.sort(key=lambda entry: (entry.partition or "", entry.position))

    def _find_shared(self, batch: Batch) -> None:
        """Notes by which partition each new version came, and which records change a row that came by another one."""
        if len(self._came_by) < len(self.rows.alive):
            self._came_by = np.concatenate(
                [self._came_by, np.zeros(len(self.rows.alive) - len(self._came_by), np.int32)]
            )
        is_own = batch.numbers[OUTCOME] == ACCEPTED
        accepted = np.flatnonzero(is_own if batch.is_expired is None else is_own & ~batch.is_expired)
        old, new, partition = batch.numbers[OLD, accepted], batch.numbers[NEW, accepted], batch.partition[accepted]
        self._came_by[new[new != NONE]] = partition[new != NONE]
        other = self._came_by[old]
        found = np.flatnonzero((old != NONE) & (other != partition))
        names = list(self._partitions)
        lines = accepted if batch.at is None else batch.at[accepted]
        batch.shared = [(int(lines[i]), names[other[i]]) for i in found.tolist()]

    def settle(self) -> None:
        """Ends a micro-batch: frees versions that are neither current nor pinned."""
        if self._batch is None:
            return
        _, _, _, version, _, old, new = self._batch
        self._batch = None
        room = np.empty(len(version), np.int64)
        count = settle(self.handles, self.keys, version, old, new, room)
        if count:
            self._retained = np.concatenate([self._retained, room[:count]])
        if len(self._retained) > 2 * self._retained_kept + _RETAINED_MIN:
            self._retained = self._retained[: free_unpinned(self.rows, self.keys, self._retained)].copy()
            self._retained_kept = len(self._retained)
        dead, end = self.keys.counts[TEXT_DEAD], self.keys.counts[TEXT_END]
        if dead > _DEAD_TEXT_MIN and 2 * dead > end:
            fresh = np.empty(max(1 << 16, 2 * int(end - dead)), np.uint8)
            compact_texts(self.rows, self.keys, fresh)
            self._text = fresh
            self._renew()

    def texts(self, table: str) -> Iterator[list[bytes]]:
        """The values of the table's current rows as in the output, `null` for null."""
        number = self.number(table)
        return (self._texts(number, version) for version in self.current(number).tolist())

    def key_of(self, line: bytes) -> tuple[str, Hashable]:
        """Table and primary key of a record. RecordError if it is unusable."""
        name, _, _, values = self._ingest.decode(line)
        return name, plain_key(self.catalog.table(name), values)

    def find(self, line: bytes) -> list[bytes] | None:
        """The values of the current row with the key of a record, as `texts` gives them; None if there is no such row.

        RecordError if the record is unusable.
        """
        name, _, _, values = self._ingest.decode(line)
        number = self.number(name)
        probe = self.put(number, *cells_of(self.catalog.tables[number], values))
        found = int(look_up(self.rows, self.keys, probe))
        return None if found == NONE else self._texts(number, found)

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

    def _put_all(self, records: Sequence[_Record]) -> I64:
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

    def dump(self) -> Any:
        """All current rows and `passed`, for `load`."""
        current = [self.current(number) for number in range(len(self.catalog.tables))]
        versions = np.concatenate([np.empty(0, np.int64), *current])
        latest = {name: int(self._latest[number]) for name, number in self._partitions.items()}
        state = {"rows": self.pack(versions), "passed": self.passed, "latest": latest, "expiry": self._expiry.dump()}
        came_by = self._came_by[versions] if len(self._came_by) else self._came_by
        return {**state, "came_by": came_by, "tables": described(self.catalog)}

    def load(self, state: Any) -> None:
        """Restores a dump into an empty store. The dump may be of a catalog that this one extends."""
        self._former = former_tables(state["tables"], self.catalog)
        versions = self.unpack(state["rows"])
        if len(state["came_by"]):
            self._came_by = np.zeros(len(self.rows.alive), np.int32)
            self._came_by[versions] = state["came_by"]
        self._retained = np.empty(0, np.int64)
        self._reserve_keys(len(versions))
        for version in versions.tolist():
            enter(self.rows, self.keys, version)
        self.keys.counts[PASSED] = state["passed"]
        self._expiry.load(state["expiry"])
        latest = state["latest"]
        numbers = self._enter(list(latest))
        self._latest[numbers] = list(latest.values())

    def _lay_out(self, number: int, table: Table) -> None:
        count = len(table.columns)
        codes = RECORD_VALID + (count + 63) // 64
        self._layout[number, [COLUMNS, VALID, CODES]] = count, RECORD_VALID, codes
        self._layout[number, [EQUALS, ENDS, WIDTH, LIVE]] = codes + count, codes + 2 * count, codes + 3 * count, 0
        self._layout[number, [FIRST_PAGE, FREE]] = NONE
        for at, column in enumerate(table.columns):
            self._kinds[number, at] = _KINDS.get(column.type, EXACT)
        for at, name in enumerate(table.key):
            self._key_columns[number, at] = table.column_names.index(name)

    @cached_property
    def _names(self) -> Names:
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
                types[number, at] = _TYPES.get(column.type, OTHER)
                is_key[number, at] = column.name in table.key
        is_read = np.array([not table.has_constraints for table in tables], np.int32)
        return Names(bytes_of(b"".join(texts)), names, columns, types, is_key, is_read)

    def _renew(self) -> None:
        """Gathers the arrays again, after some were replaced."""
        parts = (*self._pages, self._words, self._text, *self._versions, self._layout, self._kinds, self._key_columns)
        self.rows = Rows._make(parts)
        self.handles = handles_of(parts)

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
            self._pages = tuple(_longer(array, pages) for array in self._pages)
            fresh = self._version_arrays(pages * PAGE)
            for array, longer in zip(self._versions, fresh, strict=True):
                longer[: len(array)] = array
            self._versions = fresh
        needed = int(self.keys.counts[WORDS]) + more * PAGE * self._widest
        if needed > len(self._words):
            self._words = _longer(self._words, max(needed, 2 * len(self._words)))
        self._renew()

    def _reserve_text(self, more: int) -> None:
        needed = int(self.keys.counts[TEXT_END]) + more
        if needed > len(self._text):
            self._text = _longer(self._text, max(needed, 2 * len(self._text)))
            self._renew()

    def _reserve_keys(self, more: int) -> None:
        counts = self.keys.counts
        if 2 * (int(counts[INDEXED]) + more) <= len(self.keys.places):
            return
        live = int(self._layout[:, LIVE].sum())
        size = 1 << int(4 * (live + more)).bit_length()
        old, self.keys = self.keys.places, Keys(np.full(size, EMPTY, np.int64), counts)
        reindex(self.rows, old, self.keys)

    def _read_odd(self, batch: Batch) -> dict[int, Publication]:
        """Parses the lines that the kernel could not read, or refuses them. Lines without a record then leave the batch.

        Returns the records of tables of constraints, by line.
        """
        publications: dict[int, Publication] = {}
        status, seq, op, version, *_ = batch.numbers
        lines: list[int] = []
        records: list[_Record] = []
        for at in np.flatnonzero(status != READ).tolist():
            partition, position = batch.place(at)
            record = self._ingest.read(batch.lines[at], position, batch.refused, partition)
            if record is not None:
                name, seq[at], op[at], values = record
                table = self.number(name)
                lines.append(at)
                records.append((table, *cells_of(self.catalog.tables[table], values)))
                if self.catalog.tables[table].has_constraints:
                    publications[at] = (name, values)
        if records:
            version[lines] = self._put_all(records)
        batch.at = np.flatnonzero(version != NONE)
        batch.numbers = np.ascontiguousarray(batch.numbers[:, batch.at])
        return publications

    def _refusals(self, batch: Batch) -> Iterator[Quarantined]:
        """Quarantine entries of the records whose outcome is not ACCEPTED: out of order, or in contradiction to the rows."""
        for i in np.flatnonzero(batch.numbers[OUTCOME] != ACCEPTED).tolist():
            at = i if batch.at is None else int(batch.at[i])
            line, seq = batch.lines[at], int(batch.numbers[SEQ, i])
            partition, position = batch.place(at)
            if int(batch.numbers[OUTCOME, i]) == OUT_OF_ORDER:
                reason = out_of_order(seq) if partition is None else repeated(seq)
            else:
                reason = self._contradiction(int(batch.numbers[OP, i]), line)
            yield Quarantined("changes", position, seq, reason, raw_text(line), partition)

    def _contradiction(self, op: int, line: bytes) -> str:
        name, _, _, values = self._ingest.decode(line.removeprefix(BOM_UTF8))
        table = self.catalog.table(name)
        return contradiction(op, name, plain_key(table, values))

    def _pack_table(self, number: int, versions: I64) -> dict[str, Any]:
        layout, width = self._layout[number], int(self._layout[number, WIDTH])
        records = self._pages[0][versions >> PAGE_BITS] + (versions & (PAGE - 1)) * width
        words = self._words[records[:, None] + np.arange(width)] if len(versions) else np.empty((0, width), np.int64)
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


def _longer(array: Any, size: int) -> Any:
    longer = np.full(size, NONE, array.dtype) if array.dtype == np.int32 else np.zeros(size, array.dtype)
    longer[: len(array)] = array
    return longer
