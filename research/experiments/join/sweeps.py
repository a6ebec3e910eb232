"""Binary joins by one number after the other: subscriptions, rows, partners, payload, overlap; and stocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from research.bench.join.data import JoinData
from research.experiments.join.binary import Sample, outcomes
from research.experiments.join.outcome import per_change, with_payload
from research.experiments.paper import Config, Rows, Run, Say
from research.workloads.join.binary import BinaryCase, BinaryScene
from research.workloads.join.stocks import JoinStocksCase


class Sweep(NamedTuple):
    """A case of the binary workload for each of some numbers."""

    values: str
    """Where the configuration has the numbers."""
    column: str
    """What they are called in the results."""
    case: Callable[[Any], BinaryCase]
    has_rate: bool = False
    """Whether results have the S rows that an R row finds."""


_SWEEPS = {
    # By the number of R rows (figure 7).
    "database": Sweep("r_sizes", "r_size", lambda size: BinaryCase(r_size=size)),
    # By the S rows that an R row finds, of which there are more the larger S is (figures 8 and 9).
    "output": Sweep("s_sizes", "s_size", lambda size: BinaryCase(s_size=size), has_rate=True),
    # By how much more alike ranges are than usual (figures 19 and 20).
    "overlap": Sweep("overlaps", "overlap", lambda overlap: BinaryCase(overlap=overlap)),
}


def _swept(name: str) -> Run:
    values, column, case_of, has_rate = _SWEEPS[name]

    def run(config: Config, seed: int, say: Say) -> Rows:
        rows: Rows = []
        for value in config[values]:
            data = _data(case_of(value), config, seed)
            rate = {"rate": data.scene.join_output_rate} if has_rate else {}
            say(", ".join(f"{name} {number:,.10g}" for name, number in ({column: value} | rate).items()))
            rows.extend({column: value, **rate, **row} for row in _played(data, config))
        return rows

    return run


def _by_size(case: BinaryCase | JoinStocksCase) -> Run:
    """By subscriptions."""

    def run(config: Config, seed: int, say: Say) -> Rows:
        rows: Rows = []
        scene = _scene(case, config, seed, max(config["sizes"]))
        for size in config["sizes"]:
            say(f"{size:,} subscriptions")
            # Those of a smaller crowd are among those of a larger one.
            data = JoinData(BinaryCase(), replace(scene, ranges=scene.ranges[:size]), seed)
            found = _played(data, config)
            rows.extend({"subscriptions": size, "rate": scene.join_output_rate, **row} for row in found)
        return rows

    return run


_BYTES = ("sent", "carried", "delivered")


def _payload(config: Config, seed: int, say: Say) -> Rows:
    """By the bytes of payload (figure 18): without any, and counting how often there would be one."""
    rows: Rows = []
    data = _data(BinaryCase(payload=0), config, seed)
    for strategy, outcome in outcomes(data, config["strategies"], Sample.of(config)):
        say(strategy)
        for payload in config["payloads"]:
            means = per_change(with_payload(outcome.inserted, payload, "notes"), outcome.sample.insertions)
            rows.append({"payload": payload, "strategy": strategy, **{name: means[name] for name in _BYTES}})
    return rows


SWEEPS: dict[str, Run] = {
    # Figures 5, 6 and 17, tables 3 and 4.
    "growth": _by_size(BinaryCase()),
    "database": _swept("database"),
    "output": _swept("output"),
    # Price-earnings ratios and ratings (figure 10).
    "stocks": _by_size(JoinStocksCase()),
    "payload": _payload,
    "overlap": _swept("overlap"),
}


def _data(case: BinaryCase, config: Config, seed: int) -> JoinData:
    return JoinData(case, _scene(case, config, seed, config["subscriptions"]), seed)


def _scene(case: BinaryCase | JoinStocksCase, config: Config, seed: int, subscriptions: int) -> BinaryScene:
    return case.scene(seed=seed, subscriptions=subscriptions, changes=Sample.of(config).changes)


def _played(data: JoinData, config: Config) -> Iterator[dict[str, Any]]:
    for strategy, outcome in outcomes(data, config["strategies"], Sample.of(config)):
        yield {"strategy": strategy, **outcome.figures()}
