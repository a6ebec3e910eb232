"""Pictures and page of the join experiments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from research.experiments.join.claims import by_widths
from research.experiments.join.outcome import BEST, LABELS, figures
from research.experiments.page import opening, table
from research.experiments.paper import Config, Results, Rows
from research.experiments.plots import Axes, Panel, Picture, Style, curves
from tidings.bench.report import shown

_STYLES = {
    "enum-j": Style(LABELS["enum-j"], "s:", "tab:red"),
    "enum-sj": Style(LABELS["enum-sj"], "s--", "tab:orange"),
    "rel-sel": Style(LABELS["rel-sel"], "v:", "tab:brown"),
    "ref-j": Style(LABELS["ref-j"], "^:", "tab:gray"),
    "ref-j+": Style(LABELS["ref-j+"], "^--", "black"),
    "ref-sj:sub": Style(LABELS["ref-sj:sub"], "D:", "tab:purple"),
    "ref-sj:tup": Style(LABELS["ref-sj:tup"], "o:", "tab:cyan"),
    "ref-sj:clu": Style(LABELS["ref-sj:clu"], "o--", "tab:blue"),
    "ref-sj:clu+": Style(LABELS["ref-sj:clu+"], "o-", "tab:green"),
    "ref-sj:tup+": Style(LABELS["ref-sj:tup+"], "x:", "tab:olive"),
    "ref-sj:min": Style(LABELS["ref-sj:min"], "+:", "tab:pink"),
}


_X = {
    "subscriptions": "subscriptions",
    "r_size": "rows of R",
    "rate": "S rows for an R row",
    "payload": "bytes of payload",
    "overlap": "overlap",
}


def _by(x: str, name: str) -> Panel:
    """A curve per strategy."""
    draw = curves(x, _STYLES, _LABELS[name], _X[x], is_log_x=x != "overlap")

    def panel(axis: Axes, rows: Rows) -> None:
        draw(axis, [{x: at, **of_x} for at, of_x in figures(rows, x, name).items()])

    return panel


def _decompositions(axis: Axes, rows: Rows) -> None:
    """Those with the usual ranges, the most expensive at the top."""
    shown = sorted(by_widths(rows)[0], key=lambda row: float(row["carried"]))
    names = [row.get("choice") or LABELS[row["strategy"]] for row in shown]
    colours = [
        "tab:green" if row.get("is_best_by_numbers") else "tab:blue" if row.get("is_drawn") else "lightgray"
        for row in shown
    ]
    axis.barh(names, [row["carried"] for row in shown], color=colours)
    axis.tick_params(axis="y", labelsize=7)
    axis.set_title("green: least estimated cost, blue: drawn at random", fontsize=8)
    axis.set_xlabel("bytes carried per insertion")
    axis.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k")


def _draw_star(axis: Axes, rows: Rows) -> None:
    cases = [
        (
            f"ranges {part[0]['width'] // 1000}k, facts {payload} B",
            [row for row in part if row["fact_payload"] == payload],
        )
        for part in by_widths(rows)
        for payload in dict.fromkeys(row["fact_payload"] for row in part)
    ]
    strategies = [row["strategy"] for row in cases[0][1]]
    width = 0.8 / len(strategies)
    for i, strategy in enumerate(strategies):
        values = [next(row["carried"] for row in part if row["strategy"] == strategy) for _, part in cases]
        colour = _STYLES[strategy].colour if strategy in _STYLES else "lightgreen"
        places = [at + i * width for at in range(len(cases))]
        axis.bar(places, values, width, label=LABELS[strategy], color=colour)
    axis.set_xticks(
        [at + 0.4 - width / 2 for at in range(len(cases))], [name for name, _ in cases], fontsize=7, rotation=20
    )
    axis.set_yscale("log")
    axis.set_ylabel("bytes carried per fact inserted")


_LABELS = {
    "output_us": "µs per insertion, with output",
    "carried": "bytes carried per insertion",
    "hops": "hops per insertion",
    "sent": "bytes sent per insertion",
    "last_hop": "bytes carried and delivered per insertion",
}
_CURVES = {
    "growth": ("Figures 5, 6 and 17, table 3", "subscriptions", ("output_us", "carried", "hops", "sent")),
    "database": ("Figure 7", "r_size", ("carried", "sent")),
    "output": ("Figures 8 and 9", "rate", ("output_us", "carried")),
    "stocks": ("Figure 10: price-earnings ratios and ratings", "subscriptions", ("carried", "sent")),
    "payload": ("Figure 18", "payload", ("carried",)),
    "overlap": ("Figures 19 and 20", "overlap", ("carried", "last_hop")),
}
"""Title, what is varied, and what is shown."""
PICTURES = {name: Picture(about, [_by(x, what) for what in shows]) for name, (about, x, shows) in _CURVES.items()} | {
    "general": Picture("Figure 13: by which table S is filtered", [_decompositions]),
    "star": Picture("Figure 14: a star", [_draw_star]),
}


def page(results: Results, published: Config, stamped: Config, pictures: list[str]) -> str:
    head = (Path(__file__).parent / "head.md").read_text(encoding="utf-8")
    parts = [opening("Joins", "join", stamped), head.format(share=_affected_share(results)), "\n"]
    for name, (title, section) in _SECTIONS.items():
        if name in results:
            parts.append(f"## {title}\n\n" + section(results[name]))
            parts.extend(f"![{picture}]({picture})\n\n" for picture in pictures if picture == f"{name}.png")
    return "".join(parts)


def _affected_share(results: Results) -> float:
    """Of those who select a row, those who have a partner for it."""
    for rows in results.values():
        told = {row["strategy"]: row["deliveries"] for row in reversed(rows) if "deliveries" in row}
        if BEST in told and "rel-sel" in told:
            return float(told[BEST] / told["rel-sel"])
    return float("nan")


def _titled(title: str, head: list[str], lines: list[list[str]]) -> str:
    return f"**{title}**\n\n" + table(head, lines)


def _tables(x: str, *names: tuple[str, str]) -> Callable[[Rows], str]:
    """Tables of some figures, a line per strategy, a column per x."""

    def section(rows: Rows) -> str:
        return "".join(_figure(rows, x, name, title) for name, title in names)

    return section


def _figure(rows: Rows, x: str, name: str, title: str) -> str:
    found = figures(rows, x, name)
    strategies = list(dict.fromkeys(strategy for of_x in found.values() for strategy in of_x))
    lines = [
        [LABELS[strategy], *(shown(of_x.get(strategy)) for of_x in found.values())]
        for strategy in strategies
        if any(of_x.get(strategy) for of_x in found.values())
    ]
    return _titled(title, [_X[x], *(f"{value:,.0f}" for value in found)], lines)


_SENT = ("sent", "Bytes sent by the server")
_CARRIED = ("carried", "Bytes carried to brokers")
_DELIVERED = ("delivered", "Bytes delivered")
_TIMES = (
    ("us", "Time at the server, µs (figure 5)"),
    ("output_us", "Time at the server with output, µs (figure 5)"),
)


def _general(rows: Rows) -> str:
    text = []
    for of_width in by_widths(rows):
        lines = []
        for row in sorted(of_width, key=lambda row: float(row["carried"])):
            notes = [
                *(["drawn"] if row.get("is_drawn") else []),
                *(f"least cost by {how}" for how in ("numbers", "sample") if row.get(f"is_best_by_{how}")),
            ]
            numbers = [shown(row[name]) for name in ("messages", "sent", "carried", "delivered", "delete_carried")]
            lines.append([LABELS[row["strategy"]], row.get("choice", ""), ", ".join(notes), *numbers])
        head = ["", "S filtered", "", "messages", "sent", "carried", "delivered", "carried per deletion"]
        text.append(_titled(_widths(of_width[0], "center_width", "S"), head, lines))
    return "".join(text)


def _star(rows: Rows) -> str:
    names = ("messages", "sent", "description", "carried", "delivered", "us", "delete_carried", "update_carried")
    head = ["payload of facts", "", *names[:5], "µs", "carried per deletion", "carried per update"]
    text = []
    for of_width in by_widths(rows):
        lines = [
            [str(row["fact_payload"]), LABELS[row["strategy"]], *(shown(row.get(name)) for name in names)]
            for row in of_width
        ]
        text.append(_titled(_widths(of_width[0], "fact_width", "facts"), head, lines))
    return "".join(text)


def _columns(rows: Rows) -> str:
    names = {
        **{name: name for name in ("messages", "sent", "description", "points", "carried", "deliveries", "delivered")},
        "us": "µs",
        "late_told": "late rows told",
        "late_boxed": "told, if by boxes",
        "late_needed": "told, if new",
    }
    lines = [[str(row["columns"]), LABELS[row["strategy"]], *(shown(row[name]) for name in names)] for row in rows]
    return _titled("Per insertion into R; late rows per insertion into S", ["columns", "", *names.values()], lines)


def _widths(row: dict[str, Any], center: str, name: str) -> str:
    return f"Ranges {row['width']:,} wide, on {name} {row[center]:,}"


_SECTIONS: dict[str, tuple[str, Callable[[Rows], str]]] = {
    "growth": (
        "Figures 5, 6 and 17, tables 3 and 4: subscriptions",
        _tables(
            "subscriptions",
            *_TIMES,
            ("carried", "Bytes carried to brokers (figure 6)"),
            ("hops", "Hops (figure 17)"),
            ("sent", "Bytes sent by the server (table 3)"),
            ("messages", "Messages sent by the server (table 3)"),
            ("description", "Bytes of the description of an R row (table 4)"),
            ("points", "Points of its skyline (table 4)"),
            _DELIVERED,
            ("delete_carried", "Bytes carried to brokers per deletion"),
            ("delete_delivered", "Bytes delivered per deletion"),
        ),
    ),
    "database": ("Figure 7: rows of R", _tables("r_size", _CARRIED, _SENT, _DELIVERED)),
    "output": (
        "Figures 8 and 9: partners",
        _tables("rate", *((name, title.replace("figure 5", "figure 8")) for name, title in _TIMES), _CARRIED, _SENT),
    ),
    "stocks": ("Figure 10: price-earnings ratios and ratings", _tables("subscriptions", _CARRIED, _SENT, _DELIVERED)),
    "payload": ("Figure 18: payload", _tables("payload", _CARRIED, _SENT, _DELIVERED)),
    "overlap": (
        "Figures 19 and 20: overlap",
        _tables(
            "overlap",
            ("carried", "Bytes carried to brokers (figure 19)"),
            _SENT,
            ("deliveries", "Subscriptions told"),
            ("last_hop", "Bytes carried and delivered (figure 20)"),
        ),
    ),
    "general": ("Figure 13: decompositions of joins of four tables", _general),
    "star": ("Figure 14: a star", _star),
    "columns": ("Appendix C: two range columns on S", _columns),
}
