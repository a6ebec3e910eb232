"""Curves of the results, one picture per experiment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

from experiments.topk.outcome import Rows
from tidings.bench.report import short

Axes = Any
Panel = Callable[[Axes, Rows], None]
_STYLES = {
    "unicast": ("s:", "tab:orange"),
    "relax": ("v:", "tab:brown"),
    "dense": ("o-", "tab:blue"),
    "sparse": ("D-", "tab:green"),
    "dense_1": ("o--", "tab:blue"),
    "sparse_1": ("D--", "tab:green"),
    "online": ("s:", "tab:orange"),
    "coalesced": ("^--", "tab:gray"),
    "batch": ("o-", "tab:blue"),
}
_LABELS = {"dense_1": "dense, eps = 1", "sparse_1": "sparse, eps = 1"}


def draw(results: dict[str, Rows], folder: Path) -> list[str]:
    """Draws what there are results for; gives the names of the files."""
    names = []
    for name, (panels, about) in _PICTURES.items():
        if name not in results:
            continue
        figure, axes = pyplot.subplots(1, len(panels), figsize=(5.2 * len(panels) + 1.0, 4.2), squeeze=False)
        for panel, axis in zip(panels, axes[0], strict=True):
            panel(axis, results[name])
            axis.grid(visible=True, which="major", alpha=0.3)
            if axis.get_legend() is None:
                # Room above the curves for the legend.
                low, high = axis.get_ylim()
                axis.set_ylim(low, high * (high / low) ** 0.35 if axis.get_yscale() == "log" else high * 1.3)
                axis.legend(fontsize=9, loc="upper left", ncols=2)
        figure.suptitle(about)
        figure.tight_layout()
        figure.savefig(folder / f"{name}.png", dpi=110, bbox_inches="tight")
        pyplot.close(figure)
        names.append(f"{name}.png")
    return names


def _by(x: str, columns: dict[str, str], label: str, *, chosen: str = "") -> Panel:
    """Curves over k or subscriptions: column -> style. `chosen`: of several others, only the largest value's rows."""

    def panel(axis: Axes, rows: Rows) -> None:
        shown = rows
        if chosen:
            most = max(row[chosen] for row in rows)
            shown = [row for row in rows if row[chosen] == most]
            axis.set_title(f"k = {most}" if chosen == "k" else f"{most:,} subscriptions", fontsize=10)
        for column, name in columns.items():
            style, colour = _STYLES[name]
            values = [row[column] for row in shown]
            axis.plot(
                [row[x] for row in shown], values, style, color=colour, label=_LABELS.get(name, name), markersize=5
            )
        axis.set_yscale("log")
        axis.set_ylabel(label)
        _across(axis, x, [row[x] for row in shown])

    return panel


def _across(axis: Axes, x: str, values: list[int]) -> None:
    """The axis of k or of subscriptions, with a tick for each value."""
    axis.set_xlabel(x)
    if x == "subscriptions":
        axis.set_xscale("log")
        axis.set_xticks([], minor=True)
    axis.set_xticks(values, [short(value) for value in values], minor=False)


def _redundancy(axis: Axes, rows: Rows) -> None:
    for name in (key for key in rows[0] if key.startswith("eps_") and key.count("_") == 1):
        axis.plot(
            [row["k"] for row in rows], [row[name] for row in rows], "o-", label=f"eps = {name[4:]}", markersize=5
        )
    axis.set_ylim(bottom=0)
    _across(axis, "k", [row["k"] for row in rows])
    axis.set_ylabel("redundancy of messages received")


def _eps_bytes(axis: Axes, rows: Rows) -> None:
    names = [key.removesuffix("_bytes") for key in rows[0] if key.endswith("_bytes")]
    for row in rows:
        axis.plot(
            [float(name[4:]) for name in names], [row[f"{name}_bytes"] for name in names], "o-", label=f"k = {row['k']}"
        )
    axis.set_yscale("log")
    axis.set_xlabel("eps")
    axis.set_ylabel("bytes from the server per change, sparse")


def _ratios(axis: Axes, rows: Rows) -> None:
    cases = list(dict.fromkeys(row["case"] for row in rows))
    sizes = list(dict.fromkeys(row["subscriptions"] for row in rows))
    height = 0.8 / len(sizes)
    for i, size in enumerate(sizes):
        found = {row["case"]: row["ratio"] for row in rows if row["subscriptions"] == size}
        places = [cases.index(case) + i * height for case in found]
        axis.barh(places, list(found.values()), height, label=f"{size:,}")
    axis.set_yticks([at + 0.4 - height / 2 for at in range(len(cases))], cases, fontsize=7)
    axis.invert_yaxis()
    axis.set_xlabel("boxes, sparse over dense")
    axis.legend(fontsize=8, title="subscriptions", loc="lower right")


def _steps(axis: Axes, rows: Rows) -> None:
    for volatility, line in zip(dict.fromkeys(row["volatility"] for row in rows), ("-", "--"), strict=False):
        shown = [row for row in rows if row["volatility"] == volatility]
        for name in ("unicast", "dense"):
            values = [row[f"{name}_bytes"] for row in shown]
            label = f"{name}, c = {volatility:g}"
            axis.plot(
                [row["k"] for row in shown], values, "o" + line, color=_STYLES[name][1], label=label, markersize=5
            )
    axis.set_yscale("log")
    _across(axis, "k", sorted({row["k"] for row in rows}))
    axis.set_ylabel("bytes from the server per change")


def _names(what: str, *ways: str) -> dict[str, str]:
    """Columns of some ways -> their styles."""
    return {f"{way}_{what}": way for way in ways}


_WAYS = ("unicast", "dense", "sparse", "dense_1", "sparse_1")
_BYTES = _names("bytes", *_WAYS)
_LOOKUPS = _names("lookups", "unicast", "dense", "sparse")


def _batch(what: str, label: str) -> Panel:
    return _by("k", _names(what, "online", "coalesced", "batch"), label)


_PICTURES: dict[str, tuple[list[Panel], str]] = {
    "calls": ([_by("k", _LOOKUPS, "look-ups per change")], "Look-ups"),
    "growth": ([_by("subscriptions", _LOOKUPS, "look-ups per change")], "Look-ups, k = 10"),
    "redundancy": ([_redundancy, _eps_bytes], "Regions rounded up, sparse"),
    "traffic": (
        [
            _by("k", _BYTES, "bytes from the server per change", chosen="subscriptions"),
            _by("subscriptions", _BYTES, "bytes from the server per change", chosen="k"),
            _by(
                "subscriptions",
                _names("max", "unicast", "dense", "sparse"),
                "most bytes of one change",
                chosen="k",
            ),
            _by(
                "subscriptions",
                _names("wire", *_WAYS),
                "bytes per change on our wire",
                chosen="k",
            ),
        ],
        "Traffic from the server",
    ),
    "batch": (
        [
            _batch("boxes", "messages sent (boxes)"),
            _batch("received", "messages received"),
            _batch("lookups", "look-ups"),
        ],
        "A batch of changes of which only the outcome matters",
    ),
    "spread": ([_ratios], "Other distributions"),
    "steps": ([_steps], "Scores that move a little at a time"),
    "stocks": (
        [
            _by("k", _names("bytes", "unicast", "dense", "sparse", "sparse_1"), "bytes from the server per change"),
            _by("k", _LOOKUPS, "look-ups per change"),
        ],
        "Price-earnings ratios",
    ),
}
