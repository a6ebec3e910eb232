"""Evaluates all offers subscriptions over shared rows: an index of their boxes per table, searched with publications' boxes.

All publications of a micro-batch are matched at once, against everyone who is there in any part of it; who hears which change
is decided afterwards. New subscriptions are matched the other way round, with all publications that are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np

from tidings.families.evaluator import Evaluator, Store
from tidings.families.offers.arrays import boxes_of_points, each_box
from tidings.families.offers.constraint import (
    AXIS,
    AXIS_WORDS,
    BOX_AXES,
    BOX_EQUAL,
    BOX_WORDS,
    Box,
    unpack,
)
from tidings.families.offers.kernels.box_index import TEXT_FIELDS, BoxIndex, NewBoxes, Queries
from tidings.families.offers.kernels.publications import (
    AT,
    BOX_FIELDS,
    CONSTRAINT,
    KIND,
    OF,
    count_words,
    fill_queries,
    list_versions,
    read_boxes,
)
from tidings.families.offers.kernels.tell import (
    CHANGES,
    COUNTS,
    MATCH_FIELDS,
    MEMORY_FIELDS,
    NEW,
    OLD,
    RANKED,
    TAILS,
    TOLD,
    tell_matches,
)
from tidings.families.offers.ranking import Change, Ranking, difference
from tidings.families.offers.subscription import Space, space_of
from tidings.families.spec import Form
from tidings.kernels.arrays import I64, grow
from tidings.kernels.events import CHANGE, CREATE, Events, Projections, Told
from tidings.kernels.lives import PROJECTION, SINCE, Lives
from tidings.kernels.rows import NONE
from tidings.model.catalog import Catalog
from tidings.model.points import PointBatch
from tidings.model.types import ColumnType

_NO_SOURCES = np.empty((0, 0), np.int64)
_NONE = np.empty(0, np.int64)
_NOTHING = Told(_NONE, _NONE, _NONE, np.empty((0, 4), np.int64), np.empty((0, 2), np.int64), _NO_SOURCES)


class _Offers:
    """The subscriptions on one table. fresh: boxes of those that came since the last micro-batch, by axes."""

    def __init__(self, number: int, is_text: tuple[bool, ...], is_classic: bool) -> None:
        self.number = number
        self.is_text = is_text
        self.is_classic = is_classic
        self.index = BoxIndex(is_text, is_classic=is_classic)
        self.fresh: list[tuple[tuple[int, ...], NewBoxes]] = []

    def fresh_index(self) -> BoxIndex:
        index = BoxIndex(self.is_text, is_classic=self.is_classic)
        for axes, boxes in self.fresh:
            index.add(axes, boxes)
        return index


class _Matches(NamedTuple):
    """Version number `of` (an index into those asked about) matches the subscription in `slot`."""

    of: I64
    slot: I64


class OffersEvaluator(Evaluator):
    name = "offers"

    def __init__(self, catalog: Catalog, store: Store) -> None:
        self._catalog, self._store = catalog, store
        self._tables: dict[str, _Offers] = {}
        self._table_of: dict[int, _Offers] = {}
        """[slots]: of subscriptions that came since the last micro-batch, where they are."""
        self._is_ranked = np.zeros(64, np.uint8)
        self._rankings: dict[int, Ranking] = {}
        """Slot -> ranking, of subscriptions with an order."""
        self._marks = np.zeros(64, np.int64)
        self._memory = np.zeros((16, MEMORY_FIELDS), np.int64)
        self._counts = np.zeros(COUNTS, np.int64)

    # Subscriptions

    def add(self, points: PointBatch, slots: I64, lives: Lives) -> None:
        space = space_of(Form.from_key(points.form), self._catalog)
        offers = self._offers(space)
        boxes = boxes_of_points(points, slots, space)
        offers.index.add(space.axes, boxes)
        offers.fresh.append((space.axes, boxes))
        top = int(slots.max()) + 1
        grow(self._is_ranked, top)
        grow(self._marks, top)
        for slot in set(slots.tolist()):
            self._table_of[slot] = offers
        if space.order is not None:
            self._is_ranked[slots] = 1
            for slot, box in zip(slots.tolist(), each_box(points, space), strict=True):
                self._rank(slot, box, space, offers)

    def remove(self, slots: I64) -> None:
        for offers in self._tables.values():
            offers.index.remove(slots)
        self._is_ranked[slots] = 0
        if self._rankings:
            for slot in slots.tolist():
                self._rankings.pop(slot, None)

    def _offers(self, space: Space) -> _Offers:
        table = space.table
        found = self._tables.get(table.name)
        if found is None:
            is_text = tuple(axis.type is ColumnType.TEXT for axis in table.axes)
            number = self._store.number(table.name)
            found = self._tables[table.name] = _Offers(number, is_text, table.constraints.is_classic)
        return found

    def _rank(self, slot: int, box: Box, space: Space, offers: _Offers) -> None:
        """Adds a box to the ranking of a subscription."""
        known = self._rankings.get(slot)
        if known is not None:
            known.boxes = [*known.boxes, box]
            return
        assert space.order is not None
        axis = space.table.axis_numbers[space.order.column.column]
        self._rankings[slot] = Ranking([box], axis, space.order.descending, space.order.limit, offers.is_classic)

    # Events

    def apply(self, events: Events, lives: Lives, projections: Projections) -> Told:
        parts = [self._apply(offers, events, lives, projections) for offers in self._tables.values()]
        told = parts[0] if len(parts) == 1 else _joined(parts)
        for offers in self._tables.values():
            offers.fresh.clear()
        self._table_of.clear()
        return told

    def _apply(self, offers: _Offers, events: Events, lives: Lives, projections: Projections) -> Told:
        parts: list[Told] = []
        if offers.fresh:
            # First: what subscriptions with an order hold must be there when later changes alter it.
            created = np.flatnonzero(events.kind == CREATE)
            own = [event for event in created.tolist() if self._table_of.get(int(events.slot[event])) is offers]
            if own:
                parts.append(self._tell_creations(offers, events, own, lives))
        changes = np.flatnonzero((events.table == offers.number) & (events.kind == CHANGE))
        if len(changes) and len(offers.index):
            parts += self._tell_changes(offers, events, changes, lives, projections)
        if not parts:
            return _NOTHING
        return parts[0] if len(parts) == 1 else _joined(parts)

    def _tell_changes(
        self, offers: _Offers, events: Events, changes: I64, lives: Lives, projections: Projections
    ) -> Iterator[Told]:
        versions = np.concatenate([events.old[changes], events.new[changes]])
        event, side = np.concatenate([changes, changes]), np.repeat(np.array([OLD, NEW]), len(changes))
        there = versions != NONE
        versions, event, side = versions[there], event[there], side[there]
        found = self._match(offers.index, offers.number, versions)
        if not len(found.of):
            return
        matches = np.empty((len(found.of), MATCH_FIELDS), np.int64)
        matches[:, 0], matches[:, 1], matches[:, 2] = event[found.of], side[found.of], found.slot
        if len(changes) > 1:
            matches = matches[np.argsort(matches[:, 0], kind="stable")]
        if len(projections.starts) > len(self._memory):
            self._memory = np.zeros((2 * len(projections.starts), MEMORY_FIELDS), np.int64)
        n = len(matches)
        told, tails = np.empty((3, n), np.int64), np.empty((n, 4), np.int64)
        made, ranked = np.empty((3 * len(changes), 2), np.int64), np.empty((n, MATCH_FIELDS), np.int64)
        tell_matches(
            self._store.handles,
            matches,
            events.old,
            events.new,
            lives,
            self._is_ranked,
            projections.starts,
            projections.column,
            self._marks,
            self._memory,
            self._counts,
            told,
            tails,
            made,
            ranked,
        )
        counts = self._counts.tolist()
        event, slot, tail = told[:, : counts[TOLD]]
        plain = Told(event, slot, tail, tails[: counts[TAILS]], made[: counts[CHANGES]], _NO_SOURCES)
        is_grouped = bool((events.seq[changes[1:]] == events.seq[changes[:-1]]).any())
        yield self._grouped(plain, events, lives, projections) if is_grouped else plain
        if counts[RANKED]:
            yield self._tell_ranked(ranked[: counts[RANKED]], events, lives, projections)

    def _match(self, index: BoxIndex, table: int, versions: I64) -> _Matches:
        """Which subscriptions of an index each of these versions of a table's rows matches; pairs may come several times."""
        handles, text = self._store.handles, self._store.rows.text
        word_count, box_count = count_words(handles, table, versions)
        words, boxes = np.empty(word_count, np.int64), np.empty((box_count, BOX_FIELDS), np.int64)
        read_boxes(handles, table, versions, words, boxes)
        parts = []
        waiting = list(_by_kind(boxes))
        while waiting:
            own = waiting.pop()
            head = int(own[0, AT])
            axes = int(words[head + BOX_AXES])
            first = head + BOX_WORDS + AXIS
            numbers = tuple(words[first : first + AXIS_WORDS * axes : AXIS_WORDS].tolist())
            q, codes = np.empty((len(own), 2 * axes), np.int64), np.empty((len(own), axes), np.int64)
            ends = np.empty((len(own), TEXT_FIELDS * axes), np.int64)
            if not fill_queries(text, words, own, q, codes, ends):
                waiting += _by_axes(own, words)
                continue
            hits = index.match(numbers, int(words[head + BOX_EQUAL]), Queries(q, codes, ends, text))
            parts.append(_Matches(own[hits[:, 0], OF], hits[:, 1]))
        if len(parts) == 1:
            return parts[0]
        none = np.empty(0, np.int64)
        return _Matches(
            np.concatenate([none, *(part.of for part in parts)]), np.concatenate([none, *(part.slot for part in parts)])
        )

    def _tell_creations(self, offers: _Offers, events: Events, own: list[int], lives: Lives) -> Told:
        """The snapshots of new subscriptions."""
        handles, rows = self._store.handles, self._store.rows
        room = np.empty(0, np.int64)
        versions = np.empty(list_versions(handles, offers.number, room), np.int64)
        list_versions(handles, offers.number, versions)
        pairs = np.empty((0, 2), np.int64)
        if len(versions):
            found = self._match(offers.fresh_index(), offers.number, versions)
            version, event = versions[found.of], lives[found.slot, SINCE]
            is_there = (event >= 0) & (rows.since[version] <= event) & (event < rows.until[version])
            pairs = np.unique(np.stack([event[is_there], version[is_there]], axis=1), axis=0)
        starts = np.searchsorted(pairs[:, 0], own)
        stops = np.searchsorted(pairs[:, 0], own, "right")
        slots = events.slot[own]
        shown = [pairs[start:stop, 1] for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]
        if self._rankings:
            shown = [self._ranked_first(slot, found) for slot, found in zip(slots.tolist(), shown, strict=True)]
        counts = np.array([len(found) for found in shown], np.int64)
        ends = np.cumsum(counts)
        tails = np.stack([np.array(own, np.int64), lives[slots, PROJECTION], ends - counts, ends], axis=1)
        changes = np.full((int(ends[-1]), 2), NONE, np.int64)
        changes[:, 1] = np.concatenate(shown)
        return Told(np.array(own, np.int64), slots.copy(), np.arange(len(own)), tails, changes, _NO_SOURCES)

    # Subscriptions with an order, and several changes at one seq

    def _ranked_first(self, slot: int, versions: I64) -> I64:
        """The versions that a new subscription shows; those of a ranking are all entered."""
        ranking = self._rankings.get(slot)
        if ranking is None:
            return versions
        for version in versions.tolist():
            ranking.put(version, *self._publication(version))
        return np.array(list(ranking.first().values()), np.int64)

    def _publication(self, version: int) -> tuple[str, tuple[Box, ...]]:
        """(id, boxes) of a row."""
        texts = self._store.texts_of(version)
        return msgspec.json.decode(texts[0], type=str), unpack(texts[CONSTRAINT])

    def _tell_ranked(self, ranked: I64, events: Events, lives: Lives, projections: Projections) -> Told:
        """Changes of the first offers of ranked subscriptions. Changes at one seq are told together, at the last of them."""
        told: list[tuple[int, int, list[Change]]] = []
        by_moment: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for event, sides, slot in ranked.tolist():
            by_moment.setdefault((int(events.seq[event]), slot), []).append((event, sides))
        for (_, slot), steps in by_moment.items():
            ranking = self._rankings[slot]
            before = ranking.first()
            for event, sides in steps:
                if sides & OLD:
                    ranking.drop(int(events.old[event]))
                if sides & NEW:
                    version = int(events.new[event])
                    ranking.put(version, *self._publication(version))
            projection = int(lives[slot, PROJECTION])
            changes = difference(before, ranking.first(), self._look(projection, projections))
            if changes:
                told.append((steps[-1][0], slot, changes))
        return _told_of(told, lives)

    def _look(self, projection: int, projections: Projections) -> Any:
        """A function from versions to the texts that a projection shows of them."""
        start, stop = projections.starts[projection : projection + 2].tolist()
        columns = projections.column[start:stop].tolist()
        known: dict[int, bytes] = {}

        def look(version: int) -> bytes:
            if version not in known:
                texts = self._store.texts_of(version)
                known[version] = b",".join(texts[column] for column in columns)
            return known[version]

        return look

    def _grouped(self, plain: Told, events: Events, lives: Lives, projections: Projections) -> Told:
        """What is told at one seq for several changes is told once: rows that expired, and the row of the record itself."""
        by_moment: dict[tuple[int, int], list[int]] = {}
        for i, (event, slot) in enumerate(zip(plain.event.tolist(), plain.slot.tolist(), strict=True)):
            by_moment.setdefault((int(events.seq[event]), slot), []).append(i)
        kept, merged = [], []
        for (_, slot), entries in by_moment.items():
            if len(entries) == 1:
                kept += entries
                continue
            spans = [plain.tails[plain.tail[i], 2:].tolist() for i in entries]
            pairs = [(old, new) for start, stop in spans for old, new in plain.changes[start:stop].tolist()]
            before = self._by_id(old for old, _ in pairs if old != NONE)
            after = self._by_id(new for _, new in pairs if new != NONE)
            projection = int(lives[slot, PROJECTION])
            changes = difference(before, after, self._look(projection, projections))
            if changes:
                merged.append((int(plain.event[entries[-1]]), slot, changes))
        if not merged and len(kept) == len(plain.event):
            return plain
        rest = plain._replace(event=plain.event[kept], slot=plain.slot[kept], tail=plain.tail[kept])
        return _joined([rest, _told_of(merged, lives)])

    def _by_id(self, versions: Iterable[int]) -> dict[str, int]:
        """Id -> version, in order of ids."""
        return dict(sorted((self._publication(version)[0], version) for version in versions))

    # State

    def dump(self) -> Any:
        return sorted(self._rankings) or None

    def load(self, state: Any) -> None:
        """Ranks the offers that are there."""
        for offers in self._tables.values():
            versions = self._store.current(offers.number)
            if len(versions):
                found = self._match(offers.fresh_index(), offers.number, versions)
                for of, slot in set(zip(found.of.tolist(), found.slot.tolist(), strict=True)):
                    ranking = self._rankings.get(slot)
                    if ranking is not None:
                        version = int(versions[of])
                        ranking.put(version, *self._publication(version))

    @property
    def nbytes(self) -> int:
        arrays = self._is_ranked.nbytes + self._marks.nbytes + self._memory.nbytes
        return arrays + sum(offers.index.nbytes for offers in self._tables.values())


def _by_axes(boxes: I64, words: I64) -> list[I64]:
    """As `_by_kind`, where hashes do not tell the kinds apart."""
    kinds: dict[tuple[int, ...], list[int]] = {}
    for i, head in enumerate(boxes[:, AT].tolist()):
        first = head + BOX_WORDS + AXIS
        axes = words[first : first + AXIS_WORDS * int(words[head + BOX_AXES]) : AXIS_WORDS].tolist()
        kinds.setdefault((int(words[head + BOX_EQUAL]), *axes), []).append(i)
    return [boxes[numbers] for numbers in kinds.values()]


def _by_kind(boxes: I64) -> Iterator[I64]:
    """Boxes that have the same axes, and single values on the same ones of these: by the hash of both."""
    if len(boxes) == 1 or bool((boxes[:, KIND] == boxes[0, KIND]).all()):
        yield boxes
        return
    order = np.argsort(boxes[:, KIND], kind="stable")
    ordered = boxes[order]
    cuts = np.flatnonzero(np.diff(ordered[:, KIND])) + 1
    yield from np.split(ordered, cuts)


def _told_of(told: list[tuple[int, int, list[Change]]], lives: Lives) -> Told:
    """(event, slot, changes) of each notification, every one with a tail of its own."""
    if not told:
        return _NOTHING
    counts = np.array([len(changes) for _, _, changes in told], np.int64)
    ends = np.cumsum(counts)
    event, slot = (np.array([entry[i] for entry in told], np.int64) for i in range(2))
    tails = np.stack([event, lives[slot, PROJECTION], ends - counts, ends], axis=1)
    changes = np.array([change for _, _, own in told for change in own], np.int64).reshape(-1, 2)
    return Told(event, slot, np.arange(len(told)), tails, changes, _NO_SOURCES)


def _joined(parts: list[Told]) -> Told:
    parts = [part for part in parts if len(part.event)]
    if not parts:
        return _NOTHING
    tails, changes, numbers = [], [], []
    tail_base = change_base = 0
    for part in parts:
        tails.append(part.tails + np.array([0, 0, change_base, change_base]))
        changes.append(part.changes)
        numbers.append(part.tail + tail_base)
        tail_base += len(part.tails)
        change_base += len(part.changes)
    return Told(
        np.concatenate([part.event for part in parts]),
        np.concatenate([part.slot for part in parts]),
        np.concatenate(numbers),
        np.concatenate(tails),
        np.concatenate(changes),
        _NO_SOURCES,
    )
