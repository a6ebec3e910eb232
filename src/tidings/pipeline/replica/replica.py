"""A replica: lines of changes and subscription events in, finished notifications out.

A replica holds the current rows of all tables and evaluates its subscriptions over them. A micro-batch is one list of events
in sequence order, and costs one compiled call per family. Subscriptions may be spread over many replicas; every replica sees
all changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol
from weakref import ref

import numpy as np
import pyarrow as pa

from tidings.families import registry
from tidings.families.evaluator import Evaluator
from tidings.families.registry import family_of
from tidings.kernels.events import CREATE, DROP, PART, TABLE, Events, Told
from tidings.kernels.lives import FAMILY, SINCE
from tidings.kernels.rows import I64, NONE
from tidings.kernels.rows.change import current_with_key
from tidings.model.blob import pack, unpack
from tidings.model.catalog import Catalog
from tidings.model.change import SEQ_MAX
from tidings.model.codes import BoolArray
from tidings.model.notification import NO_NOTIFICATIONS, NotificationBatch
from tidings.model.points import Event, PointBatch
from tidings.model.quarantine import Quarantined
from tidings.pipeline.replica.batch import Applied, Batch, Origin
from tidings.pipeline.replica.expansion import expanded, may_be_special
from tidings.pipeline.replica.form_table import FormTable
from tidings.pipeline.replica.held_points import HeldPoints
from tidings.pipeline.replica.notifications import ReplicaNotifications, write
from tidings.pipeline.replica.row_store import RowStore
from tidings.pipeline.replica.subscriptions import Subscriptions

_NOTHING = np.empty(0, np.int64)


@dataclass
class _Due:
    """Subscription events of one micro-batch. after, kind, slot: [events], in order; created: slots, dropped: slots."""

    after: I64
    kind: I64
    slot: I64
    created: I64
    dropped: list[int]


_NOTHING_DUE = _Due(_NOTHING, _NOTHING, _NOTHING, _NOTHING, [])


class Observer(Protocol):
    """Is shown what happens in each micro-batch, in place of notifications: see `Replica.observe`."""

    def evaluates(self, form_key: str) -> bool:
        """Whether subscriptions of a form are evaluated; else they are only there."""

    def moved(self, points: PointBatch, slots: I64) -> None:
        """Takes creations and drops that happen in the micro-batch, of one form. slots: [points]."""

    def told(self, batch: Batch, told: Sequence[tuple[str, Told]]) -> None:
        """Takes (family, who is told what) before versions of rows are freed. Called after all calls of `moved`."""


class Replica:
    """Rows of all tables, and a share of the subscriptions.

    What was kept for subscriptions that have been dropped is given up, at the drop or some drops later; arrays keep the
    length that the largest number of subscriptions needed.
    """

    def __init__(
        self,
        catalog: Catalog,
        strategies: Mapping[str, str] | None = None,
        *,
        keeps_points: bool = False,
        is_stream: bool = False,
        by_commit: bool = True,
    ) -> None:
        """strategies: family -> strategy. keeps_points: required for `dump`. is_stream, by_commit: as in `RowStore`."""
        self.catalog = catalog
        self._strategies = strategies or {}
        self._keeps_points = keeps_points
        self.store = RowStore(catalog, is_stream=is_stream, by_commit=by_commit)
        self.subscriptions = Subscriptions()
        self._forms = FormTable(catalog)
        self._evaluators: dict[str, Evaluator] = {}
        self._pending: dict[str, PointBatch] = {}
        self._next_due = SEQ_MAX + 1
        self._broken: dict[str, Exception] = {}
        """Families whose evaluators have failed in this micro-batch."""
        self._held = HeldPoints(self.subscriptions)
        """Empty unless `keeps_points`."""
        self.changes = 0
        self.notifications: Counter[str] = Counter()
        self._written: ref[ReplicaNotifications] | None = None
        """What the last micro-batch told, if somebody still has it."""
        self._observer: Observer | None = None

    @property
    def passed(self) -> int:
        """The last sequence number accepted."""
        return self.store.passed

    @property
    def nbytes(self) -> int:
        """Approximate bytes of rows, subscriptions, evaluators and points. Cheap enough for every micro-batch."""
        pending = sum(points.nbytes for points in self._pending.values())
        evaluators = sum(evaluator.nbytes for evaluator in self._evaluators.values())
        known = self.subscriptions.nbytes + self._forms.nbytes + self._held.nbytes
        return self.store.nbytes + known + pending + evaluators

    def size_counts(self) -> dict[str, int]:
        """How many living subscriptions, forms with subscriptions, and current rows there are: for metrics."""
        return {"subscriptions": len(self.subscriptions), "forms": len(self._forms), "rows": self.store.row_count}

    def advance(self) -> None:
        """Takes a seq for subscription events, which no change has."""
        self.store.advance()

    def observe(self, observer: Observer) -> None:
        """From now on no notifications are made: the observer is shown what they would be made from.

        It sees every row that enters or leaves an answer, also where equal looks would cancel out.
        """
        self._observer = observer

    def replay(
        self, lines: Sequence[bytes], origin: Origin, points: Iterable[PointBatch] = (), *, is_end: bool = False
    ) -> Applied:
        """Repeats a micro-batch when state is restored from a log: as `apply`, but without notifications."""
        return self.apply(lines, origin, points, is_end=is_end, is_told=False)

    def apply(
        self,
        lines: Sequence[bytes],
        origin: Origin,
        points: Iterable[PointBatch] = (),
        *,
        is_end: bool = False,
        is_told: bool = True,
    ) -> Applied:
        """Handles a micro-batch.

        origin: where the lines come from. is_end: the input is over, so subscription events that wait for a later seq happen.
        """
        if self._written is not None and self._written() is not None:
            self._keep_written()
        for new in points:
            self._wait(new)
        store = self.store
        if isinstance(origin, int) or not may_be_special(lines):
            batch = store.take(lines, origin, NONE if is_end else self._next_due)
        else:
            batch = store.take_pieces(expanded(lines, origin, store))
        # While rows are loaded nobody comes: whoever came before the end of the load gets a snapshot at its end.
        up_to = SEQ_MAX if is_end else NONE if store.is_loading else store.passed
        if batch.loaded:
            self._postpone(batch.loaded)
        return self._carry(batch, up_to, origin, is_told=is_told)

    def _carry(self, batch: Batch, up_to: int, origin: Origin, *, is_told: bool) -> Applied:
        """Lets a micro-batch that has been read happen, with the subscription events up to a seq."""
        store = self.store
        due = self._due(up_to, batch) if self._next_due <= up_to else None
        if batch.events is None:
            own = due or _NOTHING_DUE
            store.apply(batch, own.after, own.kind, own.slot, self.subscriptions.lives)
        events = batch.events
        assert events is not None
        # Without transactions every accepted record is an event.
        self.changes += batch.accepted if batch.has_tx else events.size - (0 if due is None else len(due.after))
        if self._observer is not None:
            written = NO_NOTIFICATIONS
            told = self._evaluate(events.with_parts(PART), is_told=True)
            self._observer.told(batch, told)
        else:
            told = self._evaluate(events, is_told=is_told)
            written = self._write(batch, events, told) if told else NO_NOTIFICATIONS
        store.settle()
        if due is not None:
            self._settle(due)
        if self._broken:
            again, failed = self._mend(_NOTHING if due is None else due.created, origin, is_told=is_told)
            return Applied(NotificationBatch.merge([written, again]), batch.refused, batch, failed)
        return Applied(written, batch.refused, batch)

    def _mend(self, created: I64, origin: Origin, *, is_told: bool) -> tuple[NotificationBatch, list[tuple[str, str]]]:
        """Makes evaluators that have failed anew, without the subscriptions at fault; all others get a new snapshot.

        created: slots of this micro-batch's new subscriptions, one of which must be at fault: if none is, the error is raised.
        Returns the snapshots, and (id, reason) of those that were dropped.
        """
        (name, error), *_ = self._broken.items()
        held = [(points, at) for points, at in self._held.living() if family_of(points.form)[0].name == name]
        slots = np.unique(np.concatenate([_NOTHING, *(at for _, at in held)]))
        suspects = np.intersect1d(slots, created)
        if not len(suspects):
            raise error
        at_fault = [slot for slot in suspects.tolist() if not self._is_sound(held, slot)] or suspects.tolist()
        failed = [
            (self.subscriptions.ids[slot], f"its evaluator failed: {type(error).__name__}: {error}")
            for slot in at_fault
        ]
        self._evaluators.pop(name, None)
        del self._broken[name]
        for slot in slots.tolist():
            del self.subscriptions.slots[self.subscriptions.ids[slot]]
        self.subscriptions.leave(slots.tolist())
        self._forms.give(self.subscriptions.form[slots])
        for points, at in held:
            kept = points.take(~np.isin(at, at_fault))
            self._wait(replace(kept, event=np.zeros_like(kept.event), after=np.full(len(kept), self.passed)))
        self._held.drop(slots)
        nowhere = origin if isinstance(origin, int) else origin.take(_NOTHING)
        again = self.apply([], nowhere, is_told=is_told)
        return again.notifications, [*failed, *again.failed]

    def _is_sound(self, held: Sequence[tuple[PointBatch, I64]], slot: int) -> bool:
        """Whether a subscription can be added to an evaluator of its own, and gets its first answer."""
        lives = self.subscriptions.lives.copy()
        lives[slot, SINCE] = 0
        events = Events.of(CREATE, self.passed, np.array([slot]))
        try:
            evaluator: Evaluator | None = None
            for points, at in held:
                own = np.flatnonzero(at == slot)
                if len(own):
                    made = registry.evaluator(family_of(points.form)[0], self.catalog, self.store, self._strategies)
                    evaluator = evaluator or made
                    evaluator.add(points.take(own), at[own], lives)
            if evaluator is not None:
                evaluator.apply(events, lives, self._forms.projections.arrays)
        except Exception:
            return False
        return True

    def dump(self) -> bytes:
        """State for `load`: rows, pending events, points of living subscriptions, and what evaluators hold beyond these."""
        state = {
            "store": self.store.dump(),
            "pending": list(self._pending.values()),
            "points": [[batch, slots] for batch, slots in self._held.living()],
            "families": {name: evaluator.dump() for name, evaluator in self._evaluators.items()},
        }
        return pack(state)

    def load(self, blob: bytes) -> I64:
        """Restores what `dump` or `dump_part` gave. Returns the versions of its rows, in the order of the dump."""
        state = unpack(blob)
        versions = self.store.load(state["store"])
        for batch in state["pending"]:
            self._wait(batch)
        living: list[tuple[str, list[int], list[str]]] = []
        for points, at in state["points"]:
            home = np.flatnonzero(points.home)
            if len(home):
                living.append((points.form, at[home].tolist(), points.id.take(pa.array(home)).to_pylist()))
        self.subscriptions.restore(*self._described(living))
        for points, at in state["points"]:
            self._hold(points, at)
            if self._evaluates(points.form):
                self._evaluator(points.form).add(points, at, self.subscriptions.lives)
        for name, held in state["families"].items():
            if held is not None and name in self._evaluators:
                self._evaluators[name].load(held)
        return versions

    def dump_part(self, slots: I64, versions: I64) -> bytes:
        """As `dump`, of these subscriptions and these current rows, for a `PartialReplica`."""
        numbers = np.full(len(self.subscriptions.ids), NONE, np.int64)
        numbers[slots] = np.arange(len(slots))
        held = [(points.take(numbers[at] != NONE), at[numbers[at] != NONE]) for points, at in self._held.living()]
        state = {
            "store": self.store.dump_part(versions),
            "pending": [],
            "points": [[points, numbers[at]] for points, at in held if len(at)],
            "families": {name: evaluator.dump(numbers) for name, evaluator in self._evaluators.items()},
        }
        return pack(state)

    def living_points(self) -> Iterable[tuple[PointBatch, I64]]:
        """(points, slots) of all living subscriptions. Requires `keeps_points`."""
        return self._held.living()

    def first_answers(self, slots: I64) -> tuple[Events, list[tuple[str, Told]]]:
        """What subscriptions would be told if they were created now: (their creations, (family, told))."""
        number = np.full(len(self.subscriptions.ids), NONE, np.int64)
        number[slots] = np.arange(len(slots))
        lives = self.subscriptions.lives.copy()
        lives[slots, SINCE] = np.arange(len(slots))
        events = Events.of(CREATE, self.passed, slots)
        made: dict[str, Evaluator] = {}
        added: dict[str, list[I64]] = {}
        for points, at in self._held.living():
            own = np.flatnonzero(number[at] != NONE)
            if len(own):
                family = family_of(points.form)[0]
                if family.name not in made:
                    made[family.name] = registry.evaluator(family, self.catalog, self.store, self._strategies)
                made[family.name].add(points.take(own), at[own], lives)
                added.setdefault(family.name, []).append(at[own])
        found = []
        for name, evaluator in made.items():
            told = evaluator.apply(events, lives, self._forms.projections.arrays)
            found.append((name, told.copy()))
            # It may have pinned versions.
            evaluator.remove(np.unique(np.concatenate(added[name])))
        return events, found

    def snapshots(self, slots: I64) -> NotificationBatch:
        """The answers of subscriptions, as what they have been told adds up to, told once more as of now."""
        if not len(slots):
            return NO_NOTIFICATIONS
        self._keep_written()
        events, told = self.first_answers(slots)
        told = [(name, self._as_told(name, part)) for name, part in told]
        counted = self.notifications.copy()
        found = self._write(Batch((), 0), events, told)
        self.notifications = counted
        self._keep_written()
        return found

    def _as_told(self, family: str, told: Told) -> Told:
        """First answers with each row as its subscription was last told it."""
        evaluator = self._evaluators.get(family)
        slots, versions = evaluator.held() if evaluator is not None else (_NOTHING, _NOTHING)
        if not len(slots):
            return told
        rows, keys = self.store.rows, self.store.keys
        current = [int(current_with_key(rows, keys, version)) for version in versions.tolist()]
        held: dict[int, dict[int, int]] = {}
        for slot, now, version in zip(slots.tolist(), current, versions.tolist(), strict=True):
            held.setdefault(slot, {})[now] = version
        tail, tails, changes = told.tail.copy(), told.tails.tolist(), told.changes.tolist()
        for at, slot in enumerate(told.slot.tolist()):
            if slot in held:
                event, projection, first, end = tails[tail[at]]
                tails.append([event, projection, len(changes), len(changes) + end - first])
                changes += [[old, held[slot].get(new, new)] for old, new in changes[first:end]]
                tail[at] = len(tails) - 1
        made = np.array(tails, np.int64), np.array(changes, np.int64).reshape(-1, 2)
        return Told(np.stack([told.event, told.slot, tail]), told.size, made[0], made[1], told.sources)

    def _hold(self, points: PointBatch, slots: I64) -> None:
        if self._keeps_points:
            self._held.add(points, slots)

    def messages(self) -> Counter[str]:
        """Family -> changes of the tables that it reads; each counts as one message to all subscriptions on the table."""
        return self._traffic(0)

    def message_bytes(self) -> Counter[str]:
        return self._traffic(1)

    def _traffic(self, field: int) -> Counter[str]:
        reads = self._forms.reads
        return Counter({name: int(self.store.traffic[list(used), field].sum()) for name, used in reads.items()})

    def _wait(self, batch: PointBatch) -> None:
        # An event whose `after` has passed already happens now.
        passed = self.store.passed
        if len(batch) == 0:
            return
        if int(batch.after.min()) < passed:
            batch = replace(batch, after=np.maximum(batch.after, passed))
        if bool((np.diff(batch.after) < 0).any()):
            batch = batch.in_order()
        known = self._pending.get(batch.form)
        self._pending[batch.form] = batch = batch if known is None else PointBatch.concat([known, batch])
        self._next_due = min(self._next_due, int(batch.after[0]))

    def load_rows(self, lines: Sequence[bytes], position: int) -> list[Quarantined]:
        """Takes rows that are there before the first change, as `RowStore.load_rows`. Called before subscriptions come."""
        assert not self._evaluators, "rows are loaded before subscriptions come"
        return self.store.load_rows(lines, position)

    def _postpone(self, seq: int) -> None:
        """Lets no pending subscription event happen before this seq."""
        self._pending = {
            form: replace(points, after=np.maximum(points.after, seq)) for form, points in self._pending.items()
        }

    def _due(self, up_to: int, batch: Batch) -> _Due:
        """Removes events with `after` up to `up_to` from the pending ones. New subscriptions get slots and are added.

        Those that would happen within a transaction of the batch happen after it.
        """
        if batch.has_tx:
            self._pending = {
                form: replace(points, after=batch.after_commits(points.after)) for form, points in self._pending.items()
            }
        due: list[PointBatch] = []
        for form, points in list(self._pending.items()):
            stop = int(np.searchsorted(points.after, up_to, "right"))
            if stop:
                due.append(points.slice(0, stop))
            if stop == len(points):
                del self._pending[form]
            else:
                self._pending[form] = points.slice(stop, len(points))
        self._next_due = min((int(points.after[0]) for points in self._pending.values()), default=SEQ_MAX + 1)
        return self._enter(due)

    def _enter(self, due: list[PointBatch]) -> _Due:
        """Gives slots to new subscriptions, looks up those of dropped ones, and adds the new points to the evaluators."""
        homes = [np.flatnonzero(points.home) for points in due]
        after = np.concatenate([_NOTHING, *(points.after[at] for points, at in zip(due, homes, strict=True))])
        order = np.concatenate([_NOTHING, *(points.order[at] for points, at in zip(due, homes, strict=True))])
        event = np.concatenate([_NOTHING, *(points.event[at] for points, at in zip(due, homes, strict=True))])
        ids = [id for points, at in zip(due, homes, strict=True) for id in points.id.take(pa.array(at)).to_pylist()]
        slots = np.full(len(ids), NONE, np.int64)
        is_void = np.zeros(len(ids), np.bool_)
        creations = int((event == int(Event.CREATE)).sum())
        free = iter(self.subscriptions.take(creations))
        living = self.subscriptions.slots
        begun: dict[str, tuple[int, list[int]]] = {}
        dropped: list[int] = []
        ordered = np.lexsort((order, after))
        has_drops = creations < len(ids)
        moments, events = after.tolist(), event.tolist()
        for i in ordered.tolist():
            id = ids[i]
            if events[i] == Event.CREATE:
                slot = living[id] = slots[i] = next(free)
                if has_drops:
                    moment, members = begun.get(id, (-1, []))
                    if moment == moments[i]:
                        # Created, dropped and created again at one seq: the first life is left out, as a
                        # subscription must not have two snapshots at one seq.
                        is_void[members] = True
                        dropped = [gone for gone in dropped if gone != slots[members[0]]]
                        self.subscriptions.leave([int(slots[members[0]])])
                    begun[id] = (moments[i], [i])
            else:
                slot = slots[i] = living.pop(id, NONE)
                if slot == NONE:
                    # Its evaluator failed, and it has been dropped before.
                    is_void[i] = True
                    continue
                dropped.append(slot)
                if id in begun and begun[id][0] == moments[i]:
                    begun[id][1].append(i)
        created = (event == int(Event.CREATE)) & ~is_void
        first = 0
        new: list[tuple[str, list[int], list[str]]] = []
        for points, at in zip(due, homes, strict=True):
            own = np.flatnonzero(created[first : first + len(at)]) + first
            first += len(at)
            if len(own):
                new.append((points.form, slots[own].tolist(), [ids[i] for i in own.tolist()]))
        self._begin(new)
        self._add(due, homes, ids, slots, created, ~is_void)
        kept = ordered[~is_void[ordered]]
        kind = np.where(event[kept] == int(Event.CREATE), CREATE, DROP).astype(np.int64)
        return _Due(after[kept], kind, slots[kept], slots[np.flatnonzero(created)], dropped)

    def _begin(self, new: Sequence[tuple[str, list[int], list[str]]]) -> None:
        """Enters new subscriptions, given as (form of the home point, slots, ids)."""
        self.subscriptions.enter(*self._described(new))

    def _described(
        self, new: Sequence[tuple[str, list[int], list[str]]]
    ) -> tuple[list[int], list[str], list[int], list[int], list[int], list[bool]]:
        """(slots, ids, numbers of forms, of families, of projections, is_net), [subscriptions], of new subscriptions."""
        slots, ids, forms, families, projections, nets = [], [], [], [], [], []
        for key, own, names in new:
            form = self._forms.take(key, len(own))
            slots += own
            ids += names
            forms += [form.number] * len(own)
            families += [form.family] * len(own)
            projections += [form.projection] * len(own)
            nets += [form.is_net] * len(own)
        return slots, ids, forms, families, projections, nets

    def _add(
        self,
        due: Sequence[PointBatch],
        homes: Sequence[I64],
        ids: list[str],
        slots: I64,
        created: BoolArray,
        happens: BoolArray,
    ) -> None:
        """Adds the points of new subscriptions to the evaluators.

        homes: per batch of `due` the places of its home rows. ids, slots, created, happens: of all home rows, batch after
        batch.
        """
        firsts = np.cumsum([0, *map(len, homes)])
        known: dict[tuple[str, int], int] = {}
        for points, first in zip(due, firsts.tolist(), strict=False):
            if points.follows_homes:
                home_of = np.cumsum(points.home) - 1 + first
            else:
                if not known:
                    orders = [
                        order for points, at in zip(due, homes, strict=True) for order in points.order[at].tolist()
                    ]
                    known = {key: i for i, key in enumerate(zip(ids, orders, strict=True))}
                keys = zip(points.id.to_pylist(), points.order.tolist(), strict=True)
                home_of = np.array([known[key] for key in keys], np.int64)
            chosen = np.flatnonzero(created[home_of])
            if len(chosen):
                batch, at = points.take(chosen), slots[home_of[chosen]]
                self._hold(batch, at)
                self._add_to_evaluator(batch, at)
            if self._observer is not None:
                seen = np.flatnonzero(happens[home_of])
                self._observer.moved(points.take(seen), slots[home_of[seen]])

    def _add_to_evaluator(self, points: PointBatch, slots: I64) -> None:
        name = family_of(points.form)[0].name
        if name not in self._broken and self._evaluates(points.form):
            try:
                self._evaluator(points.form).add(points, slots, self.subscriptions.lives)
            except Exception as error:
                self._fail(name, error)

    def _evaluates(self, form_key: str) -> bool:
        return self._observer is None or self._observer.evaluates(form_key)

    def _fail(self, name: str, error: Exception) -> None:
        """Notes that an evaluator has failed. Without the points nobody can be added again, and so the error is raised."""
        if not self._keeps_points:
            raise error
        self._broken[name] = error

    def _evaluator(self, form_key: str) -> Evaluator:
        family, _ = family_of(form_key)
        evaluator = self._evaluators.get(family.name)
        if evaluator is None:
            made = registry.evaluator(family, self.catalog, self.store, self._strategies)
            evaluator = self._evaluators[family.name] = made
        return evaluator

    def _evaluate(self, events: Events, *, is_told: bool) -> list[tuple[str, Told]]:
        """(family, who is told what) of each family that tells somebody."""
        if not events.size:
            return []
        lives, projections, reads = self.subscriptions.lives, self._forms.projections.arrays, self._forms.reads
        # A single change concerns the families that read its table: often few, and each call takes microseconds.
        table = events.words.item(TABLE, 0) if events.size == 1 else NONE
        told = []
        for name, evaluator in self._evaluators.items():
            if not is_told and not evaluator.remembers:
                continue
            if name in self._broken or (table != NONE and table not in reads.get(name, ())):
                continue
            try:
                new = evaluator.apply(events, lives, projections)
            except Exception as error:
                self._fail(name, error)
                continue
            if is_told and new.size:
                told.append((name, new))
        return told

    def _write(self, batch: Batch, events: Events, told: Sequence[tuple[str, Told]]) -> NotificationBatch:
        rows, forms = self.store.handles, self._forms
        shown, known, counted = forms.projections.handles, self.subscriptions, self.notifications
        found = write(batch, events, told, rows, shown, known, counted, has_net=forms.has_net)
        if found is None:
            return NO_NOTIFICATIONS
        self._written = ref(found)
        return found

    def _keep_written(self) -> None:
        """Called before subscriptions change: what was told before is told under their ids as they are."""
        written, self._written = self._written, None
        if written is not None and (found := written()) is not None:
            found.keep()

    def _settle(self, due: _Due) -> None:
        self._keep_written()
        self.subscriptions.begin(due.created)
        if due.dropped:
            gone = np.array(due.dropped, np.int64)
            for number, name in enumerate(self._forms.families):
                own = gone[self.subscriptions.lives[gone, FAMILY] == number]
                if self._observer is not None:
                    own = own[
                        [self._observer.evaluates(key) for key in self._forms.keys_of(self.subscriptions.form[own])]
                    ]
                if len(own) and name not in self._broken:
                    self._evaluators[name].remove(own)
            self.subscriptions.leave(due.dropped)
            self._forms.give(self.subscriptions.form[gone])
            if self._keeps_points:
                self._held.drop(gone)
