"""Curves of the results, one picture per experiment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

from experiments.drift.outcome import Rows

Axes = Any
_OURS, _SCAN, _UNICAST = "tab:blue", "tab:gray", "tab:orange"
_STYLE = {"region": ("o-", _OURS), "scan": ("^--", _SCAN), "unicast": ("s:", _UNICAST)}
_Curve = tuple[str, tuple[str, str]]
"""Label, and style and colour."""


def draw(results: dict[str, Rows], folder: Path) -> list[str]:
    """Draws what there are results for; gives the names of the files."""
    names = []
    for name, (panels, about) in _PICTURES.items():
        if name not in results:
            continue
        figure, axes = pyplot.subplots(1, len(panels), figsize=(5.2 * len(panels), 4.0), squeeze=False)
        for panel, axis in zip(panels, axes[0], strict=True):
            panel(axis, results[name])
            axis.grid(visible=True, which="major", alpha=0.3)
            # Room above the curves for the legend.
            low, high = axis.get_ylim()
            axis.set_ylim(low, high * (high / low) ** 0.35 if axis.get_yscale() == "log" else high + 0.3 * (high - low))
            axis.legend(fontsize=9, loc="upper right", ncols=2)
        figure.suptitle(about)
        figure.tight_layout()
        figure.savefig(folder / f"{name}.png", dpi=110)
        pyplot.close(figure)
        names.append(f"{name}.png")
    return names


def _curves(axis: Axes, rows: Rows, x: str, curves: dict[str, _Curve], scale: str = "log") -> None:
    across = [row[x] for row in rows]
    for column, (label, (style, colour)) in curves.items():
        axis.plot(across, [row[column] for row in rows], style, color=colour, label=label, markersize=5)
    axis.set_yscale(scale)
    if x == "subscriptions":
        axis.set_xlabel("subscriptions")
        axis.set_xlim(left=0)
        axis.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k")


def _time(axis: Axes, rows: Rows) -> None:
    _curves(axis, rows, "subscriptions", {f"{name}_us": (name, style) for name, style in _STYLE.items()})
    axis.set_ylabel("processor time at the server per event, µs")


def _messages(axis: Axes, rows: Rows) -> None:
    curves = {
        "unicast": ("unicast, mean", ("s:", _UNICAST)),
        "unicast_max": ("unicast, most", ("s-", _UNICAST)),
        "ranges": ("ranges, mean", ("o:", _OURS)),
        "ranges_max": ("ranges, most", ("o-", _OURS)),
    }
    _curves(axis, rows, "subscriptions", curves)
    axis.set_ylabel("messages or ranges per event")


def _traffic(x: str, per: str) -> Callable[[Axes, Rows], None]:
    suffix = "" if per == "event" else f"_per_{per}"

    def panel(axis: Axes, rows: Rows) -> None:
        curves = {f"{name}_bytes{suffix}": (name, _STYLE[name]) for name in ("unicast", "region")}
        _curves(axis, rows, x, curves)
        axis.set_ylabel(f"bytes from the server per {per}")
        if x == "rate":
            axis.set_xlabel("new subscriptions per event")

    return panel


def _choice(what: str, label: str) -> Callable[[Axes, Rows], None]:
    def panel(axis: Axes, rows: Rows) -> None:
        curves = {
            f"exact_{what}": ("told exactly at b", ("s:", _UNICAST)),
            f"paper_{what}": ("the paper's rule", ("^--", _SCAN)),
            f"round_{what}": ("round radii", ("o-", _OURS)),
        }
        _curves(axis, rows, "multiple", curves, scale="linear")
        axis.set_ylim(bottom=0)
        axis.set_xlabel("b / a")
        axis.set_ylabel(f"{label} per event")

    return panel


_PICTURES: dict[str, tuple[list[Callable[[Axes, Rows], None]], str]] = {
    "radii": ([_time, _messages, _traffic("subscriptions", "event")], "Different radii"),
    "same": ([_time, _messages, _traffic("subscriptions", "event")], "Same radius"),
    "arrivals": ([_traffic("rate", "operation")], "Same radius, people coming"),
    "all": ([_messages, _traffic("subscriptions", "operation")], "All radii"),
    "stocks": ([_messages, _traffic("subscriptions", "operation")], "All radii, prices of five stocks"),
    "choice": ([_choice("ranges", "ranges"), _choice("told", "subscriptions told")], "moved BETWEEN a AND b"),
}
