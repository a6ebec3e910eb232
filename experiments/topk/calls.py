"""By k: look-ups of the ways to find boxes and of the paper's unicast, and people affected (tables I and III).

A change of the row that is the best of all affects half of the people, so what a run of 50,000 changes affects depends on
a handful of them. It is therefore given for one run with people drawn as they are, and as the mean of many runs with
other rows and changes, where people are as many as can be expected in the boxes.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

from experiments.topk.outcome import Crowd, Rows, Say, expected_share, play
from tidings.bench.topk_player import Player
from tidings.workloads.topk.cases import UNIFORM
from tidings.workloads.topk.scene import Scene, scene_of


def run(config: dict[str, Any], seed: int, say: Say) -> Rows:
    say(f"{config['subscriptions']:,} subscriptions")
    scene = _scene(config, seed, config["subscriptions"])
    crowd = Crowd(scene)
    rows: Rows = []
    for k in config["ks"]:
        say(f"k = {k}")
        of_k = scene.with_k(k)
        dense = play(of_k, counts={"affected": crowd.affected, "bounded": crowd.bounded})
        sparse = play(of_k, among=crowd.crowds)
        rows.append(
            {
                "k": k,
                "dense_lookups": dense.lookups,
                "dense_boxes": float(dense.boxes.mean()),
                "sparse_lookups": sparse.lookups,
                "sparse_snaps": sparse.snaps,
                "sparse_boxes": float(sparse.boxes.mean()),
                "has_more_boxes": int((sparse.boxes > dense.boxes).sum()),
                "unicast_lookups": float(dense.counts["bounded"].mean()),
                "affected": float(dense.counts["affected"].mean()),
                "affected_max": int(dense.counts["affected"].max()),
            }
        )
    for row, found in zip(rows, _repeated(config, seed, say), strict=True):
        row |= found
    return rows


def _repeated(config: dict[str, Any], seed: int, say: Say) -> Rows:
    """Means over runs, and how far one run is from them."""
    lookups: dict[int, list[float]] = {k: [] for k in config["ks"]}
    affected: dict[int, list[float]] = {k: [] for k in config["ks"]}
    for run in range(config["repeats"]):
        say(f"run {run + 1} of {config['repeats']}")
        scene = _scene(config, seed + run, 0)
        for k in config["ks"]:
            player = Player(scene.with_k(k))
            sends = player.play(scene.changes).sends
            lookups[k].append(player.rankings.lookups / scene.changes)
            affected[k].append(expected_share(sends) * config["subscriptions"])
    return [
        {
            "dense_lookups_mean": fmean(lookups[k]),
            "dense_lookups_sd": stdev(lookups[k]),
            "affected_mean": fmean(affected[k]),
            "affected_sd": stdev(affected[k]),
        }
        for k in config["ks"]
    ]


def _scene(config: dict[str, Any], seed: int, subscriptions: int) -> Scene:
    return scene_of(UNIFORM, seed=seed, rows=config["rows"], subscriptions=subscriptions, changes=config["changes"])


def run_growth(config: dict[str, Any], seed: int, say: Say) -> Rows:
    """The same by the number of subscriptions (table IV)."""
    rows = []
    every = _scene(config, seed, max(config["sizes"])).with_k(config["k"])
    for size in config["sizes"]:
        say(f"{size:,} subscriptions")
        scene = replace(every, ranges=every.ranges[:size])
        crowd = Crowd(scene)
        dense = play(scene, counts={"bounded": crowd.bounded})
        sparse = play(scene, among=crowd.crowds)
        rows.append(
            {
                "subscriptions": size,
                "dense_lookups": dense.lookups,
                "dense_boxes": float(dense.boxes.mean()),
                "sparse_lookups": sparse.lookups,
                "sparse_snaps": sparse.snaps,
                "sparse_boxes": float(sparse.boxes.mean()),
                "unicast_lookups": float(dense.counts["bounded"].mean()),
            }
        )
    return rows
