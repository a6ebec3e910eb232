"""The offers bench: constraints matched with constraints, beside the relational architecture that the literature proposes.

Workloads are the four of the paper on symmetric publish/subscribe. Each is measured in the index alone, on the whole path (SQL
lines and JSON lines in, notification lines out), in PostgreSQL and by a scan. All of them must find the same pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack

from research.bench import FamilyOptions
from research.bench.offers import index, inline, verify
from research.bench.offers.cases import CASES, Case, OffersData
from research.bench.offers.compared import Compared
from research.bench.offers.peers import Postgres, find_postgres, scan_figures
from tidings.bench import Say, known_names
from tidings.bench.report import Heading, Report, short
from tidings.bench.stamp import describe, load_average, stamp

TITLE = "offers: constraints matched with constraints"
BATCHES = (1, 100, 1_000)
_ENGINES = ("index", "inline")
_TINY = 1_000
_NOTES = (
    "index: numbers straight to queries, no SQL and no JSON; a batch of P is drawn for P as the paper does, so that it has"
    " about 5 matches in all (proportional: one in a hundred subscriptions)",
    "inline: publications as for P = 1 in batches of any size, so that each has about 5 matches; inserted one after the"
    " other and then withdrawn, which is timed apart",
    "peers: the match alone, of constraints that are already rows or numbers; inline also reads JSON and SQL, keeps the"
    " publication, and writes notification lines",
)


def run(options: FamilyOptions, say: Say) -> Report:
    if options.is_agreement:
        return verify.run(options, say)
    engines = known_names("engine", options.engines, _ENGINES)
    cases = [CASES[key] for key in known_names("case", options.cases, CASES)]
    report = Report(TITLE, options.sizes, stamp(options.seed))
    bench = _Offers(options, report, engines, say)
    say("warming up: kernels are compiled on their first use")
    for case in cases:
        bench.warm_up(case)
    with ExitStack() as stack:
        postgres = find_postgres(stack, say) if options.has_peers else None
        for case in cases:
            for size in options.sizes:
                bench.measure(case, size, postgres)
    report.stamp["load_average_end"] = load_average()
    report.notes += [*_NOTES, describe(report.stamp)]
    if options.has_peers and postgres is None:
        report.notes.append("peers left out because they are not installed: PostgreSQL, or psycopg")
    return report


class _Offers:
    """Measures workloads and adds figures to the report."""

    def __init__(self, options: FamilyOptions, report: Report, engines: Iterable[str], say: Say) -> None:
        self._options = options
        self._report = report
        self._engines = engines
        self._tell = say
        self._batches = options.batches or BATCHES

    def warm_up(self, case: Case) -> None:
        data = OffersData(case, _TINY, 1, self._options.seed)
        if "index" in self._engines:
            index.measure(data, (1, 100), Heading("", ""), lambda _: None)
        if "inline" in self._engines:
            inline.measure(data, (1, 100), Heading("", ""), lambda _: None)

    def measure(self, case: Case, size: int, postgres: Postgres | None) -> None:
        """Our engines, then peers on the same publications; AssertionError if their pairs differ."""
        data = OffersData(case, size, 1, self._options.seed)
        place = f"{case.label}, {short(size)}"
        say: Say = lambda text: self._tell(f"{place}: {text}")  # noqa: E731
        compared, ms = Compared(place), {}
        if "index" in self._engines:
            alone = index.measure(data, self._batches, Heading(f"{case.key}.index", f"{case.label}, index"), say)
            self._report.add(size, alone.figures)
            compared.add("index", alone.pairs)
            ms["index"] = alone.ms_one
        if "inline" in self._engines:
            whole = inline.measure(data, self._batches, Heading(f"{case.key}.inline", f"{case.label}, inline"), say)
            self._report.add(size, whole.figures)
            self._report.notes += whole.notes
            compared.add("inline", whole.pairs)
            ms["inline"] = whole.ms_one
        if self._options.has_peers:
            say("numpy scan")
            self._add_peer(case, size, "numpy", "numpy scan", scan_figures(data), ms, compared)
            if postgres is not None and self._has_peer(case, size):
                found = postgres.figures(data, say)
                self._add_peer(case, size, "postgres", "PostgreSQL", found, ms, compared)
                heading = Heading(f"{case.key}.postgres", f"{case.label}, PostgreSQL")
                self._report.add(size, [heading.figure("load_s", "loaded and indexed", "s", found.load_s)])
            elif postgres is not None:
                self._report.notes.append(f"{place}: not in PostgreSQL, which would take minutes (see --peer-sizes)")
        self._report.notes.append(compared.note())

    def _has_peer(self, case: Case, size: int) -> bool:
        chosen = self._options.peer_sizes
        return size in chosen if chosen else size <= case.peer_size_max

    def _add_peer(
        self, case: Case, size: int, key: str, label: str, found: index.Found, ms: dict[str, float], compared: Compared
    ) -> None:
        compared.add(key, found.pairs)
        heading = Heading(f"{case.key}.{key}", f"{case.label}, {label}")
        self._report.add(size, [heading.figure("ms", "one publication matched", "ms", found.ms_one)])
        for name, ours in ms.items():
            self._report.add(
                size, [heading.figure(f"over_{name}", f"its time over {name}", "ratio", found.ms_one / ours)]
            )
