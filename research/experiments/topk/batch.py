"""A batch of changes of which only the outcome matters: one by one, coalesced, and net (figure 9)."""

from __future__ import annotations

from typing import Any

import numpy as np

from research.bench.topk.replay import RangeSubscribers
from research.experiments.paper import Config, Rows, Say
from research.experiments.topk.outcome import counters, play, uniform
from research.strategies.topk.kernels.plane_kdtree import PlaneKdTree
from research.strategies.topk.net_index import NetRangeTopkIndex
from research.workloads.topk.scene import Scene
from tidings.model.codes import codes_of_doubles


def run(config: Config, seed: int, say: Say) -> Rows:
    scene = uniform(config, seed, config["subscriptions"])
    people = RangeSubscribers(scene)
    rows = []
    for k in config["ks"]:
        say(f"k = {k}")
        row: dict[str, Any] = {"k": k}
        for name, of_way in (("online", scene), ("coalesced", coalesced(scene))):
            found = play(of_way.with_k(k), counts=counters(people, "received"))
            lookups = found.lookups * of_way.changes
            row |= _figures(name, int(found.boxes.sum()), int(found.counts["received"].sum()), round(lookups))
        rows.append(row | _net("batch", scene.with_k(k), people) | _sparse(config, seed, k))
    return rows


def _sparse(config: Config, seed: int, k: int) -> dict[str, int]:
    """The same with boxes drawn around subscriptions, fewer, as it takes longer."""
    if k > config["sparse_k_max"]:
        return {}
    scene = uniform(config, seed, config["sparse_subscriptions"]).with_k(k)
    people = RangeSubscribers(scene)
    row: dict[str, int] = {}
    for name, of_way in (("online", scene), ("coalesced", coalesced(scene))):
        found = play(of_way, among=people.crowds)
        row |= _figures(f"sparse_{name}", int(found.boxes.sum()), None, round(found.lookups * of_way.changes))
    return row | _net("sparse_batch", scene, people, people.crowds)


def coalesced(scene: Scene) -> Scene:
    """Only the last change of every row, in the order in which these come."""
    last = len(scene.changed) - 1 - np.unique(scene.changed[::-1], return_index=True)[1]
    last.sort()
    return Scene(scene.k, scene.place, scene.score, scene.changed[last], scene.new_score[last], scene.ranges)


def _net(name: str, scene: Scene, people: RangeSubscribers, among: PlaneKdTree | None = None) -> dict[str, int]:
    place, rows = codes_of_doubles(scene.place), np.arange(scene.rows)
    rankings = NetRangeTopkIndex(scene.k)
    number = rankings.new_set()
    sets, present = np.full(len(rows), number), np.ones(len(rows), np.bool_)
    rankings.change(sets, rows, place, codes_of_doubles(scene.score), rows, present)
    row = scene.changed
    there = np.ones(len(row), np.bool_)
    changes = (np.full(len(row), number), row, place[row], codes_of_doubles(scene.new_score), row, there)
    _, sends = rankings.net(*changes, among)
    received = int(people.deliveries(sends).sum()) if among is None else None
    return _figures(name, len(sends.box_lo), received, rankings.lookups)


def _figures(name: str, boxes: int, received: int | None, lookups: int) -> dict[str, int]:
    """received: None if it is that of other figures."""
    figures = {f"{name}_boxes": boxes, f"{name}_lookups": lookups}
    return figures if received is None else figures | {f"{name}_received": received}
