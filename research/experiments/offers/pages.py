"""Pictures and page of the offers experiments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from research.bench.offers.cases import CASES
from research.experiments.page import assembled, number, opening, section
from research.experiments.paper import Config, Results, Rows
from research.experiments.plots import Panel, Picture, Style, curves
from tidings.bench.report import shown

_COLOURS = dict(zip(CASES, ("tab:blue", "tab:orange", "tab:red", "tab:green"), strict=True))


def _panel(x: str, what: str, label: str, across: str = "") -> Panel:
    """A curve for each workload, in the index and in PostgreSQL."""
    styles = {
        f"{case}_{way}_{what}": Style(f"{case}, {way}", line, colour)
        for way, line in (("index", "o-"), ("postgres", "s:"))
        for case, colour in _COLOURS.items()
    }
    return curves(x, styles, label, across, is_log_x=True)


PICTURES = {
    "subscriptions": Picture("Match of one publication", [_panel("subscriptions", "ms", "ms")]),
    "batches": Picture(
        "Publications matched in batches",
        [
            _panel("batch", "ms", "ms of a batch", "publications at a time"),
            _panel("batch", "rate", "publications/s", "publications at a time"),
        ],
    ),
}


def page(results: Results, published: Config, stamped: Config, pictures: list[str]) -> str:
    head = Path(__file__).parent / "head.md"
    return assembled(opening("Offers", "offers", stamped), head, _SECTIONS, results, published, pictures)


# (label, published, PostgreSQL, Tidings); empty: not a step of it.
_STEPS = (
    ("subscription generation", "generation_s", "postgres_generation_s", "tidings_generation_s"),
    ("subscriptions into the database, or through the door", "copy_s", "postgres_copy_s", "tidings_copy_s"),
    ("subscription total", "subscription_s", "postgres_subscription_s", "tidings_subscription_s"),
    ("publication generation", "publication_generation_s", "", ""),
    ("publication copy", "publication_copy_s", "", ""),
    ("publication total", "publication_s", "postgres_publication_s", ""),
    ("index creation", "index_s", "", ""),
    ("histogram generation", "histogram_s", "", ""),
    ("index creation and histograms, or first notifications", "", "postgres_index_s", "tidings_index_s"),
    ("preprocessing total", "preprocessing_s", "postgres_preprocessing_s", "tidings_preprocessing_s"),
    ("intermediate answer generation", "intermediate_s", "", ""),
    ("final aggregation", "aggregation_s", "", ""),
    ("matching total", "match_s", "postgres_match_s", "tidings_match_s"),
)


def _breakdown(rows: Rows, said: Config) -> str:
    head = ["seconds"]
    for row in rows:
        size = f"{row['subscriptions']:,}"
        head += [f"{size}: published", "PostgreSQL", "whole path"]
    lines = []
    for label, theirs, postgres, ours in _STEPS:
        line = [label]
        for row in rows:
            known = dict(zip(said["subscriptions"], said[theirs], strict=True)) if theirs else {}
            line += [
                _seconds(known.get(row["subscriptions"])),
                _seconds(row.get(postgres)),
                _seconds(row.get(ours)),
            ]
        lines.append(line)
    alone = "; ".join(
        f"{row['subscriptions']:,}: loaded and indexed in {_seconds(row['index_load_s'])} s, a match in"
        f" {1e6 * row['index_match_s']:.1f} us"
        for row in rows
    )
    about = (
        "Fixed workload, one publication, 5 matches expected. PostgreSQL: generation is drawing, and SQL to boxes; the match is"
        " one query, for intermediate answers and aggregation together. Whole path: generation is drawing and writing of"
        " lines; the door reads SQL and adds to the index; first notifications are the (empty) answers of all subscriptions;"
        f" the match is from a JSON line to notification lines, publication included. Index alone: {alone}."
    )
    return section("Figure 4: breakdown of the fixed workload", about, head, lines)


def _seconds(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2g}" if value < 0.01 else number(value)


def _said(said: Config) -> str:
    words = "; ".join(f"{case}: {said[case]}" for case in CASES)
    return f"Published as a plot without numbers; the text says: {words}."


def _sweep(rows: Rows, what: str) -> list[list[str]]:
    lines = []
    for case in CASES:
        for way, label in (("index", "index"), ("postgres", "PostgreSQL")):
            cells = [row.get(f"{case}_{way}_{what}") for row in rows]
            lines.append([f"{case}, {label}", *("" if cell is None else shown(cell) for cell in cells)])
        if what == "ms":
            lines.append([f"{case}, matches", *(shown(row[f"{case}_matches"]) for row in rows)])
    return lines


def _subscriptions(rows: Rows, said: Config) -> str:
    head = ["ms", *(f"{row['subscriptions']:,}" for row in rows)]
    about = f"One publication. {_said(said)} Empty: PostgreSQL was left out, see `met_max` in `../config.toml`."
    return section("Figure 5: match cost by subscriptions", about, head, _sweep(rows, "ms"))


def _batches(rows: Rows, said: Config) -> str:
    batches = [f"{row['batch']:,}" for row in rows]
    about = (
        f"The values are drawn for batches of that size, so that a batch has about as many matches whatever its size."
        f" {_said(said)} Empty: PostgreSQL was left out."
    )
    first = section("Figure 6: cost of a batch", about, ["ms", *batches], _sweep(rows, "ms"))
    best = max(
        (row for row in rows if "geometric_postgres_rate" in row),
        key=lambda row: row["geometric_postgres_rate"],
        default=None,
    )
    peak = "" if best is None else f"; in PostgreSQL here it is at {best['batch']:,}"
    about = f"Geometric, published: the peak is at about {said['geometric_peak']} publications at a time{peak}."
    head = ["publications/s", *batches]
    return first + section("Figure 7: throughput by batch size", about, head, _sweep(rows, "rate"))


_SECTIONS: dict[str, Callable[[Rows, Config], str]] = {
    "breakdown": _breakdown,
    "subscriptions": _subscriptions,
    "batches": _batches,
}
