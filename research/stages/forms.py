"""The forms stage: hosts the families whose work is sharded by values of columns (join values, rankings), not by primary key.

Forms that are sharded by the same columns make a group. A shard of a group gets the changes (with before and after images
from the tables stage) whose old or new row hashes to the shard, and all subscription events of the group's forms. Forms that
cannot be sharded are grouped by the colocation key of their family, each group in one shard; a new form may add tables to
such a group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from research.stages.net_changes import net_of
from research.stages.sharding import ByValues, Together, is_with_rows, shard_of_values, sharding_of
from research.stages.table_store import TableStore
from tidings.families.protocols import ColumnarRows
from tidings.families.registry import family_of, spec_of
from tidings.model.blob import pack, unpack
from tidings.model.catalog import Catalog
from tidings.model.change import SEQ_MAX, ChangeBatch, Op, TableChanges, take_changes
from tidings.model.codes import BoolArray
from tidings.model.message import MessageBatch
from tidings.model.points import PointBatch
from tidings.pipeline.host import Host, Sent

GroupKey = str
"""Text that identifies a group in every process: the columns its forms are sharded by, or their colocation key."""
_BOXES_AT_ONCE = 262_144
"""`FormShard.steps` yields what it has sent so far whenever its messages have more boxes than this."""
_LATE_MAX = 131_072


def group_of(form_key: str, catalog: Catalog, shards: int) -> GroupKey:
    """The group of a form. shards: number of shards that a group may be spread over."""
    family, _ = family_of(form_key)
    spread = _spread(form_key, catalog, shards)
    if not spread:
        return f"{family.name} in one shard: {_colocation_key(form_key, catalog, shards)}"
    if len(spread) > 1 and len(set(spread.values())) == 1:
        # Forms of different tables may share this group: rows with equal values in these columns meet in one shard.
        return f"{family.name} by {msgspec.json.encode(next(iter(spread.values()))).decode()}"
    return msgspec.json.encode(sorted(spread.items())).decode()


def _spread(form_key: str, catalog: Catalog, shards: int) -> dict[str, tuple[str, ...]]:
    """Table -> columns by which its rows are sharded; empty if the form is served in one shard."""
    sharding = sharding_of(form_key, catalog)
    if isinstance(sharding, ByValues) and not _are_all_together(form_key, catalog, shards):
        return dict(sharding.columns)
    return {}


def _colocation_key(form_key: str, catalog: Catalog, shards: int) -> str:
    sharding = sharding_of(form_key, catalog)
    return sharding.key if isinstance(sharding, Together) and not _are_all_together(form_key, catalog, shards) else ""


def _are_all_together(form_key: str, catalog: Catalog, shards: int) -> bool:
    """Whether the form is in the one group of all forms of several tables. With one shard they share rows of common tables."""
    return shards == 1 and len(spec_of(form_key, catalog).tables) > 1


def sent_on(points: Iterable[PointBatch], catalog: Catalog) -> list[PointBatch]:
    """The batches whose forms are served in the forms stage."""
    return [batch for batch in points if not is_with_rows(batch.form, catalog)]


class Groups:
    """The groups seen so far, and for each the tables it reads with the columns these are sharded by."""

    def __init__(self, catalog: Catalog, shards: int) -> None:
        """shards: number of shards that a group may be spread over."""
        self.catalog = catalog
        self._shards = shards
        self._columns: dict[GroupKey, dict[str, tuple[str, ...]]] = {}

    def add(self, form_key: str) -> tuple[GroupKey, list[str]]:
        """Registers a form. Returns its group, and the tables of the form that the group did not read before."""
        key = self.of(form_key)
        columns = self._columns.setdefault(key, {})
        spec = spec_of(form_key, self.catalog)
        spread = _spread(form_key, self.catalog, self._shards)
        new = [table for table in spec.tables if table not in columns]
        columns.update((table, spread.get(table, ())) for table in new)
        return key, new

    def of(self, form_key: str) -> GroupKey:
        """The group of a form."""
        return group_of(form_key, self.catalog, self._shards)

    def watching(self, table: str) -> list[GroupKey]:
        return [key for key, columns in self._columns.items() if table in columns]

    def dump(self) -> Any:
        return self._columns

    def load(self, state: Any) -> None:
        self._columns = {
            key: {table: tuple(names) for table, names in columns.items()} for key, columns in state.items()
        }

    def split(self, key: GroupKey, changes: TableChanges) -> Iterable[tuple[int, TableChanges]]:
        """(shard, its changes) for every shard of the group that has some.

        A row whose values move from one shard to another is deleted in the one and inserted in the other.
        """
        names = self._columns[key][changes.table]
        if not names:
            yield 0, changes
            return
        old = shard_of_values(changes.before, names, self._shards)
        new = shard_of_values(changes.after, names, self._shards)
        for shard in range(self._shards):
            had, has = changes.had & (old == shard), changes.has & (new == shard)
            if (had | has).any():
                yield shard, take_changes(_restricted(changes, had, has), np.flatnonzero(had | has))

    def shards(self, key: GroupKey) -> range:
        """Numbers of the shards of a group: all, or only 0 if the group cannot be spread."""
        return range(self._shards if any(self._columns[key].values()) else 1)


def _restricted(changes: TableChanges, had: BoolArray, has: BoolArray) -> TableChanges:
    """The changes with old rows kept only where `had`, new rows only where `has`; all others become absent (null)."""
    before, after = changes.before, changes.after
    if (had != changes.had).any():
        before = before.take(pa.array(np.arange(len(changes)), mask=~had))
    if (has != changes.has).any():
        after = after.take(pa.array(np.arange(len(changes)), mask=~has))
    return TableChanges(changes.table, changes.seq, had, before, has, after)


@dataclass
class FormsWork:
    """Input of one shard of a group for one micro-batch."""

    changes: list[TableChanges] = field(default_factory=list)
    points: list[PointBatch] = field(default_factory=list)


class FormShard:
    """Current rows of one shard of a group of forms, and the servers of those forms."""

    def __init__(self, catalog: Catalog, strategies: Mapping[str, str]) -> None:
        self._catalog = catalog
        self._stores: dict[str, TableStore] = {}
        self._late: dict[str, list[TableChanges]] = {}
        """Table -> changes not yet applied to its store: they are applied when rows are needed, at a creation or a dump."""
        self._host = Host(catalog, strategies)
        self._decisions: dict[str, Any] = {}
        """Plan changes of servers (`Replanning`) not yet carried out. They are carried out after the next changes, so that
        present subscribers get the resulting messages under the seq of those changes.
        """

    def apply(self, work: FormsWork) -> tuple[Sent, Any]:
        """Handles a micro-batch. Returns what was sent, and a log entry (for `pack`) from which `replay` restores the state."""
        everything = Sent()
        for sent in self.steps(work):
            everything.messages.extend(sent.messages)
            everything.snapshots.extend(sent.snapshots)
        return everything, self.entry(work)

    def steps(self, work: FormsWork) -> Iterator[Sent]:
        """Handles a micro-batch and yields what is sent in pieces, which bounds memory. Must be consumed to the end."""
        yield from self._run(work, is_wanted=True)
        if not self._decisions:
            self._decisions = self._host.decide()

    def entry(self, work: FormsWork) -> Any:
        """The log entry (for `pack`) of the micro-batch that `steps` has just handled."""
        return {"changes": work.changes, "points": work.points, "decisions": self._decisions}

    def replay(self, entry: Any) -> None:
        """Restores the effect of a logged micro-batch. Nothing is sent.

        Changes of the same row are summed up first: apart from plan changes, servers of this stage depend on current rows only.
        """
        for _ in self._run(FormsWork(entry["changes"], entry["points"]), is_wanted=False):
            pass
        self._host.recover()
        self._decisions = entry["decisions"]

    def dump(self) -> bytes:
        rows = {table: self._store(table).rows() for table in {**self._stores, **self._late}}
        rows = {table: current for table, current in rows.items() if current.num_rows}
        return pack({"rows": rows, "servers": self._host.dump(), "decisions": self._decisions})

    def load(self, blob: bytes) -> None:
        state = unpack(blob)
        for table, rows in state["rows"].items():
            self._store(table).load(rows)
        self._host.load(state["servers"])
        self._decisions = state["decisions"]

    def _run(self, work: FormsWork, *, is_wanted: bool) -> Iterator[Sent]:
        """Applies changes of all tables and subscription events in sequence order; yields what is sent.

        Not `is_wanted`: a log replay, which alters state and sends nothing.
        """
        stretches = _Stretches(work.changes)
        sent, boxes = Sent(), 0
        moments = PointBatch.by_moment(PointBatch.by_form(work.points))
        for moment, due in [*moments, (SEQ_MAX, [])]:
            for messages in self._change(stretches.up_to(moment), is_wanted=is_wanted):
                sent.messages.append(messages)
                boxes += len(messages.regions.lo)
                if boxes > _BOXES_AT_ONCE:
                    yield sent
                    sent, boxes = Sent(), 0
            for points in due:
                tables: dict[str, ColumnarRows] = {
                    t: self._store(t) for t in spec_of(points.form, self._catalog).tables
                }
                self._host.release(points, tables, sent if is_wanted else None)
        self._host.settle()
        yield sent

    def _change(self, stretch: list[TableChanges], *, is_wanted: bool) -> Iterator[MessageBatch]:
        """Passes changes (at most one batch per table) to the servers, then carries out plan changes. Yields the messages."""
        if not stretch:
            return
        if not is_wanted:
            # A row that is inserted and deleted again has no net change, so a batch may become empty.
            netted = (net_of(changes, self._catalog.table(changes.table).key) for changes in stretch)
            stretch = [changes for changes in netted if len(changes)]
        for changes in stretch:
            late = self._late.setdefault(changes.table, [])
            late.append(changes)
            if sum(map(len, late)) > _LATE_MAX:
                self._store(changes.table)
        yield from self._host.change_many(stretch, is_wanted=is_wanted)
        seq = max((int(changes.seq[-1]) for changes in stretch if len(changes)), default=0)
        yield from self._host.follow(self._decisions, seq)
        self._decisions = {}

    def _store(self, table: str) -> TableStore:
        """The current rows of a table, all late changes applied."""
        if table not in self._stores:
            self._stores[table] = TableStore(self._catalog.table(table))
        late = self._late.pop(table, [])
        if late:
            changes = TableChanges.concat(late)
            self._stores[table].replay(_as_changes(net_of(changes, self._catalog.table(table).key)))
        return self._stores[table]


def _as_changes(changes: TableChanges) -> ChangeBatch:
    """The changes as a `ChangeBatch` for a store: deletes carry the old row, upserts the new one."""
    op = np.where(changes.has, Op.UPSERT, Op.DELETE).astype(np.int8)
    return ChangeBatch(changes.table, changes.seq, changes.seq, op, changes.known_rows())


class _Stretches:
    """Changes of all tables sorted by seq, and a cursor per table."""

    def __init__(self, changes: Iterable[TableChanges]) -> None:
        parts: dict[str, list[TableChanges]] = {}
        for batch in changes:
            parts.setdefault(batch.table, []).append(batch)
        # Changes of one table may come from several tables shards.
        joined = [TableChanges.concat(batches) for batches in parts.values()]
        self._batches = [take_changes(b, np.argsort(b.seq, kind="stable").astype(np.int64)) for b in joined]
        self._given = [0] * len(joined)

    def up_to(self, seq: int) -> list[TableChanges]:
        """The changes with seq up to `seq` that were not returned before: one batch, sorted by seq, per table that has some."""
        found = []
        for i, (batch, first) in enumerate(zip(self._batches, self._given, strict=True)):
            stop = self._given[i] = int(np.searchsorted(batch.seq, seq, "right"))
            if stop > first:
                found.append(batch if stop - first == len(batch) else batch.slice(first, stop))
        return found
