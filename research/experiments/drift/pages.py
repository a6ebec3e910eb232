"""Pictures and page of the drift experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from research.experiments.page import opening, table
from research.experiments.paper import Config, Results, Rows
from research.experiments.plots import Panel, Picture, Style, curves
from tidings.bench.report import shown

_OURS, _SCAN, _UNICAST, _CENTRES = "tab:blue", "tab:gray", "tab:orange", "tab:green"
_STRUCTURES = {
    "tree_us": Style("tree, ranges", "o-", _OURS),
    "tree_list_us": Style("tree, list", "o:", _OURS),
    "scan_us": Style("Scan(r), ranges", "^-", _SCAN),
    "scan_list_us": Style("Scan(r), list", "^:", _SCAN),
    "end_points_us": Style("B-tree(lr), list", "s:", _UNICAST),
    "centres_us": Style("B-tree(c), list", "v:", _CENTRES),
}
_TIME = curves("subscriptions", _STRUCTURES, "processor time at the server per event, µs")
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
    styles = {"unicast": Style("unicast", "s:", _UNICAST), "region": Style("ranges", "o-", _OURS)}
    columns = {f"{name}_bytes{suffix}": style for name, style in styles.items()}
    return curves(x, columns, f"bytes from the server per {per}", across)


def _choice(what: str, label: str) -> Panel:
    columns = {
        f"exact_{what}": Style("told exactly at b", "s:", _UNICAST),
        f"rule_{what}": Style("the paper's rule", "^--", _SCAN),
        f"round_{what}": Style("round radii", "o-", _OURS),
    }
    panel = curves("multiple", columns, f"{label} per event", "b / a", scale="linear")
    return lambda axis, rows: panel(axis, [row for row in rows if row["kind"] == "moved"])


PICTURES = {
    "radii": Picture("Different radii", [_TIME, _MESSAGES, _traffic("subscriptions", "event")]),
    "same": Picture("Same radius", [_TIME, _MESSAGES, _traffic("subscriptions", "event")]),
    "arrivals": Picture("Same radius, people coming", [_traffic("rate", "operation", "new subscriptions per event")]),
    "all": Picture("All radii", [_TIME, _MESSAGES, _traffic("subscriptions", "operation")]),
    "stocks": Picture("All radii, prices of five stocks", [_MESSAGES, _traffic("subscriptions", "operation")]),
    "choice": Picture("moved BETWEEN a AND b", [_choice("ranges", "ranges"), _choice("told", "subscriptions told")]),
}
_MEASURED = {"unicast": "unicast", "ranges": "ranges", "unicast_max": "unicast, most", "ranges_max": "ranges, most"}
_PER_EVENT = {"region_bytes": "bytes, ranges", "unicast_bytes": "bytes, unicast"}
_PER_OPERATION = {f"{column}_per_operation": label for column, label in _PER_EVENT.items()}
_TIMES = {column: f"{style.label}, µs" for column, style in _STRUCTURES.items()}
_TABLES: dict[str, tuple[str, dict[str, str]]] = {
    "radii": ("Different radii, per event", _MEASURED | _PER_EVENT | _TIMES),
    "same": ("Same radius, per event", _MEASURED | {"kept_ranges_max": "most, if labels stay"} | _PER_EVENT | _TIMES),
    "arrivals": (
        "Same radius, people coming; per operation",
        _PER_OPERATION | {"renewed_bytes_per_operation": "of renewed labels", "relabelled": "labels renewed in all"},
    ),
    "all": (
        "All radii; bytes per operation",
        _MEASURED | {"relaxed_ranges": "ranges, relaxed creation"} | _PER_OPERATION | _TIMES,
    ),
    "stocks": ("All radii, five stocks; bytes per operation", _MEASURED | _PER_OPERATION),
    "choice": (
        "BETWEEN a AND b, per event",
        {
            f"{name}_{what}": f"{label}, {what}"
            for name, label in (("exact", "exactly at b"), ("rule", "paper's rule"), ("round", "round radii"))
            for what in ("ranges", "told")
        },
    ),
    "unique": (
        "One a and one b for all: different values last told",
        {"exact": "told at b alone", "rule": "all who may, once one must"},
    ),
    "relative": (
        "One percentage or ratio for all: ranges of labels per event",
        {"ranges": "mean", "ranges_max": "most"},
    ),
}
"""Experiment -> title, and columns with their labels."""


def page(results: Results, published: Config, stamped: Config, pictures: list[str]) -> str:
    parts = [opening("Drift", "drift", stamped), (Path(__file__).parent / "head.md").read_text(encoding="utf-8"), "\n"]
    for name, rows in results.items():
        parts.append(_section(name, rows))
        parts += [f"![{picture}]({picture})\n\n" for picture in pictures if picture == f"{name}.png"]
    return "".join(parts).rstrip() + "\n"


def _section(name: str, rows: Rows) -> str:
    title, columns = _TABLES[name]
    there = {column: label for column, label in columns.items() if column in rows[0]}
    lines = [[_x(row), *(shown(row[column]) for column in there)] for row in rows]
    return f"## {title}\n\n" + table(["", *there.values()], lines)


def _x(row: dict[str, Any]) -> str:
    if "rate" in row:
        return f"{row['rate']:g} new per event"
    if "multiple" in row:
        return f"{row['kind']}, b = {row['multiple']:g} a" if "kind" in row else f"b = {row['multiple']:g} a"
    return f"{row['subscriptions']:,}" if "subscriptions" in row else str(row["kind"])
