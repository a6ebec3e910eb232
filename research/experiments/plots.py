"""Pictures of results: one per experiment, a panel or several side by side, each with curves over one number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

from research.experiments.paper import Rows
from tidings.bench.report import short

Axes = Any
Panel = Callable[[Axes, Rows], None]
_LEGEND_MAX = 6
"""A legend with more entries stands beside the panels."""


class Style(NamedTuple):
    label: str
    line: str
    """Marker and dashes, as matplotlib writes them."""
    colour: str


class Picture(NamedTuple):
    about: str
    panels: Sequence[Panel]


def draw(pictures: Mapping[str, Picture], results: Mapping[str, Rows], folder: Path) -> list[str]:
    """Draws what there are results for; gives the names of the files."""
    found = {name: picture for name, picture in pictures.items() if name in results}
    for name, (about, panels) in found.items():
        figure, axes = pyplot.subplots(1, len(panels), figsize=(5.2 * len(panels) + 1.0, 4.2), squeeze=False)
        for panel, axis in zip(panels, axes[0], strict=True):
            panel(axis, results[name])
            axis.grid(visible=True, which="major", alpha=0.3)
        _legends(axes[0])
        figure.suptitle(about)
        figure.tight_layout()
        figure.savefig(folder / f"{name}.png", dpi=110, bbox_inches="tight")
        pyplot.close(figure)
    return [f"{name}.png" for name in found]


def _legends(axes: Sequence[Axes]) -> None:
    entries = max(len(axis.get_legend_handles_labels()[0]) for axis in axes)
    if entries > _LEGEND_MAX:
        axes[-1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1.02, 0.5))
        return
    for axis in axes:
        if axis.get_legend_handles_labels()[0] and axis.get_legend() is None:
            # Room above the curves for the legend.
            low, high = axis.get_ylim()
            axis.set_ylim(low, high * (high / low) ** 0.35 if axis.get_yscale() == "log" else high + 0.3 * (high - low))
            axis.legend(fontsize=9, loc="upper left", ncols=2)


def curves(
    x: str, columns: Mapping[str, Style], label: str, across: str = "", *, is_log_x: bool = False, scale: str = "log"
) -> Panel:
    """A curve for each of these columns, over the column `x`, which is called `across`; `label` says what they are."""

    def panel(axis: Axes, rows: Rows) -> None:
        for column, style in columns.items():
            points = [(row[x], row[column]) for row in rows if column in row]
            if any(value for _, value in points):
                at, values = zip(*points, strict=True)
                axis.plot(at, values, style.line, color=style.colour, label=style.label, markersize=5)
        axis.set_yscale(scale)
        if scale == "linear":
            axis.set_ylim(bottom=0)
        axis.set_ylabel(label)
        ticks(axis, [row[x] for row in rows], across or x, is_log=is_log_x)

    return panel


def ticks(axis: Axes, values: Sequence[float], label: str, *, is_log: bool = False) -> None:
    """A tick for each value."""
    axis.set_xlabel(label)
    if is_log:
        axis.set_xscale("log")
        axis.set_xticks([], minor=True)
    whole = all(value >= 1_000 or value == round(value) for value in values)
    texts = [short(round(value)) if whole else f"{value:g}" for value in values]
    axis.set_xticks(list(values), texts, minor=False)


def largest(column: str, panel: Panel) -> Panel:
    """The panel with only the rows that have the largest value of a column."""

    def chosen(axis: Axes, rows: Rows) -> None:
        most = max(row[column] for row in rows)
        axis.set_title(f"{column} = {most:,}", fontsize=10)
        panel(axis, [row for row in rows if row[column] == most])

    return chosen
