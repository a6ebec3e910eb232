"""The soak: `tidings run` for a long time at a steady rate, while subscriptions come and go. Does anything grow or slow down?

The market feed writes files of changes, twice a second; every few seconds some subscriptions are dropped and others created.
Memory of the driver, of its Java and of the Python workers is read now and then; files that have been told of are removed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tidings.bench import Options, Say
from tidings.bench.report import Figure, Report
from tidings.bench.stamp import describe, stamp
from tidings.workloads.market import MarketFeed

_TICK_SECONDS = 0.5
_CHURN_SECONDS = 3.0
_CHURN_PER_MINUTE = 0.05
_SAMPLE_SECONDS = 10.0
_REVIEWS_MAX = 3_000
_WARM_UP = 0.2
"""The part of the time that counts as warm-up."""
_START_SECONDS = 300.0
_STOP_SECONDS = 120.0
_BATCH = re.compile(r"batch (\d+): ([\d,]+) changes, ([\d,]+) notifications.*?; ([\d.]+) s")
_LATENCY = re.compile(r"latency p50 ([\d.]+) s p99 ([\d.]+) s")
_PARTS = ("driver", "java", "workers")


def run(options: Options, say: Say) -> Report:
    live = options.live
    report = Report(f"soak: {live.rate:,} changes/s for {live.seconds:,} s", options.sizes, stamp(options.seed))
    report.notes.append(describe(report.stamp))
    for size in options.sizes:
        with tempfile.TemporaryDirectory(prefix="tidings-soak-") as folder:
            report.add(size, _Soak(Path(folder), size, options, say).run())
    return report


class _SteadyFeed:
    """The market, but old reviews are deleted: tables stay as large as they are when they are filled."""

    def __init__(self, seed: int) -> None:
        self._feed = MarketFeed(seed)
        self._reviews: deque[int] = deque()

    def first(self) -> list[str]:
        return self._noted(self._feed.changes(self._feed.filling))

    def next(self, count: int) -> list[str]:
        lines = self._noted(self._feed.changes(count))
        while len(self._reviews) > _REVIEWS_MAX:
            gone = {"table": "reviews", "op": "delete", "row": {"id": self._reviews.popleft()}}
            lines.append(json.dumps(gone))
        return lines

    def _noted(self, lines: list[bytes]) -> list[str]:
        """The lines without their numbers, and without changes of reviews that were deleted here."""
        found = []
        for record in map(json.loads, lines):
            del record["seq"]
            if record["table"] == "reviews":
                id = record["row"]["id"]
                if record["op"] == "insert":
                    self._reviews.append(id)
                elif id not in self._reviews:
                    continue
                elif record["op"] == "delete":
                    self._reviews.remove(id)
            found.append(json.dumps(record))
        return found


@dataclass
class _Churn:
    """Drops the oldest subscriptions and creates as many new ones. sent: number of an event's file -> when it was written."""

    queries: Iterator[str]
    living: deque[str]
    next_id: int
    sent: dict[str, float] = field(default_factory=dict)

    def lines(self, count: int) -> list[str]:
        found = []
        for _ in range(count):
            found.append(json.dumps({"id": self.living.popleft(), "drop": True}))
            id = f"later{self.next_id}"
            self.next_id += 1
            self.living.append(id)
            found.append(json.dumps({"id": id, "sql": next(self.queries)}))
        return found


class _Soak:
    def __init__(self, folder: Path, size: int, options: Options, say: Say) -> None:
        self._folder, self._size, self._live, self._say = folder, size, options.live, say
        self._feed = _SteadyFeed(options.seed)
        queries = MarketFeed(options.seed).queries()
        first = {f"s{number}": next(queries) for number in range(size)}
        self._churn = _Churn(queries, deque(first), 0)
        for name in ("changes", "wishes", "out"):
            (folder / name).mkdir()
        (folder / "catalog.sql").write_text(MarketFeed.catalog_sql)
        self._put("wishes", "0", [json.dumps({"id": id, "sql": sql}) for id, sql in first.items()])
        self._put("changes", "0", self._feed.first())
        self._swept = 0
        self._acknowledged: list[float] = []
        self._memory: list[dict[str, float]] = []
        self._files = 0

    def run(self) -> list[Figure]:
        words = ["--catalog", "catalog.sql", "--source", "files:changes", "--source-option", "cleanSource=delete"]
        words += ["--subscriptions", "files:wishes", "--subscriptions-option", "cleanSource=delete"]
        words += ["--sink", "files:out", "--checkpoint", "checkpoint", "--master", "local[2]"]
        log = self._folder / "job.log"
        with log.open("ab") as errors:
            job = subprocess.Popen(
                [sys.executable, "-m", "tidings.cli.main", "run", *words], cwd=self._folder, stderr=errors
            )
        try:
            self._wait(job)
            self._write(job)
        finally:
            job.terminate()
            with suppress(subprocess.TimeoutExpired):
                job.wait(_STOP_SECONDS)
            job.kill()
            job.wait()
        return self._figures(log.read_text())

    def _wait(self, job: subprocess.Popen[bytes]) -> None:
        """Until the first micro-batch is done."""
        deadline = time.monotonic() + _START_SECONDS
        while not list((self._folder / "out").glob("manifest-*")):
            if job.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the job did not start: {(self._folder / 'job.log').read_text()[-2000:]}")
            time.sleep(0.1)

    def _write(self, job: subprocess.Popen[bytes]) -> None:
        began = time.monotonic()
        tick = churned = sampled = began
        while (now := time.monotonic()) < began + self._live.seconds:
            if job.poll() is not None:
                raise RuntimeError(f"the job stopped: {(self._folder / 'job.log').read_text()[-2000:]}")
            self._files += 1
            self._put("changes", str(self._files), self._feed.next(max(1, int(self._live.rate * _TICK_SECONDS))))
            if now >= churned:
                churned += _CHURN_SECONDS
                count = max(1, int(self._size * _CHURN_PER_MINUTE * _CHURN_SECONDS / 60))
                name = f"churn{self._files:09d}"
                self._put("wishes", name, self._churn.lines(count))
                self._churn.sent[f"{name}.jsonl"] = time.time()
            self._sweep()
            if now >= sampled:
                sampled += _SAMPLE_SECONDS
                self._memory.append(_memory(job.pid))
                if len(self._memory) % 6 == 0:
                    shown = ", ".join(f"{name} {self._memory[-1][name]:,.0f} MB" for name in _PARTS)
                    self._say(f"{now - began:,.0f} s: {shown}")
            tick += _TICK_SECONDS
            time.sleep(max(0.0, tick - time.monotonic()))

    def _put(self, name: str, stem: str, lines: list[str]) -> None:
        partial = self._folder / f".{name}"
        partial.write_text("\n".join(lines))
        partial.rename(self._folder / name / f"{stem}.jsonl")

    def _sweep(self) -> None:
        """Notes when events were answered, and removes the files of micro-batches that are done."""
        out = self._folder / "out"
        while (path := out / f"manifest-{self._swept:08d}.json").exists():
            manifest = json.loads(path.read_text())
            for name in manifest["answers"]:
                labels = {json.loads(line)["partition"].rpartition(" ")[2] for line in (out / name).open()}
                for label in labels & self._churn.sent.keys():
                    self._acknowledged.append(path.stat().st_mtime - self._churn.sent.pop(label))
            for kind in ("notifications", "answers", "refused", "warnings"):
                for name in manifest[kind]:
                    (out / name).unlink(missing_ok=True)
            self._swept += 1

    def _figures(self, log: str) -> list[Figure]:
        found = _BATCH.findall(log)
        batches = np.array([float(seconds) for _, _, _, seconds in found])
        lines = [line for line in log.splitlines() if _LATENCY.search(line)]
        p99 = np.array([float(_LATENCY.search(line)[2]) for line in lines])  # type: ignore[index]
        steady, lag = (each[int(len(each) * _WARM_UP) :] for each in (batches, p99))
        changes = sum(int(number.replace(",", "")) for _, number, _, _ in found)
        told = sum(int(number.replace(",", "")) for _, _, number, _ in found)
        figures = [
            ("changes", "changes", "changes", changes),
            ("notifications", "notifications", "lines", told),
            ("batches", "micro-batches", "batches", len(batches)),
            ("batch_p50", "micro-batch, median", "s", np.percentile(steady, 50)),
            ("batch_p99", "micro-batch, 99%", "s", np.percentile(steady, 99)),
            ("batch_ratio", "micro-batch, 99% over median", "", np.percentile(steady, 99) / np.percentile(steady, 50)),
            ("lag", "change to notification, 99% of a micro-batch, median", "s", np.median(lag)),
            ("ack_p50", "subscription event to its answer, median", "s", np.percentile(self._acknowledged, 50)),
            ("ack_max", "subscription event to its answer, longest", "s", max(self._acknowledged)),
            ("unanswered", "subscription events not answered", "files", len(self._churn.sent)),
        ]
        warm = self._memory[int(len(self._memory) * _WARM_UP) :]
        third = max(1, len(warm) // 3)
        for name in _PARTS:
            series = np.array([sample[name] for sample in warm])
            figures.append((f"{name}_mb", f"memory of {name}, first third after warm-up", "MB", series[:third].mean()))
            figures.append((f"{name}_mb_end", f"memory of {name}, last third", "MB", series[-third:].mean()))
        return [Figure(f"soak.{key}", label, unit, float(value)) for key, label, unit, value in figures]


def _memory(root: int) -> dict[str, float]:
    """Resident memory in MB of the driver, of its Java processes, and of Python workers (shared pages counted once)."""
    parents: dict[int, int] = {}
    kinds: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                command = (entry / "cmdline").read_bytes()
                is_java = command.partition(b"\0")[0].endswith(b"java")
                kinds[int(entry.name)] = "java" if is_java else "workers"
    found = dict.fromkeys(_PARTS, 0.0)
    for pid in parents:
        above = pid
        while above in parents and above != root:
            above = parents[above]
        if above == root:
            with suppress(OSError):
                found["driver" if pid == root else kinds[pid]] += _proportional_mb(pid)
    return found


def _proportional_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0
