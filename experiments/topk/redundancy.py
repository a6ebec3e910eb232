"""Messages that people get for nothing where regions are rounded up, and what that saves (table II and figure 5b).

What the paper calls redundancy fits the messages with the changed row alone. Those with rows that take its place are
rounded up as well, and go to fewer people, so that there is more of it in all messages; this is given, too.
"""

from __future__ import annotations

from typing import Any

from experiments.topk.outcome import Crowd, Rows, Say, play
from tidings.bench.topk_wire import PAPER_BOX
from tidings.workloads.topk.cases import UNIFORM
from tidings.workloads.topk.scene import scene_of


def run(config: dict[str, Any], seed: int, say: Say) -> Rows:
    size, changes = config["subscriptions"], config["changes"]
    scene = scene_of(UNIFORM, seed=seed, rows=config["rows"], subscriptions=size, changes=changes)
    crowd = Crowd(scene)
    rows = []
    for k in config["ks"]:
        say(f"k = {k}")
        of_k, every = scene.with_k(k), config["every"]
        whole = play(of_k, counts={"affected": crowd.affected, "around": crowd.around}).counts
        row = {"k": k, "relax": float(whole["around"].sum() / whole["affected"].sum() - 1)}
        counts = {"affected": crowd.affected, "received": crowd.received}
        exact = play(of_k, counts=counts, every=every).counts
        for eps in config["eps"]:
            rounded = play(of_k, eps=eps, among=crowd.crowds, counts=counts, every=every)
            for name, key in (("affected", f"eps_{eps:g}"), ("received", f"eps_{eps:g}_received")):
                row[key] = float(rounded.counts[name].sum() / exact[name].sum() - 1)
            row[f"eps_{eps:g}_bytes"] = PAPER_BOX * float(rounded.boxes.mean())
        rows.append(row)
    return rows
