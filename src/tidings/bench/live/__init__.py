"""The live bench: `tidings run` on a live source, killed again and again, and then everything compared.

server and tables -> job -> writers, kills meanwhile -> all is through -> views = SQL on the tables, notifications =
those of an undisturbed run
"""

from __future__ import annotations

import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from tidings.bench import Options, Say
from tidings.bench.live.check import different, expected, views, wrong_views
from tidings.bench.live.job import Job
from tidings.bench.live.sources import LiveSource, Written, open_source
from tidings.bench.live.workload import first_rows, subscriptions
from tidings.bench.report import Figure, Report
from tidings.bench.stamp import describe, stamp

__all__ = ["run"]


def run(options: Options, say: Say) -> Report:
    from tidings.pipeline.warm import STEPS
    from tidings.terminal import compile_kernels

    compile_kernels(STEPS)
    live = options.live
    title = f"live: {live.source}, {live.rate:,} changes/s for {live.seconds:,} s, {live.kills} kills"
    report = Report(title, options.sizes, stamp(options.seed))
    report.notes.append(describe(report.stamp))
    for size in options.sizes:
        with open_source(live.source) as source, tempfile.TemporaryDirectory(prefix="tidings-live-") as folder:
            report.add(size, _measure(source, Path(folder), size, options, say))
        report.is_wrong |= any(report.value(f"live.{name}", size) for name in ("views_wrong", "lines_wrong", "refused"))
    return report


def _measure(source: LiveSource, folder: Path, size: int, options: Options, say: Say) -> list[Figure]:
    live, wishes = options.live, subscriptions(size, options.seed)
    rows = first_rows(options.seed)
    source.load(rows)
    job = Job(folder, source.options(), wishes, live.master)
    try:
        say(f"{size:,} subscriptions: the job starts")
        job.start()
        job.wait_for(sum(map(len, rows.values())))
        recoveries, written_count, wrote = _disturbed(source, job, options, say)
        written = source.written()
        say(f"{len(written):,} records are written; waiting until all are through")
        job.wait_for(len(written))
        caught_up = time.time()
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
    lines_wrong = different(told, expected(wishes, begun, [each.line for each in written]))
    lags = _lags(job, written, len(set(begun.values())), wrote)
    figures = [
        ("views_wrong", "views that differ from their query on the tables", "of all", len(wrong)),
        ("lines_wrong", "notifications missing, doubled or different", "lines", lines_wrong),
        ("refused", "records refused", "records", job.refused()),
        ("written", "changes written", "changes/s", written_count / (wrote[1] - wrote[0])),
        ("seconds", "writing, recoveries included", "s", wrote[1] - wrote[0]),
        ("notifications", "notifications", "lines", len(told)),
        ("batches", "micro-batches", "batches", len(job.batches())),
        ("lag_p50", "from commit to notification, median", "s", float(np.percentile(lags, 50))),
        ("lag_p95", "from commit to notification, 95%", "s", float(np.percentile(lags, 95))),
        ("lag_max", "from commit to notification, longest", "s", float(lags.max())),
        ("recovery", "from a kill to the next micro-batch, mean", "s", float(np.mean(recoveries or [0.0]))),
        ("caught_up", "from the last change until all is through", "s", max(0.0, caught_up - wrote[1])),
    ]
    return [Figure(f"live.{key}", label, unit, float(value)) for key, label, unit, value in figures]


def _disturbed(
    source: LiveSource, job: Job, options: Options, say: Say
) -> tuple[list[float], int, tuple[float, float]]:
    """Writes while the job is killed and started again: (seconds each recovery took, changes, time of first and last)."""
    live = options.live
    count, is_over = [0], threading.Event()

    def write() -> None:
        count[0] = source.write(options.seed, live.rate, is_over)

    began = time.time()
    writer = threading.Thread(target=write)
    writer.start()
    recoveries = []
    try:
        for number in range(live.kills):
            time.sleep(live.seconds / (live.kills + 1))
            done = job.changes()
            job.kill()
            killed = time.monotonic()
            job.start()
            say(f"kill {number + 1}: at {done:,} changes")
            job.wait_for(done + 1)
            recoveries.append(time.monotonic() - killed)
        time.sleep(live.seconds / (live.kills + 1))
    finally:
        is_over.set()
        writer.join()
    return recoveries, count[0], (began, time.time())


def _lags(
    job: Job, written: list[Written], events: int, wrote: tuple[float, float]
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Seconds from commit to notification of every change; first rows are not counted. events: seqs of subscriptions."""
    seqs = np.array([batch.passed for batch in job.batches()])
    times = np.array([batch.time for batch in job.batches()])
    made = np.array([each.time.timestamp() for each in written])
    at = np.searchsorted(seqs, np.arange(len(made)) + 1 + events)
    lags = times[np.minimum(at, len(times) - 1)] - made
    return np.asarray(lags[made >= wrote[0]] if (made >= wrote[0]).any() else np.zeros(1))
