"""Random changes through the rankings, with everybody's answer compared with a plain recomputation after each of them.

Numbers are small, so that places and scores are often the same and answers often short; rows come, go and move along the
axis, and between batches of changes members come and go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tidings.families.topk.kernels.plane_kdtree import PlaneKdTree
from tidings.families.topk.kernels.range_topk import NetRangeTopkIndex, RangeTopkIndex, Sends
from tidings.model.codes import BoolArray, Int64Array

_MEMBERS, _ROWS, _PLACES, _SCORES = 48, 30, 16, 24
_CHANGES_AT_A_TIME = 50
_NEWCOMERS = 4
_KS = (1, 3, 8)
_GOES, _MOVES = 0.1, 0.2
"""Shares of changes that take a row away, and that move it along the axis."""


@dataclass(frozen=True)
class Level:
    """A way to find who must be told; with `parts`, regions are rounded up to so many boxes.

    Where it is net, only what a batch comes to is told, and compared.
    """

    label: str
    is_sparse: bool = False
    parts: int | None = None
    is_net: bool = False


LEVELS: Mapping[str, Level] = {
    "dense": Level("dense"),
    "sparse": Level("sparse", is_sparse=True),
    "dense_rounded": Level("dense, two boxes a region", parts=2),
    "sparse_rounded": Level("sparse, two boxes a region", is_sparse=True, parts=2),
    "net": Level("net, in batches", is_net=True),
}


def differences(level: Level, changes: int, seed: int) -> tuple[int, int]:
    """(answers that differ or people told for nothing, people told) over so many changes, with several k."""
    wrong = told = 0
    for k in _KS:
        run = _Run(level, k, np.random.default_rng([seed, changes, k]))
        for _ in range(max(1, changes // len(_KS) // _CHANGES_AT_A_TIME)):
            found = run.step()
            wrong, told = wrong + found[0], told + found[1]
            run.churn()
    return wrong, told


class _Changes(NamedTuple):
    """An element per change: a row, and what it is then."""

    row: Int64Array
    place: Int64Array
    score: Int64Array
    is_there: BoolArray

    def one(self, i: int) -> _Changes:
        part = slice(i, i + 1)
        return _Changes(self.row[part], self.place[part], self.score[part], self.is_there[part])


class _Run:
    """The rankings, and beside them every row and every member with what it holds."""

    def __init__(self, level: Level, k: int, rng: np.random.Generator) -> None:
        self._level, self._k, self._rng = level, k, rng
        self._net = NetRangeTopkIndex(k) if level.is_net else None
        self._rankings = RangeTopkIndex(k, groups=level.parts) if self._net is None else self._net
        self._rankings.new_set()
        self._crowds = PlaneKdTree() if level.is_sparse else None
        self._place = rng.integers(_PLACES, size=_ROWS)
        self._score = rng.integers(_SCORES, size=_ROWS)
        self._is_there = np.zeros(_ROWS, np.bool_)
        self._version = np.zeros(_ROWS, np.int64)
        self._points = np.empty((0, 2), np.int64)
        self._held = np.empty((0, _ROWS), np.bool_)
        self._held_version = np.empty((0, _ROWS), np.int64)
        self._held_key = np.empty((0, _ROWS), np.int64)
        self._join(_MEMBERS)

    def step(self) -> tuple[int, int]:
        """A batch of changes: (what is wrong, people told)."""
        rng, count = self._rng, _CHANGES_AT_A_TIME
        row = rng.integers(_ROWS, size=count)
        places, place = np.empty(count, np.int64), self._place.copy()
        for i, (at, moves) in enumerate(zip(row.tolist(), (rng.random(count) < _MOVES).tolist(), strict=True)):
            place[at] = rng.integers(_PLACES) if moves else place[at]
            places[i] = place[at]
        changes = _Changes(row, places, rng.integers(_SCORES, size=count), rng.random(count) >= _GOES)
        sets = np.zeros(count, np.int64)
        columns = (sets, row, places, changes.score, row, changes.is_there)
        if self._net is not None:
            _, sends = self._net.net(*columns)
            return self._compare(changes, sends, 0)
        sends = self._rankings.change(*columns, among=self._crowds)
        found = [self._compare(changes.one(i), sends, i) for i in range(count)]
        return sum(wrong for wrong, _ in found), sum(told for _, told in found)

    def _compare(self, changes: _Changes, sends: Sends, number: int) -> tuple[int, int]:
        """Makes changes to rows, lets members do as a change of the sends says, and looks at what they hold then."""
        before = self._answers()
        for row, place, score, is_there in zip(*changes, strict=True):
            self._place[row], self._score[row], self._is_there[row] = place, score, is_there
            self._version[row] += 1
        is_told = self._apply(sends, number)
        after = self._answers()
        is_right = (self._held == after).all(axis=1)
        is_right &= (~after | (self._held_version == self._version)).all(axis=1)
        is_affected = (before != after).any(axis=1) | (before | after)[:, changes.row].any(axis=1)
        # Rounded regions may tell more, who notice that nothing has changed for them.
        is_right &= (is_affected | ~is_told) if self._level.parts is None else True
        return int((~is_right).sum()), int(is_told.sum())

    def _answers(self) -> BoolArray:
        """[members, rows] what everybody should hold."""
        order = np.lexsort((np.arange(_ROWS), self._score))
        place = self._place[order]
        is_in = (self._points[:, :1] <= place) & (place <= self._points[:, 1:]) & self._is_there[order]
        best = np.empty_like(is_in)
        best[:, order] = is_in & (np.cumsum(is_in, axis=1) <= self._k)
        return best

    def _apply(self, sends: Sends, change: int) -> BoolArray:
        """Lets members do as they are told; gives who was."""
        is_told = np.zeros(len(self._points), np.bool_)
        for j in range(int(sends.send_starts[change]), int(sends.send_starts[change + 1])):
            boxes = slice(int(sends.box_starts[j]), int(sends.box_starts[j + 1]))
            lo, hi = sends.box_lo[boxes, None], sends.box_hi[boxes, None]
            gets = ((lo <= self._points) & (self._points <= hi)).all(axis=2).any(axis=0)
            is_told |= gets
            self._take(np.flatnonzero(gets), int(sends.entry[j]), is_gone=bool(sends.is_gone[j]))
        return is_told

    def _take(self, members: Int64Array, row: int, *, is_gone: bool) -> None:
        """The client's rule: members know rows as they were told of them."""
        self._held[members, row] = not is_gone
        self._held_version[members, row] = self._version[row]
        self._held_key[members, row] = self._score[row] * _ROWS + row
        full = members[self._held[members].sum(axis=1) > self._k]
        last = np.where(self._held[full], self._held_key[full], -1).argmax(axis=1)
        self._held[full, last] = False

    def churn(self) -> None:
        leaves = self._rng.choice(len(self._points), size=_NEWCOMERS, replace=False)
        if self._crowds is not None:
            self._crowds.remove(np.zeros(_NEWCOMERS, np.int64), *self._points[leaves].T)
        for name in _OF_MEMBERS:
            setattr(self, name, np.delete(getattr(self, name), leaves, axis=0))
        self._join(_NEWCOMERS)

    def _join(self, count: int) -> None:
        """Newcomers are given the best rows as the rankings know them."""
        points = np.sort(self._rng.integers(-1, _PLACES + 1, size=(count, 2)), axis=1)
        sets = np.zeros(count, np.int64)
        if self._crowds is not None:
            self._crowds.add(sets, *points.T)
        starts, rows = self._rankings.best(sets, *points.T)
        held = np.zeros((count, _ROWS), np.bool_)
        held[np.repeat(np.arange(count), np.diff(starts)), rows] = True
        keys = self._score * _ROWS + np.arange(_ROWS)
        new = (points, held, np.where(held, self._version, 0), np.where(held, keys, 0))
        for name, values in zip(_OF_MEMBERS, new, strict=True):
            setattr(self, name, np.concatenate([getattr(self, name), values]))


_OF_MEMBERS = ("_points", "_held", "_held_version", "_held_key")
"""Arrays with a line for every member."""
