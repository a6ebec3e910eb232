"""The relay bench: planning stage by stage, views that come and go, documents through a plan, and a publisher that does it all.

Views are those of `tidings workload views`, all different. The publisher may feed 1.2 times the views that no other can
feed, as in the published runs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from research.bench.relay import change, running
from research.bench.relay.data import ViewSet, documents
from research.bench.relay.stages import Outcome, Prepared, peak_bytes, plan, prepare
from tidings.bench import Options, Say, known_names
from tidings.bench.report import Figure, Heading, Report, short
from tidings.bench.stamp import describe, load_average, stamp

TITLE = "relay: views that feed views"
CAPACITIES: tuple[int | None, ...] = (30, 50, 100, None)
_CAPACITY = 50
"""Of the plan in which views come and go, and that documents run through."""
_SAMPLES = 20
"""Documents by which sizes are measured."""
_DOCUMENTS = 50
"""That are run, at most."""
_ENGINES = ("plan", "change", "run")
_TINY = 300
_NOTES = (
    "rewritten: views that are fed by others; the publisher may feed 1.2 times the views that no other can feed",
    "gap: how much of the use another plan could save, at most; latency and use change: by the passes that reduce latency",
    "documents: the rows of all views, by the relay with all its nodes in one process, and by a publisher that does it all",
    "publisher: from a document to messages, without rows, which are listed by whoever subscribes",
)


def run(options: Options, say: Say) -> Report:
    engines = known_names("engine", options.engines, _ENGINES)
    report = Report(TITLE, options.sizes, stamp(options.seed))
    say("warming up: kernels are compiled on their first use")
    tiny = _prepared(_TINY, options.seed)
    outcome = plan(tiny, 3, tiny.publisher_capacity)
    if "change" in engines:
        deque(change.measure(outcome, documents(options.seed, 1, 1), options.seed), maxlen=0)
    for size in options.sizes:
        tell: Say = lambda text, size=size: say(f"{short(size)}: {text}")  # type: ignore[misc]  # noqa: E731
        report.add(size, _measure(size, options, engines, report, tell))
    report.stamp["load_average_end"] = load_average()
    report.notes += [*_NOTES, describe(report.stamp)]
    return report


def _measure(size: int, options: Options, engines: tuple[str, ...], report: Report, say: Say) -> Iterator[Figure]:
    say("views, sizes, rewritings")
    prepared = _prepared(size, options.seed)
    yield from _stage_figures(prepared)
    outcome = None
    for capacity in CAPACITIES if "plan" in engines else (_CAPACITY,):
        say(f"plan for capacity {_name(capacity)}")
        found = plan(prepared, capacity, prepared.publisher_capacity)
        if "plan" in engines:
            yield from _plan_figures(found)
        if found.infeasible is not None:
            report.notes.append(f"{short(size)}, capacity {_name(capacity)}: {found.infeasible}, which was taken")
        if capacity == _CAPACITY:
            outcome = found
    yield Figure("memory.peak", "most memory of the process so far", "MB", peak_bytes() / 1e6)
    if "change" in engines and outcome is not None:
        say("views that come and go")
        yield from change.measure(outcome, documents(options.seed, 1, _SAMPLES), options.seed)
    if "run" in engines and outcome is not None:
        published = documents(options.seed, _SAMPLES + 1, _DOCUMENTS)
        yield from running.measure(outcome.hastened, prepared.views, published, say)


def _prepared(size: int, seed: int) -> Prepared:
    texts = [pattern.text for pattern in ViewSet(size).patterns(seed)]
    return prepare(texts, documents(seed, 1, _SAMPLES))


def _stage_figures(prepared: Prepared) -> Iterator[Figure]:
    heading = Heading("stage", "stage")
    for name, label in (
        ("parse", "views parsed"),
        ("group", "equal views grouped"),
        ("sizes", f"sizes by {_SAMPLES} documents"),
        ("table", "patterns indexed"),
        ("rewritings", "embeddings and rewritings"),
    ):
        yield heading.figure(f"{name}_s", label, "s", prepared.seconds[name].wall)
    rewritings = prepared.rewritings
    yield heading.figure("embeddings", "embeddings", "pairs", rewritings.embedded)
    yield heading.figure("rewritings", "rewritings", "rewritings", len(rewritings.first_source) - 1)
    share = 100 * (1 - prepared.unfed / len(prepared.groups))
    yield heading.figure("rewritable", "views that others can feed", "%", share)


def _plan_figures(outcome: Outcome) -> Iterator[Figure]:
    name = _name(outcome.capacity)
    heading = Heading(f"plan.{name}", f"capacity {name}")
    views = len(outcome.prepared.views)
    yield heading.figure("solve_s", "plan of least use", "s", outcome.instance_s + outcome.solve_s.wall)
    yield heading.figure("gap", "gap", "%", 100 * outcome.solution.gap)
    yield heading.figure("rewritten", "rewritten", "%", 100 * (1 - outcome.least_use.feeds / views))
    yield heading.figure("latency_s", "latency reduced", "s", outcome.latency_s.wall)
    yield heading.figure("latency", "latency change", "%", 100 * outcome.latency_change)
    yield heading.figure("use", "use change", "%", 100 * outcome.use_change)


def _name(capacity: int | None) -> str:
    return "none" if capacity is None else str(capacity)
