"""What the changes of a scene cost: look-ups, boxes, people told, bytes as the paper counts them and on our wire."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from research.bench.topk.data import TopkData
from research.bench.topk.replay import RangeSubscribers, TopkReplay, boxes_per_change, first_boxes, region_bytes, sums
from research.experiments.paper import Config
from research.strategies.topk.kernels.plane_kdtree import PlaneKdTree
from research.strategies.topk.kernels.range_topk import Sends
from research.strategies.topk.kernels.rectangle_cover import RectangleCover
from research.workloads.topk.cases import UNIFORM
from research.workloads.topk.scene import Scene, scene_of
from tidings.model.codes import Int64Array, codes_of_doubles, doubles_of_codes

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
    sides: float
    """Searches of a side of a row for better ones."""
    boxes: Int64Array
    counts: dict[str, Int64Array]


def groups_of(k: int, eps: float) -> int:
    """Boxes that a region is rounded up to."""
    return min(k, int(np.ceil(1 / eps)))


def play(
    scene: Scene,
    *,
    eps: float | None = None,
    among: PlaneKdTree | RectangleCover | None = None,
    counts: Mapping[str, Count] | None = None,
    every: int = 1,
) -> Outcome:
    """The changes of a scene, by one way to find boxes; of so many parts of the run, only one is looked at."""
    replay = TopkReplay(scene, None if eps is None else groups_of(scene.k, eps), among)
    rankings, place = replay.rankings, codes_of_doubles(scene.place)
    lookups = snaps = sides = 0
    boxes: list[Int64Array] = []
    counted: dict[str, list[Int64Array]] = {name: [] for name in counts or {}}
    while replay.at < scene.changes:
        lookups, snaps, sides = lookups - rankings.lookups, snaps - rankings.snaps, sides - rankings.sides
        made = replay.play(CHUNK)
        lookups, snaps, sides = lookups + rankings.lookups, snaps + rankings.snaps, sides + rankings.sides
        boxes.append(boxes_per_change(made.sends))
        x = place[scene.changed[made.first : replay.at]]
        for name, count in (counts or {}).items():
            counted[name].append(count(made.sends, x))
        replay.skip((every - 1) * CHUNK)
    changes = sum(map(len, boxes))
    return Outcome(
        changes,
        lookups / changes,
        snaps / changes,
        sides / changes,
        np.concatenate(boxes),
        {name: np.concatenate(parts) for name, parts in counted.items()},
    )


def counters(people: RangeSubscribers, *names: str) -> dict[str, Count]:
    """What is to be counted of every change, by name."""
    every: dict[str, Count] = {
        "affected": lambda sends, x: people.affected(sends),
        # Messages that people get.
        "received": lambda sends, x: people.deliveries(sends),
        # Look-ups of the paper's unicast.
        "bounded": people.bounded,
        # Messages that people get by the relaxed strategy.
        "around": lambda sends, x: people.around(x),
    }
    return {name: every[name] for name in names}


def uniform(config: Config, seed: int, subscriptions: int) -> Scene:
    """Rows and ranges anywhere, as many rows and changes as configured."""
    return scene_of(UNIFORM, seed=seed, rows=config["rows"], subscriptions=subscriptions, changes=config["changes"])


def expected_around(sends: Sends, x: Int64Array) -> float:
    """As `expected_share`, of the smallest rectangles around regions that have their corners at (x, x)."""
    boxes, starts = first_boxes(sends)
    lo, hi = x.copy(), x.copy()
    told = np.flatnonzero(np.diff(starts))
    lo[told] = np.minimum.reduceat(sends.lo_min[boxes], starts[told])
    hi[told] = np.maximum.reduceat(sends.hi_max[boxes], starts[told])
    first, last = codes_of_doubles(np.array([0.0, 1.0]))
    left, at, right = (doubles_of_codes(np.clip(ends, first, last)) for ends in (lo, x, hi))
    return float(2 * ((at - left) * (right - at)).mean())


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
