"""Evaluates all drift subscriptions over shared rows. A subscription holds the last notified version of each row it follows.

Kernels: `evaluate` goes through the events, `layout` stores which subscriptions (members) follow a row, `members` adds and
removes them, `tournament_tree` finds members to notify. The evaluator owns and grows their arrays, and translates forms and
channels for them.
"""

from __future__ import annotations

import struct
from collections import Counter
from json.encoder import encode_basestring
from typing import Any, ClassVar

import numpy as np

from tidings.families.drift.kernels.audience_layout import (
    FAN,
    GROUPING_COLUMNS,
    GROUPS,
    HEAD_FIELDS,
    SCRATCH_NEEDED,
    STAMP,
    Audiences,
    rehash,
)
from tidings.families.drift.kernels.evaluate import (
    CHANGES,
    CHANGES_NEEDED,
    COUNTS,
    PLACES_NEEDED,
    TAILS,
    TOLD,
    Output,
    apply_events,
)
from tidings.families.drift.kernels.forget import forget_rows
from tidings.families.drift.kernels.members import add_members, link_rows, list_held, remove_members, restore_held
from tidings.families.drift.kernels.tournament_tree import MOVED, MOVED_PERCENT, MOVED_RATIO
from tidings.families.drift.subscription import space_of
from tidings.families.evaluator import Evaluator, Store
from tidings.families.spec import Form
from tidings.kernels.arrays import grow
from tidings.kernels.events import NOBODY, Events, Projections, Told
from tidings.kernels.extents import TOP, WANTED, make_room, new_head
from tidings.kernels.lives import SINCE, Lives
from tidings.kernels.rows import I64, NONE, PAGE_BITS
from tidings.model.catalog import Catalog, Column, Table
from tidings.model.channel import ChannelKey, channel_keys
from tidings.model.points import PointBatch
from tidings.model.types import ColumnType

_KINDS = {"moved": MOVED, "moved_percent": MOVED_PERCENT, "moved_ratio": MOVED_RATIO}


class DriftEvaluator(Evaluator):
    name = "drift"
    fan_out: ClassVar[int] = 16
    """Up to this many members of a row are scanned; more have a tree with this many children per node. A power of two."""

    def __init__(self, catalog: Catalog, store: Store) -> None:
        self.catalog, self.store = catalog, store
        self._groupings: dict[tuple[int, tuple[int, ...]], int] = {}
        """(table, pinned columns) -> address of the grouping. Those of a table go when nobody follows the table."""
        self._closed: dict[tuple[int, tuple[int, ...]], int] = {}
        """(table, pinned columns) -> address of a grouping that has gone, to be used again."""
        self._users: Counter[int] = Counter()
        """Table -> subscriptions that follow its rows."""
        self._table_of = np.full(64, NONE, np.int64)
        """[slots]: the table that the subscription follows; NONE for subscriptions of other families."""
        self._idle: dict[int, int] = {}
        """Table with groupings that nobody follows -> events since then."""
        self._audiences = self._no_audiences()
        self._output = Output(
            told=np.empty((64, 3), np.int64),
            tails=np.empty((64, 4), np.int64),
            changes=np.empty((64, 2), np.int64),
            counts=np.zeros(COUNTS, np.int64),
            known_tails=np.zeros((64, 4), np.int64),
        )

    def _no_audiences(self) -> Audiences:
        words = np.zeros(1024, np.int64)
        head = new_head(HEAD_FIELDS, 1, words)
        head[FAN] = self.fan_out.bit_length() - 1
        return Audiences(
            words=words,
            head=head,
            groupings=np.full(max(1, len(self.catalog.tables)), NONE, np.int64),
            buckets=np.full(64, NONE, np.int64),
            row_of=np.full(64, NONE, np.int64),
            member_of=np.full(64, NONE, np.int64),
            scratch=np.empty(64, np.int64),
        )

    def add(self, points: PointBatch, slots: I64, lives: Lives) -> None:
        space = space_of(Form.from_key(points.form), self.catalog)
        table = self.store.number(space.table.name)
        value = 2 * _place(space.table, space.column) + (space.column.type is ColumnType.DOUBLE)
        clock = NONE if space.clock is None else _place(space.table, space.clock)
        self._count(table, slots, int(np.count_nonzero(points.home)))
        self._follow_versions()
        grouping = self._grouping(table, tuple(_place(space.table, column) for column in space.pinned))
        key_of, key_starts, keys = _keys_of(channel_keys(points.channel, len(points)))
        grow(self._audiences.member_of, int(slots.max(initial=-1)) + 1, fill=NONE)
        form = (grouping, value, clock, _KINDS[space.kind], space.patience or 0)
        which = (
            slots,
            np.ascontiguousarray(points.coords[:, 0]),
            key_of,
            key_starts,
            keys,
            lives[slots, SINCE] == NONE,
        )
        done = 0
        while done < len(slots):
            done = add_members(self._audiences, self.store.rows, *form, *which, done)
            self._make_room(is_needed=done < len(slots))

    def _count(self, table: int, slots: I64, count: int) -> None:
        """Notes the table of so many new subscriptions. slots: [points]."""
        self._idle.pop(table, None)
        grow(self._table_of, int(slots.max(initial=-1)) + 1, fill=NONE)
        self._table_of[slots] = table
        self._users[table] += count

    def apply(self, events: Events, lives: Lives, projections: Projections) -> Told:
        if self._idle:
            self._forget_idle(events.size)
        counts = self._output.counts
        counts.fill(0)
        if self._groupings:
            self._follow_versions()
            shown = (lives, projections.starts, projections.column)
            while not apply_events(self._audiences, self.store.handles, events.words, *shown, self._output):
                self._make_room(is_needed=True)
                self._make_room_to_tell()
            self._make_room(is_needed=False)
        told, tails, changes = counts[TOLD : CHANGES + 1].tolist()
        if not told:
            return NOBODY
        out = self._output
        return Told(out.told[:told].T.copy(), told, out.tails[:tails].copy(), out.changes[:changes].copy())

    def remove(self, slots: I64) -> None:
        remove_members(self._audiences, self.store.rows, slots)
        slots = slots[slots < len(self._table_of)]
        tables = self._table_of[slots].tolist()
        self._table_of[slots] = NONE
        for table in tables:
            if table != NONE:
                self._users[table] -= 1
                if not self._users[table]:
                    del self._users[table]
                    self._idle[table] = 0

    def _forget_idle(self, events: int) -> None:
        """Before so many events: forgets the rows of tables that nobody has followed for as many events as the table has rows.

        To link rows takes time for each of them: a subscription that comes and goes all the time must not do it every time.
        """
        self._idle = {table: passed + events for table, passed in self._idle.items()}
        for table in [table for table, passed in self._idle.items() if passed >= self.store.count(table)]:
            del self._idle[table]
            for key in [key for key in self._groupings if key[0] == table]:
                self._closed[key] = self._groupings.pop(key)
            if self._groupings:
                # Not `Store.current`: rows are as after the micro-batch that comes, and known here as before it.
                known = np.flatnonzero(self._audiences.row_of != NONE)
                forget_rows(self._audiences, known[self.store.rows.page_table[known >> PAGE_BITS] == table])
                self._audiences.groupings[table] = NONE
            else:
                # Tails that were made before are known by their stamps, which are not given again.
                stamp = self._audiences.head[STAMP]
                self._audiences = self._no_audiences()
                self._audiences.head[STAMP] = stamp
                self._closed.clear()

    def held(self) -> tuple[I64, I64]:
        nothing = np.empty(0, np.int64)
        slots = np.empty(list_held(self._audiences, nothing, nothing), np.int64)
        versions = np.empty_like(slots)
        list_held(self._audiences, slots, versions)
        return slots, versions

    def dump(self, numbers: I64 | None = None) -> Any:
        slots, held = self.held()
        if numbers is not None:
            is_own = numbers[slots] != NONE
            slots, held = numbers[slots[is_own]], held[is_own]
        versions, number = np.unique(held, return_inverse=True)
        return {"slot": slots, "number": number, "versions": self.store.pack(versions)}

    def load(self, state: Any) -> None:
        versions = self.store.unpack(state["versions"])
        self._follow_versions()
        slots, held = state["slot"], versions[state["number"]]
        tables = self.store.rows.page_table[held >> PAGE_BITS]
        for table in np.unique(tables).tolist():
            of_table = tables == table
            current = self.store.current(table)
            restore_held(self._audiences, self.store.rows, table, current, slots[of_table], held[of_table])

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (*self._audiences, *self._output, self._table_of))

    def _grouping(self, table: int, columns: tuple[int, ...]) -> int:
        """Address of the grouping of a table's rows by these columns, made if there is none."""
        known = self._groupings.get((table, columns))
        if known is not None:
            return known
        width = GROUPING_COLUMNS + len(columns)
        audiences = self._audiences
        grouping = self._closed.pop((table, columns), NONE)
        if grouping == NONE:
            audiences.head[WANTED] = width
            make_room(audiences.words, audiences.head)
            grouping = int(audiences.head[TOP])
            audiences.head[TOP] += width
        audiences.words[grouping : grouping + width] = (audiences.groupings[table], 0, len(columns), *columns)
        audiences.groupings[table] = self._groupings[table, columns] = grouping
        versions, done = self.store.current(table), 0
        while done < len(versions):
            done = link_rows(self._audiences, self.store.rows, grouping, versions, done)
            self._make_room(is_needed=done < len(versions))
        return grouping

    def _follow_versions(self) -> None:
        """Makes `row_of` as long as there are versions."""
        grow(self._audiences.row_of, len(self.store.rows.alive), fill=NONE)

    def _make_room(self, *, is_needed: bool) -> None:
        """Gives kernels the memory they have asked for (`is_needed`), and enough buckets to the hash table of groups."""
        audiences = self._audiences
        head = audiences.head
        if is_needed:
            make_room(audiences.words, head)
            grow(audiences.scratch, int(head[SCRATCH_NEEDED]))
        if head[GROUPS] > len(audiences.buckets):
            buckets = np.full(2 << int(head[GROUPS]).bit_length(), NONE, np.int64)
            rehash(audiences, buckets)
            self._audiences = audiences._replace(buckets=buckets)

    def _make_room_to_tell(self) -> None:
        out = self._output
        counts = out.counts
        places = int(counts[PLACES_NEEDED])
        grow(out.told, int(counts[TOLD]) + places)
        grow(out.tails, int(counts[TAILS]) + places)
        grow(out.changes, int(counts[CHANGES] + counts[CHANGES_NEEDED]))
        if 2 * places > len(out.known_tails):
            self._output = out._replace(known_tails=np.zeros((2 << (2 * places).bit_length(), 4), np.int64))


def _place(table: Table, column: Column) -> int:
    return table.column_names.index(column.name)


def _keys_of(channels: list[ChannelKey]) -> tuple[I64, I64, I64]:
    """Distinct keys in the encoding of `layout`.

    Returns (number of each channel's key, NONE if it has a null; start of each key; words of all keys).
    """
    numbers: dict[ChannelKey, int] = {}
    key_of = np.fromiter((numbers.setdefault(channel, len(numbers)) for channel in channels), np.int64, len(channels))
    parts = [_key_bytes(channel) for channel in numbers]
    starts = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) // 8 for part in parts], out=starts[1:])
    is_null = np.fromiter((None in channel for channel in numbers), np.bool_, len(numbers))
    key_of[is_null[key_of]] = NONE
    return key_of, starts, np.frombuffer(bytearray().join(parts), np.int64)


def _key_bytes(channel: ChannelKey) -> bytes:
    parts = []
    for component in channel:
        if isinstance(component, str):
            text = encode_basestring(component).encode()
            parts += [struct.pack("<q", len(text)), text, bytes(-len(text) % 8)]
        elif component is not None:
            parts.append(struct.pack("<q", component))
    return b"".join(parts)
