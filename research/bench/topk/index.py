"""The range top-k index alone: changes to boxes, by rows, k and subscriptions, compared with `unicast` and `relax`.

Of these strategies only the search is measured: `unicast` finds all subscriptions that a change affects, `relax` all whose
range contains the changed row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np

from research.bench.dataset import BATCH
from research.bench.timing import spent
from research.bench.topk.data import TopkData
from research.bench.topk.replay import (
    PAPER_BOX,
    PAPER_UNICAST,
    RangeSubscribers,
    TopkReplay,
    boxes_per_change,
    crowds_of,
    region_bytes,
    sums,
    unicast_bytes,
)
from research.strategies.topk.kernels.plane_kdtree import PlaneKdTree
from research.strategies.topk.kernels.range_topk import Sends
from research.workloads.topk.scene import Scene
from tidings.bench import Say
from tidings.bench.report import Figure, Heading, short
from tidings.bench.timing import timed
from tidings.model.codes import CODE_MAX, CODE_MIN, Int64Array, codes_of_doubles

ROWS = (10_000, 1_000_000)
KS = (1, 10, 20)
BASELINE_BUDGET_S = 3.0
CHANGES_AT_A_TIME = 10
_COUNTED_MAX = 20_000
"""Receivers of this many changes are counted; all changes are timed."""
_COUNTED_AT_A_TIME = 2_000
_COUNTED_KS = (10, 20)


def measure_rows(changes: int, seed: int, say: Say) -> Iterator[Figure]:
    """Measures the dense index by the number of rows and by k."""
    for rows in ROWS:
        scene = TopkData.make(0, changes, seed, rows).scene
        for k in KS:
            say(f"dense, {rows:,} rows, k = {k}")
            heading = Heading(f"index.rows.{short(rows)}.k{k}", f"index, dense, {short(rows)} rows, k = {k}")
            yield from _played(TopkReplay(scene.with_k(k))).figures(heading)


def measure_size(data: TopkData, say: Say) -> Iterator[Figure]:
    """Measures with the subscriptions of `data`: dense and sparse, then the baselines, then messages and bytes."""
    scene = data.scene
    people = RangeSubscribers(scene)
    say("filling")
    filling, crowds = timed(crowds_of, people.points)
    heading = Heading("index.sparse", "index, sparse")
    rate = scene.size / filling.wall
    yield heading.figure("load", "filled from nothing", "subscriptions/s", rate)
    yield heading.figure("memory", "memory of the subscriptions", "bytes/subscription", crowds.nbytes / scene.size)
    us = {}
    for name, among in (("dense", None), ("sparse", crowds)):
        say(f"{name}, k = {scene.k}")
        heading = Heading(f"index.{name}", f"index, {name}, k = {scene.k}")
        rates = _played(TopkReplay(scene, among=among))
        us[name] = rates.wall * 1e6
        yield from rates.figures(heading)
    say("unicast and relax")
    heading = Heading("index", f"index, k = {scene.k}")
    yield from _baselines(scene, people, us, heading, BASELINE_BUDGET_S)
    for k in _COUNTED_KS:
        say(f"messages and bytes, k = {k}")
        yield from _sent(TopkData(scene.with_k(k), data.seed), crowds, people)


@dataclass(frozen=True)
class _Rates:
    """Means per change; wall and cpu in seconds."""

    wall: float
    cpu: float
    boxes: float
    lookups: float

    def figures(self, heading: Heading) -> Iterator[Figure]:
        yield heading.figure("changes_per_s", "changes to boxes", "changes/s", 1 / self.wall)
        yield heading.figure("changes_per_cpu_s", "changes to boxes", "changes/cpu s", 1 / self.cpu)
        yield heading.figure("boxes", "boxes", "per change", self.boxes)
        yield heading.figure("lookups", "look-ups", "per change", self.lookups)


def _played(replay: TopkReplay) -> _Rates:
    """All changes, in batches; times are medians over these."""
    wall, cpu, boxes = [], [], 0
    while replay.at < replay.scene.changes:
        taken, played = timed(replay.play, BATCH)
        wall.append(taken.wall / len(played))
        cpu.append(taken.cpu / len(played))
        boxes += len(played.sends.box_lo)
    count = replay.scene.changes
    return _Rates(median(wall), median(cpu), boxes / count, replay.rankings.lookups / count)


class _Tally:
    """What the first changes send, an element a change."""

    def __init__(self, data: TopkData, among: PlaneKdTree | None = None) -> None:
        self._data = data
        self._replay = TopkReplay(data.scene, among=among)

    def parts(self) -> Iterator[Sends]:
        while self._replay.at < min(_COUNTED_MAX, self._data.scene.changes):
            yield self._replay.play(_COUNTED_AT_A_TIME).sends

    def of(self, sends: Sends) -> tuple[Int64Array, Int64Array, Int64Array]:
        """(boxes, messages, bytes)"""
        starts = sends.send_starts
        return boxes_per_change(sends), np.diff(starts), sums(region_bytes(self._data, sends), starts)


def _sent(data: TopkData, crowds: PlaneKdTree, people: RangeSubscribers) -> Iterator[Figure]:
    """Messages and bytes of one k: to boxes and to one subscription after the other."""
    heading = Heading(f"sent.k{data.scene.k}", f"sent, k = {data.scene.k}")
    figure = heading.figure
    dense = _Tally(data)
    parts = [(people.affected(part), people.deliveries(part), *dense.of(part)) for part in dense.parts()]
    affected, deliveries, *found = (np.concatenate(column) for column in zip(*parts, strict=True))
    sparse = _Tally(data, crowds)
    less = [np.concatenate(column) for column in zip(*(sparse.of(part) for part in sparse.parts()), strict=True)]
    if (less[0] > found[0]).any():
        raise AssertionError(f"k = {data.scene.k}: sparse has more boxes than dense for some change")
    to_one = unicast_bytes(data) * deliveries
    yield figure("affected", "subscriptions affected", "per change", affected.mean())
    yield figure("unicast", "messages by unicast", "per change", deliveries.mean())
    for name, (boxes, messages, sizes) in (("dense", found), ("sparse", less)):
        yield figure(f"{name}.boxes", f"boxes, {name}", "per change", boxes.mean())
        yield figure(f"{name}.boxes.max", f"most boxes of a change, {name}", "boxes", boxes.max())
        yield figure(f"{name}.messages", f"messages, {name}", "per change", messages.mean())
        yield figure(f"{name}.bytes", f"bytes, {name}", "bytes/change", sizes.mean())
        yield figure(f"{name}.bytes.max", f"most bytes of a change, {name}", "bytes", sizes.max())
    yield figure("unicast.bytes", "bytes by unicast", "bytes/change", to_one.mean())
    yield figure("unicast.bytes.max", "most bytes of a change by unicast", "bytes", to_one.max())
    for name, (boxes, _, sizes) in (("dense", found), ("sparse", less)):
        yield figure(f"{name}.ratio", f"bytes by unicast over {name}", "ratio", to_one.sum() / sizes.sum())
        by_paper = PAPER_UNICAST * affected.sum() / (PAPER_BOX * boxes.sum())
        yield figure(f"{name}.paper.ratio", f"the same, bytes as the paper has them, {name}", "ratio", by_paper)


def answers_after(scene: Scene, count: int) -> Int64Array:
    """The answers of all subscriptions after `count` changes, one after the other, best rows first."""
    replay, points = TopkReplay(scene), codes_of_doubles(scene.ranges)
    replay.play(count)
    _, rows = replay.rankings.best(np.zeros(len(points), np.int64), points[:, 0], points[:, 1])
    return rows


class Unicast:
    """Boxes as the rankings find them, and all points in each."""

    def __init__(self, scene: Scene, people: RangeSubscribers) -> None:
        self._replay, self._forest = TopkReplay(scene), people.forest

    def __call__(self, count: int) -> int:
        """Makes `count` changes. Returns the number of messages."""
        sends = self._replay.play(count).sends
        nobody, tags = np.zeros(len(sends.entry), np.int64), np.ones(len(sends.box_lo), np.uint8)
        return len(self._forest.stab(nobody, sends.box_lo, sends.box_hi, tags, sends.box_starts)[1])


class Relax:
    """Finds all points whose range contains the changed row, without ranking."""

    def __init__(self, scene: Scene, people: RangeSubscribers) -> None:
        self._x, self._forest = codes_of_doubles(scene.place)[scene.changed], people.forest
        self._at = 0

    def __call__(self, count: int) -> int:
        x = self._x[self._at : self._at + count]
        self._at += len(x)
        lo = np.stack([np.full(len(x), CODE_MIN), x], axis=1)
        hi = np.stack([x, np.full(len(x), CODE_MAX)], axis=1)
        zeros, tags = np.zeros(len(x), np.int64), np.ones(len(x), np.uint8)
        return len(self._forest.stab(zeros, lo, hi, tags, np.arange(len(x) + 1))[1])


BASELINES: dict[str, Callable[[Scene, RangeSubscribers], Unicast | Relax]] = {"unicast": Unicast, "relax": Relax}


def _baselines(
    scene: Scene, people: RangeSubscribers, ours_us: dict[str, float], heading: Heading, budget_s: float
) -> Iterator[Figure]:
    """Measures the baselines. ours_us: strategy -> microseconds per change."""
    for name, make in BASELINES.items():
        change = make(scene, people)
        calls, taken = spent(budget_s, change, [CHANGES_AT_A_TIME] * (scene.changes // CHANGES_AT_A_TIME))
        per_change = taken.wall / (calls * CHANGES_AT_A_TIME)
        yield heading.figure(f"{name}.changes_per_s", f"strategy {name}, ids found", "changes/s", 1 / per_change)
        for ours, us in ours_us.items():
            ratio = per_change * 1e6 / us
            yield heading.figure(f"{name}.{ours}.ratio", f"{ours} over {name}", "ratio", ratio)
