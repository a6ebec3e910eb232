"""A replica: lines of changes and subscription events in, finished notification lines out.

A replica holds the current rows of all tables and evaluates its subscriptions over them. A micro-batch is one list of events
in sequence order, and costs one compiled call per family. Subscriptions may be spread over many replicas; every replica sees
all changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tidings.families import registry
from tidings.families.evaluator import Evaluator
from tidings.families.registry import family_of
from tidings.families.shown import render
from tidings.kernels.events import CREATE, DROP, Events, Told
from tidings.kernels.lines import write_lines
from tidings.kernels.lives import FAMILY
from tidings.kernels.rows import I64, NONE
from tidings.model.blob import pack, unpack
from tidings.model.catalog import Catalog
from tidings.model.change import SEQ_MAX
from tidings.model.codes import BoolArray
from tidings.model.notification import NO_LINES, Lines
from tidings.model.points import Event, PointBatch
from tidings.model.quarantine import Quarantined
from tidings.pipeline.replica.batch import Batch, Origin
from tidings.pipeline.replica.expansion import expanded
from tidings.pipeline.replica.form_table import FormTable
from tidings.pipeline.replica.held_points import HeldPoints
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


class Applied(NamedTuple):
    """What came of a micro-batch: notification lines, refused records, and the records that were read."""

    lines: Lines
    refused: list[Quarantined]
    batch: Batch


_NOTHING_DUE = _Due(_NOTHING, _NOTHING, _NOTHING, _NOTHING, [])


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
    ) -> None:
        """strategies: family -> strategy. keeps_points: required for `dump`. is_stream: as in `RowStore`."""
        self.catalog = catalog
        self._strategies = strategies or {}
        self._keeps_points = keeps_points
        self.store = RowStore(catalog, is_stream=is_stream)
        self.subscriptions = Subscriptions()
        self._forms = FormTable(catalog)
        self._evaluators: dict[str, Evaluator] = {}
        self._pending: dict[str, PointBatch] = {}
        self._next_due = SEQ_MAX + 1
        self._held = HeldPoints(self.subscriptions)
        """Empty unless `keeps_points`."""
        self.changes = 0
        self.notifications: Counter[str] = Counter()

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

    def apply(
        self, lines: Sequence[bytes], origin: Origin, points: Iterable[PointBatch] = (), *, is_end: bool = False
    ) -> Applied:
        """Handles a micro-batch.

        origin: where the lines come from. is_end: the input is over, so that subscription events
        which wait for a later seq happen now.
        """
        return self._run(lines, origin, points, is_end=is_end, is_told=True)

    def replay(
        self, lines: Sequence[bytes], origin: Origin, points: Iterable[PointBatch] = (), *, is_end: bool = False
    ) -> None:
        """Repeats a micro-batch when state is restored from a log: as `apply`, but without notifications."""
        self._run(lines, origin, points, is_end=is_end, is_told=False)

    def _run(
        self, lines: Sequence[bytes], origin: Origin, points: Iterable[PointBatch], *, is_end: bool, is_told: bool
    ) -> Applied:
        for new in points:
            self._wait(new)
        if isinstance(origin, int):
            # Only streams have records that stand for others.
            return self._step(lines, origin, is_end=is_end, is_told=is_told)
        steps, given, refused = list[Applied](), list[I64 | None](), list[Quarantined]()
        for piece in expanded(lines, origin, self.store):
            steps.append(self._step(piece.lines, piece.origin, is_end=is_end, is_told=is_told))
            given.append(piece.at)
            refused += [*piece.refused, *steps[-1].refused]
        if len(given) == 1 and given[0] is None:
            return steps[0]
        return Applied(
            Lines.joined([step.lines for step in steps]),
            refused,
            Batch.joined([step.batch for step in steps], np.concatenate([at for at in given if at is not None])),
        )

    def _step(self, lines: Sequence[bytes], origin: Origin, *, is_end: bool, is_told: bool) -> Applied:
        store = self.store
        batch = store.take(lines, origin, NONE if is_end else self._next_due)
        due = self._due(SEQ_MAX if is_end else store.passed)
        if batch.events is None:
            lives = self.subscriptions.lives
            store.apply(batch, due.after, due.kind, due.slot, lives)
        assert batch.events is not None
        self.changes += len(batch.events.seq) - len(due.after)
        told = self._evaluate(batch.events, is_told=is_told)
        written = self._write(batch.events, told) if is_told else NO_LINES
        store.settle()
        if len(due.slot):
            self._settle(due)
        return Applied(written, batch.refused, batch)

    def dump(self) -> bytes:
        """State for `load`: rows, pending events, points of living subscriptions, and what evaluators hold beyond these."""
        state = {
            "store": self.store.dump(),
            "pending": list(self._pending.values()),
            "points": [[batch, slots] for batch, slots in self._held.living()],
            "families": {name: evaluator.dump() for name, evaluator in self._evaluators.items()},
        }
        return pack(state)

    def load(self, blob: bytes) -> None:
        state = unpack(blob)
        self.store.load(state["store"])
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
            self._evaluator(points.form).add(points, at, self.subscriptions.lives)
        for name, held in state["families"].items():
            if held is not None and name in self._evaluators:
                self._evaluators[name].load(held)

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

    def _due(self, up_to: int) -> _Due:
        """Removes events with `after` up to `up_to` from the pending ones. New subscriptions get slots and are added."""
        if self._next_due > up_to:
            return _NOTHING_DUE
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
                slot = slots[i] = living.pop(id)
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
        self._add(due, homes, ids, slots, created)
        kept = ordered[~is_void[ordered]]
        kind = np.where(event[kept] == int(Event.CREATE), CREATE, DROP).astype(np.int64)
        return _Due(after[kept], kind, slots[kept], slots[np.flatnonzero(created)], dropped)

    def _begin(self, new: Sequence[tuple[str, list[int], list[str]]]) -> None:
        """Enters new subscriptions, given as (form of the home point, slots, ids)."""
        self.subscriptions.enter(*self._described(new))

    def _described(
        self, new: Sequence[tuple[str, list[int], list[str]]]
    ) -> tuple[list[int], list[str], list[int], list[int], list[int]]:
        """(slots, ids, numbers of forms, of families, of projections), [subscriptions], of new subscriptions."""
        slots, ids, forms, families, projections = [], [], [], [], []
        for key, own, names in new:
            form = self._forms.take(key, len(own))
            slots += own
            ids += names
            forms += [form.number] * len(own)
            families += [form.family] * len(own)
            projections += [form.projection] * len(own)
        return slots, ids, forms, families, projections

    def _add(
        self, due: Sequence[PointBatch], homes: Sequence[I64], ids: list[str], slots: I64, created: BoolArray
    ) -> None:
        """Adds the points of new subscriptions to the evaluators.

        homes: per batch of `due` the places of its home rows. ids, slots, created: of all home rows, batch after batch.
        """
        lives = self.subscriptions.lives
        firsts = np.cumsum([0, *map(len, homes)])
        known: dict[tuple[str, int], int] = {}
        for points, first in zip(due, firsts.tolist(), strict=False):
            if _follow_homes(points):
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
                self._evaluator(points.form).add(batch, at, lives)

    def _evaluator(self, form_key: str) -> Evaluator:
        family, _ = family_of(form_key)
        evaluator = self._evaluators.get(family.name)
        if evaluator is None:
            made = registry.evaluator(family, self.catalog, self.store, self._strategies)
            evaluator = self._evaluators[family.name] = made
        return evaluator

    def _evaluate(self, events: Events, *, is_told: bool) -> list[Told]:
        if not len(events.seq):
            return []
        lives, projections = self.subscriptions.lives, self._forms.projections.arrays
        told = []
        for name, evaluator in self._evaluators.items():
            if not is_told and not evaluator.remembers:
                continue
            new = evaluator.apply(events, lives, projections)
            if is_told and len(new.event):
                self.notifications[name] += len(new.event)
                told.append(new)
        return told

    def _write(self, events: Events, told: list[Told]) -> Lines:
        if not told:
            return NO_LINES
        out, ends = render(self.store.handles, self._forms.projections.arrays, events, told)
        if len(told) == 1:
            event, slot, tail = told[0].event, told[0].slot, told[0].tail
        else:
            firsts = np.cumsum([0, *(len(part.tails) for part in told)]).tolist()
            event = np.concatenate([part.event for part in told])
            slot = np.concatenate([part.slot for part in told])
            tail = np.concatenate([part.tail + base for part, base in zip(told, firsts, strict=False)])
        known = self.subscriptions
        data = write_lines(event, slot, tail, events.kind, events.seq, known.lives, known.id_text, out, ends)
        return Lines(data, len(event))

    def _settle(self, due: _Due) -> None:
        self.subscriptions.begin(due.created)
        if due.dropped:
            gone = np.array(due.dropped, np.int64)
            for number, name in enumerate(self._forms.families):
                own = gone[self.subscriptions.lives[gone, FAMILY] == number]
                if len(own):
                    self._evaluators[name].remove(own)
            self.subscriptions.leave(due.dropped)
            self._forms.give(self.subscriptions.form[gone])
            if self._keeps_points:
                self._held.drop(gone)


def _follow_homes(points: PointBatch) -> bool:
    """Whether every point stands behind the home point of its subscription; False if a home point is in another form."""
    is_other = ~points.home[1:] & (points.order[1:] != points.order[:-1])
    return bool(points.home[0]) and not is_other.any()
