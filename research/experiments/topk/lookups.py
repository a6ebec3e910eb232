"""Look-ups and boxes, dense and sparse: by k (tables I and III), by subscriptions (table IV), and by distribution (figure 8a).

A change of the row that is the best of all affects half of the people, so what a run of 50,000 changes affects depends on
a handful of them. It is therefore given for one run with people drawn as they are, and as the mean of many runs with
other rows and changes, where people are as many as can be expected in the boxes.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

from research.bench.topk.replay import RangeSubscribers, TopkReplay
from research.experiments.paper import Config, Rows, Say
from research.experiments.topk.outcome import Outcome, counters, expected_around, expected_share, play, uniform
from research.workloads.topk.cases import ANTICORRELATED, CORRELATED, UNIFORM, Case
from research.workloads.topk.scene import Scene, scene_of
from research.workloads.topk.spread import ClusteredRanges, clustered_places
from tidings.model.codes import codes_of_doubles


def _both(scene: Scene, people: RangeSubscribers, every: int, *names: str) -> tuple[dict[str, Any], Outcome]:
    """Figures of dense and sparse, and dense with what is to be counted."""
    dense = play(scene, counts=counters(people, *names), every=every)
    sparse = play(scene, among=people.crowds, every=every)
    figures = {
        "dense_lookups": dense.lookups,
        "dense_boxes": float(dense.boxes.mean()),
        "sparse_lookups": sparse.lookups,
        "sparse_snaps": sparse.snaps,
        "sparse_sides": sparse.sides,
        "sparse_boxes": float(sparse.boxes.mean()),
        "ratio": float(sparse.boxes.sum() / dense.boxes.sum()),
        "has_more_boxes": int((sparse.boxes > dense.boxes).sum()),
    }
    return figures, dense


def _without(figures: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in figures.items() if name not in names}


def calls(config: Config, seed: int, say: Say) -> Rows:
    """By k."""
    say(f"{config['subscriptions']:,} subscriptions")
    scene = uniform(config, seed, config["subscriptions"])
    people = RangeSubscribers(scene)
    rows: Rows = []
    for k, repeated in zip(config["ks"], _repeated(config, seed, say), strict=True):
        say(f"k = {k}")
        figures, dense = _both(scene.with_k(k), people, config["every"], "affected", "bounded")
        affected = dense.counts["affected"]
        rows.append(
            {"k": k}
            | _without(figures, "ratio")
            | {"unicast_lookups": float(dense.counts["bounded"].mean())}
            | {"affected": float(affected.mean()), "affected_max": int(affected.max())}
            | repeated
        )
    return rows


def _repeated(config: Config, seed: int, say: Say) -> Rows:
    """Means over runs, and how far one run is from them."""
    lookups: dict[int, list[float]] = {k: [] for k in config["ks"]}
    affected: dict[int, list[float]] = {k: [] for k in config["ks"]}
    bounded: dict[int, list[float]] = {k: [] for k in config["ks"]}
    for run in range(config["repeats"]):
        say(f"run {run + 1} of {config['repeats']}")
        scene = uniform(config, 1_000 * seed + run, 0)
        x = codes_of_doubles(scene.place)[scene.changed]
        for k in config["ks"]:
            replay = TopkReplay(scene.with_k(k))
            sends = replay.play(scene.changes).sends
            lookups[k].append(replay.rankings.lookups / scene.changes)
            affected[k].append(expected_share(sends) * config["subscriptions"])
            bounded[k].append(expected_around(sends, x) * config["subscriptions"])
    return [
        {
            "dense_lookups_mean": fmean(lookups[k]),
            "dense_lookups_sd": stdev(lookups[k]),
            "affected_mean": fmean(affected[k]),
            "affected_sd": stdev(affected[k]),
            "unicast_lookups_mean": fmean(bounded[k]),
        }
        for k in config["ks"]
    ]


def growth(config: Config, seed: int, say: Say) -> Rows:
    """By the number of subscriptions."""
    rows = []
    every = uniform(config, seed, max(config["sizes"])).with_k(config["k"])
    for size in config["sizes"]:
        say(f"{size:,} subscriptions")
        scene = replace(every, ranges=every.ranges[:size])
        figures, dense = _both(scene, RangeSubscribers(scene), config["every"], "bounded")
        lookups = {"unicast_lookups": float(dense.counts["bounded"].mean())}
        rows.append({"subscriptions": size} | _without(figures, "ratio", "has_more_boxes") | lookups)
    return rows


def cases(widths: list[float]) -> dict[str, Case]:
    """Name -> case; people in clusters of their own, wide and narrow, for rows anywhere and in clusters."""
    clustered = {
        f"{name}, ranges in clusters, lambda = {width:g}": Case(places, ClusteredRanges(width))
        for name, places in (("rows anywhere", UNIFORM.places), ("rows in clusters", clustered_places))
        for width in widths
    }
    return {
        "rows and ranges anywhere": UNIFORM,
        "rows in clusters, ranges anywhere": Case(clustered_places),
        **clustered,
        "rows in clusters, ranges around them": CORRELATED,
        "rows in clusters, ranges between them": ANTICORRELATED,
    }


def spread(config: Config, seed: int, say: Say) -> Rows:
    """Other distributions: what sparse saves where rows and people are in clusters."""
    rows = []
    for name, case in cases(config["widths"]).items():
        for size in config["sizes"] + (config["uniform_sizes"] if case is UNIFORM else []):
            say(f"{name}: {size:,} subscriptions")
            scene = scene_of(case, seed=seed, rows=config["rows"], subscriptions=size, changes=config["changes"])
            figures, _ = _both(scene.with_k(config["k"]), RangeSubscribers(scene), 1)
            rows.append({"case": name, "subscriptions": size} | _without(figures, "sparse_snaps", "sparse_sides"))
    return rows
