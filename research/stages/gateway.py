"""The deliver stage: a gateway holds the points and views of its zones and turns messages into finished notifications."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from research.servers.forms import project, spec_of
from research.servers.message import MessageBatch, SnapshotBatch
from research.views import views_of
from research.views.protocols import FirstRows, Matching, Pairs, RememberingViews, Views
from research.wire import decode, encode_parts
from tidings.families.registry import family_of
from tidings.kernels.point_index import PointIndex
from tidings.model.blob import pack, unpack
from tidings.model.catalog import Catalog
from tidings.model.channel import ChannelKey, channel_columns, group_channels
from tidings.model.codes import Int64Array
from tidings.model.notification import NO_NOTIFICATIONS, NotificationBatch, dense_ranks, told_order
from tidings.model.points import Event, PointBatch

ALIVE = np.int64(2**63 - 1)
NO_CHANNEL = -1


@dataclass
class GatewayWork:
    """Input of one gateway for one micro-batch: subscription events, messages and rows of snapshots."""

    points: list[PointBatch] = field(default_factory=list)
    messages: list[MessageBatch] = field(default_factory=list)
    snapshots: list[SnapshotBatch] = field(default_factory=list)


class _FormPoints:
    """Points and views of one form at one gateway.

    channels: channel -> its number. slots: subscription id -> slot of its home point; others: of those with several points
    the slots of the others.
    """

    def __init__(self, key: str, catalog: Catalog) -> None:
        self.key = key
        self.family, self.form = family_of(key)
        space = spec_of(key, catalog).space
        self.channel_types = space.channel_types
        self.views: Views = views_of(key, catalog)
        self.matching = self.views if isinstance(self.views, Matching) else None
        """The views, if they have an index of their own and match messages themselves; else None."""
        self.forest = None if self.matching is not None else PointIndex(space.dims)
        self.remembering = self.views if isinstance(self.views, RememberingViews) else None
        """The views, if they have state beyond their points; else None."""
        self.channels: dict[ChannelKey, int] = {}
        self.slots: dict[str, int] = {}
        self.others: dict[str, tuple[int, ...]] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of the index that matches messages: the point index, or that of the views."""
        index = self.forest if self.matching is None else self.matching
        assert index is not None
        return index.nbytes

    def all_slots(self) -> Int64Array:
        """Slots of all points, [points]; the points of one subscription stand together."""
        if not self.others:
            return np.fromiter(self.slots.values(), np.int64, len(self.slots))
        return np.array([slot for id in self.slots for slot in self.slots_of(id)], np.int64)

    def slots_of(self, id: str) -> tuple[int, ...]:
        """Slots of the points of a subscription, the home point first; none if it is not here."""
        home = self.slots.get(id)
        return () if home is None else (home, *self.others.get(id, ()))

    def dump(self) -> Any:
        """State of the views beyond their points, for `load`; None if they have none."""
        return None if self.remembering is None else self.remembering.dump(self.all_slots())

    def load(self, state: Any) -> None:
        if self.remembering is not None:
            self.remembering.load(self.all_slots(), state)

    def number_channels(self, columns: Iterable[pa.Array], length: int, *, is_new: bool = False) -> Int64Array:
        """Number of each row's channel, [length].

        columns: one array per component of the channel. An unknown channel is numbered if `is_new`, else it gives NO_CHANNEL; a
        channel with a null component always gives NO_CHANNEL.
        """
        group, keys = group_channels(list(columns), length)
        if is_new:
            numbers = [NO_CHANNEL if None in key else self.channels.setdefault(key, len(self.channels)) for key in keys]
        else:
            numbers = [self.channels.get(key, NO_CHANNEL) for key in keys]
        return np.array(numbers, np.int64)[group] if keys else np.empty(0, np.int64)


class Gateway:
    """All subscriptions of one gateway: an index of points per form, and a slot per point.

    A point hears messages with born < seq <= died. Slots of dropped points are reused from the next micro-batch on.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._forms: dict[str, _FormPoints] = {}
        self._ids: list[str] = []
        self._details: list[bytes] = []
        """[slots]: the family's encoded note (`Placement.details`); equal ones of one batch are one object."""
        self._free: list[int] = []
        self._born = np.empty(0, np.int64)
        self._died = np.empty(0, np.int64)
        self._channel = np.empty(0, np.int32)
        self._rank: Int64Array | None = None
        self._ranked = 0
        self._id_column: pa.Array | None = None
        self.deliveries: Counter[str] = Counter()
        self.notifications: Counter[str] = Counter()

    def __len__(self) -> int:
        return sum(len(form.slots) for form in self._forms.values())

    @property
    def nbytes(self) -> int:
        """Bytes of index memory: indexes of points, slots and the table of ids."""
        ids = sum(len(id) + 49 + 8 for id in self._ids) + 8 * len(self._details)
        tables = sum(form.slots.__sizeof__() + 32 * len(form.slots) for form in self._forms.values())
        return (
            sum(form.nbytes for form in self._forms.values())
            + self._born.nbytes * 2
            + self._channel.nbytes
            + ids
            + tables
        )

    def apply(self, work: GatewayWork) -> tuple[NotificationBatch, Any]:
        """Handles a micro-batch. Returns its notifications and a log entry (for `pack`), from which `replay` restores state."""
        created, leaving = self._move(work.points)
        slots, seqs, tails = self._snapshots(created, work.snapshots)
        told = [(seqs, slots, np.arange(len(tails)))]
        snapshot_count = len(tails)
        for key, homes in created.items():
            self.notifications[self._forms[key].family.name] += len(homes)
        for form, messages in self._by_form(work.messages):
            pairs = self._pairs(form, messages, created, leaving, has_moved=bool(work.points))
            self.deliveries[form.family.name] += len(pairs.slot)
            new = form.views.tell(messages, pairs)
            told.append((new.seq, new.slot, new.tail + len(tails)))
            tails.extend(new.tails)
            self.notifications[form.family.name] += len(new.seq)
        notifications = self._ordered(told, tails, snapshot_count)
        self._forget(leaving)
        return notifications, self._entry(work)

    def replay(self, entry: Any) -> None:
        created, leaving = self._move(entry["points"])
        remembering = {key: homes for key, homes in created.items() if self._forms[key].remembering is not None}
        self._snapshots(remembering, entry["snapshots"])
        for form, messages in self._by_form(decode(part) for part in entry["messages"]):
            form.views.tell(messages, self._pairs(form, messages, created, leaving, has_moved=True))
        self._forget(leaving)

    def _entry(self, work: GatewayWork) -> dict[str, Any]:
        """The log entry: all points, and those messages and snapshot rows that alter the state of views."""
        return {
            "points": work.points,
            "messages": [part for batch in work.messages if self._alters(batch) for part in encode_parts(batch)],
            "snapshots": [batch for batch in work.snapshots if self._alters(batch)],
        }

    def _alters(self, batch: MessageBatch | SnapshotBatch) -> bool:
        views = (form.remembering for form in self._listening(batch))
        return any(some is not None and some.is_memorable(batch) for some in views)

    def _listening(self, batch: MessageBatch | SnapshotBatch) -> list[_FormPoints]:
        """The forms the batch is addressed to, without those that have no subscription at this gateway."""
        to = batch.to if isinstance(batch, MessageBatch) and batch.to else (batch.form,)
        return [self._forms[key] for key in to if key in self._forms]

    def pairs(self, messages: MessageBatch) -> Pairs:
        """Which points the messages reach. Read only: no view is updated and no notification is made."""
        found = [
            self._pairs(form, self._project(form, messages), {}, {}, has_moved=False)
            for form in self._listening(messages)
        ]
        if len(found) == 1:
            return found[0]
        message, slot = (
            np.concatenate([np.empty(0, np.int64), *(getattr(pairs, name) for pairs in found)])
            for name in ("message", "slot")
        )
        return Pairs(message, slot, np.concatenate([np.empty(0, np.uint8), *(pairs.tags for pairs in found)]))

    def dump(self) -> bytes:
        held = [form for form in self._forms.values() if form.slots]
        return pack([{"points": self._dump_points(form), "views": form.dump()} for form in held])

    def load(self, blob: bytes) -> None:
        for state in unpack(blob):
            self._move([state["points"]])
            self._forms[state["points"].form].load(state["views"])

    def _move(self, batches: Iterable[PointBatch]) -> tuple[dict[str, list[int]], dict[str, dict[str, list[int]]]]:
        """Adds created points and marks dropped ones, whose slots stay in use until `_forget`.

        Returns (form -> slots of created home points, form -> subscription id -> slots of its dropped points).
        """
        created: dict[str, list[int]] = {}
        leaving: dict[str, dict[str, list[int]]] = {}
        for batch in PointBatch.by_form(batches):
            form = self._forms.get(batch.form)
            if form is None:
                form = self._forms[batch.form] = _FormPoints(batch.form, self._catalog)
            for event, run in batch.runs():
                if event is Event.CREATE:
                    created.setdefault(batch.form, []).extend(self._create(form, run))
                else:
                    self._drop(form, run, leaving.setdefault(batch.form, {}))
        return created, leaving

    def _create(self, form: _FormPoints, points: PointBatch) -> list[int]:
        slots = self._allocate(len(points))
        ids: list[str] = points.id.to_pylist()
        for slot, id in zip(slots.tolist(), ids, strict=True):
            self._ids[slot] = id
        self._born[slots] = points.after
        self._died[slots] = ALIVE
        self._rank = self._id_column = None
        self._ranked = 0
        if points.home.all():
            form.slots.update(zip(ids, slots.tolist(), strict=True))
        else:
            for slot, id, is_home in zip(slots.tolist(), ids, points.home.tolist(), strict=True):
                if is_home:
                    form.slots[id] = slot
                else:
                    form.others[id] = (*form.others.get(id, ()), slot)
        channel = form.number_channels(points.channel, len(points), is_new=True)
        self._channel[slots] = channel
        if form.forest is not None:
            placed = channel != NO_CHANNEL
            form.forest.add_many(channel[placed], slots[placed], points.coords[placed])
        distinct: dict[bytes, bytes] = {}
        for slot, details in zip(slots.tolist(), points.details.to_pylist(), strict=True):
            self._details[slot] = distinct.setdefault(details, details)
        form.views.create(slots, points)
        home: list[int] = slots[points.home].tolist()
        return home

    def _drop(self, form: _FormPoints, points: PointBatch, leaving: dict[str, list[int]]) -> None:
        for id, after in zip(points.id.to_pylist(), points.after.tolist(), strict=True):
            # A subscription on several channels has a drop row for each: the first removes all slots, the others find none.
            slots = form.slots_of(id)
            form.slots.pop(id, None)
            form.others.pop(id, None)
            for slot in slots:
                self._died[slot] = after
            leaving.setdefault(id, []).extend(slots)

    def _forget(self, leaving: dict[str, dict[str, list[int]]]) -> None:
        for key, by_id in leaving.items():
            form = self._forms[key]
            slots = np.array([slot for slots in by_id.values() for slot in slots], np.int64)
            if form.forest is not None:
                form.forest.remove_many(slots[self._channel[slots] != NO_CHANNEL])
            form.views.drop(slots)
            self._free.extend(slots.tolist())

    def _allocate(self, count: int) -> Int64Array:
        reused = [self._free.pop() for _ in range(min(count, len(self._free)))]
        first = len(self._ids)
        fresh = count - len(reused)
        self._ids.extend([""] * fresh)
        self._details.extend([b""] * fresh)
        if len(self._ids) > len(self._born):
            grown = max(len(self._ids), len(self._born) * 3 // 2)
            self._born = np.resize(self._born, grown)
            self._died = np.resize(self._died, grown)
            self._channel = np.resize(self._channel, grown)
        return np.concatenate([np.array(reused, np.int64), np.arange(first, first + fresh)])

    def _by_form(self, batches: Iterable[MessageBatch]) -> Iterator[tuple[_FormPoints, MessageBatch]]:
        """(form, messages) for every form with subscriptions at this gateway.

        Views with state beyond their points get one batch sorted by seq for region messages and one for unicast messages; other
        views get the batches as they came.
        """
        ordered: dict[tuple[str, bool], list[MessageBatch]] = {}
        for messages in batches:
            for form in self._listening(messages) if len(messages) else ():
                own = self._project(form, messages)
                if form.remembering is not None:
                    ordered.setdefault((form.key, messages.target is None), []).append(own)
                else:
                    yield form, own
        for (key, _), parts in ordered.items():
            joined = MessageBatch.concat(parts)
            yield self._forms[key], joined.take(np.argsort(joined.seq, kind="stable").astype(np.int64))

    def _project(self, form: _FormPoints, messages: MessageBatch) -> MessageBatch:
        return messages if form.matching is not None else project(form.key, messages, self._catalog)

    def _pairs(
        self,
        form: _FormPoints,
        messages: MessageBatch,
        created: dict[str, list[int]],
        leaving: dict[str, dict[str, list[int]]],
        *,
        has_moved: bool,
    ) -> Pairs:
        if form.matching is not None and messages.target is None:
            gone = (slot for slots in leaving.get(form.key, {}).values() for slot in slots)
            moved = np.array([*created.get(form.key, ()), *gone], np.int64)
            return form.matching.find(messages, moved, self._born, self._died)
        channel = form.number_channels(messages.channel, len(messages))
        regions = messages.regions
        if messages.target is None:
            assert form.forest is not None
            starts, slots, tags = form.forest.stab(channel, regions.lo, regions.hi, regions.tags, regions.starts)
            message = np.repeat(np.arange(len(messages)), np.diff(starts))
            slot = slots.astype(np.int64)
        else:
            message, slot = self._resolve(form, messages, channel, leaving.get(form.key, {}))
            tags = regions.tags[message]
        if has_moved:
            seq = messages.seq[message]
            hears = (self._born[slot] < seq) & (seq <= self._died[slot])
            message, slot, tags = message[hears], slot[hears], tags[hears]
        return Pairs(message, slot, tags)

    def _resolve(
        self, form: _FormPoints, messages: MessageBatch, channel: Int64Array, leaving: dict[str, list[int]]
    ) -> tuple[Int64Array, Int64Array]:
        """(message, slot) pairs of unicast messages: the slots of the target subscription on the message's channel."""
        found: list[tuple[int, int]] = []
        assert messages.target is not None
        for at, (id, number) in enumerate(zip(messages.target.to_pylist(), channel.tolist(), strict=True)):
            slots = [*form.slots_of(id), *leaving.get(id, ())]
            found.extend((at, slot) for slot in slots if self._channel[slot] == number)
        pairs = np.array(found, np.int64).reshape(len(found), 2)
        return pairs[:, 0], pairs[:, 1]

    def _snapshots(
        self, created: dict[str, list[int]], batches: Iterable[SnapshotBatch]
    ) -> tuple[Int64Array, Int64Array, list[str]]:
        """(slot, seq, tail) of the snapshot of every new subscription. Rows of one snapshot may come from several shards."""
        rows = {batch.form: batch for batch in SnapshotBatch.by_form(batches)}
        slots, tails = [np.empty(0, np.int64)], []
        for key, homes in created.items():
            first = self._first_rows(np.array(homes, np.int64), rows.get(key))
            slots.append(first.slot)
            tails.extend(self._forms[key].views.snapshots(first))
        at = np.concatenate(slots)
        return at, self._born[at], tails

    def _first_rows(self, homes: Int64Array, rows: SnapshotBatch | None) -> FirstRows:
        """Snapshot rows grouped by subscription. homes: slots of the new home points; rows: None if no shard has sent any."""
        born = self._born[homes]
        if rows is None:
            return FirstRows(homes, born, np.zeros(len(homes) + 1, np.int64), None)
        numbers = {
            (self._ids[slot], seq): i for i, (slot, seq) in enumerate(zip(homes.tolist(), born.tolist(), strict=True))
        }
        names = zip(rows.target.to_pylist(), rows.seq.tolist(), strict=True)
        owner = np.array([numbers.get(name, -1) for name in names], np.int64)
        order = np.argsort(owner, kind="stable")
        order = order[np.searchsorted(owner[order], 0) :]
        starts = np.searchsorted(owner[order], np.arange(len(homes) + 1))
        return FirstRows(homes, born, starts, rows.payload.take(pa.array(order)))

    def _ordered(
        self, told: list[tuple[Int64Array, Int64Array, Int64Array]], tails: list[str], snapshot_count: int
    ) -> NotificationBatch:
        seq = np.concatenate([part[0] for part in told])
        slot = np.concatenate([part[1] for part in told])
        tail = np.concatenate([part[2] for part in told])
        if len(seq) == 0:
            return NO_NOTIFICATIONS
        is_snapshot = tail < snapshot_count
        order = told_order(seq, self._ranks(slot), is_snapshot)
        return NotificationBatch.of(seq[order], self._named(slot[order]), tail[order], tails, is_snapshot[order])

    def _named(self, slot: Int64Array) -> pa.Array:
        """Ids of the slots, [slots], as an Arrow array.

        While ranks of all ids are cached (`_ranks`), a columnar copy of all ids is cached too and the ids are gathered from it.
        """
        if self._rank is None:
            return pa.array([self._ids[at] for at in slot.tolist()], pa.string())
        if self._id_column is None:
            self._id_column = pa.array(self._ids, pa.string())
        return self._id_column.take(pa.array(slot))

    def _ranks(self, slot: Int64Array) -> Int64Array:
        """Numbers that sort like the ids of the slots, [slots].

        Ranks of the given ids alone are made per call, until as many ids have been ranked since the last creation as there are
        ids; then ranks of all ids are made and kept until the next creation.
        """
        if len(slot) == 1:
            return np.zeros(1, np.int64)
        if self._rank is not None:
            return self._rank[slot]
        self._ranked += len(slot)
        if self._ranked < len(self._ids):
            distinct, inverse = np.unique(slot, return_inverse=True)
            return dense_ranks(pa.array([self._ids[at] for at in distinct.tolist()], pa.string()))[inverse]
        self._rank = dense_ranks(pa.array(self._ids, pa.string()))
        return self._rank[slot]

    def _dump_points(self, form: _FormPoints) -> PointBatch:
        slots = form.all_slots()
        home = np.array([i == 0 for id in form.slots for i in range(len(form.slots_of(id)))], np.bool_)
        if form.matching is not None:
            coords = form.matching.coords(slots)
        else:
            assert form.forest is not None
            _, held, held_coords = form.forest.points()
            every = np.zeros((len(self._ids), form.forest.dims), np.int64)
            every[held] = held_coords
            coords = every[slots]
        keys: list[ChannelKey] = [*form.channels, (None,) * len(form.channel_types)]  # type: ignore[list-item]
        return PointBatch(
            form.key,
            np.zeros(len(slots), np.int8),
            self._born[slots],
            np.arange(len(slots)),
            pa.array([self._ids[slot] for slot in slots.tolist()], pa.string()),
            tuple(channel_columns(form.channel_types, [keys[number] for number in self._channel[slots].tolist()])),
            coords,
            home,
            pa.array([self._details[slot] for slot in slots.tolist()], pa.binary()),
        )
