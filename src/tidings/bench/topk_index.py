"""The rankings alone: changes to boxes of the plane of ranges, by rows, k and subscriptions, and what sending these saves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np

from tidings.bench import Say, topk_baselines
from tidings.bench.report import Figure, Heading, short
from tidings.bench.timing import timed
from tidings.bench.topk_audience import Audience, boxes_per_change, sums
from tidings.bench.topk_data import BATCH, TopkData
from tidings.bench.topk_player import Player, crowds_of, points_of
from tidings.bench.topk_wire import PAPER_BOX, PAPER_UNICAST, region_bytes, unicast_bytes
from tidings.families.topk.kernels.plane_kdtree import PlaneKdTree
from tidings.families.topk.kernels.range_topk import Sends
from tidings.model.codes import Int64Array
from tidings.workloads.topk_scene import Scene

ROWS = (10_000, 1_000_000)
KS = (1, 10, 20)
BASELINE_BUDGET_S = 3.0
_COUNTED_MAX = 20_000
"""So many changes are looked at for who is told; the time of the others is taken all the same."""
_COUNTED_AT_A_TIME = 2_000
_COUNTED_KS = (10, 20)


def measure_rows(changes: int, seed: int, say: Say) -> Iterator[Figure]:
    """Without a look at subscriptions, by the number of rows and by k."""
    for rows in ROWS:
        scene = TopkData.make(0, changes, seed, rows).scene
        for k in KS:
            say(f"dense, {rows:,} rows, k = {k}")
            heading = Heading(f"index.rows.{short(rows)}.k{k}", f"index, dense, {short(rows)} rows, k = {k}")
            rates, player = _played(Player(scene.with_k(k)))
            yield heading.figure("changes_per_s", "changes to boxes", "changes/s", 1 / rates.wall)
            yield heading.figure("changes_per_cpu_s", "changes to boxes", "changes/cpu s", 1 / rates.cpu)
            yield heading.figure("boxes", "boxes", "per change", rates.boxes)
            yield heading.figure("lookups", "look-ups", "per change", player.rankings.lookups / scene.changes)


def measure_size(data: TopkData, say: Say) -> Iterator[Figure]:
    """With so many subscriptions: dense beside sparse, then the plain strategies, then messages and bytes."""
    scene = data.scene
    points = points_of(scene)
    say("filling")
    filling, crowds = timed(crowds_of, points)
    heading = Heading("index.sparse", "index, sparse")
    rate = scene.size / filling.wall
    yield heading.figure("load", "filled from nothing", "subscriptions/s", rate)
    yield heading.figure("memory", "memory of the subscriptions", "bytes/subscription", crowds.nbytes / scene.size)
    us = {}
    for name, among in (("dense", None), ("sparse", crowds)):
        say(f"{name}, k = {scene.k}")
        heading = Heading(f"index.{name}", f"index, {name}, k = {scene.k}")
        rates, player = _played(Player(scene, among=among))
        us[name] = rates.wall * 1e6
        yield heading.figure("changes_per_s", "changes to boxes", "changes/s", 1 / rates.wall)
        yield heading.figure("changes_per_cpu_s", "changes to boxes", "changes/cpu s", 1 / rates.cpu)
        yield heading.figure("boxes", "boxes", "per change", rates.boxes)
        yield heading.figure("lookups", "look-ups", "per change", player.rankings.lookups / scene.changes)
    audience = Audience(points)
    say("unicast and relax")
    heading = Heading("index", f"index, k = {scene.k}")
    yield from topk_baselines.measure(scene, audience, us, heading, BASELINE_BUDGET_S)
    for k in _COUNTED_KS:
        say(f"messages and bytes, k = {k}")
        yield from _sent(TopkData(scene.with_k(k), data.seed), crowds, audience)


@dataclass(frozen=True)
class _Rates:
    """Of one change."""

    wall: float
    cpu: float
    boxes: float


def _played(player: Player) -> tuple[_Rates, Player]:
    """All changes, in batches; times are medians over these."""
    wall, cpu, boxes = [], [], 0
    while player.at < player.scene.changes:
        taken, played = timed(player.play, BATCH)
        wall.append(taken.wall / len(played))
        cpu.append(taken.cpu / len(played))
        boxes += len(played.sends.box_lo)
    return _Rates(median(wall), median(cpu), boxes / player.scene.changes), player


class _Tally:
    """What the first changes send, an element a change."""

    def __init__(self, data: TopkData, among: PlaneKdTree | None = None) -> None:
        self._data = data
        self._player = Player(data.scene, among=among)

    def parts(self) -> Iterator[Sends]:
        while self._player.at < min(_COUNTED_MAX, self._data.scene.changes):
            yield self._player.play(_COUNTED_AT_A_TIME).sends

    def of(self, sends: Sends) -> tuple[Int64Array, Int64Array, Int64Array]:
        """(boxes, messages, bytes)"""
        starts = sends.send_starts
        return boxes_per_change(sends), np.diff(starts), sums(region_bytes(self._data, sends), starts)


def _sent(data: TopkData, crowds: PlaneKdTree, audience: Audience) -> Iterator[Figure]:
    """Messages and bytes of one k: to boxes and to one subscription after the other."""
    heading = Heading(f"sent.k{data.scene.k}", f"sent, k = {data.scene.k}")
    figure = heading.figure
    dense = _Tally(data)
    parts = [(audience.affected(part), audience.deliveries(part), *dense.of(part)) for part in dense.parts()]
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


def sample(scene: Scene, count: int) -> Int64Array:
    """The rows everybody has after so many changes, best first, as the rankings know them."""
    player, points = Player(scene), points_of(scene)
    player.play(count)
    _, rows = player.rankings.best(np.zeros(len(points), np.int64), points[:, 0], points[:, 1])
    return rows
