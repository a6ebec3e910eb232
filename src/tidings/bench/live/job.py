"""`tidings run` as the live bench runs it: in a process of its own, killed and started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from tidings.bench.live.workload import CATALOG, Subscription
from tidings.pipeline.live import ANSWERS
from tidings.sinks.parts import PartsSink

_START_SECONDS = 300.0


class BatchDone(NamedTuple):
    """A micro-batch: when its manifest was written, and the last seq it had."""

    time: float
    passed: int
    changes: int


class Job:
    """The command on a folder with catalog, subscriptions, output and checkpoint."""

    def __init__(self, folder: Path, source: list[str], subscriptions: list[Subscription], engine: str) -> None:
        self._folder = folder
        self.sink = folder / "out"
        (folder / "catalog.sql").write_text(CATALOG)
        (folder / "wishes").mkdir()
        lines = "\n".join(json.dumps({"id": each.id, "sql": each.sql}) for each in subscriptions)
        (folder / "wishes" / "0.jsonl").write_text(lines)
        options = ["--catalog", "catalog.sql", "--subscriptions", "files:wishes", "--sink", "files:out"]
        options += ["--checkpoint", "checkpoint", "--engine", engine]
        options += ["--master", "local[2]"] if engine == "spark" else []
        self._command = [sys.executable, "-m", "tidings.cli.main", "run", *source, *options]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self._folder / "job.log").open("ab") as log:
            self._process = subprocess.Popen(self._command, cwd=self._folder, stdout=log, stderr=log)

    def kill(self) -> None:
        """Ends it at once, in the middle of whatever it does."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """Ends it as a user would; it finishes the micro-batch that has begun."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(_START_SECONDS)

    def wait_for(self, changes: int, seconds: float = _START_SECONDS) -> None:
        """Waits until so many changes are through. RuntimeError if the job ends by itself, or nothing happens for so long."""
        done, deadline = -1, time.monotonic() + seconds
        while (now := self.changes()) < changes:
            if now > done:
                done, deadline = now, time.monotonic() + seconds
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > deadline:
                said = (self._folder / "job.log").read_text(errors="replace")[-3000:]
                raise RuntimeError(f"the job stopped at {now:,} of {changes:,} changes. It said: {said}")
            time.sleep(0.1)

    def changes(self) -> int:
        return sum(batch.changes for batch in self.batches())

    def batches(self) -> list[BatchDone]:
        """The complete micro-batches in order."""
        found = []
        for path in sorted(self.sink.glob("manifest-*.json")):
            metrics: dict[str, Any] = json.loads(path.read_text())["metrics"]
            found.append(BatchDone(path.stat().st_mtime, metrics.get("passed", 0), metrics.get("changes", 0)))
        return found

    def begun(self) -> dict[str, int]:
        """Subscription -> the seq at which it was accepted."""
        sink = PartsSink(self.sink)
        files = [path for batch in sink.batches() for path in sink.parts(batch, ANSWERS)]
        answers = (json.loads(line) for path in files for line in path.read_text().splitlines())
        return {answer["id"]: answer["seq"] for answer in answers if "seq" in answer}

    def refused(self) -> int:
        return int(PartsSink(self.sink).metrics().get("quarantined", 0))

    def notifications(self) -> list[bytes]:
        path = self._folder / "out.jsonl"
        with path.open("wb") as sink:
            PartsSink(self.sink).copy(sink)
        return path.read_bytes().splitlines()
