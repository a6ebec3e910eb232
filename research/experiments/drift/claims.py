"""One number for each claim of the paper (`claims.toml`), from the results of one seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import Any

from research.experiments.paper import Results, Rows, Values

_STRESS_SIZE = 10_000
_LARGEST = 100_000
Row = dict[str, Any]


def values(results: Results) -> Values:
    """None where an experiment, or a size, was not run."""
    found: Values = {}
    for name, numbers in _CLAIMS.items():
        rows = results.get(name, [])
        found |= {f"drift.{claim}": number(rows) for claim, number in numbers.items()}
    return found


Number = Callable[[Rows], float | None]


def _of(column: str, over: str, choose: Callable[[Iterable[float]], float] = min) -> Number:
    """The least ratio of two columns, or what else is chosen."""

    def number(rows: Rows) -> float | None:
        ratios = [row[column] / row[over] if row[over] else inf for row in rows if column in row]
        return choose(ratios) if ratios else None

    return number


def _most(column: str) -> Number:
    return lambda rows: max((row[column] for row in rows), default=None)


def _where(number: Number, **wanted: Any) -> Number:
    """A number of the rows that have these values."""
    return lambda rows: number([row for row in rows if all(row.get(key) == value for key, value in wanted.items())])


def _between(column: str, key: str, first: Any, last: Any) -> Number:
    """What a column has in the row of `last`, over what it has in that of `first`."""

    def number(rows: Rows) -> float | None:
        known = {row[key]: row[column] for row in rows}
        return known[last] / known[first] if {first, last} <= known.keys() else None

    return number


def _larger(rows: Rows) -> float | None:
    """How many times as many are in a range by the rule, the least."""
    sizes = [
        (row["rule_told"] / row["rule_ranges"]) / (row["exact_told"] / row["exact_ranges"])
        for row in rows
        if row["rule_ranges"] and row["exact_told"]
    ]
    return min(sizes, default=None)


def _relative(rows: Rows) -> float | None:
    return _of("exact_ranges", "rule_ranges")([row for row in rows if row["kind"] != "moved"])


_CLAIMS: dict[str, dict[str, Number]] = {
    "radii": {
        "figure6.end_points": _where(_of("end_points_us", "tree_us"), subscriptions=_LARGEST),
        "figure6.unicast_end_points": _of("end_points_us", "tree_list_us"),
        "figure6.unicast_scan": _of("scan_list_us", "tree_list_us"),
        "figure6.scan": _of("scan_us", "tree_us"),
        "figure6.tree": _where(_of("tree_us", "scan_us"), subscriptions=_LARGEST),
        "figure6.lists": _of("tree_list_us", "tree_us"),
        "table2.ranges": _of("unicast", "ranges"),
        "table2.late": _where(_of("late_unicast", "late_ranges"), subscriptions=_LARGEST),
        "stress.unicast_radii": _where(_most("unicast_max"), subscriptions=_STRESS_SIZE),
        "figure7.server": _of("unicast_bytes", "region_bytes"),
    },
    "same": {
        "stress.unicast_same": _where(_most("unicast_max"), subscriptions=_STRESS_SIZE),
        "stress.ranges_same": _most("ranges_max"),
        "figure8.flat": _between("tree_us", "subscriptions", 5_000, 50_000),
        "figure8.tree": _of("tree_us", "centres_us", max),
        "figure8.end_points": _of("end_points_us", "tree_list_us"),
        "figure8.centres": _of("centres_us", "tree_list_us"),
        "table3.ranges": _of("unicast", "ranges"),
        "figure9.server": _most("region_bytes"),
        "figure9.ratio": _of("unicast_bytes", "region_bytes"),
        "section4.lemma": _most("spread"),
    },
    "arrivals": {
        "figure10.rises": _between("region_bytes_per_operation", "rate", 0.5, 2.0),
        "figure10.falls": _between("unicast_bytes_per_operation", "rate", 0.0, 2.0),
        "figure10.still": _where(_of("unicast_bytes_per_operation", "region_bytes_per_operation"), rate=2.0),
        "section4.relabelled": _where(_of("relabelled", "arrivals"), rate=2.0),
        "section4.relabelling": _where(_of("renewed_bytes_per_operation", "region_bytes_per_operation"), rate=2.0),
    },
    "all": {
        "section7.all": _of("end_points_us", "tree_us"),
        "figure11.server": _of("unicast_bytes_per_operation", "region_bytes_per_operation"),
        "section3.relaxed": _of("relaxed_ranges", "ranges", max),
    },
    "stocks": {"figure12.server": _of("unicast_bytes_per_operation", "region_bytes_per_operation")},
    "choice": {
        "section6.ranges": _where(_of("exact_ranges", "rule_ranges"), kind="moved"),
        "section6.larger": _where(_larger, kind="moved"),
        "section6.relative": _relative,
    },
    "unique": {"section6.unique": _of("exact", "rule")},
    "relative": {
        "section6.additive": _where(_most("ranges_max"), kind="moved_percent"),
        "section6.multiplicative": _where(_most("ranges_max"), kind="moved_ratio"),
    },
}
"""Experiment -> claim -> its number."""
