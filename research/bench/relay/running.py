"""Documents through a plan in one process, beside the obvious ways: whoever publishes evaluates every view.

relay       the publisher matches the views it feeds, all others are computed from their inputs
each        one pattern after the other against the document
shared      all patterns at once by the shared matcher

All of them list the rows of every view. What the publisher does is measured apart, from a document to the messages about it:

publisher   the views that the plan has it feed, by the shared matcher
all shared  all views, by the shared matcher
all each    all views, one pattern after the other
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from research.bench.timing import spent
from tidings.bench import Say
from tidings.bench.report import Figure, Heading
from tidings.bench.timing import Seconds, timed
from tidings.relay.document import Document
from tidings.relay.errors import RowsError
from tidings.relay.evaluate import evaluate_pattern
from tidings.relay.files import View
from tidings.relay.matching import PatternMatcher
from tidings.relay.pattern import Pattern, Row
from tidings.relay.plan import PUBLISHER, RelayPlan
from tidings.relay.runtime.network import RelayNetwork
from tidings.relay.runtime.pattern_query import NodeMatches, PatternQuery, match_patterns, pattern_matching
from tidings.relay.runtime.query import Matching

BUDGET_S = 8.0
"""Seconds for each way."""

Rows = list[Row] | None
"""What a subscriber is told; None where there are too many rows."""
Finder = Callable[[Document], list[Rows]]
"""What the subscribers of all views are told of a document."""


@dataclass
class _Way:
    """seconds: of all documents. results: pairs of a view and a document that have rows. first: rows of the first one."""

    documents: int
    seconds: Seconds
    results: int
    first: list[Rows]

    @property
    def ms(self) -> float:
        return 1e3 * self.seconds.wall / self.documents

    @property
    def cpu_ms(self) -> float:
        return 1e3 * self.seconds.cpu / self.documents


def measure(plan: RelayPlan, views: Sequence[View], documents: Sequence[Document], say: Say) -> Iterator[Figure]:
    """Of the documents that the relay can do within the budget. AssertionError if the ways differ in what they find."""
    heading = Heading("run", "documents")
    taken, network = timed(RelayNetwork, plan, views, matching=pattern_matching(prepare_shared))
    yield heading.figure("start_s", "network of nodes made", "s", taken.wall)
    patterns = [view.query for view in views if isinstance(view.query, Pattern)]
    fed = [view.query for view in views if plan.inputs[view.id] == (PUBLISHER,) and isinstance(view.query, Pattern)]
    finders: dict[str, Callable[[], Finder]] = {
        "relay": lambda: through(network, views),
        "each": lambda: lambda document: [rows_of(pattern, document) for pattern in patterns],
        "shared": lambda: by_matcher(patterns),
        "publisher": lambda: _messages(fed, pattern_matching(prepare_shared)),
        "all_shared": lambda: _messages(patterns, pattern_matching(prepare_shared)),
        "all_each": lambda: _messages(patterns, match_patterns),
    }
    ways: dict[str, _Way] = {}
    for name, finder in finders.items():
        say(f"running documents: {name}")
        ways[name] = _run(finder(), documents)
        documents = documents[: ways[name].documents]
        if name in ("each", "shared") and ways[name].first != ways["relay"].first:
            raise AssertionError(f"{name}: what it finds in the first document is not what the relay finds")
    relay, alone = ways["relay"], ways["publisher"]
    yield heading.figure("relay.documents_per_s", "through the plan, in one process", "documents/s", 1e3 / relay.ms)
    results = relay.results / relay.seconds.wall
    yield heading.figure("relay.results_per_s", "through the plan, in one process", "results/s", results)
    for name, label in (("each", "one pattern after the other"), ("shared", "shared matcher")):
        yield heading.figure(f"{name}.documents_per_s", label, "documents/s", 1e3 / ways[name].ms)
        yield heading.figure(
            f"{name}.over_relay", f"{label}, its time over the relay's", "ratio", ways[name].ms / relay.ms
        )
    publisher = Heading("publisher", "publisher")
    yield publisher.figure("fed", "views that the plan has it feed", "views", len(fed))
    yield publisher.figure("cpu_ms", "messages to these", "ms CPU/document", alone.cpu_ms)
    for name, label in (("all_shared", "shared matcher"), ("all_each", "one pattern after the other")):
        whole = ways[name].cpu_ms
        yield publisher.figure(f"{name}.cpu_ms", f"messages to all views, {label}", "ms CPU/document", whole)
        yield publisher.figure(f"{name}.share", f"what the plan leaves, {label}", "% CPU", 100 * alone.cpu_ms / whole)


def _run(find: Finder, documents: Sequence[Document]) -> _Way:
    """As many documents as fit into the budget, if the first way did not do with fewer."""
    results, first = 0, None

    def count(document: Document) -> None:
        nonlocal results, first
        found = find(document)
        first = found if first is None else first
        results += sum(rows is None or bool(rows) for rows in found)

    calls, seconds = spent(BUDGET_S, count, documents)
    return _Way(calls, seconds, results, first or [])


def prepare_shared(patterns: Sequence[Pattern]) -> Callable[[Document], Sequence[NodeMatches]]:
    """Matches all patterns at once, for `pattern_matching`."""
    matcher = PatternMatcher(patterns)
    return lambda document: matcher.match(document).all()


def through(network: RelayNetwork, views: Sequence[View]) -> Finder:
    """Rows of the views, in their order, by a network."""

    def find(document: Document) -> list[Rows]:
        network.publish("document", document)
        network.run()
        rows = {result.view: _known(result.rows) for result in network.results()}
        return [rows[view.id] for view in views]

    return find


def by_matcher(patterns: Sequence[Pattern]) -> Finder:
    queries = [PatternQuery(pattern) for pattern in patterns]
    matcher = pattern_matching(prepare_shared)(queries)

    def find(document: Document) -> list[Rows]:
        found: list[Rows] = []
        for query, parts in zip(queries, matcher(document), strict=True):
            try:
                found.append(query.rows(parts))
            except RowsError:
                found.append(None)
        return found

    return find


def rows_of(pattern: Pattern, document: Document) -> Rows:
    try:
        return evaluate_pattern(pattern, document)
    except RowsError:
        return None


def _messages(patterns: Sequence[Pattern], matching: Matching) -> Finder:
    """What the publisher tells views of a document, and no rows."""
    matcher = matching([PatternQuery(pattern) for pattern in patterns])

    def find(document: Document) -> list[Rows]:
        matcher(document)
        return []

    return find


def _known(rows: list[Row] | RowsError) -> Rows:
    return None if isinstance(rows, RowsError) else rows
