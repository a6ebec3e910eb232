"""Pictures and page of the drift experiments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from research.experiments.page import opening, table
from research.experiments.paper import Config, Results, Rows
from research.experiments.plots import Panel, Picture, Style, curves
from tidings.bench.report import shown

_STRESS_SIZE = 10_000
_OURS, _SCAN, _UNICAST = "tab:blue", "tab:gray", "tab:orange"
_STYLES = {
    name: Style(name, line, colour)
    for name, line, colour in (("region", "o-", _OURS), ("scan", "^--", _SCAN), ("unicast", "s:", _UNICAST))
}
_TIME = curves(
    "subscriptions",
    {f"{name}_us": style for name, style in _STYLES.items()},
    "processor time at the server per event, µs",
)
_MESSAGES = curves(
    "subscriptions",
    {
        "unicast": Style("unicast, mean", "s:", _UNICAST),
        "unicast_max": Style("unicast, most", "s-", _UNICAST),
        "ranges": Style("ranges, mean", "o:", _OURS),
        "ranges_max": Style("ranges, most", "o-", _OURS),
    },
    "messages or ranges per event",
)


def _traffic(x: str, per: str, across: str = "") -> Panel:
    suffix = "" if per == "event" else f"_per_{per}"
    columns = {f"{name}_bytes{suffix}": _STYLES[name] for name in ("unicast", "region")}
    return curves(x, columns, f"bytes from the server per {per}", across)


def _choice(what: str, label: str) -> Panel:
    columns = {
        f"exact_{what}": Style("told exactly at b", "s:", _UNICAST),
        f"paper_{what}": Style("the paper's rule", "^--", _SCAN),
        f"round_{what}": Style("round radii", "o-", _OURS),
    }
    return curves("multiple", columns, f"{label} per event", "b / a", scale="linear")


PICTURES = {
    "radii": Picture("Different radii", [_TIME, _MESSAGES, _traffic("subscriptions", "event")]),
    "same": Picture("Same radius", [_TIME, _MESSAGES, _traffic("subscriptions", "event")]),
    "arrivals": Picture("Same radius, people coming", [_traffic("rate", "operation", "new subscriptions per event")]),
    "all": Picture("All radii", [_MESSAGES, _traffic("subscriptions", "operation")]),
    "stocks": Picture("All radii, prices of five stocks", [_MESSAGES, _traffic("subscriptions", "operation")]),
    "choice": Picture("moved BETWEEN a AND b", [_choice("ranges", "ranges"), _choice("told", "subscriptions told")]),
}


def page(results: Results, published: Config, stamped: Config, pictures: list[str]) -> str:
    head = opening("Drift", "drift", stamped) + (Path(__file__).parent / "head.md").read_text(encoding="utf-8") + "\n"
    lines = [[what, str(said), found] for what, said, found in _lines(results, published)]
    return head + table(["", "published", "measured"], lines) + "".join(f"![{name}]({name})\n" for name in pictures)


def _lines(results: Results, published: Config) -> Iterator[tuple[str, Any, str]]:
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


def _server(label: str, rows: Rows, said: Config) -> Iterator[tuple[str, Any, str]]:
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
