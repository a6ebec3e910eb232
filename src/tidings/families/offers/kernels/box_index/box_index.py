"""BoxIndex: owns the entries, keeps segments for the kinds of queries that come, and lets all of them grow.

Queries with the same axes, and single values on the same ones of these, are of one kind, and have a *view*: segments that hold
all entries which can match them. A view is made when it pays: entries that no segment of the view has yet are compared with
each query, until that has cost about as much as making a segment of them. Segments cover consecutive runs of entries, and are
joined so that each is much larger than the next (a log-structured merge). Removing an entry marks it; when half of the entries
are dead, the living are packed anew and all views begin again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tidings.families.offers.kernels.box_index.box_build import (
    choose_entries,
    count_waiting,
    cut_buckets,
    fill_segment,
    read_entries,
    tree_words,
)
from tidings.families.offers.kernels.box_index.box_change import (
    add_boxes,
    chain_entries,
    list_entries,
    make_lists,
    mark_dead,
    measure_boxes,
    pack_entries,
)
from tidings.families.offers.kernels.box_index.box_layout import (
    CODE_MIN,
    GROUP_AXES,
    GROUP_COUNT,
    GROUP_FIELDS,
    GROUP_ROOM,
    GROUP_START,
    GROUP_TEXTS,
    LEAF,
    NONE,
    TEXT_FIELDS,
    Entries,
    Queries,
    Segment,
)
from tidings.families.offers.kernels.box_index.box_query import fill_queries, search_entries, search_segment
from tidings.families.offers.kernels.packed import AXES_HASH, KIND_HASH, OF, BoxBatch
from tidings.kernels.arrays import I64, grow
from tidings.kernels.handles import handles_of

_RATIO = 8
"""A run of entries has at least so many times the members of the next."""
_COPIES_MAX = 16
"""All views together have at most so many members for each entry; the least recently used ones go."""
_VIEWS_MAX = 4096
_BITS = 64
_HIT_FIELDS = 3


class _Run(NamedTuple):
    """Entries from `first` to `stop` in segments: one for each set of axes that buckets are found by."""

    first: int
    stop: int
    segments: list[tuple[Segment, I64]]
    """(arrays, their handles)"""
    members: int
    nbytes: int


class _View:
    """What queries of one kind are answered from. mask: of its axes, in words of 64 bits."""

    def __init__(self, axes: tuple[int, ...], equal: int, mask: I64) -> None:
        self.axes = np.array(axes, np.int64)
        self.equal = equal
        self.mask = mask
        self.fitting = np.empty(0, np.int64)
        """Groups whose boxes can match."""
        self.seen = 0
        """Groups looked at so far."""
        self.runs: list[_Run] = []
        self.compared = 0
        """(query, entry) pairs of entries behind the last run that were compared since it was made."""

    @property
    def covered(self) -> int:
        return self.runs[-1].stop if self.runs else 0


class BoxIndex:
    """Which boxes meet a box on all axes of the query (symmetric), or on all axes of their own (classic)?

    Boxes have owners, numbers below 2**31; an owner may have several. is_text: [axes], which of all axes are TEXT.
    """

    run_min = 64
    """Shorter runs of entries are compared with every query."""
    compared_max = 32
    """A run of entries becomes a segment when each has been compared with so many queries."""
    dead_min = 1024
    """Fewer dead entries than this are never packed away."""

    def __init__(self, is_text: Sequence[bool], *, is_classic: bool = False) -> None:
        self._is_text = np.array(is_text, np.uint8)
        self._is_classic = is_classic
        self._start()

    def _start(self) -> None:
        axes = len(self._is_text)
        self._groups: dict[tuple[int, ...], int] = {}
        self._masks = np.zeros((16, axes // _BITS + 1), np.int64)
        """[groups, words]: axes of each group as bits."""
        self._views: dict[tuple[tuple[int, ...], int], _View] = {}
        """The least recently used first."""
        self._run_bytes = self._run_members = 0
        """Of the runs of all views."""
        self._count = self._dead = 0
        self._words_stop = self._text_stop = self._lists_stop = 0
        self._arrays = Entries(
            np.zeros(64, np.int64),
            np.zeros(64, np.int64),
            np.zeros(64, np.int64),
            np.zeros(1024, np.int64),
            np.zeros(1024, np.uint8),
            np.zeros(64, np.uint8),
            np.zeros((16, GROUP_FIELDS), np.int64),
            np.zeros((16, axes), np.int32),
            np.zeros((16, axes), np.int32),
            np.zeros(64, np.int64),
        )
        self._next = np.full(64, NONE, np.int64)
        """[entries]: the next entry of the same owner, or NONE."""
        self._first = np.full(64, NONE, np.int64)
        """[owners]: an entry of the owner, or NONE."""
        self._handles = handles_of(self._arrays)

    def __len__(self) -> int:
        return self._count - self._dead

    def owners(self) -> I64:
        """All that have a box, ascending."""
        return np.flatnonzero(self._first != NONE)

    @property
    def handles(self) -> I64:
        """Of the entries, for kernels; others after every `add` and `remove`."""
        return self._handles

    @property
    def capacity(self) -> int:
        """Entries that there is memory for."""
        return len(self._arrays.at)

    @property
    def nbytes(self) -> int:
        own = sum(array.nbytes for array in (*self._arrays, self._next, self._first, self._masks))
        return own + self._run_bytes

    def add(self, owners: I64, batch: BoxBatch) -> None:
        """Adds boxes. owners: of each constraint of the batch."""
        count = len(batch.boxes)
        if not count:
            return
        group = self._groups_of(batch)
        arrays = self._arrays
        words, size = measure_boxes(batch.words, batch.boxes, group, arrays.places, self._is_text)
        if words == NONE:
            group = np.array([self._group(batch.axes(box)) for box in range(count)], np.int64)
            words, size = measure_boxes(batch.words, batch.boxes, group, self._arrays.places, self._is_text)
        arrays = self._arrays
        for array in (arrays.owner, arrays.group, arrays.at, arrays.alive, self._next):
            grow(array, self._count + count)
        grow(arrays.words, self._words_stop + words)
        grow(arrays.text, self._text_stop + size)
        grow(self._first, int(owners.max()) + 1, NONE)
        self._reserve_lists(*np.unique(group, return_counts=True))
        self._renew()
        add_boxes(
            self._handles,
            self._count,
            self._words_stop,
            self._text_stop,
            owners,
            group,
            *batch,
            self._is_text,
        )
        chain_entries(self._first, self._next, self._arrays.owner, self._count, self._count + count)
        self._count += count
        self._words_stop += words
        self._text_stop += size

    def remove(self, owners: I64) -> None:
        """Removes all boxes of these owners."""
        owners = owners[owners < len(self._first)]
        self._dead += mark_dead(self._first, self._next, self._arrays.alive, owners)
        if self._dead == self._count:
            self._start()
        elif self._dead > self.dead_min and 2 * self._dead > self._count:
            self._pack()

    def match(self, batch: BoxBatch) -> I64:
        """(constraint of the batch, owner, box of the batch, entry) of all pairs of boxes that match, [pairs, 4]."""
        found = [np.empty((0, 4), np.int64)]
        waiting = [(numbers, True) for numbers in _runs_of(batch.boxes[:, KIND_HASH])] if len(self) else []
        while waiting:
            numbers, may_differ = waiting.pop()
            queries = self._queries(batch, numbers)
            if queries is None:
                assert may_differ, "boxes of one kind have the same axes"
                waiting += [(own, False) for own in _by_kind(batch, numbers)]
                continue
            box = int(numbers[0])
            hits = self.match_kind(batch.axes(box), batch.equal(box), queries)
            of = numbers[hits[:, 0]]
            found.append(np.stack([batch.boxes[of, OF], hits[:, 1], of, hits[:, 2]], axis=1))
        return found[1] if len(found) == 2 else np.concatenate(found)

    def match_kind(self, axes: tuple[int, ...], equal: int, queries: Queries) -> I64:
        """(query, owner, entry) of every pair of a query and a box that match, [pairs, 3].

        axes: of all queries, ascending; equal: mask of those on which they have a single value.
        """
        view, count = self._view(axes, equal), len(queries.q)
        if not len(view.fitting) or not count:
            return np.empty((0, _HIT_FIELDS), np.int64)
        waiting = 0
        if view.covered < self._count:
            waiting = count_waiting(self._handles, view.fitting, view.covered)
            view.compared += waiting * count
            if waiting > self.run_min and view.compared > self.compared_max * waiting:
                self._make_run(view, waiting)
                waiting = 0
        hits, n = np.empty((max(1024, 2 * count), _HIT_FIELDS), np.int64), 0
        has_dead = int(self._dead > 0)
        for run in view.runs:
            for _, handles in run.segments:
                at = 0
                while at < count:
                    at, n = search_segment(self._handles, view.axes, handles, *queries, has_dead, at, hits, n)
                    if at < count:
                        hits = _longer(hits, n)
        at = 0 if waiting else count
        while at < count:
            at, n = search_entries(
                self._handles,
                view.axes,
                view.fitting,
                self._is_text,
                view.covered,
                queries.q,
                queries.ends,
                queries.text,
                at,
                hits,
                n,
            )
            if at < count:
                hits = _longer(hits, n)
        return hits[:n]

    def _queries(self, batch: BoxBatch, numbers: I64) -> Queries | None:
        """Boxes of the batch as queries; None if they are not all of one kind."""
        boxes = batch.boxes if len(numbers) == len(batch.boxes) else batch.boxes[numbers]
        axes, count = len(batch.axes(int(numbers[0]))), len(numbers)
        q, codes = np.empty((count, 2 * axes), np.int64), np.empty((count, axes), np.int64)
        ends = np.empty((count, TEXT_FIELDS * axes), np.int64)
        is_one_kind = fill_queries(batch.text, batch.words, boxes, q, codes, ends)
        return Queries(q, codes, ends, batch.text) if is_one_kind else None

    def _renew(self) -> None:
        """Makes the tuple and the handles anew: arrays may have moved."""
        self._arrays = Entries(*self._arrays)
        self._handles = handles_of(self._arrays)

    def _groups_of(self, batch: BoxBatch) -> I64:
        """The group of each box, by the hash of its axes."""
        hashes = batch.boxes[:, AXES_HASH]
        if len(hashes) == 1 or bool((hashes == hashes[0]).all()):
            return np.full(len(hashes), self._group(batch.axes(0)), np.int64)
        _, first, number = np.unique(hashes, return_index=True, return_inverse=True)
        groups = np.array([self._group(batch.axes(box)) for box in first.tolist()], np.int64)
        return groups[number]

    def _group(self, axes: tuple[int, ...]) -> int:
        found = self._groups.get(axes)
        if found is None:
            found = self._groups[axes] = len(self._groups)
            arrays = self._arrays
            for array in (arrays.groups, arrays.places, arrays.text_places, self._masks):
                grow(array, found + 1)
            self._renew()
            texts = [axis for axis in axes if self._is_text[axis]]
            arrays.groups[found] = 0
            arrays.groups[found, [GROUP_AXES, GROUP_TEXTS]] = len(axes), len(texts)
            arrays.places[found], arrays.text_places[found] = NONE, NONE
            arrays.places[found, list(axes)] = np.arange(len(axes))
            arrays.text_places[found, texts] = np.arange(len(texts))
            self._masks[found] = self._mask(axes)
        return found

    def _mask(self, axes: Sequence[int]) -> I64:
        mask = np.zeros(self._masks.shape[1], np.uint64)
        for axis in axes:
            mask[axis // _BITS] |= np.uint64(1) << np.uint64(axis % _BITS)
        return mask.view(np.int64)

    def _reserve_lists(self, groups: I64, counts: I64) -> None:
        """Makes room for more entries in the lists of groups."""
        stop = make_lists(self._arrays.groups, groups, counts, self._arrays.lists, self._lists_stop)
        if stop < 0:
            grow(self._arrays.lists, -stop)
            self._renew()
            stop = make_lists(self._arrays.groups, groups, counts, self._arrays.lists, self._lists_stop)
        self._lists_stop = stop

    def _view(self, axes: tuple[int, ...], equal: int) -> _View:
        key = (axes, equal)
        view = self._views.pop(key, None)
        if view is None:
            view = _View(axes, equal, self._mask(axes))
            if len(self._views) >= _VIEWS_MAX:
                self._forget(next(iter(self._views)))
        self._views[key] = view
        if view.seen < len(self._groups):
            masks = self._masks[view.seen : len(self._groups)]
            if self._is_classic:
                fits = ((masks & ~view.mask) == 0).all(axis=1)
            else:
                fits = ((masks & view.mask) == view.mask).all(axis=1)
            view.fitting = np.concatenate([view.fitting, np.flatnonzero(fits) + view.seen])
            view.seen = len(self._groups)
        return view

    def _make_run(self, view: _View, waiting: int) -> None:
        """Makes segments of all entries that the view has in none, together with those of short runs before."""
        first, view.compared = view.covered, 0
        while view.runs and view.runs[-1].members < _RATIO * waiting:
            run = view.runs.pop()
            self._count_run(run, -1)
            first, waiting = run.first, waiting + run.members
        view.runs.append(self._run(view, first, waiting))
        self._count_run(view.runs[-1], 1)
        while self._run_members > _COPIES_MAX * self._count + (1 << 20) and len(self._views) > 1:
            self._forget(next(iter(self._views)))

    def _forget(self, key: tuple[tuple[int, ...], int]) -> None:
        for run in self._views.pop(key).runs:
            self._count_run(run, -1)

    def _count_run(self, run: _Run, sign: int) -> None:
        self._run_bytes += sign * run.nbytes
        self._run_members += sign * run.members

    def _run(self, view: _View, first: int, waiting: int) -> _Run:
        ids, masks = np.empty(waiting, np.int64), np.empty(waiting, np.int64)
        n = choose_entries(self._handles, view.fitting, view.axes, first, self._count, view.equal, ids, masks)
        ids, masks = ids[:n], masks[:n]
        segments = []
        for mask in np.unique(masks).tolist():
            segment = self._segment(view, ids[masks == mask], mask)
            segments.append((segment, handles_of(segment)))
        size = sum(array.nbytes for segment, _ in segments for array in segment)
        return _Run(first, self._count, segments, int(n), size)

    def _segment(self, view: _View, ids: I64, mask: int) -> Segment:
        axes = len(view.axes)
        hashed = np.array([axis for axis in range(axes) if mask >> axis & 1], np.int64)
        hashes, columns = np.empty(len(ids), np.int64), np.empty((2 * axes, len(ids)), np.int64)
        read_entries(self._handles, ids, view.axes, hashed, hashes, columns)
        used = [
            column
            for axis in range(axes)
            if not mask >> axis & 1
            for column in (2 * axis, 2 * axis + 1)
            if (columns[column] != CODE_MIN).any()
        ]
        order = np.argsort(hashes, kind="stable") if len(hashed) else np.arange(len(ids))
        bounds = np.empty((len(ids), 2), np.int64)
        buckets = cut_buckets(self._handles, ids, order, hashes, view.axes, hashed, bounds)
        bounds = bounds[:buckets].copy()
        counts = bounds[:, 1] - bounds[:, 0]
        trees = sum(tree_words(count, len(used)) for count in counts[counts > LEAF].tolist())
        is_text = self._is_text[view.axes]
        segment = Segment(
            hashed,
            np.array(used, np.int64),
            np.array([axis for axis in range(axes) if is_text[axis] and not mask >> axis & 1], np.int64),
            np.zeros(2 << int(2 * buckets - 1).bit_length(), np.int64),
            np.empty((buckets, 3), np.int64),
            np.empty(len(ids), np.int64),
            np.empty(max(1, len(ids) * len(used)), np.int64),
            np.empty(max(1, trees), np.int64),
        )
        fill_segment(self._handles, ids, order, hashes, bounds, columns, segment.columns, *segment[3:])
        return segment

    def _pack(self) -> None:
        """Packs the living entries anew, and forgets groups that have none."""
        old, owners = self._arrays, len(self._first)
        living = np.flatnonzero(old.alive[: self._count])
        words, text = np.empty(self._words_stop, np.int64), np.empty(max(1, self._text_stop), np.uint8)
        at = np.empty(len(living), np.int64)
        words_stop, text_stop = pack_entries(old, living, at, words, text)
        used, group = np.unique(old.group[living], return_inverse=True)
        names = list(self._groups)
        self._start()
        for number in used.tolist():
            self._group(names[number])
        groups = self._arrays.groups
        counts = np.bincount(group, minlength=len(used))
        groups[: len(used), GROUP_ROOM] = counts
        groups[: len(used), GROUP_START] = np.cumsum(counts) - counts
        groups[: len(used), GROUP_COUNT] = 0
        self._count, self._words_stop, self._text_stop = len(living), words_stop, text_stop
        self._lists_stop = len(living)
        self._arrays = self._arrays._replace(
            owner=old.owner[living],
            group=group.astype(np.int64),
            at=at,
            words=words[:words_stop].copy(),
            text=text[: max(1, text_stop)].copy(),
            alive=np.ones(len(living), np.uint8),
            lists=np.empty(len(living), np.int64),
        )
        list_entries(self._arrays.group, groups, self._arrays.lists)
        self._next, self._first = np.full(len(living), NONE, np.int64), np.full(owners, NONE, np.int64)
        self._renew()
        chain_entries(self._first, self._next, self._arrays.owner, 0, self._count)


def _runs_of(hashes: I64) -> Iterator[I64]:
    """Numbers of boxes with the same hash."""
    if len(hashes) < 2 or bool((hashes == hashes[0]).all()):
        yield np.arange(len(hashes))
        return
    order = np.argsort(hashes, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(hashes[order])) + 1)


def _by_kind(batch: BoxBatch, numbers: I64) -> list[I64]:
    """Numbers of boxes of one kind each, where hashes do not tell kinds apart."""
    kinds: dict[tuple[tuple[int, ...], int], list[int]] = {}
    for box in numbers.tolist():
        kinds.setdefault((batch.axes(box), batch.equal(box)), []).append(box)
    return [np.array(own, np.int64) for own in kinds.values()]


def _longer(hits: I64, n: int) -> I64:
    longer = np.empty((4 * len(hits), _HIT_FIELDS), np.int64)
    longer[:n] = hits[:n]
    return longer
