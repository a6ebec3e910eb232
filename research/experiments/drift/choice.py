"""`BETWEEN a AND b`: how much the freedom to tell between a and b saves, by our rule and by the paper's.

Ours gives everybody a round radius out of [a, b], once and for all. The paper decides anew at every event (`ChoiceTree`): it
tells those that must be told, and those between two of them that may be. Where all have the same a and b it tells all who may
be told as soon as one must, so that fewer different values are last told.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from research.experiments.drift.cases import CASES
from research.experiments.paper import Config, Rows, Say
from research.strategies.drift.follower_index import KINDS
from research.strategies.drift.kernels.choice_tree import ChoiceTree
from tidings.families.drift.movement import roundest_between
from tidings.kernels.arrays import F64
from tidings.model.codes import Int64Array
from tidings.workloads.draws import FloatArray

_AROUND = 1_000_000.0
"""Where the prices of the workload are: a radius r is r / _AROUND of them."""


def run(config: Config, seed: int, say: Say) -> Rows:
    timeline, _ = CASES["radii"](config, config["subscriptions"], seed)
    rows: Rows = []
    for kind in KINDS:
        radius = timeline.member_reach / _AROUND
        low = {"moved": timeline.member_reach, "moved_percent": 100 * radius, "moved_ratio": 1 + radius}[kind]
        for multiple in config["multiples"]:
            say(f"{kind}, b = {multiple:g} a")
            high = 1 + (low - 1) * multiple if kind == "moved_ratio" else low * multiple
            chosen = np.array([roundest_between(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True)])
            row: dict[str, Any] = {"kind": kind, "multiple": multiple, "radii": len(np.unique(chosen))}
            for name, may, must in (("exact", high, high), ("rule", low, high), ("round", chosen, chosen)):
                ranges, told = _played(kind, may, must, timeline.move_value)
                row |= {f"{name}_ranges": ranges, f"{name}_told": told}
            rows.append(row)
    return rows


def _played(kind: str, may: F64, must: F64, values: F64) -> tuple[float, float]:
    """Ranges, and members told, per value after the first."""
    order = np.lexsort((must, may))
    count = len(order)
    start = np.full(count, values[0]), np.zeros(count, np.int64)
    tree = ChoiceTree(KINDS[kind], may[order], must[order], *start)
    ranges = told = 0
    for time, value in enumerate(values[1:].tolist(), 1):
        runs = tree.move(value, time)
        ranges += len(runs)
        told += int((runs[:, 1] - runs[:, 0] + 1).sum())
    return ranges / (len(values) - 1), told / (len(values) - 1)


def unique(config: Config, seed: int, say: Say) -> Rows:
    """One a and one b for all, who come at different values: how many of these are there at a time?"""
    timeline, begin = CASES["same"](config, config["subscriptions"], seed)
    must = float(timeline.member_reach[0])
    rows: Rows = []
    for multiple in config["multiples"]:
        say(f"b = {multiple:g} a")
        row = {"multiple": multiple}
        for name, may in (("exact", must), ("rule", must / multiple)):
            row[name] = _different(timeline.member_after, timeline.move_value, begin, may, must)
        rows.append(row)
    return rows


def _different(after: Int64Array, values: FloatArray, begin: int, may: float, must: float) -> float:
    """The mean number of different values last told, from the move `begin` on."""
    comes = np.bincount(after, minlength=len(values) + 1)
    held, total = np.empty(0), 0
    for move, value in enumerate(values.tolist()):
        if ((value >= held + must) | (value <= held - must)).any():
            held = np.append(held[(value < held + may) & (value > held - may)], value)
        if comes[move + 1] and value not in held:
            held = np.append(held, value)
        total += len(held) if move >= begin else 0
    return total / (len(values) - begin)
