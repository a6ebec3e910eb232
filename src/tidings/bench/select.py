"""The select bench: one equality and two ranges, at growing numbers of subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from tidings.bench import Options, Say, inline_path, select_inline, spark_path
from tidings.bench.report import Figure, Report, short, shown
from tidings.bench.select_data import SelectData
from tidings.bench.select_inline import SAMPLE, Measured
from tidings.bench.select_peers import Peers
from tidings.bench.stamp import describe, load_average, stamp
from tidings.bench.timing import within
from tidings.model.codes import Int64Array
from tidings.model.errors import UsageError

Measure = Callable[[SelectData, Say], Measured]

ENGINES: dict[str, Measure] = {
    "inline": select_inline.measure,
    "spark": lambda data, say: Measured(spark_path.measure(data, say)),
}

_RATIOS = (
    ("inline.match.changes_per_s", "ratio.match", "new rows to ids: index alone over the best peer"),
    ("inline.ids.changes_per_s", "ratio.ids", "changes to ids: inline with tables and old rows over the best peer"),
)
"""Peers keep no table and look for the new row only, as does the first of these; the second is what users get."""
_PEER_BUDGET_S = 8.0


def run(options: Options, say: Say) -> Report:
    engines = options.engines or tuple(ENGINES)
    for name in engines:
        if name not in ENGINES:
            raise UsageError(f"unknown engine {name!r}; there are: {', '.join(ENGINES)}")
    report = Report("select: kind = ? AND a BETWEEN ? AND ? AND b BETWEEN ? AND ?", options.sizes, stamp(options.seed))
    say("warming up: kernels are compiled on their first use")
    tiny = SelectData.make(1_000, 30_000, options.seed, rows=2_000)
    for name in engines:
        ENGINES[name](tiny, lambda _: None)
    sizes = [SelectData.make(size, options.changes, options.seed) for size in options.sizes]
    if "inline" in engines and len(sizes) > 1:
        say("inline: all sizes in turn")
        for size, figure in inline_path.in_turn(sizes).items():
            report.add(size, [figure])
    with Peers.start(options.has_peers, say) as peers:
        for data in sizes:
            _measure(report, data, engines, peers, say)
    report.stamp["load_average_end"] = load_average()
    report.notes.append(describe(report.stamp))
    if peers.missing:
        report.notes.append(f"peers left out because they are not installed: {', '.join(peers.missing)}")
    return report


def _measure(report: Report, data: SelectData, engines: tuple[str, ...], peers: Peers, say: Say) -> None:
    sample: Int64Array | None = None
    for name in engines:
        measured = ENGINES[name](data, lambda text, name=name: say(f"{short(data.size)}: {name}: {text}"))  # type: ignore[misc]
        report.add(data.size, measured.figures)
        sample = measured.sample_counts if sample is None else sample
    rates: dict[str, float] = {}
    for figure in _measure_peers(data, sample, peers, say):
        report.add(data.size, [figure])
        rates[figure.label] = figure.value
    if not rates:
        return
    best = max(rates, key=lambda label: rates[label])
    checked = f"matches of {len(sample):,} changes agree with ours" if sample is not None else "matches not compared"
    report.notes.append(f"{short(data.size)}: best {best} ({shown(rates[best])} changes/s); all peers: {checked}")
    for ours, key, label in _RATIOS:
        rate = report.value(ours, data.size)
        if rate is not None:
            report.add(data.size, [Figure(key, label, "ratio", rate / rates[best])])


def _measure_peers(data: SelectData, sample: Int64Array | None, peers: Peers, say: Say) -> Iterator[Figure]:
    for key, label, batch, load in peers.ways:
        say(f"{short(data.size)}: {label}")
        peer = load(data)
        try:
            first = next(data.updates()).rows
            counts = peer.counts(first.slice(0, SAMPLE))
            if sample is not None and counts.tolist() != sample.tolist():
                raise AssertionError(f"{label}: {counts.sum()} matches, but ours are {sample.sum()}")
            # Once for the warm-up, because the first join of a kind is planned and compiled.
            peer.match(first.slice(0, batch))
            taken = within(_PEER_BUDGET_S, peer.match, _slices(data, batch))
        finally:
            peer.close()
        yield Figure(f"peer.{key}.changes_per_s", label, "changes/s", min(batch, data.changes) / taken)


def _slices(data: SelectData, size: int) -> Iterator[pa.RecordBatch]:
    """New rows of the changes, so many at a time."""
    for changes in data.updates():
        for start in range(0, len(changes) - size + 1, size):
            yield changes.rows.slice(start, size)
        if len(changes) < size:
            yield changes.rows
