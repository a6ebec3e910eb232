"""Pictures and page of the offers experiments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from research.bench.offers.cases import CASES
from research.experiments.offers.memory import SUPPORTED
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
    "batches": Picture(
        "Publications matched in batches",
        [
            _panel("batch", "ms", "ms of a batch", "publications at a time"),
            _panel("batch", "rate", "publications/s", "publications at a time"),
        ],
    ),
}


def page(results: Results, _: Config, stamped: Config, pictures: list[str]) -> str:
    head = Path(__file__).parent / "head.md"
    nothing: Config = {name: {} for name in _SECTIONS}
    return assembled(opening("Offers", "offers", stamped), head, _SECTIONS, results, nothing, pictures)


_STEPS = {
    "subscription generation": "postgres_generation_s",
    "subscriptions into the database": "postgres_copy_s",
    "publication into the database": "postgres_publication_s",
    "index creation": "postgres_index_s",
    "histogram generation": "postgres_histogram_s",
    "preprocessing total": "postgres_preprocessing_s",
    "intermediate answer generation": "postgres_intermediate_s",
    "final aggregation": "postgres_aggregation_s",
    "match by one query": "postgres_match_s",
    "index of Tidings: loaded": "index_load_s",
    "index of Tidings: match": "index_match_s",
}


def _breakdown(rows: Rows, _: Config) -> str:
    head = ["seconds", *(f"{row['subscriptions']:,}" for row in rows)]
    lines = [[label, *(_seconds(row.get(key)) for row in rows)] for label, key in _STEPS.items()]
    about = (
        "Fixed workload, one publication, 5 matches expected, in PostgreSQL where nothing else is said. Generation is drawing,"
        " and SQL to boxes."
    )
    return section("Figure 4: breakdown of the fixed workload", about, head, lines)


def _seconds(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2g}" if value < 0.01 else number(value)


def _cells(rows: Rows, key: str) -> list[str]:
    return ["" if row.get(key) is None else shown(row[key]) for row in rows]


def _sweep(rows: Rows, what: str) -> list[list[str]]:
    lines = []
    for case in CASES:
        for way, label in (("index", "index"), ("postgres", "PostgreSQL")):
            lines.append([f"{case}, {label}", *_cells(rows, f"{case}_{way}_{what}")])
        if what == "ms":
            lines.append([f"{case}, matches", *_cells(rows, f"{case}_matches")])
    return lines


_WAYS = {
    "used": "in two stages, queries in use",
    "every": "in two stages, queries for all operators",
    "or": "in two stages, one query with OR",
    "met": "a publication again and again",
    "stranger": "one that meets nobody",
    "roomy": "with 256 MB to work in",
    "tight": "with 1 MB",
}


def _subscriptions(rows: Rows, _: Config) -> str:
    lines = []
    for case in CASES:
        lines.append([f"{case}, subscriptions", *(f"{row[f'{case}_subscriptions']:,}" for row in rows)])
        lines.append([f"{case}, matches", *_cells(rows, f"{case}_matches")])
        lines.append([f"{case}, index", *_cells(rows, f"{case}_index_ms")])
        lines.append([f"{case}, PostgreSQL", *_cells(rows, f"{case}_postgres_ms")])
        for way, label in _WAYS.items():
            if f"{case}_{way}_ms" in rows[0]:
                lines.append([f"{case}, PostgreSQL {label}", *_cells(rows, f"{case}_{way}_ms")])
    head = ["ms of a match", *(f"step {step}" for step in range(1, len(rows) + 1))]
    return section("Figure 5: match cost by subscriptions", "One publication.", head, lines)


def _batches(rows: Rows, _: Config) -> str:
    batches = [f"{row['batch']:,}" for row in rows]
    about = (
        "The values are drawn for batches of that size, so that a batch has about as many matches whatever its size. Empty:"
        " PostgreSQL was left out, see `met_max` in `../config.toml`."
    )
    first = section("Figure 6: cost of a batch", about, ["ms", *batches], _sweep(rows, "ms"))
    head = ["publications/s", *batches]
    return first + section("Figure 7: throughput by batch size", "The same runs.", head, _sweep(rows, "rate"))


def _language(rows: Rows, _: Config) -> str:
    counts, *timed = rows
    about = (
        "A publication of five disjuncts of one comparison each meets one subscription by each of them. There is a query for"
        f" each pair of operators in use, of {counts['queries']} in all."
    )
    head = ["", *(row["case"] for row in timed)]
    lines = [
        ["queries", *_cells(timed, "queries")],
        ["PostgreSQL, ms", *_cells(timed, "postgres_ms")],
        ["index, ms", *_cells(timed, "index_ms")],
    ]
    return section("Section 4: five types in place of one", about, head, lines)


def _memory(rows: Rows, _: Config) -> str:
    *timed, held = rows
    head = ["ms of a match", *(f"{row['subscriptions']:,}" for row in timed)]
    lines = [
        [f"{case}, {label}", *_cells(timed, f"{case}_{way}_ms")]
        for case in SUPPORTED
        for way, label in (("memory", "SQLite in memory"), ("postgres", "PostgreSQL"))
    ]
    about = f"Fixed workload, {held['subscriptions']:,} subscriptions: SQLite holds {held['held_bytes']:,} bytes"
    about += f"; a match in PostgreSQL touches {held['touched_bytes']:,}." if "touched_bytes" in held else "."
    return section("Section 6: a main-memory database", about, head, lines)


def _penalty(rows: Rows, _: Config) -> str:
    head = ["ms of a match", *(row["workload"] for row in rows)]
    lines = [
        [f"{kind} published, {label}", *_cells(rows, f"{kind}_{way}_ms")]
        for way, label in (("index", "index"), ("postgres", "PostgreSQL"))
        for kind in ("constants", "constraints")
    ]
    about = "Both kinds of publications match 5 subscriptions on average. Workloads: `../penalty.py`."
    return section("Sections 1.1 and 9: constraints published instead of constants", about, head, lines)


_SECTIONS: dict[str, Callable[[Rows, Config], str]] = {
    "breakdown": _breakdown,
    "subscriptions": _subscriptions,
    "batches": _batches,
    "language": _language,
    "memory": _memory,
    "penalty": _penalty,
}
