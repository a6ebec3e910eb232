"""The page about a run: published beside measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from experiments.drift.outcome import Rows
from tidings.bench.report import shown
from tidings.bench.stamp import describe

_STRESS_SIZE = 10_000
_HEAD = """# Drift: published and measured

Written by `python -m experiments.drift`; what is run is in `../config.toml`, all numbers are in `results.json`.

{stamp}. {seconds:.0f} seconds in all; load average {load} at the end.

*Ranges* are the boxes of radii and labels that an event concerns; the paper sends a message for each, Tidings one message with
all of them. *Unicast* is a message for each subscription told. Time and traffic are those of the server alone: the paper's
node stress is the highest among all nodes of its simulated network, whose brokers forward, and its tables 2 and 3 are
missing in the text we have. Time is that of the processor.

With the same radius for all, the paper's labels stay in the order of the values last told, and an event concerns one range of
them, or two. Tidings never changes a label: when there is none left between two neighbours, a newcomer's is out of order, and
what an event concerns may fall into more ranges.

| | published | measured |
|---|---|---|
"""


def page(results: dict[str, Rows], published: dict[str, Any], stamped: dict[str, Any], pictures: list[str]) -> str:
    load = stamped["load_average_end"][0]
    head = _HEAD.format(stamp=describe(stamped), seconds=stamped["seconds"], load=load)
    lines = [f"| {what} | {said} | {found} |\n" for what, said, found in _lines(results, published)]
    return head + "".join(lines) + "\n" + "".join(f"![{name}]({name})\n" for name in pictures)


def _lines(results: dict[str, Rows], published: dict[str, Any]) -> Iterator[tuple[str, Any, str]]:
    for name, label in (("radii", "different radii"), ("same", "same radius")):
        if name in results:
            yield from _server(label, results[name], published[name])
    for name, label in (
        ("arrivals", "same radius, people coming"),
        ("all", "all radii"),
        ("stocks", "all radii, five stocks"),
    ):
        if name in results:
            first, last = results[name][0], results[name][-1]
            found = f"{_per_operation(first)} ({_at(first)}); {_per_operation(last)} ({_at(last)})"
            yield f"{label}: traffic per operation", published[name]["traffic"], found
    if "choice" in results:
        for row in results["choice"]:
            found = "; ".join(
                f"{label} {shown(row[f'{key}_ranges'])} ranges, {shown(row[f'{key}_told'])} told"
                for key, label in (("exact", "exactly at b"), ("paper", "paper's rule"), ("round", "round radii"))
            )
            yield f"BETWEEN a AND {row['multiple']:g} a: per event", published["choice"]["messages"], found


def _server(label: str, rows: Rows, said: dict[str, Any]) -> Iterator[tuple[str, Any, str]]:
    last = rows[-1]
    times = ", ".join(f"{name} {shown(last[f'{name}_us'])} µs" for name in ("region", "scan", "unicast"))
    yield f"{label}: server time per event", said["server time"], f"{times} ({_at(last)})"
    per_event = (
        f"{shown(last['ranges'])} ranges in {shown(last['messages'])} messages; unicast {shown(last['unicast'])}"
    )
    yield f"{label}: messages per event", said["messages"], f"{per_event} ({_at(last)})"
    traffic = f"{shown(last['region_bytes'])} bytes; unicast {shown(last['unicast_bytes'])}"
    yield f"{label}: traffic per event", said["traffic"], f"{traffic} ({_at(last)})"
    stressed = next((row for row in rows if row["subscriptions"] == _STRESS_SIZE), None)
    if stressed is None:
        return
    where = f"{label}: most of one event, {_STRESS_SIZE:,} subscriptions"
    yield f"{where}: unicast", said["stress unicast"], f"{stressed['unicast_max']:,}"
    yield f"{where}: ranges", said["stress ranges"], f"{stressed['ranges_max']:,}, in 1 message"
    if "events below 100" in said:
        below = f"{100 * stressed['ranges_below_100']:.3f}%"
        yield f"{label}: events with fewer than 100 ranges", said["events below 100"], below


def _per_operation(row: dict[str, Any]) -> str:
    region, unicast = row["region_bytes_per_operation"], row["unicast_bytes_per_operation"]
    return f"{shown(region)} bytes, unicast {shown(unicast)}, {unicast / region:.0f} times as many"


def _at(row: dict[str, Any]) -> str:
    return f"rate {row['rate']:g}" if "rate" in row else f"{row['subscriptions']:,}"
