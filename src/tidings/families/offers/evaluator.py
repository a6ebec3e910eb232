"""Evaluates all offers subscriptions over shared rows: an index of their boxes per table, searched with publications' boxes.

All publications of a micro-batch are matched at once, against everyone who is there in any part of it; who hears which change
is decided afterwards. New subscriptions are matched the other way round, with all publications that are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import msgspec
import numpy as np

from tidings.families.evaluator import Evaluator, Store
from tidings.families.offers.difference import Change, Look, difference
from tidings.families.offers.kernels.box_index import BoxIndex
from tidings.families.offers.kernels.packed import BoxBatch, find_constraints, list_versions, read_batch
from tidings.families.offers.kernels.rankings import EVENT as STEP_EVENT
from tidings.families.offers.kernels.rankings import LIMIT, STEP_FIELDS, rank_matches
from tidings.families.offers.kernels.rankings import SLOT as STEP_SLOT
from tidings.families.offers.kernels.tell import (
    CHANGES,
    COUNTS,
    EVENT,
    MATCH_FIELDS,
    MEMORY_FIELDS,
    NEW,
    OLD,
    RANK,
    SIDE,
    SLOT,
    STEPS,
    TAILS,
    TOLD,
    tell_matches,
)
from tidings.families.offers.rankings import Rankings
from tidings.families.offers.subscription import Space, packed_points, space_of
from tidings.families.spec import Form
from tidings.kernels.arrays import I64, grow
from tidings.kernels.events import CHANGE, CREATE, NOBODY, Events, Projections, Told
from tidings.kernels.lives import PROJECTION, SINCE, Lives
from tidings.kernels.rows import NONE
from tidings.model.catalog import Catalog
from tidings.model.codes import BoolArray
from tidings.model.points import PointBatch

_NONE = np.empty(0, np.int64)
_CONSTRAINT, _OWNER = 0, 1
"""Columns of what `BoxIndex.match` gives: the constraint, and who has the box that it meets."""


class Offers:
    """The subscriptions on one table."""

    def __init__(self, number: int, space: Space) -> None:
        self.number = number
        self.table = space.table
        self._is_text = [axis.type.is_lossy for axis in space.table.axes]
        self._is_classic = space.table.constraints.is_classic
        self.index = self.new_index()
        self.fresh: list[tuple[I64, BoxBatch]] = []
        """Slots and boxes of subscriptions that came since the last micro-batch."""

        self.publications: BoxIndex | None = None
        """Boxes of publications by version, for subscriptions that come; None while there are few, or nobody comes."""
        self.unused = 0
        """Changes of publications since somebody came."""

    def new_index(self) -> BoxIndex:
        return BoxIndex(self._is_text, is_classic=self._is_classic)

    def new_publications(self) -> BoxIndex:
        """An index of publications: who asks is the other side, and so is who needs all attributes of the other."""
        return BoxIndex(self._is_text, is_classic=not self._is_classic)

    def fresh_index(self) -> BoxIndex:
        """An index of the subscriptions that came since the last micro-batch."""
        index = self.new_index()
        for slots, batch in self.fresh:
            index.add(slots, batch)
        return index

    def is_fresh(self, slots: I64) -> BoolArray:
        return np.isin(slots, np.concatenate([_NONE, *(own for own, _ in self.fresh)]))


class OffersEvaluator(Evaluator):
    name = "offers"
    publications_min: ClassVar[int] = 2048
    """With fewer publications, new subscriptions are compared with each."""
    matches_max: ClassVar[int] = 1 << 20
    """Matches that are held at once, about."""
    portion_min: ClassVar[int] = 64
    """Publications that are matched at once at least."""

    def __init__(self, catalog: Catalog, store: Store) -> None:
        self._catalog, self._store = catalog, store
        self._tables: dict[str, Offers] = {}
        self._rankings = Rankings()
        self._marks = np.zeros(64, np.int64)
        self._best = np.zeros((64, 2), np.int64)
        self._memory = np.zeros((16, MEMORY_FIELDS), np.int64)
        self._counts = np.zeros(COUNTS, np.int64)
        self._matches_per_change = 0.0

    def add(self, points: PointBatch, slots: I64, lives: Lives) -> None:
        space = space_of(Form.from_key(points.form), self._catalog)
        offers = self._tables.get(space.table.name)
        if offers is None:
            offers = Offers(self._store.number(space.table.name), space)
            self._tables[space.table.name] = offers
        slots, batch = slots.astype(np.int64), read_batch(*packed_points(points))
        offers.index.add(slots, batch)
        offers.fresh.append((slots, batch))
        top = int(slots.max()) + 1
        grow(self._marks, top)
        grow(self._best, top)
        self._rankings.cover(top)
        if space.order is not None:
            axis = space.table.axis_numbers[space.order.column.column]
            self._rankings.add(slots, space.order.limit, axis, is_highest=space.order.descending)

    def remove(self, slots: I64) -> None:
        for offers in self._tables.values():
            offers.index.remove(slots)
        self._rankings.remove(slots)

    def apply(self, events: Events, lives: Lives, projections: Projections) -> Told:
        parts: list[Told] = []
        for offers in self._tables.values():
            changes = np.flatnonzero((events.table == offers.number) & (events.kind == CHANGE))
            if offers.publications is not None:
                self._enter_publications(offers, events.new[changes])
            if offers.fresh:
                # First: what ranked subscriptions hold must be there when later changes alter it.
                parts.append(self._tell_creations(offers, events, lives))
            if len(changes) and len(offers.index):
                for some in self._portions(changes, events.seq):
                    parts += self._tell_changes(offers, events, some, lives, projections)
            if offers.publications is not None:
                self._leave_publications(offers, events.old[changes])
            offers.fresh.clear()
        return Told.joined(parts)

    def _portions(self, changes: I64, seq: I64) -> Iterator[I64]:
        """The changes in portions that are matched at once: so many that about `matches_max` matches are expected.

        How many matches a change has is measured as they go. Changes of one seq stay together.
        """
        start = 0
        while start < len(changes):
            size = max(self.portion_min, int(self.matches_max / max(self._matches_per_change, 1e-9)))
            stop = min(start + size, len(changes))
            while stop < len(changes) and seq[changes[stop]] == seq[changes[stop - 1]]:
                stop += 1
            yield changes[start:stop]
            start = stop

    # Publications, by version

    def _read(self, offers: Offers, versions: I64) -> BoxBatch:
        starts = np.empty(len(versions), np.int64)
        find_constraints(self._store.handles, offers.number, versions, starts)
        return read_batch(self._store.rows.text, starts)

    def _enter_publications(self, offers: Offers, versions: I64) -> None:
        versions = versions[versions != NONE]
        if len(versions) and offers.publications is not None:
            offers.publications.add(versions, self._read(offers, versions))

    def _leave_publications(self, offers: Offers, versions: I64) -> None:
        assert offers.publications is not None
        offers.publications.remove(versions[versions != NONE])
        offers.unused = 0 if offers.fresh else offers.unused + len(versions)
        if offers.unused > len(offers.publications):
            offers.publications = None

    def _match(self, offers: Offers, versions: I64, *, is_fresh: bool) -> tuple[I64, I64]:
        """(pairs, ranks) of versions of a table's rows and its subscriptions, or only those that are fresh.

        pairs: [.., 2], place among the versions and slot; a pair may come several times.
        """
        index = offers.fresh_index() if is_fresh else offers.index
        batch = self._read(offers, versions)
        found = index.match(batch)
        return found[:, [_CONSTRAINT, _OWNER]], self._ranks(index, found, found[:, _OWNER], batch)

    def _ranks(self, index: BoxIndex, found: I64, slots: I64, batch: BoxBatch) -> I64:
        ranks = np.zeros(len(found), np.int64)
        if len(self._rankings) and len(found):
            slots = np.ascontiguousarray(slots)
            rank_matches(index.handles, found, slots, batch.words, batch.boxes, self._rankings.lists, ranks)
        return ranks

    def _first_matches(self, offers: Offers) -> tuple[I64, I64, I64]:
        """(slots, versions, ranks) of fresh subscriptions and publications that are there at any time of the micro-batch."""
        handles = self._store.handles
        if offers.publications is None:
            versions = np.empty(list_versions(handles, offers.number, _NONE), np.int64)
            list_versions(handles, offers.number, versions)
            if len(versions) < self.publications_min:
                if not len(versions):
                    return _NONE, _NONE, _NONE
                pairs, ranks = self._match(offers, versions, is_fresh=True)
                return pairs[:, 1], versions[pairs[:, 0]], ranks
            offers.publications = offers.new_publications()
            self._enter_publications(offers, versions)
        parts = []
        for slots, batch in offers.fresh:
            found = offers.publications.match(batch)
            slot = slots[found[:, _CONSTRAINT]]
            parts.append((slot, found[:, _OWNER], self._ranks(offers.publications, found, slot, batch)))
        slot, version, ranks = (np.concatenate([part[i] for part in parts]) for i in range(3))
        return slot, version, ranks

    def _tell_changes(
        self, offers: Offers, events: Events, changes: I64, lives: Lives, projections: Projections
    ) -> Iterator[Told]:
        versions = np.concatenate([events.old[changes], events.new[changes]])
        there = np.flatnonzero(versions != NONE)
        pairs, ranks = self._match(offers, versions[there], is_fresh=False)
        n = len(pairs)
        self._matches_per_change += (n / len(changes) - self._matches_per_change) / 2
        if not n:
            return
        of = there[pairs[:, 0]]
        matches = np.empty((n, MATCH_FIELDS), np.int64)
        matches[:, EVENT], matches[:, SIDE] = changes[of % len(changes)], np.where(of < len(changes), OLD, NEW)
        matches[:, SLOT], matches[:, RANK] = pairs[:, 1], ranks
        if len(changes) > 1:
            matches = matches[np.argsort(matches[:, EVENT], kind="stable")]
        if len(projections.starts) > len(self._memory):
            self._memory = np.zeros((2 * len(projections.starts), MEMORY_FIELDS), np.int64)
        told, tails = np.empty((3, n), np.int64), np.empty((n, 4), np.int64)
        made = np.empty((3 * len(changes), 2), np.int64)
        steps = np.empty((n if len(self._rankings) else 0, STEP_FIELDS), np.int64)
        tell_matches(
            self._store.handles,
            matches,
            events.old,
            events.new,
            lives,
            self._rankings.lists,
            self._best,
            projections.starts,
            projections.column,
            self._marks,
            self._memory,
            self._counts,
            told,
            tails,
            made,
            steps,
        )
        counts = self._counts.tolist()
        plain = Told(told, counts[TOLD], tails[: counts[TAILS]], made[: counts[CHANGES]])
        if events.is_part.any():
            # Changes of a commit are netted by others, and rows that have not changed tell nothing.
            changes = changes[events.is_part[changes] == 0]
        seqs = events.seq[changes]
        shared = seqs[1:][seqs[1:] == seqs[:-1]]
        if len(shared):
            yield from self._together(plain, steps[: counts[STEPS]], shared, events, lives, projections)
            return
        yield plain
        if counts[STEPS]:
            yield self._rankings.take(self._store.handles, steps[: counts[STEPS]], events, lives, projections)

    def _tell_creations(self, offers: Offers, events: Events, lives: Lives) -> Told:
        """The snapshots of new subscriptions."""
        created = np.flatnonzero(events.kind == CREATE)
        created = created[offers.is_fresh(events.slot[created])]
        if not len(created):
            return NOBODY
        handles, rows = self._store.handles, self._store.rows
        slot, version, ranks = self._first_matches(offers)
        event = lives[slot, SINCE]
        there = np.flatnonzero((event >= 0) & (rows.since[version] <= event) & (event < rows.until[version]))
        slot, version, ranks = _best_of_pairs(slot[there], version[there], ranks[there])
        if len(self._rankings):
            own = self._rankings.lists[slot, LIMIT] > 0
            self._rankings.fill(handles, slot[own], ranks[own], version[own])
        slots = events.slot[created]
        starts, stops = np.searchsorted(slot, slots), np.searchsorted(slot, slots, "right")
        shown = [
            self._rankings.shown(each) if self._rankings.lists[each, LIMIT] else version[start:stop]
            for each, start, stop in zip(slots.tolist(), starts.tolist(), stops.tolist(), strict=True)
        ]
        counts = np.array([len(found) for found in shown], np.int64)
        ends = np.cumsum(counts)
        tails = np.stack([created, lives[slots, PROJECTION], ends - counts, ends], axis=1)
        changes = np.full((int(ends[-1]), 2), NONE, np.int64)
        changes[:, 1] = np.concatenate(shown)
        return Told.of(created, slots, np.arange(len(created)), tails, changes)

    # Several changes at one seq: rows that expired, and the row of the record itself. Rare, and so done one by one.

    def _together(
        self, plain: Told, steps: I64, shared: I64, events: Events, lives: Lives, projections: Projections
    ) -> Iterator[Told]:
        """What is told at one seq for several changes is told once. shared: the seqs that several changes have."""
        yield self._grouped(plain, shared, events, lives, projections)
        handles = self._store.handles
        is_shared = np.isin(events.seq[steps[:, STEP_EVENT]], shared)
        cuts = np.flatnonzero(np.diff(is_shared, prepend=False, append=False))
        start = 0
        for cut in [*cuts.tolist(), len(steps)]:
            own = steps[start:cut]
            if len(own) and not is_shared[start]:
                yield self._rankings.take(handles, own, events, lives, projections)
            elif len(own):
                yield self._stepped(own, events, lives, projections)
            start = cut

    def _stepped(self, steps: I64, events: Events, lives: Lives, projections: Projections) -> Told:
        """Steps of ranked subscriptions, those at one seq as one."""
        told: list[tuple[int, int, list[Change]]] = []
        by_moment: dict[tuple[int, int], list[int]] = {}
        for i, (event, slot) in enumerate(steps[:, [STEP_EVENT, STEP_SLOT]].tolist()):
            by_moment.setdefault((int(events.seq[event]), slot), []).append(i)
        for (_, slot), own in by_moment.items():
            look = self._look(int(lives[slot, PROJECTION]), projections)
            changes = self._rankings.take_together(self._store.handles, steps[own], events, self._id, look)
            if changes:
                told.append((int(steps[own[-1], STEP_EVENT]), slot, changes))
        return _told_of(told, lives)

    def _grouped(self, plain: Told, shared: I64, events: Events, lives: Lives, projections: Projections) -> Told:
        """Notifications of one subscription at one seq, joined."""
        by_moment: dict[tuple[int, int], list[int]] = {}
        several = np.flatnonzero(np.isin(events.seq[plain.event], shared))
        for i, event, slot in zip(
            several.tolist(), plain.event[several].tolist(), plain.slot[several].tolist(), strict=True
        ):
            by_moment.setdefault((int(events.seq[event]), slot), []).append(i)
        kept = np.ones(plain.size, np.bool_)
        merged = []
        for (_, slot), entries in by_moment.items():
            if len(entries) == 1:
                continue
            kept[entries] = False
            spans = [plain.tails[plain.tail[i], 2:].tolist() for i in entries]
            pairs = [(old, new) for start, stop in spans for old, new in plain.changes[start:stop].tolist()]
            before = self._by_id(old for old, _ in pairs if old != NONE)
            after = self._by_id(new for _, new in pairs if new != NONE)
            changes = difference(before, after, self._look(int(lives[slot, PROJECTION]), projections))
            if changes:
                merged.append((int(plain.event[entries[-1]]), slot, changes))
        rest = Told(plain.who[:, : plain.size][:, kept], int(kept.sum()), plain.tails, plain.changes)
        return Told.joined([rest, _told_of(merged, lives)])

    def _id(self, version: int) -> str:
        return msgspec.json.decode(self._store.texts_of(version)[0], type=str)

    def _by_id(self, versions: Iterable[int]) -> dict[str, int]:
        """Id -> version, in order of ids."""
        return dict(sorted((self._id(version), version) for version in versions))

    def _look(self, projection: int, projections: Projections) -> Look:
        """What a projection shows of a version."""
        start, stop = projections.starts[projection : projection + 2].tolist()
        columns = projections.column[start:stop].tolist()

        def look(version: int) -> bytes:
            texts = self._store.texts_of(version)
            return b",".join(texts[column] for column in columns)

        return look

    # State

    def dump(self, numbers: I64 | None = None) -> Any:
        return len(self._rankings) or None

    def load(self, state: Any) -> None:
        """Ranks the offers that are there."""
        for offers in self._tables.values():
            versions = self._store.current(offers.number)
            if not len(versions):
                continue
            pairs, ranks = self._match(offers, versions, is_fresh=True)
            slot, version = pairs[:, 1], versions[pairs[:, 0]]
            own = np.flatnonzero(self._rankings.lists[slot, LIMIT] > 0)
            slot, version, ranks = _best_of_pairs(slot[own], version[own], ranks[own])
            self._rankings.fill(self._store.handles, slot, ranks, version)

    @property
    def nbytes(self) -> int:
        arrays = self._marks.nbytes + self._best.nbytes + self._memory.nbytes + self._rankings.nbytes
        return arrays + sum(offers.index.nbytes for offers in self._tables.values())


def _best_of_pairs(slot: I64, version: I64, rank: I64) -> tuple[I64, I64, I64]:
    """Of several matches of one pair, the best ranked one; sorted by slot, then version."""
    order = np.lexsort((rank, version, slot))
    slot, version, rank = slot[order], version[order], rank[order]
    is_first = np.ones(len(slot), np.bool_)
    is_first[1:] = (slot[1:] != slot[:-1]) | (version[1:] != version[:-1])
    return slot[is_first], version[is_first], rank[is_first]


def _told_of(told: list[tuple[int, int, list[Change]]], lives: Lives) -> Told:
    """(event, slot, changes) of each notification, every one with a tail of its own."""
    if not told:
        return NOBODY
    counts = np.array([len(changes) for _, _, changes in told], np.int64)
    ends = np.cumsum(counts)
    event, slot = (np.array([entry[i] for entry in told], np.int64) for i in range(2))
    tails = np.stack([event, lives[slot, PROJECTION], ends - counts, ends], axis=1)
    changes = np.array([change for _, _, own in told for change in own], np.int64).reshape(-1, 2)
    return Told.of(event, slot, np.arange(len(told)), tails, changes)
