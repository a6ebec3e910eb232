"""The tables stage: admits changes in sequence order, keeps current rows, gives each change its before and after image, and
hosts the families that need only these images. One object per shard of primary keys.

Every shard sees the (position, seq) pairs of all records and all subscription events, so all shards release a
subscription event at the same seq without communication.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from research.servers.changes import ChangeBatch, concat_changes, null_rows
from research.servers.forms import ByKey, gathered, spec_of
from research.servers.host import Host, Sent
from research.servers.protocols import ColumnarRows
from research.stages.forms import GroupKey, Groups
from research.stages.last_lives import last_lives
from research.stages.sequence import admit
from research.stages.sharding import shard_of_key
from research.stages.table_store import TableStore
from tidings.model.blob import pack, unpack
from tidings.model.catalog import Catalog, Table
from tidings.model.change import SEQ_MAX, SEQ_NEXT, Op, TableChanges
from tidings.model.channel import group_channels
from tidings.model.codes import BoolArray, Int64Array
from tidings.model.points import PointBatch
from tidings.model.quarantine import Quarantined, out_of_order, raw_text
from tidings.model.render import render_rows
from tidings.pipeline.expiry import Expiry

NO_NUMBERS = np.empty(0, np.int64)


@dataclass
class TablesWork:
    """Input of one shard for one micro-batch: its own changes, positions and seqs of all changes, subscription events."""

    changes: list[ChangeBatch] = field(default_factory=list)
    positions: Int64Array = field(default_factory=lambda: NO_NUMBERS)
    seqs: Int64Array = field(default_factory=lambda: NO_NUMBERS)
    points: list[PointBatch] = field(default_factory=list)
    is_end: bool = False

    @staticmethod
    def of(changes: list[ChangeBatch], points: list[PointBatch]) -> TablesWork:
        """The input if there is only one shard."""
        positions = np.concatenate([NO_NUMBERS, *(batch.position for batch in changes)])
        seqs = np.concatenate([NO_NUMBERS, *(batch.seq for batch in changes)])
        return TablesWork(changes, positions, seqs, points)


@dataclass
class TablesResult:
    sent: Sent = field(default_factory=Sent)
    released: list[PointBatch] = field(default_factory=list)
    """Subscription events whose `after` has been reached; the same in every shard."""
    placed: list[PointBatch] = field(default_factory=list)
    """Events of subscriptions that follow one row (`ByKey`), only in the shard of that row."""
    images: list[tuple[GroupKey, TableChanges]] = field(default_factory=list)
    """(group of the forms stage, changes of a table it reads). A group's first changes are all current rows, as inserts."""
    refused: list[Quarantined] = field(default_factory=list)
    accepted: int = 0
    passed: int = 0


class TableShard:
    """Rows of one shard, pending subscription events, and the servers of forms sharded `ByRow` or `ByKey`."""

    def __init__(
        self,
        catalog: Catalog,
        strategies: Mapping[str, str],
        shard: int = 0,
        shards: int = 1,
        form_shards: int | None = None,
        on_images: Callable[[TableChanges], None] | None = None,
    ) -> None:
        self._catalog = catalog
        self._shard = shard
        self._shards = shards
        self._on_images = on_images
        self._stores = {table.name: TableStore(table) for table in catalog.tables}
        self._expiry: Expiry | None = Expiry()
        """None: to be found out from the rows."""
        self._now = Expiry().now
        self._host = Host(catalog, strategies)
        self._pending: dict[str, PointBatch] = {}
        self.passed = 0
        """The highest sequence number accepted so far, in any shard."""
        self.groups = Groups(catalog, shards if form_shards is None else form_shards)
        """Groups of the forms stage that have had a subscription."""

    def apply(self, work: TablesWork) -> tuple[TablesResult, Any]:
        """Handles a micro-batch. Returns its result and a log entry (for `pack`); `replay` of the entry restores the state."""
        result = TablesResult()
        changes = self._expire(self._admit(work, result), work, result)
        logged = [ChangeBatch(c.table, c.position, c.seq, c.op, c.rows) for c in changes]
        entry = {"changes": logged, "points": work.points, "passed": result.passed, "is_end": work.is_end}
        entry["now"] = self._now
        self._run(changes, work.points, result.passed, work.is_end, result)
        result.released = PointBatch.by_form(result.released)
        result.placed = PointBatch.by_form(result.placed)
        return result, entry

    def replay(self, entry: Any) -> None:
        self._expiry, self._now = None, entry["now"]
        self._run(entry["changes"], entry["points"], entry["passed"], entry["is_end"], None)

    def dump(self) -> bytes:
        rows = {name: store.rows() for name, store in self._stores.items() if len(store)}
        state = {"rows": rows, "pending": list(self._pending.values()), "passed": self.passed, "now": self._now}
        return pack({**state, "servers": self._host.dump(), "groups": self.groups.dump()})

    def load(self, blob: bytes) -> None:
        state = unpack(blob)
        for name, rows in state["rows"].items():
            self._stores[name].load(rows)
        self._pending = {points.form: points for points in state["pending"]}
        self.passed = state["passed"]
        self._host.load(state["servers"])
        self.groups.load(state["groups"])
        self._expiry, self._now = None, state["now"]

    def _admit(self, work: TablesWork, result: TablesResult) -> list[ChangeBatch]:
        """The shard's own accepted changes, one batch per table, sorted by seq. Refused ones are added to `result`."""
        order = np.argsort(work.positions, kind="stable")
        positions = work.positions[order]
        admitted, seqs = admit(work.seqs[order], self.passed)
        result.passed = max(self.passed, int(seqs[admitted].max())) if admitted.any() else self.passed
        by_table: dict[str, list[ChangeBatch]] = {}
        for batch in work.changes:
            if not admitted.all() or (batch.seq == SEQ_NEXT).any():
                at = np.searchsorted(positions, batch.position)
                batch = replace(batch, seq=seqs[at])
                kept = admitted[at]
                result.refused.extend(_out_of_order(batch.take(~kept)))
                batch = batch.take(kept)
            by_table.setdefault(batch.table, []).append(batch)
        joined = [ChangeBatch.concat(batches) for batches in by_table.values()]
        return [batch.take(np.argsort(batch.seq, kind="stable").astype(np.int64)) for batch in joined if len(batch)]

    def _expire(self, changes: list[ChangeBatch], work: TablesWork, result: TablesResult) -> list[ChangeBatch]:
        """The admitted changes with deletes of the shard's rows that expire, each before the record with which it does.

        Every shard knows the seqs of all records, so that each finds by itself when its rows expire.
        """
        if self._shards > 1:
            changes = [self._without_times(batch, result) for batch in changes]
        own = {batch.table: batch for batch in changes if self._catalog.table(batch.table).has_constraints}
        expiry = self._expiry or self._found_expiry()
        self._expiry = expiry
        if not own and not len(expiry):
            return changes
        known = {
            seq: (op, (table, values))
            for table, batch in own.items()
            for seq, op, values in zip(batch.seq.tolist(), batch.op.tolist(), _values(batch.rows), strict=True)
        }
        order = np.argsort(work.positions, kind="stable")
        admitted, seqs = admit(work.seqs[order], self.passed)
        numbers = seqs[admitted].tolist()
        records = ((seq, *known.get(seq, (0, None))) for seq in numbers)
        gone: dict[str, list[tuple[int, str]]] = {}
        for place, (table, id) in expiry.walk(records, lambda _, key: self._stores[key[0]].find([(key[1],)])[0] >= 0):
            gone.setdefault(table, []).append((numbers[place], id))
        self._now = expiry.now
        for table, entries in gone.items():
            deletes = _deletes(self._catalog.table(table), entries)
            known_batch = own.get(table)
            joined = deletes if known_batch is None else ChangeBatch.concat([deletes, known_batch])
            joined = joined.take(np.argsort(joined.seq, kind="stable").astype(np.int64))
            changes = [*(batch for batch in changes if batch.table != table), joined]
        return changes

    def _without_times(self, batch: ChangeBatch, result: TablesResult) -> ChangeBatch:
        """The changes without rows that expire at a time, which are refused: a shard does not see the times of all records."""
        if not self._catalog.table(batch.table).has_constraints:
            return batch
        kept = np.asarray(batch.rows.column("until").is_null())
        reason = (
            "a constraint that expires at a time cannot be served by messages of several shards: use strategy shared"
        )
        result.refused.extend(_refusals(batch, [(int(at), reason) for at in np.flatnonzero(~kept)]))
        return batch.take(kept)

    def _found_expiry(self) -> Expiry:
        expiry = Expiry()
        expiry.now = self._now
        for table in self._catalog.tables:
            if table.has_constraints:
                for values in _values(self._stores[table.name].rows()):
                    expiry.enter(table.name, values)
        return expiry

    def _run(
        self,
        changes: Sequence[ChangeBatch],
        points: Iterable[PointBatch],
        passed: int,
        is_end: bool,
        result: TablesResult | None,
    ) -> None:
        """Applies changes and subscription events in sequence order. Output is added to `result` (None: a log replay)."""
        for batch in gathered(points, self._catalog):
            # An event whose `after` has passed already happens now.
            timely = replace(batch, after=np.maximum(batch.after, self.passed))
            known = self._pending.get(batch.form, timely.take(NO_NUMBERS))
            self._pending[batch.form] = PointBatch.concat([known, timely])
        cursors = dict.fromkeys((batch.table for batch in changes), 0)
        spans: dict[str, list[TableChanges]] = {}
        for moment, due in self._due(SEQ_MAX if is_end else passed):
            self._advance(changes, cursors, moment, result, spans)
            self._release(moment, due, result)
        self._advance(changes, cursors, passed, result, spans)
        if result is not None:
            for parts in spans.values():
                self._host.change(concat_changes(parts), result.sent, ignores_subscribers=True)
        self._host.settle()
        self.passed = passed

    def _due(self, up_to: int) -> list[tuple[int, list[PointBatch]]]:
        """Removes events with `after` up to `up_to` from the pending ones. Returns (after, a batch per form), in order."""
        due: list[PointBatch] = []
        for form, points in list(self._pending.items()):
            stop = int(np.searchsorted(points.after, up_to, "right"))
            due.append(points.slice(0, stop))
            if stop == len(points):
                del self._pending[form]
            elif stop:
                self._pending[form] = points.slice(stop, len(points))
        return PointBatch.by_moment(due)

    def _advance(
        self,
        changes: Sequence[ChangeBatch],
        cursors: dict[str, int],
        to: int,
        result: TablesResult | None,
        spans: dict[str, list[TableChanges]],
    ) -> None:
        """Applies the changes with seq up to `to` that have not been applied yet.

        cursors: table -> number of changes applied so far. spans: table -> images, added to.
        """
        for batch in changes:
            start = cursors[batch.table]
            stop = int(np.searchsorted(batch.seq, to, "right"))
            if stop > start:
                cursors[batch.table] = stop
                images = self._change(batch.slice(start, stop), result)
                if images is not None:
                    spans.setdefault(batch.table, []).append(images)

    def _change(self, batch: ChangeBatch, result: TablesResult | None) -> TableChanges | None:
        """Applies changes of one table. Returns their images; None if all were refused or during a log replay."""
        store = self._stores[batch.table]
        if result is None and not self._host.remembers(batch.table):
            store.replay(batch)
            return None
        images, refused = store.apply(batch)
        if result is None:
            if len(images):
                self._host.change(images, None, ignores_subscribers=False)
            return None
        result.accepted += len(images)
        result.refused.extend(_refusals(batch, refused))
        if not len(images):
            return None
        if self._on_images is not None:
            self._on_images(images)
        self._host.change(images, result.sent, ignores_subscribers=False)
        result.images.extend((group, images) for group in self.groups.watching(batch.table))
        return images

    def _release(self, moment: int, due: list[PointBatch], result: TablesResult | None) -> None:
        tables: dict[str, ColumnarRows] = dict(self._stores)
        for released in last_lives(due):
            sent = None if result is None else result.sent
            spec = spec_of(released.form, self._catalog)
            if not spec.is_with_rows:
                group, new_tables = self.groups.add(released.form)
                if result is not None:
                    result.images.extend(self._first_rows(group, new_tables, moment))
            elif isinstance(spec.sharding, ByKey):
                own = released.take(self._is_own(spec.sharding, released))
                if len(own):
                    placed = self._host.release(own, tables, sent)
                    assert self._host.moved(own.form) is None, "gateways of stages cannot follow points that are moved"
                    if result is not None:
                        result.placed.append(placed)
                continue
            else:
                released = self._host.release(released, tables, sent)
            if result is not None:
                result.released.append(released)

    def _is_own(self, sharding: ByKey, points: PointBatch) -> BoolArray:
        """Whether each point follows a row of this shard, [points]."""
        if self._shards == 1:
            return np.ones(len(points), np.bool_)
        group, keys = group_channels([points.channel[at] for at in sharding.components], len(points))
        return np.array([shard_of_key(key, self._shards) == self._shard for key in keys], np.bool_)[group]

    def _first_rows(
        self, group: GroupKey, tables: Iterable[str], moment: int
    ) -> Iterator[tuple[GroupKey, TableChanges]]:
        """All current rows of tables new to a group, as inserts with seq `moment`: just before its first subscription."""
        for table in tables:
            rows = self._stores[table].rows()
            if rows.num_rows:
                absent = np.zeros(rows.num_rows, np.bool_)
                seq = np.full(rows.num_rows, moment, np.int64)
                yield group, TableChanges(table, seq, absent, null_rows(rows), ~absent, rows)


def _values(rows: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """The values of each row."""
    return zip(*(column.to_pylist() for column in rows.columns), strict=True)


def _deletes(table: Table, entries: list[tuple[int, str]]) -> ChangeBatch:
    """Deletes of rows of constraints, given by (seq, id)."""
    seq = np.array([seq for seq, _ in entries], np.int64)
    ids = pa.array([id for _, id in entries], pa.string())
    columns = [ids, *(pa.nulls(len(entries), column.type.arrow) for column in table.columns[1:])]
    rows = pa.RecordBatch.from_arrays(columns, schema=table.schema)
    raw = pa.array([b""] * len(seq), pa.binary())
    return ChangeBatch(table.name, np.full(len(seq), -1), seq, np.full(len(seq), Op.DELETE, np.int8), rows, raw)


def _out_of_order(batch: ChangeBatch) -> list[Quarantined]:
    return _refusals(batch, list(enumerate(map(out_of_order, batch.seq.tolist()))))


def _refusals(batch: ChangeBatch, refused: list[tuple[int, str]]) -> list[Quarantined]:
    return [
        Quarantined("changes", int(batch.position[i]), int(batch.seq[i]), reason, _raw(batch, i))
        for i, reason in refused
    ]


def _raw(batch: ChangeBatch, at: int) -> str:
    if batch.raw is not None:
        return raw_text(batch.raw[at].as_py())
    row = batch.rows.slice(at, 1)
    return render_rows(batch.rows.schema.names, row.columns, 1)[0]
