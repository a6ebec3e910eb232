"""Curves of the results, one picture per experiment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

from experiments.join.claims import by_widths
from experiments.join.outcome import LABELS, Rows, figures
from tidings.bench.report import short

Axes = Any
Panel = Callable[[Axes, Rows], None]
_STYLES = {
    "enum-j": ("s:", "tab:red"),
    "enum-sj": ("s--", "tab:orange"),
    "rel-sel": ("v:", "tab:brown"),
    "ref-j": ("^:", "tab:gray"),
    "ref-j+": ("^--", "black"),
    "ref-sj:sub": ("D:", "tab:purple"),
    "ref-sj:tup": ("o:", "tab:cyan"),
    "ref-sj:clu": ("o--", "tab:blue"),
    "ref-sj:clu+": ("o-", "tab:green"),
    "ref-sj:tup+": ("x:", "tab:olive"),
    "ref-sj:min": ("+:", "tab:pink"),
}


def draw(results: dict[str, Rows], folder: Path) -> list[str]:
    """Draws what there are results for; gives the names of the files."""
    names = []
    for name, (panels, about) in _PICTURES.items():
        if name not in results:
            continue
        figure, axes = pyplot.subplots(1, len(panels), figsize=(5.2 * len(panels) + 1.5, 4.2), squeeze=False)
        for panel, axis in zip(panels, axes[0], strict=True):
            panel(axis, results[name])
            axis.grid(visible=True, which="major", alpha=0.3)
        if axes[0][-1].get_legend_handles_labels()[0]:
            axes[0][-1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.02, 0.5))
        figure.suptitle(about)
        figure.tight_layout()
        figure.savefig(folder / f"{name}.png", dpi=110, bbox_inches="tight")
        pyplot.close(figure)
        names.append(f"{name}.png")
    return names


def _by(x: str, name: str, label: str, across: str, *, is_log: bool = False) -> Panel:
    """A curve per strategy."""

    def panel(axis: Axes, rows: Rows) -> None:
        found = figures(rows, x, name)
        for strategy in (known for known in _STYLES if any(of_x.get(known) for of_x in found.values())):
            style, colour = _STYLES[strategy]
            points = [(at, of_x[strategy]) for at, of_x in found.items() if strategy in of_x]
            axis.plot(*zip(*points, strict=True), style, color=colour, label=LABELS[strategy], markersize=5)
        axis.set_yscale("log")
        axis.set_ylabel(label)
        axis.set_xlabel(across)
        if is_log:
            axis.set_xscale("log")
            axis.set_xticks([], minor=True)
        axis.set_xticks(list(found), [short(round(at)) for at in found], minor=False)

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
    axis.set_xlabel(_CARRIED)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k")


def _star(axis: Axes, rows: Rows) -> None:
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
        colour = _STYLES.get(strategy, ("", "lightgreen"))[1]
        places = [at + i * width for at in range(len(cases))]
        axis.bar(places, values, width, label=LABELS[strategy], color=colour)
    axis.set_xticks(
        [at + 0.4 - width / 2 for at in range(len(cases))], [name for name, _ in cases], fontsize=7, rotation=20
    )
    axis.set_yscale("log")
    axis.set_ylabel("bytes carried per fact inserted")


_CARRIED, _SENT = "bytes carried per insertion", "bytes sent per insertion"
_PICTURES: dict[str, tuple[list[Panel], str]] = {
    "growth": (
        [
            _by("subscriptions", "output_us", "µs per insertion, with output", "subscriptions", is_log=True),
            _by("subscriptions", "carried", _CARRIED, "subscriptions", is_log=True),
            _by("subscriptions", "hops", "hops per insertion", "subscriptions", is_log=True),
            _by("subscriptions", "sent", _SENT, "subscriptions", is_log=True),
        ],
        "Figures 5, 6 and 17, table 3",
    ),
    "database": (
        [
            _by("r_size", name, label, "rows of R", is_log=True)
            for name, label in (("carried", _CARRIED), ("sent", _SENT))
        ],
        "Figure 7",
    ),
    "output": (
        [
            _by("rate", "output_us", "µs per insertion, with output", "S rows for an R row", is_log=True),
            _by("rate", "carried", _CARRIED, "S rows for an R row", is_log=True),
        ],
        "Figures 8 and 9",
    ),
    "stocks": (
        [
            _by("subscriptions", name, label, "subscriptions", is_log=True)
            for name, label in (("carried", _CARRIED), ("sent", _SENT))
        ],
        "Figure 10: price-earnings ratios and ratings",
    ),
    "payload": ([_by("payload", "carried", _CARRIED, "bytes of payload", is_log=True)], "Figure 18"),
    "overlap": (
        [
            _by("overlap", "carried", _CARRIED, "overlap"),
            _by("overlap", "last_hop", "bytes carried and delivered per insertion", "overlap"),
        ],
        "Figures 19 and 20",
    ),
    "general": ([_decompositions], "Figure 13: by which table S is filtered"),
    "star": ([_star], "Figure 14: a star"),
}
