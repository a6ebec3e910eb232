"""The live bench: `tidings run` on a live source, killed again and again, and then everything compared.

server and tables -> job -> writers, kills meanwhile -> all is through -> views = SQL on the tables, notifications =
those of an undisturbed run
"""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tidings.bench import Options, Say
from tidings.bench.live.check import different, doubled, expected, unmatched, views, wrong_views
from tidings.bench.live.job import Job
from tidings.bench.live.sources import LiveSource, Written, open_source
from tidings.bench.live.workload import first_rows, subscriptions
from tidings.bench.report import Figure, Report
from tidings.bench.stamp import describe, stamp

__all__ = ["run"]

_WRONG = ("views_wrong", "lines_wrong", "texts_wrong", "refused")


def run(options: Options, say: Say) -> Report:
    live = options.live
    title = (
        f"live: {live.source} on {_engine(options)}, {live.rate:,} changes/s for {live.seconds:,} s, {live.kills} kills"
    )
    report = Report(title, options.sizes, stamp(options.seed))
    report.notes.append(describe(report.stamp))
    for size in options.sizes:
        with open_source(live.source) as source, tempfile.TemporaryDirectory(prefix="tidings-live-") as folder:
            report.add(size, _measure(source, Path(folder), size, options, say))
        report.is_wrong |= any(report.value(f"live.{name}", size) for name in _WRONG)
    return report


def _engine(options: Options) -> str:
    return options.engines[0] if options.engines else "spark"


class _Disturbed(NamedTuple):
    """recoveries: seconds from each kill to the next micro-batch. changes: committed by the writers, from began to ended."""

    recoveries: list[float]
    changes: int
    written: list[Written]
    began: float
    ended: float


def _measure(source: LiveSource, folder: Path, size: int, options: Options, say: Say) -> list[Figure]:
    wishes = subscriptions(size, options.seed)
    rows = first_rows(options.seed)
    source.load(rows)
    job = Job(folder, source.options(), wishes, _engine(options))
    try:
        say(f"{size:,} subscriptions: the job starts")
        job.start()
        job.wait_for(sum(map(len, rows.values())))
        recoveries, changes, written, began, ended = _disturbed(source, job, options, say)
        say(f"{len(written):,} records are written; waiting until all are through")
        job.wait_for(len(written))
    finally:
        job.stop()
    say("comparing")
    told = job.notifications()
    answers = source.answers(each.recomputed for each in wishes if each.recomputed)
    wrong = wrong_views(views(told), wishes, answers)
    if wrong:
        say(f"wrong views: {', '.join(wrong[:10])}")
    begun = job.begun()
    if len(begun) < size:
        raise RuntimeError(f"the job accepted {len(begun):,} of {size:,} subscriptions")
    # Nobody is told twice of one transaction or seq.
    lines_wrong = doubled(told)
    if source.is_ordered:
        lines_wrong += different(told, expected(wishes, begun, [each.line for each in written]))
    else:
        # What an undisturbed run would tell is not known.
        written = sorted(written, key=lambda each: each.time)
    lags = _lags(job, written, len(set(begun.values())), began)
    figures = [
        ("views_wrong", "views that differ from their query on the tables", "of all", len(wrong)),
        ("lines_wrong", "notifications missing, doubled or different", "lines", lines_wrong),
        ("texts_wrong", "rows told to go under a text nobody was told", "rows", unmatched(told)),
        ("refused", "records refused", "records", job.refused()),
        ("written", "changes written", "changes/s", changes / (ended - began)),
        (
            "through",
            "changes through, kills included",
            "changes/s",
            changes / max(1e-9, job.batches()[-1].time - began),
        ),
        ("seconds", "writing", "s", ended - began),
        ("notifications", "notifications", "lines", len(told)),
        ("batches", "micro-batches", "batches", len(job.batches())),
        ("lag_p50", "from commit to notification, median", "s", float(np.percentile(lags, 50))),
        ("lag_p95", "from commit to notification, 95%", "s", float(np.percentile(lags, 95))),
        ("lag_max", "from commit to notification, longest", "s", float(lags.max())),
        ("recovery", "from a kill to the next micro-batch, mean", "s", float(np.mean(recoveries or [0.0]))),
    ]
    return [Figure(f"live.{key}", label, unit, float(value)) for key, label, unit, value in figures]


def _disturbed(source: LiveSource, job: Job, options: Options, say: Say) -> _Disturbed:
    """Writes while the job is killed and started again: until all kills are over, and as long as asked at least."""
    live, count, is_over = options.live, [0], threading.Event()

    def write() -> None:
        count[0] = source.write(options.seed, live.rate, live.statements, is_over)

    began = time.time()
    writer = threading.Thread(target=write)
    writer.start()
    recoveries: list[float] = []
    try:
        while len(recoveries) < live.kills:
            time.sleep(live.seconds / (live.kills + 1))
            done = job.changes()
            job.kill()
            killed = time.monotonic()
            job.start()
            job.wait_for(done + 1)
            recoveries.append(time.monotonic() - killed)
            say(f"kill {len(recoveries)}: at {done:,} changes; {recoveries[-1]:.1f} s to the next micro-batch")
        time.sleep(max(0.0, began + live.seconds - time.time()))
    finally:
        is_over.set()
        writer.join()
    return _Disturbed(recoveries, count[0], source.written(), began, time.time())


def _lags(job: Job, written: list[Written], events: int, began: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Seconds from commit to notification of every change; first rows are not counted. events: seqs of subscriptions."""
    seqs = np.array([batch.passed for batch in job.batches()])
    times = np.array([batch.time for batch in job.batches()])
    made = np.array([each.time.timestamp() for each in written])
    at = np.searchsorted(seqs, np.arange(len(made)) + 1 + events)
    lags = times[np.minimum(at, len(times) - 1)] - made
    return np.asarray(lags[made >= began] if (made >= began).any() else np.zeros(1))
