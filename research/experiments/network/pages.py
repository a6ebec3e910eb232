"""Pictures and page of the network experiments: tables of what crosses the network, by scheme."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from research.experiments.network.claims import Curves
from research.experiments.page import number, opening, section
from research.experiments.paper import Config, Results, Rows
from research.experiments.plots import Axes, Panel, Picture, ticks

_CAPTIONS = {
    "bytes": "bytes between nodes",
    "ip_bytes": "bytes on links below",
    "server_bytes": "bytes from the server",
    "messages": "messages between nodes",
    "last_hop_bytes": "bytes with the last hop",
    "operation_bytes": "bytes per operation",
    "stress_max": "most messages from a node for one event",
    "hops": "hops of a delivery",
}


class Shown(NamedTuple):
    title: str
    x: str
    by: str
    columns: Sequence[str]


_SECTIONS = {
    "growth": Shown(
        "Joins by subscriptions (000, figures 6 and 17, table 3)",
        "subscriptions",
        "strategy",
        ["bytes", "messages", "server_bytes", "ip_bytes"],
    ),
    "database": Shown("Joins by rows of R (000, figure 7)", "r_size", "strategy", ["bytes"]),
    "output": Shown("Joins by rows of S (000, figure 9)", "s_size", "strategy", ["bytes"]),
    "join_stocks": Shown("Joins on stocks (000, figure 10)", "subscriptions", "strategy", ["bytes"]),
    "payload": Shown("Joins by payload (000, figure 18)", "payload", "strategy", ["bytes"]),
    "overlap": Shown("Joins by overlap (000, figures 19, 20)", "overlap", "strategy", ["bytes", "last_hop_bytes"]),
    "repository": Shown("Caching (000, figure 11)", "entries", "strategy", ["bytes", "server_bytes"]),
    "latency": Shown("Hops with caching (000, figure 12)", "entries", "strategy", ["hops"]),
    "radii": Shown("Different radii (002, figure 7)", "subscriptions", "way", ["bytes", "stress_max"]),
    "same": Shown("The same radius (002, figure 9)", "subscriptions", "way", ["bytes", "stress_max"]),
    "arrivals": Shown("New subscriptions (002, figure 10)", "rate", "way", ["operation_bytes"]),
    "all": Shown("All radii (002, figure 11)", "subscriptions", "way", ["operation_bytes"]),
    "stocks": Shown("Prices of five stocks (002, figure 12)", "subscriptions", "way", ["operation_bytes"]),
    "rankings": Shown("Range top-k (004, figure 7)", "k", "way", ["bytes", "ip_bytes"]),
    "ranking_stocks": Shown("Range top-k on stocks (004, figure 10)", "k", "way", ["bytes", "ip_bytes"]),
}


def _curves(shown: Shown, column: str) -> Panel:
    def panel(axis: Axes, rows: Rows) -> None:
        by = Curves(rows, shown.x, shown.by)
        numbers = [x for x in by.xs if not isinstance(x, str)]
        for name in by.names:
            axis.plot(numbers, [by.at(x, name, column) for x in numbers], "o-", label=name, markersize=4)
        axis.set_yscale("log")
        axis.set_ylabel(_CAPTIONS[column])
        ticks(axis, numbers, shown.x)

    return panel


PICTURES = {
    name: Picture(shown.title, [_curves(shown, column) for column in shown.columns])
    for name, shown in _SECTIONS.items()
    if shown.x != "entries"
}


def page(results: Results, published: Config, stamped: dict[str, Any], pictures: Sequence[str]) -> str:
    parts = [
        opening("Networks", "network", stamped),
        (Path(__file__).parent / "head.md").read_text(encoding="utf-8"),
        "\n",
    ]
    for name, shown in _SECTIONS.items():
        if name in results:
            parts += [_tables(shown, column, results[name]) for column in shown.columns]
            parts += [f"![{name}]({name}.png)\n\n"] if f"{name}.png" in pictures else []
    return "".join(parts)


def _tables(shown: Shown, column: str, rows: Rows) -> str:
    by = Curves(rows, shown.x, shown.by)
    known = {(row[shown.x], row[shown.by]): row[column] for row in rows}
    lines = [[name, *(number(known.get((x, name))) for x in by.xs)] for name in by.names]
    head = [shown.x.replace("_", " "), *(x if isinstance(x, str) else f"{x:,}" for x in by.xs)]
    return section(shown.title, f"{_CAPTIONS[column].capitalize()}.", head, lines)
