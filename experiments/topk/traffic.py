"""Bytes that leave the server per change, by k and by the number of subscriptions (figures 4, 5a and 6a)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from experiments.topk.outcome import Crowd, Rows, Say, play, wire
from tidings.bench.topk_data import TopkData
from tidings.bench.topk_wire import PAPER_BOX, PAPER_UNICAST, unicast_bytes
from tidings.families.topk.kernels.plane_kdtree import PlaneKdTree
from tidings.workloads.topk_cases import UNIFORM
from tidings.workloads.topk_scene import scene_of

WAYS: dict[str, tuple[bool, float | None]] = {
    "dense": (False, None),
    "sparse": (True, None),
    "dense_1": (False, 1.0),
    "sparse_1": (True, 1.0),
}
"""Name -> whether people are looked at, and eps."""


def run(config: dict[str, Any], seed: int, say: Say) -> Rows:
    rows = []
    most, changes = max(config["sizes"]), config["changes"]
    scene = scene_of(UNIFORM, seed=seed, rows=config["rows"], subscriptions=most, changes=changes)
    for size in config["sizes"]:
        of_size = replace(scene, ranges=scene.ranges[:size])
        crowd = Crowd(of_size)
        for k in config["ks"]:
            say(f"{size:,} subscriptions, k = {k}")
            data = TopkData(of_size.with_k(k), seed)
            row = {"subscriptions": size, "k": k} | _unicast(data, crowd, config["every"])
            for name, (is_sparse, eps) in WAYS.items():
                among = crowd.crowds if is_sparse else None
                row |= _region(name, data, among, eps, config["every"])
            rows.append(row)
    return rows


def _unicast(data: TopkData, crowd: Crowd, every: int) -> dict[str, float]:
    affected = play(data.scene, counts={"affected": crowd.affected}).counts["affected"]
    some = play(data.scene, counts={"affected": crowd.affected, "received": crowd.received}, every=every).counts
    messages = affected.mean() * some["received"].sum() / some["affected"].sum()
    return {
        "unicast_bytes": PAPER_UNICAST * float(affected.mean()),
        "unicast_max": PAPER_UNICAST * int(affected.max()),
        "unicast_wire": unicast_bytes(data) * float(messages),
    }


def _region(name: str, data: TopkData, among: PlaneKdTree | None, eps: float | None, every: int) -> dict[str, float]:
    # Without a look at people it takes little time.
    every = 1 if among is None else every
    found = play(data.scene, eps=eps, among=among, counts={"wire": wire(data)}, every=every)
    return {
        f"{name}_bytes": PAPER_BOX * float(found.boxes.mean()),
        f"{name}_max": PAPER_BOX * int(found.boxes.max()),
        f"{name}_wire": float(found.counts["wire"].mean()),
    }
