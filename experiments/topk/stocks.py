"""Price-earnings ratios of stocks: redundancy (table V) and look-ups (table VI)."""

from __future__ import annotations

from typing import Any

from experiments.topk.outcome import Crowd, Rows, Say, play
from tidings.bench.topk_wire import PAPER_BOX, PAPER_UNICAST
from tidings.workloads.topk.scene import scene_of
from tidings.workloads.topk.stocks import StockCase


def run(config: dict[str, Any], seed: int, say: Say) -> Rows:
    size, changes = config["subscriptions"], config["changes"]
    scene = scene_of(StockCase(), seed=seed, rows=config["rows"], subscriptions=size, changes=changes)
    crowd = Crowd(scene)
    rows = []
    for k in config["ks"]:
        say(f"k = {k}")
        of_k = scene.with_k(k)
        needed = {"affected": crowd.affected, "bounded": crowd.bounded, "around": crowd.around}
        dense = play(of_k, counts=needed)
        every, own = config["every"], {"affected": crowd.affected}
        sparse = play(of_k, among=crowd.crowds, counts=own, every=every)
        rounded = play(of_k, eps=1.0, among=crowd.crowds, counts=own, every=every)
        redundancy = rounded.counts["affected"].sum() / sparse.counts["affected"].sum() - 1
        relaxed = dense.counts["around"].sum() / dense.counts["affected"].sum() - 1
        rows.append(
            {
                "k": k,
                "eps_1": float(redundancy),
                "relax": float(relaxed),
                "sparse_lookups": sparse.lookups,
                "sparse_snaps": sparse.snaps,
                "dense_lookups": dense.lookups,
                "unicast_lookups": float(dense.counts["bounded"].mean()),
                "affected": float(dense.counts["affected"].mean()),
                "dense_bytes": PAPER_BOX * float(dense.boxes.mean()),
                "sparse_bytes": PAPER_BOX * float(sparse.boxes.mean()),
                "sparse_1_bytes": PAPER_BOX * float(rounded.boxes.mean()),
                "unicast_bytes": PAPER_UNICAST * float(dense.counts["affected"].mean()),
            }
        )
    return rows
