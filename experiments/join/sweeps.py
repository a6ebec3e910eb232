"""Binary joins by one number after the other: subscriptions, rows, partners, payload, overlap; and stocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from experiments.join.binary import Sample, outcomes
from experiments.join.outcome import Rows, Say
from tidings.bench.join_data import JoinData
from tidings.workloads.join.binary import BinaryCase, BinaryScene
from tidings.workloads.join.stocks import JoinStocksCase


def run_growth(config: dict[str, Any], seed: int, say: Say) -> Rows:
    """By subscriptions (figures 5, 6 and 17, tables 3 and 4)."""
    return _by_size(BinaryCase(), config, seed, say)


def run_stocks(config: dict[str, Any], seed: int, say: Say) -> Rows:
    """Price-earnings ratios and ratings, by subscriptions (figure 10)."""
    return _by_size(JoinStocksCase(), config, seed, say)


def run_database(config: dict[str, Any], seed: int, say: Say) -> Rows:
    """By the number of R rows (figure 7)."""
    rows: Rows = []
    for size in config["r_sizes"]:
        say(f"{size:,} rows of R")
        case = BinaryCase(r_size=size)
        rows.extend({"r_size": size, **row} for row in _played(_data(case, config, seed), config))
    return rows


def run_output(config: dict[str, Any], seed: int, say: Say) -> Rows:
    """By the S rows that an R row finds, of which there are more the larger S is (figures 8 and 9)."""
    rows: Rows = []
    for size in config["s_sizes"]:
        data = _data(BinaryCase(s_size=size), config, seed)
        rate = data.scene.join_output_rate
        say(f"{size:,} rows of S, {rate:.1f} for a row of R")
        rows.extend({"s_size": size, "rate": rate, **row} for row in _played(data, config))
    return rows


def run_payload(config: dict[str, Any], seed: int, say: Say) -> Rows:
    """By the bytes of payload (figure 18): without any, and counting how often there would be one."""
    rows: Rows = []
    data = _data(BinaryCase(payload=0), config, seed)
    for strategy, outcome in outcomes(data, config["strategies"], Sample.of(config)):
        say(strategy)
        for payload in config["payloads"]:
            means = {
                name: (outcome.inserted[name] + payload * outcome.inserted[f"{name}_notes"]) / config["insertions"]
                for name in ("sent", "carried", "delivered")
            }
            rows.append({"payload": payload, "strategy": strategy, **means})
    return rows


def run_overlap(config: dict[str, Any], seed: int, say: Say) -> Rows:
    """By how much more alike ranges are than usual (figures 19 and 20)."""
    rows: Rows = []
    for overlap in config["overlaps"]:
        say(f"overlap {overlap:,}")
        data = _data(BinaryCase(overlap=overlap), config, seed)
        rows.extend({"overlap": overlap, **row} for row in _played(data, config))
    return rows


def _by_size(case: BinaryCase | JoinStocksCase, config: dict[str, Any], seed: int, say: Say) -> Rows:
    rows: Rows = []
    scene = _scene(case, config, seed, max(config["sizes"]))
    for size in config["sizes"]:
        say(f"{size:,} subscriptions")
        # Those of a smaller crowd are among those of a larger one.
        data = JoinData(BinaryCase(), replace(scene, ranges=scene.ranges[:size]), seed)
        found = _played(data, config)
        rows.extend({"subscriptions": size, "rate": scene.join_output_rate, **row} for row in found)
    return rows


def _data(case: BinaryCase, config: dict[str, Any], seed: int) -> JoinData:
    return JoinData(case, _scene(case, config, seed, config["subscriptions"]), seed)


def _scene(case: BinaryCase | JoinStocksCase, config: dict[str, Any], seed: int, subscriptions: int) -> BinaryScene:
    return case.scene(seed=seed, subscriptions=subscriptions, changes=Sample.of(config).changes)


def _played(data: JoinData, config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for strategy, outcome in outcomes(data, config["strategies"], Sample.of(config)):
        yield {"strategy": strategy, **outcome.figures()}
