"""The rows of all tables in one process: records in, versions of rows and the events of a micro-batch out.

Kernels in `tidings.kernels.rows` do the work. `RowStore` parses records that are too unusual for the kernels, decides which
records are one commit and which are a first load, and finds the reason why a record is refused.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from json.encoder import encode_basestring
from typing import Any

import numpy as np

from tidings.kernels.events import CHANGE, EVENT_WORDS, NO_TX, Events
from tidings.kernels.lives import Lives
from tidings.kernels.rows import I64, NONE
from tidings.kernels.rows.change import (
    ACCEPTED,
    FOLDED,
    NEW,
    OLD,
    OP,
    OUT_OF_ORDER,
    OUTCOME,
    PASSED,
    SEQ,
    START,
    STATUS,
    STOP,
    TEXT_DEAD,
    TEXT_END,
    TX_START,
    TX_STOP,
    UNREADABLE_TX,
    VERSION,
    admit,
    apply_batch,
    compact_texts,
    current_with_key,
    enter,
    free_unpinned,
    has_dead_text,
    look_up,
    merge_batch,
    number_commits,
    settle,
)
from tidings.kernels.rows.scan import (
    HAS_ODD,
    NO_ROOM,
    READ,
    run_lines,
)
from tidings.model.catalog import Catalog, Table
from tidings.model.change import Op
from tidings.model.codes import plain_key
from tidings.model.quarantine import Quarantined, contradiction, out_of_order, raw_text, repeated
from tidings.pipeline.expiry import EXPIRES, Expiry, Key, Publication
from tidings.pipeline.ingest import LOAD_END, TOLD, UNREADABLE, Ingest, tx_of
from tidings.pipeline.replica.batch import Batch, Origin, Piece
from tidings.pipeline.replica.first_load import FirstLoad
from tidings.pipeline.replica.row_dump import described, former_tables
from tidings.pipeline.replica.row_texts import bytes_of, cells_of, key_cells
from tidings.pipeline.replica.row_versions import Record, RowVersions, longer

_NO_PARTITIONS = np.empty(0, np.int64)
_RETAINED_MIN = 1024
_INPUT = 1 << 12


class RowStore(RowVersions):
    """Versions of the rows of all tables, and what micro-batches make of them."""

    def __init__(self, catalog: Catalog, *, is_stream: bool = False, by_commit: bool = True) -> None:
        """is_stream: records come from partitions of a stream, and are numbered here (`admit`).

        by_commit: records of one transaction are one moment; else every record is one, and transactions do not count.
        """
        super().__init__(catalog)
        self._by_commit = by_commit
        self._ingest = Ingest(catalog, needs_seq=not is_stream, is_live=is_stream)
        self._loader = Ingest(catalog, needs_seq=False)
        """Reads records with seq or without."""
        self._first_load = FirstLoad()
        self._partitions: dict[str, int] = {}
        """Name of a partition -> its place in `_latest`."""
        self._latest = np.zeros(16, np.int64)
        """[partitions]: the last seq that records of the partition had of their own."""
        self._came_by = np.zeros(0, np.int32)
        """[versions]: the partition by which a version came; empty while all came by the first one."""
        self._input = np.zeros(_INPUT, np.uint8)
        """Where a line that comes alone is read from."""
        self._input_view = self._input.data
        self._batch: I64 | None = None
        self._expiry = Expiry()

    @property
    def passed(self) -> int:
        """The last sequence number accepted."""
        return self.keys.counts.item(PASSED)

    @property
    def is_loading(self) -> bool:
        """Whether the rows of a first load are not complete: nobody should be shown them yet."""
        return self._first_load.is_open

    def take(self, lines: Sequence[bytes], origin: Origin, due: int) -> Batch:
        """Reads a micro-batch and decides which records are in order. due: lowest `after` of the pending subscription events.

        If all records are below `due` and plainly written, the batch is applied at once and has `events`; else the caller
        must call `apply`.
        """
        batch, found, out = self._read(lines, origin, due)
        if found >= 0:
            self._finish(batch, out, found)
        return batch

    def take_pieces(self, pieces: Iterable[Piece]) -> Batch:
        """As `take`, for lines in pieces: each is read when the rows are as after the one before. The caller calls `apply`."""
        parts, given = list[Batch](), list[I64]()
        for piece in pieces:
            part, _, _ = self._read(piece.lines, piece.origin, NONE)
            part.refused += piece.refused
            self._apply_rows(part)
            parts.append(part)
            given.append(np.arange(len(piece.lines)) if piece.at is None else piece.at)
        batch = Batch.joined(parts, np.concatenate(given))
        if batch.has_tx:
            number_commits(batch.numbers, batch.text, batch.unit)
        return batch

    def load_rows(self, lines: Sequence[bytes], position: int) -> list[Quarantined]:
        """Takes records of rows that are there before the first change: they have no seq, and nobody is told of them.

        position: of the first line. Returns the refused records. Called before anybody follows the rows.
        """
        passed, traffic = self.passed, self.traffic.copy()
        batch, _, _ = self._read(lines, position, NONE, is_load=True)
        nothing = np.empty(0, np.int64)
        self.apply(batch, nothing, nothing, nothing, nothing.reshape(0, 0))
        self.settle()
        self.keys.counts[PASSED], self.traffic[:] = passed, traffic
        return [replace(entry, source="load", seq=None) for entry in batch.refused]

    def _read(
        self, lines: Sequence[bytes], origin: Origin, due: int, *, is_load: bool = False
    ) -> tuple[Batch, int, I64]:
        """Reads lines, decides which records are in order and, if it can be done at once, applies them.

        Returns the batch; the number of events, which is negative if it is not applied; and the events (`merge_events`).
        is_load: as in `load_rows`.
        """
        batch = Batch(lines, origin)
        is_file = isinstance(origin, int)
        partition = _NO_PARTITIONS if isinstance(origin, int) else self._enter(origin.names)[origin.partition]
        count, numbers, latest = len(lines), batch.numbers, self._latest
        if is_load:
            partition, latest = np.zeros(count, np.int64), np.zeros(1, np.int64)
        if count == 1 and (size := len(lines[0])) <= _INPUT:
            # Most single changes: an array of their own would take as long as reading them.
            data, numbers[STOP, 0] = self._input, size
            self._input_view[:size] = lines[0]
        else:
            data = bytes_of(bytearray().join(lines))
            np.cumsum(np.fromiter(map(len, lines), np.int64, count), out=numbers[STOP])
            numbers[START, 1:] = numbers[STOP, :-1]
        out = np.empty((EVENT_WORDS, count), np.int64)
        expires, done = len(self._expiry) > 0, 0
        if expires:
            due = min(due, self._expiry.next_seq)
        while True:
            found, done, batch.has_tx = run_lines(
                self.handles,
                data,
                done,
                numbers,
                due,
                out,
                partition,
                latest,
                _NO_PARTITIONS if is_file else batch.unit,
                self._by_commit and not is_load,
            )
            if found != NO_ROOM:
                break
            self._reserve_text(int(numbers[STOP, -1:].sum()) + 4 * self._kinds.shape[1] * count)
            self._reserve_keys(count)
            self._grow_pages(1)
        if batch.has_tx or found == HAS_ODD:
            batch.text = data.copy() if data is self._input else data
        batch.partition = partition
        if found >= 0 and self._first_load.is_over:
            return batch, found, out
        publications: dict[int, Publication] = {}
        loads: dict[int, int] = {}
        if found == HAS_ODD:
            publications = self._read_odd(batch, self._loader if is_load else self._ingest, loads)
        if found == HAS_ODD:
            if len(partition):
                batch.partition = partition[batch.at]
            admit(self.keys, batch.numbers[SEQ], batch.numbers[OUTCOME], batch.partition, latest)
        if is_load:
            # Rows expire by the seqs of changes, of which none has come.
            batch.numbers[SEQ] = self.passed - batch.numbers.shape[1]
            batch.partition = _NO_PARTITIONS
        elif loads or not self._first_load.is_over:
            self._first_load.note(batch, loads, is_file=is_file)
        if found < 0 and (expires or any(any(values[EXPIRES:]) for _, values in publications.values())):
            self._expire(batch, publications)
        return batch, found, out

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
        added[TX_START:] = numbers[TX_START:, places]
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
            self._latest = longer(self._latest, 2 * len(self._partitions))
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
        if not batch.is_applied:
            self._apply_rows(batch)
        out = np.empty((EVENT_WORDS, batch.numbers.shape[1] + len(after)), np.int64)
        total = merge_batch(self.handles, batch.numbers, batch.has_tx, after, kind, slot, lives, out)
        self._finish(batch, out, total)

    def _apply_rows(self, batch: Batch) -> None:
        apply_batch(self.handles, batch.numbers)
        old, new = batch.numbers[OLD], batch.numbers[NEW]
        self._removed += int(((new == NONE) & (old != NONE)).sum())

    def _finish(self, batch: Batch, out: I64, count: int) -> None:
        self._batch = batch.numbers
        self._removed = 0
        is_whole = count == out.shape[1]
        batch.events = events = Events(out if is_whole else np.ascontiguousarray(out[:, :count]))
        if batch.has_tx:
            batch.tx = events.tx
            events.is_part[:] = _parts(events, batch.tx[0])
        if len(self._partitions) > 1:
            self._find_shared(batch)
        if not is_whole:
            batch.refused.extend(self._refusals(batch))
        if batch.refused:
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
        numbers, self._batch = self._batch, None
        if count := settle(self.handles, numbers):
            self._tidy(numbers[STATUS, : max(count, 0)])

    def _tidy(self, retained: I64) -> None:
        """Notes versions that are pinned, frees those that no longer are, and gives up the texts of those that are gone."""
        self._retained = np.concatenate([self._retained, retained])
        if len(self._retained) > 2 * self._retained_kept + _RETAINED_MIN:
            self._retained = self._retained[: free_unpinned(self.rows, self.keys, self._retained)].copy()
            self._retained_kept = len(self._retained)
        if has_dead_text(self.keys):
            dead, end = self.keys.counts[TEXT_DEAD], self.keys.counts[TEXT_END]
            fresh = np.empty(max(1 << 16, 2 * int(end - dead)), np.uint8)
            compact_texts(self.rows, self.keys, fresh)
            self._text = fresh
            self._renew()

    def key_of(self, line: bytes) -> tuple[str, Hashable]:
        """Table and primary key of a record. RecordError if it is unusable, and changes no row."""
        record = self._ingest.decode_key(line)
        return record.table, plain_key(self.catalog.table(record.table), record.values)

    def find(self, line: bytes) -> list[bytes] | None:
        """The values of the current row with the key of a record, as `texts` gives them; None if there is no such row.

        RecordError if the record is unusable.
        """
        record = self._ingest.decode(line)
        number = self.number(record.table)
        probe = self.put(number, *cells_of(self.catalog.tables[number], record.values))
        found = int(look_up(self.rows, self.keys, probe))
        return None if found == NONE else self._texts(number, found)

    def current_with(self, table: Table, key: Sequence[Any]) -> int:
        """The version of the current row with a primary key, NONE if there is none: as after the lines read last."""
        values = dict(zip(table.key, key, strict=True))
        texts, codes = cells_of(table, [values.get(name) for name in table.column_names])
        # First, as it may replace the arrays.
        probe = self.put(self.number(table.name), texts, codes)
        return int(look_up(self.rows, self.keys, probe))

    def dump(self) -> Any:
        """All current rows and `passed`, for `load`."""
        versions = self.all_current()
        latest = {name: int(self._latest[number]) for name, number in self._partitions.items()}
        state = {"rows": self.pack(versions), "passed": self.passed, "latest": latest, "expiry": self._expiry.dump()}
        state["loads"] = self._first_load.dump({number: name for name, number in self._partitions.items()})
        came_by = self._came_by[versions] if len(self._came_by) else self._came_by
        return {**state, "came_by": came_by, "tables": described(self.catalog)}

    def all_current(self) -> I64:
        """Versions of the current rows of all tables."""
        current = [self.current(number) for number in range(len(self.catalog.tables))]
        return np.concatenate([np.empty(0, np.int64), *current])

    def dump_part(self, versions: I64) -> Any:
        """As `dump`, of these current rows alone, for a store to which no records come but by packs."""
        state = {"rows": self.pack(versions), "passed": self.passed, "latest": {}, "expiry": Expiry().dump()}
        return {**state, "loads": None, "came_by": [], "tables": described(self.catalog)}

    def load(self, state: Any) -> I64:
        """Restores a dump into an empty store. The dump may be of a catalog that this one extends.

        Returns the versions that its rows have now, in the order of the dump.
        """
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
        self._first_load.load(state.get("loads"), self._partitions)
        return versions

    def _read_odd(self, batch: Batch, ingest: Ingest, loads: dict[int, int]) -> dict[int, Publication]:
        """Parses the lines that the kernel could not read, or refuses them. Lines without a record then leave the batch.

        Returns the records of tables of constraints, by line. loads: gets what lines say of a first load.
        """
        publications: dict[int, Publication] = {}
        status, seq, op, version, *_ = batch.numbers
        lines: list[int] = []
        records: list[Record] = []
        txs: list[tuple[int, bytes]] = []
        for at in np.flatnonzero(status != READ).tolist():
            partition, position = batch.place(at)
            record = ingest.read(batch.lines[at], position, batch.refused, partition)
            if record is not None and record.load != TOLD:
                loads[at] = record.load
                if record.load == LOAD_END:
                    batch.numbers[TX_START, at] = UNREADABLE_TX
                    continue
            tx = tx_of(batch.lines[at]) if record is None else record.tx
            batch.numbers[TX_START, at] = UNREADABLE_TX if tx is UNREADABLE else NO_TX
            if isinstance(tx, str):
                txs.append((at, encode_basestring(tx)[1:-1].encode()))
            if record is not None:
                seq[at], op[at] = record.seq, record.op
                table = self.number(record.table)
                lines.append(at)
                records.append((table, *cells_of(self.catalog.tables[table], record.values)))
                if self.catalog.tables[table].has_constraints:
                    publications[at] = (record.table, record.values)
        if records:
            version[lines] = self._put_all(records)
        self._number_commits(batch, txs)
        batch.at = np.flatnonzero(version != NONE)
        batch.numbers = np.ascontiguousarray(batch.numbers[:, batch.at])
        return publications

    def _number_commits(self, batch: Batch, txs: Sequence[tuple[int, bytes]]) -> None:
        """Numbers the commits of all lines. txs: (line, id of its transaction) of lines that the kernel could not read."""
        if not self._by_commit:
            batch.numbers[TX_START] = NO_TX
            return
        if txs:
            sizes = np.array([len(text) for _, text in txs])
            stops = len(batch.text) + np.cumsum(sizes)
            lines = [line for line, _ in txs]
            batch.numbers[TX_START, lines], batch.numbers[TX_STOP, lines] = stops - sizes, stops
            batch.text = np.concatenate([batch.text, np.frombuffer(b"".join(text for _, text in txs), np.uint8)])
        batch.has_tx = bool((batch.numbers[TX_START] >= 0).any())
        if batch.has_tx:
            number_commits(batch.numbers, batch.text, batch.unit)

    def _refusals(self, batch: Batch) -> Iterator[Quarantined]:
        """Quarantine entries of the records whose outcome is not ACCEPTED: out of order, or in contradiction to the rows."""
        outcome = batch.numbers[OUTCOME]
        for i in np.flatnonzero((outcome != ACCEPTED) & (outcome != FOLDED)).tolist():
            at = i if batch.at is None else int(batch.at[i])
            line, seq = batch.lines[at], int(batch.numbers[SEQ, i])
            partition, position = batch.place(at)
            if int(batch.numbers[OUTCOME, i]) == OUT_OF_ORDER:
                reason = out_of_order(seq) if partition is None else repeated(seq)
            elif self._ingest.is_live(line):
                # A database deletes a row that was never kept.
                continue
            else:
                reason = self._contradiction(int(batch.numbers[OP, i]), line)
            yield Quarantined("changes", position, seq, reason, raw_text(line), partition)

    def _contradiction(self, op: int, line: bytes) -> str:
        record = self._loader.decode(line.removeprefix(BOM_UTF8))
        table = self.catalog.table(record.table)
        return contradiction(op, table.name, plain_key(table, record.values))


def _parts(events: Events, tx_start: I64) -> I64:
    """`Events.is_part`. tx_start: [events]."""
    is_change = (events.kind == CHANGE) & (tx_start != NO_TX)
    is_next = is_change[1:] & is_change[:-1] & (events.seq[1:] == events.seq[:-1])
    parts: I64 = (np.append(is_next, False) | np.insert(is_next, 0, False)).astype(np.int64)
    return parts
