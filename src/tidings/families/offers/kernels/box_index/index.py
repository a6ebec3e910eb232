"""BoxIndex: owns the entries, keeps segments for the kinds of queries that come, and lets all of them grow.

Queries with the same axes, and single values on the same ones of these, are of one kind, and have a *view*: segments that hold
all entries which can match them. A view is made when it pays: entries that no segment of the view has yet are compared with
each query, until that has cost about as much as making a segment of them. Segments cover consecutive runs of entries, and are
joined so that each is much larger than the next (a log-structured merge). Removing an entry marks it; when half of the entries
are dead, the living are packed anew and all views begin again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tidings.families.offers.kernels.box_index.build import (
    choose_entries,
    cut_buckets,
    fill_segment,
    read_entries,
    tree_words,
)
from tidings.families.offers.kernels.box_index.change import add_boxes, chain_entries, mark_dead, pack_entries
from tidings.families.offers.kernels.box_index.layout import (
    CODE_MIN,
    ENTRY_HEAD,
    GROUP_FIELDS,
    LEAF,
    NONE,
    PLACE_FIELDS,
    TEXT_FIELDS,
    Entries,
    Queries,
    Segment,
)
from tidings.families.offers.kernels.box_index.query import search_entries, search_segment
from tidings.kernels.arrays import I64, U8, grow
from tidings.kernels.handles import handles_of

_RATIO = 8
"""A segment has at least so many times the entries of the next."""
_COPIES_MAX = 16
"""All views together have at most so many members for each entry; the least recently used ones go."""


class NewBoxes(NamedTuple):
    """Boxes of the same axes: of owner[i], [boxes]; lo, hi, equality codes: [boxes, axes].

    equal: [boxes], mask of the axes with a single value. ends: [boxes, TEXT_FIELDS * TEXT axes] in `text`.
    """

    owner: I64
    lo: I64
    hi: I64
    codes: I64
    equal: I64
    ends: I64
    text: U8


class _Run(NamedTuple):
    """Entries from `first` to `stop` in segments: one for each set of axes that buckets are found by."""

    first: int
    stop: int
    segments: list[tuple[Segment, I64]]
    """(arrays, their handles)"""
    members: int


class _View:
    """What queries of one kind are answered from."""

    def __init__(self, axes: tuple[int, ...], equal: int, is_text: U8) -> None:
        self.axes = axes
        self.equal = equal
        self.is_text = is_text
        self.fits = np.zeros(0, np.uint8)
        self.places = np.zeros((0, PLACE_FIELDS * len(axes)), np.int64)
        self.runs: list[_Run] = []
        self.compared = 0
        """(query, entry) pairs of entries behind the last run that were compared since it was made."""

    @property
    def covered(self) -> int:
        return self.runs[-1].stop if self.runs else 0

    @property
    def members(self) -> int:
        return sum(run.members for run in self.runs)


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
        self._is_text = tuple(is_text)
        self._is_classic = is_classic
        self._start()

    def _start(self) -> None:
        self._groups: dict[tuple[int, ...], int] = {}
        self._views: dict[tuple[tuple[int, ...], int], _View] = {}
        """The least recently used first."""
        self._count = self._dead = 0
        self._words_stop = self._text_stop = 0
        self._arrays = Entries(
            np.zeros(64, np.int64),
            np.zeros(64, np.int64),
            np.zeros(64, np.int64),
            np.zeros(1024, np.int64),
            np.zeros(1024, np.uint8),
            np.zeros(64, np.uint8),
            np.zeros((16, GROUP_FIELDS), np.int64),
        )
        self._next = np.full(64, NONE, np.int64)
        """[entries]: the next entry of the same owner, or NONE."""
        self._first = np.full(64, NONE, np.int64)
        """[owners]: an entry of the owner, or NONE."""
        self._handles = handles_of(self._arrays)

    def __len__(self) -> int:
        return self._count - self._dead

    @property
    def entries(self) -> Entries:
        return self._arrays

    @property
    def first(self) -> I64:
        """[owners]: an entry of each owner, from which `next` leads on; NONE if it has none."""
        return self._first

    @property
    def next(self) -> I64:
        return self._next

    @property
    def nbytes(self) -> int:
        segments = (part for view in self._views.values() for run in view.runs for part, _ in run.segments)
        own = sum(array.nbytes for array in (*self._arrays, self._next, self._first))
        return own + sum(array.nbytes for segment in segments for array in segment)

    def add(self, axes: tuple[int, ...], boxes: NewBoxes) -> None:
        """Adds boxes with these axes, which ascend."""
        count = len(boxes.owner)
        if not count:
            return
        group = self._group(axes)
        texts = sum(self._is_text[axis] for axis in axes)
        size = ENTRY_HEAD + 3 * len(axes) + TEXT_FIELDS * texts
        arrays = self._arrays
        for array in (arrays.owner, arrays.group, arrays.at, arrays.alive, self._next):
            grow(array, self._count + count)
        grow(arrays.words, self._words_stop + size * count)
        grow(arrays.text, self._text_stop + len(boxes.text))
        grow(self._first, int(boxes.owner.max()) + 1, NONE)
        arrays = self._renew()
        add_boxes(arrays, self._count, group, self._words_stop, self._text_stop, *boxes)
        chain_entries(self._first, self._next, arrays.owner, self._count, self._count + count)
        self._count += count
        self._words_stop += size * count
        self._text_stop += len(boxes.text)

    def remove(self, owners: I64) -> None:
        """Removes all boxes of these owners."""
        owners = owners[owners < len(self._first)]
        self._dead += mark_dead(self._first, self._next, self._arrays.alive, owners)
        if self._dead == self._count:
            self._start()
        elif self._dead > self.dead_min and 2 * self._dead > self._count:
            self._pack()

    def match(self, axes: tuple[int, ...], equal: int, queries: Queries) -> I64:
        """(query, owner) of every pair of a query and a box that match, [pairs, 2]; a pair may be there several times.

        axes: of all queries, ascending; equal: mask of those on which they have a single value.
        """
        if not len(self) or not len(queries.q):
            return np.empty((0, 2), np.int64)
        view = self._view(axes, equal)
        if not view.fits.any():
            return np.empty((0, 2), np.int64)
        waiting = self._count - view.covered
        view.compared += waiting * len(queries.q)
        if waiting > self.run_min and view.compared > self.compared_max * waiting:
            self._make_run(view)
        hits, n = np.empty((max(1024, 2 * len(queries.q)), 2), np.int64), 0
        has_dead = int(self._dead > 0)
        for run in view.runs:
            for _, handles in run.segments:
                at = 0
                while at < len(queries.q):
                    at, n = search_segment(
                        self._handles, view.fits, view.places, handles, *queries, has_dead, at, hits, n
                    )
                    if at < len(queries.q):
                        hits = _longer(hits, n)
        at = 0 if view.covered < self._count else len(queries.q)
        while at < len(queries.q):
            at, n = search_entries(
                self._handles,
                view.fits,
                view.places,
                view.is_text,
                view.covered,
                self._count,
                queries.q,
                queries.ends,
                queries.text,
                at,
                hits,
                n,
            )
            if at < len(queries.q):
                hits = _longer(hits, n)
        return hits[:n]

    def _renew(self) -> Entries:
        """Makes the tuple and the handles anew: arrays may have moved."""
        self._arrays = Entries(*self._arrays)
        self._handles = handles_of(self._arrays)
        return self._arrays

    def _group(self, axes: tuple[int, ...]) -> int:
        found = self._groups.get(axes)
        if found is None:
            found = self._groups[axes] = len(self._groups)
            grow(self._arrays.groups, found + 1)
            self._renew().groups[found] = len(axes), sum(self._is_text[axis] for axis in axes)
        return found

    def _view(self, axes: tuple[int, ...], equal: int) -> _View:
        key = (axes, equal)
        view = self._views.pop(key, None)
        if view is None:
            view = _View(axes, equal, np.array([self._is_text[axis] for axis in axes], np.uint8))
        self._views[key] = view
        if len(view.fits) < len(self._groups):
            self._look_at_groups(view)
        return view

    def _look_at_groups(self, view: _View) -> None:
        """Finds out where the axes of a view are in groups that came since."""
        known = len(view.fits)
        fits = np.zeros(len(self._groups), np.uint8)
        places = np.full((len(self._groups), PLACE_FIELDS * len(view.axes)), NONE, np.int64)
        fits[:known], places[:known] = view.fits, view.places
        wanted = set(view.axes)
        for axes in list(self._groups)[known:]:
            number = self._groups[axes]
            if not (wanted.issuperset(axes) if self._is_classic else wanted.issubset(axes)):
                continue
            fits[number] = 1
            text_places = {axis: i for i, axis in enumerate([axis for axis in axes if self._is_text[axis]])}
            at = {axis: i for i, axis in enumerate(axes)}
            places[number] = [
                place for axis in view.axes for place in (at.get(axis, NONE), text_places.get(axis, NONE))
            ]
        view.fits, view.places = fits, places

    def _make_run(self, view: _View) -> None:
        """Makes segments of all entries that the view has in none, together with those of short runs before."""
        first, view.compared = view.covered, 0
        while view.runs and view.runs[-1].stop - view.runs[-1].first < _RATIO * (self._count - first):
            first = view.runs.pop().first
        view.runs.append(self._run(view, first, self._count))
        room = _COPIES_MAX * self._count + (1 << 20)
        held = sum(other.members for other in self._views.values())
        for key, other in list(self._views.items()):
            if held <= room or other is view:
                break
            held -= other.members
            del self._views[key]

    def _run(self, view: _View, first: int, stop: int) -> _Run:
        ids, masks = np.empty(stop - first, np.int64), np.empty(stop - first, np.int64)
        n = choose_entries(self._handles, first, stop, view.fits, view.places, view.equal, ids, masks)
        ids, masks = ids[:n], masks[:n]
        segments = []
        for mask in np.unique(masks).tolist():
            segment = self._segment(view, ids[masks == mask], mask)
            segments.append((segment, handles_of(segment)))
        return _Run(first, stop, segments, int(n))

    def _segment(self, view: _View, ids: I64, mask: int) -> Segment:
        axes = len(view.axes)
        hashed = np.array([axis for axis in range(axes) if mask >> axis & 1], np.int64)
        hashes, columns = np.empty(len(ids), np.int64), np.empty((2 * axes, len(ids)), np.int64)
        read_entries(self._handles, ids, view.places, hashed, hashes, columns)
        used = [
            column
            for axis in range(axes)
            if not mask >> axis & 1
            for column in (2 * axis, 2 * axis + 1)
            if (columns[column] != CODE_MIN).any()
        ]
        order = np.argsort(hashes, kind="stable") if len(hashed) else np.arange(len(ids))
        bounds = np.empty((len(ids), 2), np.int64)
        buckets = cut_buckets(self._handles, ids, order, hashes, view.places, hashed, bounds)
        bounds = bounds[:buckets].copy()
        counts = bounds[:, 1] - bounds[:, 0]
        trees = sum(tree_words(count, len(used)) for count in counts[counts > LEAF].tolist())
        segment = Segment(
            hashed,
            np.array(used, np.int64),
            np.array([axis for axis in range(axes) if view.is_text[axis] and not mask >> axis & 1], np.int64),
            np.zeros(2 << int(2 * buckets - 1).bit_length(), np.int64),
            np.empty((buckets, 3), np.int64),
            np.empty(len(ids), np.int64),
            np.empty(max(1, len(ids) * len(used)), np.int64),
            np.empty(max(1, trees), np.int64),
        )
        fill_segment(self._handles, ids, order, hashes, bounds, columns, segment.columns, *segment[3:])
        return segment

    def _pack(self) -> None:
        """Packs the living entries anew."""
        old = self._arrays
        living = np.flatnonzero(old.alive[: self._count])
        groups, owners = self._groups, len(self._first)
        count, words_stop, text_stop = self._count, self._words_stop, self._text_stop
        self._start()
        self._groups = groups
        words, text = np.empty(words_stop, np.int64), np.empty(max(1, text_stop), np.uint8)
        at = np.empty(count, np.int64)
        self._words_stop, self._text_stop = pack_entries(old, living, at, words, text)
        self._count = len(living)
        self._arrays = Entries(
            old.owner[living],
            old.group[living],
            at[: len(living)].copy(),
            words[: self._words_stop].copy(),
            text[: max(1, self._text_stop)].copy(),
            np.ones(len(living), np.uint8),
            old.groups,
        )
        self._next = np.full(len(living), NONE, np.int64)
        self._first = np.full(owners, NONE, np.int64)
        arrays = self._renew()
        chain_entries(self._first, self._next, arrays.owner, 0, self._count)


def _longer(hits: I64, n: int) -> I64:
    longer = np.empty((4 * len(hits), 2), np.int64)
    longer[:n] = hits[:n]
    return longer
