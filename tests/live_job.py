"""`tidings run` as a process, for tests that kill it and start it again, or in one session; what it should tell."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tidings.endpoint import Endpoint
from tidings.engine import Engine
from tidings.live import run as inline
from tidings.live.job import Job
from tidings.signals import Stop
from tidings.sinks.parts import PartsSink
from tidings.sql import parse_catalog

_SECONDS = 180


class LiveJob:
    """The command on a folder, in which the catalog and the checkpoint are. is_leader: of a process group of its own."""

    is_leader = False

    def __init__(
        self, folder: Path, catalog: str, *words: str, engine: str = "spark", master: str = "local[2]"
    ) -> None:
        (folder / "catalog.sql").write_text(catalog)
        fixed = ["--catalog", "catalog.sql", "--checkpoint", "checkpoint", "--engine", engine]
        fixed += ["--master", master] if engine == "spark" else []
        self._command = [sys.executable, "-m", "tidings.cli.main", "run", *fixed, *words]
        self._folder = folder
        # Spark counts from 0 on.
        self._first = 1 if engine == "spark" else 0

    def start(self, *words: str, preexec: Callable[[], None] | None = None) -> subprocess.Popen[bytes]:
        """preexec: called in the new process before the command."""
        with (self._folder / "errors").open("ab") as errors:
            return subprocess.Popen(
                [*self._command, *words],
                cwd=self._folder,
                stderr=errors,
                start_new_session=self.is_leader,
                preexec_fn=preexec,
            )

    def kill_after(self, batches: int) -> None:
        """Starts the job and kills it when it has finished so many micro-batches, within the next one."""
        self.kill_when(lambda: f"batch {batches - self._first}: " in self.errors)

    def kill_when(self, is_time: Callable[[], bool]) -> None:
        """Starts the job and kills it when it is time."""
        run = self.start()
        deadline = time.monotonic() + _SECONDS
        try:
            while not is_time():
                assert run.poll() is None, f"ended by itself: {self.errors}"
                assert time.monotonic() < deadline, f"no progress: {self.errors}"
                with suppress(subprocess.TimeoutExpired):
                    run.wait(0.1)
        finally:
            run.kill()
            run.wait()

    def finish(self) -> None:
        """Starts the job and waits until it has taken all that is there."""
        run = self.start("--trigger", "once")
        try:
            assert run.wait(_SECONDS) == 0, self.errors
        finally:
            run.kill()
            run.wait()

    def lines(self, kind: str) -> list[dict[str, object]]:
        return lines_of(self._folder / "out", kind)

    @property
    def errors(self) -> str:
        return (self._folder / "errors").read_text()


class SessionJob:
    """A run in this process, on Spark in the session of all tests, which spares a start: for tests that kill nothing.

    `finish` takes all that is there. The checkpoint is in `folder`.
    """

    def __init__(
        self,
        folder: Path,
        catalog: str,
        source: Endpoint,
        subscriptions: Endpoint,
        sink: Endpoint | None = None,
        engine: str = "spark",
    ) -> None:
        self._out = folder / "out"
        sink = sink or Endpoint("files", str(self._out))
        self._job = Job(catalog, source, subscriptions, sink, folder / "checkpoint", "once")
        self._engine = engine

    def finish(self) -> None:
        if self._engine == "spark":
            from tidings.spark import run as on_spark

            on_spark.run(on_spark.Run(**vars(self._job), shards=2), Stop(), lambda batch: None, lambda step: None)
        else:
            inline.run(self._job, Stop(), lambda batch: None, lambda step: None)

    def lines(self, kind: str) -> list[dict[str, object]]:
        return lines_of(self._out, kind)


def lines_of(out: Path, kind: str) -> list[dict[str, object]]:
    """Lines of all complete micro-batches. kind: as in `PartsSink.parts`."""
    sink = PartsSink(out)
    parts = [path for batch in sink.batches() for path in sink.parts(batch, kind)]
    return [json.loads(line) for path in parts for line in path.read_text().splitlines()]


def view(notifications: Iterable[dict[str, Any]]) -> Counter[str]:
    """The rows that a subscriber holds who was told so; notifications in order, each once."""
    rows: Counter[str] = Counter()
    for told in notifications:
        if told["snapshot"]:
            rows.clear()
        for change in told["changes"]:
            gone = {"delete": "row", "update": "old"}.get(change["op"])
            if gone is not None:
                rows[json.dumps(change[gone], sort_keys=True)] -= 1
            if change["op"] != "delete":
                rows[json.dumps(change["row"], sort_keys=True)] += 1
    return +rows


def expected(
    catalog: str, queries: Mapping[str, str], born: Mapping[str, int], changes: Iterable[dict[str, Any]]
) -> dict[str, list[str]]:
    """Notification lines of every subscription. born: seq at which each was created; changes have the other seqs from 1 on."""
    engine = Engine(parse_catalog(catalog))
    for id, sql in queries.items():
        engine.door.create(id, sql, born[id])
    free = (seq for seq in range(1, 2**62) if seq not in set(born.values()))
    lines = [json.dumps({"seq": seq, **change}).encode() for seq, change in zip(free, changes, strict=False)]
    told: dict[str, list[str]] = {id: [] for id in queries}
    for line in (*engine.feed(lines).notifications.lines(), *engine.finish().notifications.lines()):
        told[json.loads(line)["subscription"]].append(line)
    return told
