"""What the changes of a scene cost: look-ups, boxes, people told, bytes as the paper counts them and on our wire."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tidings.bench.topk_audience import Audience, boxes_per_change, first_boxes, sums
from tidings.bench.topk_data import TopkData
from tidings.bench.topk_player import Player, crowds_of, points_of
from tidings.bench.topk_wire import region_bytes
from tidings.families.topk.kernels.plane_kdtree import PlaneKdTree
from tidings.families.topk.kernels.range_topk import Sends
from tidings.model.codes import Int64Array, codes_of_doubles, doubles_of_codes
from tidings.workloads.topk_scene import Scene

Say = Callable[[str], None]
Rows = list[dict[str, Any]]
"""Results of an experiment: a line for every point of its curves."""
Count = Callable[[Sends, Int64Array], Int64Array]
"""What is to be known of every change, from its sends and from where the changed rows are."""

CHUNK = 1_000
"""Changes made at a time."""


@dataclass(frozen=True)
class Outcome:
    """Means are over the changes that were looked at; arrays have an element for each."""

    changes: int
    lookups: float
    snaps: float
    boxes: Int64Array
    counts: dict[str, Int64Array]


def groups_of(k: int, eps: float) -> int:
    """Boxes that a region is rounded up to."""
    return min(k, int(np.ceil(1 / eps)))


def play(
    scene: Scene,
    *,
    eps: float | None = None,
    among: PlaneKdTree | None = None,
    counts: Mapping[str, Count] | None = None,
    every: int = 1,
) -> Outcome:
    """The changes of a scene, by one way to find boxes; of so many parts of the run, only one is looked at."""
    player = Player(scene, None if eps is None else groups_of(scene.k, eps), among)
    rankings, place = player.rankings, codes_of_doubles(scene.place)
    lookups = snaps = 0
    boxes: list[Int64Array] = []
    counted: dict[str, list[Int64Array]] = {name: [] for name in counts or {}}
    while player.at < scene.changes:
        lookups, snaps = lookups - rankings.lookups, snaps - rankings.snaps
        played = player.play(CHUNK)
        lookups, snaps = lookups + rankings.lookups, snaps + rankings.snaps
        boxes.append(boxes_per_change(played.sends))
        x = place[scene.changed[played.first : player.at]]
        for name, count in (counts or {}).items():
            counted[name].append(count(played.sends, x))
        player.skip((every - 1) * CHUNK)
    changes = sum(map(len, boxes))
    return Outcome(
        changes,
        lookups / changes,
        snaps / changes,
        np.concatenate(boxes),
        {name: np.concatenate(parts) for name, parts in counted.items()},
    )


class Crowd:
    """The subscriptions of a scene as indexes, made when they are first needed."""

    def __init__(self, scene: Scene) -> None:
        self._points = points_of(scene)

    @cached_property
    def audience(self) -> Audience:
        return Audience(self._points)

    @cached_property
    def crowds(self) -> PlaneKdTree:
        return crowds_of(self._points)

    def affected(self, sends: Sends, x: Int64Array) -> Int64Array:
        return self.audience.affected(sends)

    def received(self, sends: Sends, x: Int64Array) -> Int64Array:
        """Messages that people get."""
        return self.audience.deliveries(sends)

    def bounded(self, sends: Sends, x: Int64Array) -> Int64Array:
        """Look-ups of the paper's unicast."""
        return self.audience.bounded(sends, x)

    def around(self, sends: Sends, x: Int64Array) -> Int64Array:
        """Messages that people get by the relaxed strategy."""
        return self.audience.around(x)


def expected_share(sends: Sends) -> float:
    """Share of all subscriptions that a change affects on average, if these are even in the triangle low < high."""
    boxes, starts = first_boxes(sends)
    # Boxes may be open to a side; all there is lies between 0 and 1.
    first, last = codes_of_doubles(np.array([0.0, 1.0]))
    lo, hi = (doubles_of_codes(np.clip(ends[boxes], first, last)) for ends in (sends.box_lo, sends.box_hi))
    return float(2 * np.prod(hi - lo, axis=1).sum()) / (len(starts) - 1)


def wire(data: TopkData) -> Count:
    """Bytes on our wire: a message per send."""
    return lambda sends, x: sums(region_bytes(data, sends), sends.send_starts)
