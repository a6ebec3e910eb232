"""A sketch of subscriptions in place of all of them: what it saves in memory, and what it costs in messages (III-B)."""

from __future__ import annotations

import numpy as np

from research.bench.topk.replay import RangeSubscribers
from research.experiments.paper import Config, Rows, Say
from research.experiments.topk.outcome import play
from research.strategies.topk.kernels.rectangle_cover import RectangleCover
from research.workloads.topk.cases import UNIFORM, Case
from research.workloads.topk.scene import scene_of
from research.workloads.topk.spread import ClusteredRanges


def sketch(config: Config, seed: int, say: Say) -> Rows:
    """By distribution and number of rectangles; 0 stands for dense, and the number of subscriptions for sparse."""
    rows: Rows = []
    size = config["subscriptions"]
    for name, case in (("anywhere", UNIFORM), ("in clusters", Case(ranges=ClusteredRanges(config["width"])))):
        scene = scene_of(case, seed=seed, rows=config["rows"], subscriptions=size, changes=config["changes"])
        scene = scene.with_k(config["k"])
        people = RangeSubscribers(scene)
        rows.append({"case": name, "rectangles": 0, "boxes": float(play(scene).boxes.mean()), "bytes": 0})
        for rectangles in config["rectangles"]:
            say(f"subscriptions {name}, {rectangles:,} rectangles")
            cover = RectangleCover(rectangles)
            cover.add(np.zeros(size, np.int64), people.points[:, 0], people.points[:, 1])
            boxes = float(play(scene, among=cover).boxes.mean())
            rows.append({"case": name, "rectangles": rectangles, "boxes": boxes, "bytes": cover.nbytes})
        boxes = float(play(scene, among=people.crowds).boxes.mean())
        rows.append({"case": name, "rectangles": size, "boxes": boxes, "bytes": people.crowds.nbytes})
    return rows
