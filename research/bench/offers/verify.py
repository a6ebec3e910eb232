"""All ways of matching on mixed constraints: do they find the same pairs, and how long does each take?

The definition compares every pair in plain Python, some microseconds each: it is run only when named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice

import msgspec

from research.bench import FamilyOptions
from research.bench.offers.agreement import WAYS, Agreement, Constraints, compare
from research.workloads.offers import marketplace, places
from tidings.bench import Say, known_names
from tidings.bench.postgres import find_server
from tidings.bench.report import Figure, Heading, Report, short
from tidings.bench.stamp import describe, load_average, stamp
from tidings.workloads.workload import WorkloadLines

TITLE = "offers: what the ways of matching find"
PUBLICATIONS = 1_000
_SLOW = "definition"
_CASES: Mapping[str, tuple[str, Callable[..., WorkloadLines]]] = {
    "marketplace": (marketplace.TABLE, marketplace.offers_marketplace),
    "places": (places.TABLE, places.offers_places),
}


def run(options: FamilyOptions, say: Say) -> Report:
    """options.engines: names of ways."""
    ways = options.engines or tuple(name for name in WAYS if name != _SLOW)
    known_names("way of matching", ways, WAYS)
    report = Report(TITLE, options.sizes, stamp(options.seed))
    if "postgres" in ways and find_server() is None:
        ways = tuple(name for name in ways if name != "postgres")
        report.notes.append("left out because it is not installed: PostgreSQL")
    for key in known_names("case", options.cases, _CASES):
        for size in options.sizes:
            place = f"{key}, {short(size)}"
            given = mixed(key, size, options.seed)
            found = compare(
                given.publications,
                given.subscriptions,
                catalog_sql=given.catalog_sql,
                table=given.table_name,
                ways={name: WAYS[name] for name in ways},
                say=lambda text, place=place: say(f"{place}: {text}"),  # type: ignore[misc]
            )
            report.add(size, _figures(key, found))
            _judge(report, place, found)
    report.stamp["load_average_end"] = load_average()
    report.notes.append(describe(report.stamp))
    return report


def mixed(key: str, size: int, seed: int, publications: int = PUBLICATIONS) -> Constraints:
    """Constraints of a workload. Subscriptions to the best offers alone are taken without their order and limit."""
    table, make = _CASES[key]
    made = make(seed=seed, rows=publications, subscriptions=size, changes=publications, has_churn=False)
    decode = msgspec.json.decode
    published = [decode(line) for line in islice(made.changes, publications)]
    subscribed = [decode(line) for line in made.subscriptions]
    return Constraints(
        made.catalog_sql,
        table,
        {one["id"]: one["where"] for one in published},
        {one["id"]: one["sql"].split(" WHERE ", 1)[1].split(" ORDER BY ")[0] for one in subscribed},
    )


def _figures(key: str, found: Agreement) -> list[Figure]:
    heading = Heading(key, key)
    pairs = heading.figure("pairs", f"pairs of {PUBLICATIONS:,} publications", "pairs", len(found.pairs))
    seconds = found.seconds.items()
    return [pairs, *(heading.figure(f"{way}.s", f"{way}, with loading and starting", "s", s) for way, s in seconds)]


def _judge(report: Report, place: str, found: Agreement) -> None:
    differences = found.differences()
    if differences:
        report.is_wrong = True
        report.notes += [f"{place}: {line}" for line in differences]
    else:
        report.notes.append(f"{place}: identical pairs: {', '.join(found.found)}")
