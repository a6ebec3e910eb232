"""Plays the changes of a scene on the rankings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidings.families.topk.kernels.plane_kdtree import PlaneKdTree
from tidings.families.topk.kernels.range_topk import RangeTopkIndex, Sends
from tidings.model.codes import Int64Array, codes_of_doubles
from tidings.workloads.topk_scene import Scene


def points_of(scene: Scene) -> Int64Array:
    """Subscriptions as points (low, high), [subscriptions, 2]."""
    return codes_of_doubles(scene.ranges)


def crowds_of(points: Int64Array) -> PlaneKdTree:
    """All points in the set that a player's rows are in."""
    crowds = PlaneKdTree()
    crowds.add(np.zeros(len(points), np.int64), points[:, 0], points[:, 1])
    return crowds


@dataclass(frozen=True)
class Played:
    """Changes first, first + 1, .. and what they have to tell."""

    first: int
    sends: Sends

    def __len__(self) -> int:
        return len(self.sends.send_starts) - 1


class Player:
    """An index with a scene's rows as they are after the changes made so far."""

    def __init__(self, scene: Scene, groups: int | None = None, among: PlaneKdTree | None = None) -> None:
        """`groups`: boxes that a region is rounded up to; `among`: those who may be told, if they are to be looked at."""
        self.scene = scene
        self.rankings = RangeTopkIndex(scene.k, groups=groups)
        self._among = among
        self._place, self._new_score = codes_of_doubles(scene.place), codes_of_doubles(scene.new_score)
        rows = np.arange(scene.rows)
        sets, present = np.full(len(rows), self.rankings.new_set()), np.ones(len(rows), np.bool_)
        self.rankings.change(sets, rows, self._place, codes_of_doubles(scene.score), rows, present)
        self.at = 0
        """Changes made."""

    def skip(self, count: int) -> None:
        """Makes so many changes without a look at who may be told."""
        self._play(count, None)

    def play(self, count: int) -> Played:
        """Makes so many changes, or all that are left."""
        return self._play(count, self._among)

    def _play(self, count: int, among: PlaneKdTree | None) -> Played:
        first, stop = self.at, min(self.at + count, self.scene.changes)
        self.at = stop
        row = self.scene.changed[first:stop]
        sets, present = np.zeros(stop - first, np.int64), np.ones(stop - first, np.bool_)
        sends = self.rankings.change(
            sets, row, self._place[row], self._new_score[first:stop], row, present, among=among
        )
        return Played(first, sends)
