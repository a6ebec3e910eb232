"""Bytes from the server and messages got for nothing: by k and subscriptions (figures 4 to 6, table II), for small steps
(figure 8b), and for price-earnings ratios (tables V and VI).

What the paper calls redundancy fits the messages with the changed row alone. Those with rows that take its place are
rounded up as well, and go to fewer people, so that there is more of it in all messages; this is given, too.
"""

from __future__ import annotations

from dataclasses import replace

from research.bench.topk.data import TopkData
from research.bench.topk.replay import PAPER_BOX, PAPER_UNICAST, RangeSubscribers, unicast_bytes
from research.experiments.paper import Config, Rows, Say
from research.experiments.topk.outcome import counters, play, uniform, wire
from research.strategies.topk.kernels.plane_kdtree import PlaneKdTree
from research.workloads.topk.cases import Case
from research.workloads.topk.scene import scene_of
from research.workloads.topk.spread import SmallSteps
from research.workloads.topk.stocks import StockCase
from tidings.model.codes import Int64Array

WAYS: dict[str, tuple[bool, float | None]] = {
    "dense": (False, None),
    "sparse": (True, None),
    "dense_1": (False, 1.0),
    "sparse_1": (True, 1.0),
}
"""Name -> whether people are looked at, and eps."""


def traffic(config: Config, seed: int, say: Say) -> Rows:
    """By k and by the number of subscriptions."""
    rows = []
    scene = uniform(config, seed, max(config["sizes"]))
    for size in config["sizes"]:
        of_size = replace(scene, ranges=scene.ranges[:size])
        people = RangeSubscribers(of_size)
        for k in config["ks"]:
            say(f"{size:,} subscriptions, k = {k}")
            data = TopkData(of_size.with_k(k), seed)
            row = {"subscriptions": size, "k": k} | _unicast(data, people, config["every"])
            boxes: dict[str, Int64Array] = {}
            for name, (is_sparse, eps) in WAYS.items():
                among = people.crowds if is_sparse else None
                figures, boxes[name] = _region(name, data, among, eps, config["every"])
                row |= figures
            more = sum(int((boxes[f"sparse{eps}"] > boxes[f"dense{eps}"]).sum()) for eps in ("", "_1"))
            rows.append(row | {"has_more_boxes": more})
    return rows


def _unicast(data: TopkData, people: RangeSubscribers, every: int) -> dict[str, float]:
    affected = play(data.scene, counts=counters(people, "affected")).counts["affected"]
    some = play(data.scene, counts=counters(people, "affected", "received"), every=every).counts
    messages = affected.mean() * some["received"].sum() / some["affected"].sum()
    return {
        "unicast_bytes": PAPER_UNICAST * float(affected.mean()),
        "unicast_max": PAPER_UNICAST * int(affected.max()),
        "unicast_wire": unicast_bytes(data) * float(messages),
    }


def _region(
    name: str, data: TopkData, among: PlaneKdTree | None, eps: float | None, every: int
) -> tuple[dict[str, float], Int64Array]:
    """Figures of a way, and the boxes of those changes that all ways look at."""
    found = play(data.scene, eps=eps, among=among, counts={"wire": wire(data)}, every=every)
    some = found.boxes
    if among is None:
        # Without a look at people it takes little time to make all changes.
        found = replace(play(data.scene, eps=eps), counts=found.counts)
    figures = {
        f"{name}_bytes": PAPER_BOX * float(found.boxes.mean()),
        f"{name}_max": PAPER_BOX * int(found.boxes.max()),
        f"{name}_wire": float(found.counts["wire"].mean()),
    }
    return figures, some


def redundancy(config: Config, seed: int, say: Say) -> Rows:
    """Messages that people get for nothing where regions are rounded up, and what that saves."""
    scene, every = uniform(config, seed, config["subscriptions"]), config["every"]
    people = RangeSubscribers(scene)
    rows = []
    for k in config["ks"]:
        say(f"k = {k}")
        of_k = scene.with_k(k)
        whole = play(of_k, counts=counters(people, "affected", "around")).counts
        row = {"k": k, "relax": float(whole["around"].sum() / whole["affected"].sum() - 1)}
        counts = counters(people, "affected", "received")
        exact = play(of_k, counts=counters(people, "affected", "received", "around"), every=every).counts
        row["relax_received"] = float(exact["around"].sum() / exact["received"].sum() - 1)
        for eps in config["eps"]:
            rounded = play(of_k, eps=eps, among=people.crowds, counts=counts, every=every)
            for name, key in (("affected", f"eps_{eps:g}"), ("received", f"eps_{eps:g}_received")):
                row[key] = float(rounded.counts[name].sum() / exact[name].sum() - 1)
            row[f"eps_{eps:g}_bytes"] = PAPER_BOX * float(rounded.boxes.mean())
        rows.append(row)
    return rows


def steps(config: Config, seed: int, say: Say) -> Rows:
    """Bytes of dense and unicast as the steps of scores get smaller."""
    rows = []
    for volatility in config["volatilities"]:
        case, size = Case(scores=SmallSteps(volatility)), config["subscriptions"]
        scene = scene_of(case, seed=seed, rows=config["rows"], subscriptions=size, changes=config["changes"])
        people = RangeSubscribers(scene)
        for k in config["ks"]:
            say(f"c = {volatility:g}, k = {k}")
            found = play(scene.with_k(k), counts=counters(people, "affected"))
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


def stocks(config: Config, seed: int, say: Say) -> Rows:
    """Price-earnings ratios: redundancy, look-ups and bytes."""
    size, changes = config["subscriptions"], config["changes"]
    scene = scene_of(StockCase(), seed=seed, rows=config["rows"], subscriptions=size, changes=changes)
    people = RangeSubscribers(scene)
    rows = []
    for k in config["ks"]:
        say(f"k = {k}")
        of_k = scene.with_k(k)
        needed = counters(people, "affected", "bounded", "around")
        dense = play(of_k, counts=needed)
        every, own = config["every"], counters(people, "affected", "received")
        sparse = play(of_k, among=people.crowds, counts=counters(people, "affected", "received", "around"), every=every)
        rounded = play(of_k, eps=1.0, among=people.crowds, counts=own, every=every)
        redundancy = rounded.counts["affected"].sum() / sparse.counts["affected"].sum() - 1
        relaxed = dense.counts["around"].sum() / dense.counts["affected"].sum() - 1
        received = sparse.counts["received"].sum()
        rows.append(
            {
                "k": k,
                "eps_1": float(redundancy),
                "relax": float(relaxed),
                "eps_1_received": float(rounded.counts["received"].sum() / received - 1),
                "relax_received": float(sparse.counts["around"].sum() / received - 1),
                "idle": float((dense.counts["affected"] == 0).mean()),
                "sparse_sides": sparse.sides,
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
