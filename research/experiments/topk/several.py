"""Ranges of two columns: boxes of dense and sparse, exact and rounded, beside those of one column (IV-C, theorem 5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from research.bench.topk.replay import RangeSubscribers
from research.experiments.paper import Config, Rows, Say
from research.experiments.topk.outcome import play
from research.strategies.topk.kernels.box_topk import BoxTopkIndex
from research.strategies.topk.kernels.range_topk import Sends
from research.workloads.topk.cases import UNIFORM
from research.workloads.topk.scene import Scene, scene_of
from tidings.kernels.point_index import PointIndex
from tidings.model.codes import codes_of_doubles

WAYS = {"dense": (False, 0.0), "sparse": (True, 0.0), "dense_1": (False, 1.0), "sparse_1": (True, 1.0)}
"""Name -> whether subscriptions are looked at, and eps."""
_OTHER = 1_000_000
"""Added to the seed of the second column."""


def several(config: Config, seed: int, say: Say) -> Rows:
    """By k."""
    sizes = {"rows": config["rows"], "subscriptions": config["subscriptions"], "changes": config["changes"]}
    scene, other = (scene_of(UNIFORM, seed=of, **sizes) for of in (seed, seed + _OTHER))
    points = codes_of_doubles(np.concatenate([scene.ranges, other.ranges], axis=1))
    forest, count = PointIndex(4), len(points)
    forest.add_many(np.zeros(count, np.int64), np.arange(count), points)
    one = RangeSubscribers(scene)
    rows = []
    for k in config["ks"]:
        say(f"k = {k}")
        of_k = scene.with_k(k)
        row: dict[str, Any] = {
            "k": k,
            "one_dense_boxes": float(play(of_k).boxes.mean()),
            "one_sparse_boxes": float(play(of_k, among=one.crowds).boxes.mean()),
        }
        for name, (is_sparse, eps) in WAYS.items():
            sends = _sends(of_k, other, points, eps, is_sparse=is_sparse)
            row[f"{name}_boxes"] = len(sends.box_lo) / scene.changes
            if eps == 0:
                own = np.zeros(len(sends.entry), np.int64)
                row[f"{name}_received"] = int(forest.count(own, sends.box_lo, sends.box_hi, sends.box_starts).sum())
        rows.append(row)
    return rows


def _sends(scene: Scene, other: Scene, points: Any, eps: float, *, is_sparse: bool) -> Sends:
    """What the changes of a scene send, where rows have the places of both, and subscriptions are at these points."""
    index = BoxTopkIndex(scene.k, 2, eps, is_sparse=is_sparse)
    number, rows, changed = index.new_set(), np.arange(scene.rows), scene.changed
    place = codes_of_doubles(np.stack([scene.place, other.place], axis=1))
    there = np.ones(max(scene.rows, scene.changes), np.bool_)
    if is_sparse:
        index.add(np.full(len(points), number), points)
    index.load(np.full(len(rows), number), rows, place, codes_of_doubles(scene.score), rows, there[: len(rows)])
    scores = codes_of_doubles(scene.new_score)
    return index.change(np.full(len(changed), number), changed, place[changed], scores, changed, there[: len(changed)])
