"""Range top-k on a network (paper 004, figures 7 and 10)."""

from __future__ import annotations

import numpy as np

from research.bench.topk.replay import PAPER_BOX, PAPER_UNICAST, RangeSubscribers, TopkReplay, first_boxes
from research.experiments.network.counted import Network, linear
from research.experiments.network.kernels import BYTES, IP_BYTES
from research.experiments.paper import Config, Rows, Say
from research.experiments.topk.outcome import CHUNK, groups_of, uniform
from research.strategies.topk.kernels.plane_kdtree import PlaneKdTree
from research.strategies.topk.kernels.range_topk import Sends
from research.workloads.topk.scene import Scene, scene_of
from research.workloads.topk.stocks import StockCase
from tidings.kernels.arrays import I64
from tidings.model.codes import CODE_MAX, CODE_MIN, codes_of_doubles

WAYS: dict[str, float | None] = {"sparse": None, "sparse_1": 1.0}


class Ranges:
    """Subscriptions as points (low, high) on a network."""

    def __init__(self, scene: Scene, seed: int) -> None:
        self.people = RangeSubscribers(scene)
        self.network = Network(linear(self.people.points), seed)
        self._place = codes_of_doubles(scene.place)
        self._changed = scene.changed

    def painted(self, scene: Scene, eps: float | None, among: PlaneKdTree, parts: int, every: int) -> dict[str, float]:
        """Means per change: a message for each box, as in the paper."""
        replay = TopkReplay(scene, None if eps is None else groups_of(scene.k, eps), among)
        found, changes = np.zeros(2), 0
        for _ in range(parts):
            made = replay.play(CHUNK)
            changes += len(made)
            found += self._boxes(made.sends)
            replay.skip((every - 1) * CHUNK)
        return dict(zip(("bytes", "ip_bytes"), (found / changes).tolist(), strict=True))

    def unicast(self, scene: Scene, parts: int, every: int) -> dict[str, float]:
        """A message to each subscription that is told, for each object that it is told."""
        replay = TopkReplay(scene, None, None)
        told, changes, seen, hops = 0, 0, 0, 0
        for _ in range(parts):
            made = replay.play(CHUNK)
            changes += len(made)
            # Who holds the changed object before or after; of one that takes its place they are told in the same message.
            told += int(self.people.affected(made.sends).sum())
            boxes, starts = first_boxes(made.sends)
            cut = starts[: min(len(made), _LOOKED_AT) + 1]
            lo, hi = (ends[boxes[: cut[-1]]] for ends in (made.sends.box_lo, made.sends.box_hi))
            channels, tags = np.zeros(len(cut) - 1, np.int64), np.zeros(cut[-1], np.uint8)
            _, slots, _ = self.people.forest.stab(channels, lo, hi, tags, cut)
            seen, hops = seen + len(slots), hops + int(self.network.unicast_hops(slots.astype(np.int64)).sum())
            replay.skip((every - 1) * CHUNK)
        size = PAPER_UNICAST * told / changes
        return {"bytes": size, "ip_bytes": size * hops / max(seen, 1)}

    def relaxed(self, count: int) -> dict[str, float]:
        """One message to everybody whose range has the object, whatever its rank."""
        x = linear(self._place[self._changed[:count]])
        lo = np.column_stack([np.full(count, CODE_MIN), x])
        hi = np.column_stack([x, np.full(count, CODE_MAX)])
        cost = self.network.cost(lo, hi, np.arange(count + 1), np.full(count, PAPER_BOX))
        return {"bytes": float(cost[:, BYTES].mean()), "ip_bytes": float(cost[:, IP_BYTES].mean())}

    def _boxes(self, sends: Sends) -> I64:
        lo, hi = linear(sends.box_lo), linear(sends.box_hi)
        cost = self.network.cost(lo, hi, np.arange(len(lo) + 1), np.full(len(lo), PAPER_BOX))
        found: I64 = cost[:, [BYTES, IP_BYTES]].sum(axis=0)
        return found


_LOOKED_AT = 200
"""Of so many changes of a part it is found where those are who are told."""


def _rows(scene: Scene, config: Config, seed: int, say: Say) -> Rows:
    ranges = Ranges(scene, seed)
    relaxed = ranges.relaxed(config["parts"] * CHUNK)
    rows: Rows = []
    for k in config["ks"]:
        say(f"k = {k}")
        of_k = scene.with_k(k)
        rows.append({"k": k, "way": "relax"} | relaxed)
        rows.append({"k": k, "way": "unicast"} | ranges.unicast(of_k, config["parts"], config["every"]))
        for way, eps in WAYS.items():
            among = ranges.people.crowds
            rows.append({"k": k, "way": way} | ranges.painted(of_k, eps, among, config["parts"], config["every"]))
    return rows


def rankings(config: Config, seed: int, say: Say) -> Rows:
    return _rows(uniform(config, seed, config["subscriptions"]), config, seed, say)


def ranking_stocks(config: Config, seed: int, say: Say) -> Rows:
    counts = {"rows": config["rows"], "subscriptions": config["subscriptions"], "changes": config["changes"]}
    return _rows(scene_of(StockCase(), seed=seed, **counts), config, seed, say)
