"""Other distributions: what sparse saves where rows and people are in clusters (figure 8a), and small steps (figure 8b)."""

from __future__ import annotations

from typing import Any

from experiments.topk.outcome import Crowd, Rows, Say, play
from tidings.bench.topk_wire import PAPER_BOX, PAPER_UNICAST
from tidings.workloads.topk.cases import ANTICORRELATED, CORRELATED, UNIFORM, Case
from tidings.workloads.topk.scene import scene_of
from tidings.workloads.topk.spread import ClusteredRanges, SmallSteps, clustered_places


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


def run(config: dict[str, Any], seed: int, say: Say) -> Rows:
    rows = []
    for name, case in cases(config["widths"]).items():
        for size in config["sizes"] + (config["uniform_sizes"] if case is UNIFORM else []):
            say(f"{name}: {size:,} subscriptions")
            scene = scene_of(
                case, seed=seed, rows=config["rows"], subscriptions=size, changes=config["changes"]
            ).with_k(config["k"])
            dense, sparse = play(scene), play(scene, among=Crowd(scene).crowds)
            rows.append(
                {
                    "case": name,
                    "subscriptions": size,
                    "ratio": float(sparse.boxes.sum() / dense.boxes.sum()),
                    "dense_boxes": float(dense.boxes.mean()),
                    "sparse_boxes": float(sparse.boxes.mean()),
                    "dense_lookups": dense.lookups,
                    "sparse_lookups": sparse.lookups,
                    "has_more_boxes": int((sparse.boxes > dense.boxes).sum()),
                }
            )
    return rows


def run_steps(config: dict[str, Any], seed: int, say: Say) -> Rows:
    """Bytes of dense and unicast as steps get smaller."""
    rows = []
    for volatility in config["volatilities"]:
        scene = scene_of(
            Case(scores=SmallSteps(volatility)),
            seed=seed,
            rows=config["rows"],
            subscriptions=config["subscriptions"],
            changes=config["changes"],
        )
        crowd = Crowd(scene)
        for k in config["ks"]:
            say(f"c = {volatility:g}, k = {k}")
            found = play(scene.with_k(k), counts={"affected": crowd.affected})
            rows.append(
                {
                    "volatility": volatility,
                    "k": k,
                    "dense_bytes": PAPER_BOX * float(found.boxes.mean()),
                    "unicast_bytes": PAPER_UNICAST * float(found.counts["affected"].mean()),
                    "dense_lookups": found.lookups,
                }
            )
    return rows
