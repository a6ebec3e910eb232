"""`tidings run` on folders of files, as tests start, feed, kill and stop it; and what it should have told."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from live_job import LiveJob
from tidings.engine import Engine
from tidings.sinks.parts import PartsSink
from tidings.sql import parse_catalog

CATALOG = """
CREATE TABLE t (id BIGINT PRIMARY KEY, kind TEXT, x DOUBLE);
CREATE TABLE kinds (kind TEXT PRIMARY KEY, weight DOUBLE);
"""
QUERIES = {
    "s1": "SELECT * FROM t WHERE x >= 10",
    "s2": "SELECT id FROM t WHERE kind = 'a' AND x < 30",
    "s3": "SELECT * FROM t ORDER BY x DESC LIMIT 3",
    "s4": "SELECT * FROM t WHERE moved(x) >= 5",
    "s5": "SELECT * FROM t JOIN kinds USING (kind) WHERE t.x >= 10 AND kinds.weight < 30",
}
"""One of each family at least."""
LINES = 20
"""Changes in a file."""


def change(number: int) -> dict[str, object]:
    kind = "ab"[number % 2]
    if number % 3 == 0:
        return {"table": "kinds", "op": "upsert", "row": {"kind": kind, "weight": number * 11.0 % 40}}
    return {"table": "t", "op": "upsert", "row": {"id": number % 7, "kind": kind, "x": number * 7.0 % 40}}


def expected(files: int) -> list[str]:
    """All notifications. Subscription events have seq 1, changes those from 2 on."""
    engine = Engine(parse_catalog(CATALOG))
    for id, sql in QUERIES.items():
        engine.door.create(id, sql, 1)
    lines = [json.dumps({"seq": number + 2, **change(number)}).encode() for number in range(files * LINES)]
    return [*engine.feed(lines).notifications.lines(), *engine.finish().notifications.lines()]


Process = subprocess.Popen[bytes]


class Live(LiveJob):
    """The command on folders of files with changes and subscription events, and a folder of output."""

    is_leader = True

    def __init__(self, folder: Path, master: str = "local[2]", engine: str = "spark") -> None:
        words = ["--source", "files:changes", "--subscriptions", "files:wishes", "--sink", "files:out"]
        super().__init__(folder, CATALOG, *words, engine=engine, master=master)
        self._started: list[Process] = []
        self.files = 0
        """How many files of changes there are."""
        for name in ("changes", "wishes"):
            (folder / name).mkdir()
        self._put("wishes", 0, [{"id": id, "sql": sql} for id, sql in QUERIES.items()])

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *_: object) -> None:
        """Ends what still runs."""
        for run in self._started:
            run.kill()
            run.wait()

    def start(self, *words: str, preexec: Callable[[], None] | None = None) -> Process:
        self._said = len(self.errors) if self._started else 0
        run = super().start(*words, preexec=preexec)
        self._started.append(run)
        return run

    def put_changes(self, age: float = 0.0) -> int:
        """Puts the next file of changes there, as changed `age` seconds ago. Returns the number of changes so far."""
        numbers = range(self.files * LINES, (self.files + 1) * LINES)
        self._put("changes", self.files, list(map(change, numbers)), age)
        self.files += 1
        return self.files * LINES

    def put_bytes(self, data: bytes) -> None:
        """Puts a file there, among those with changes."""
        (self._folder / ".bytes").write_bytes(data)
        (self._folder / ".bytes").rename(self._folder / "changes" / "bytes.jsonl")

    def _put(self, name: str, number: int, records: list[dict[str, object]], age: float = 0.0) -> None:
        partial = self._folder / f".{number}"
        partial.write_text("\n".join(map(json.dumps, records)))
        moment = time.time() - age
        os.utime(partial, (moment, moment))
        partial.rename(self._folder / name / f"{number:03d}.jsonl")

    def await_words(self, run: Process, text: str) -> None:
        """Waits until the command, which was started last, has said so."""
        wait_until(lambda: text in self.errors[self._said :], lambda: f"{run.poll()}: {self.errors}", run)

    def wait_for(self, run: Process, changes: int) -> None:
        """Waits until the sink has this many changes."""
        out = self._folder / "out"

        def has_all() -> bool:
            return out.exists() and PartsSink(out).metrics().get("changes", 0) >= changes

        wait_until(has_all, lambda: f"no progress: {self.errors}", run)

    def stop(self, run: Process) -> None:
        run.send_signal(signal.SIGTERM)
        assert run.wait(120) == 0, self.errors

    def told(self) -> list[str]:
        sink = io.BytesIO()
        PartsSink(self._folder / "out").copy(sink)
        return sink.getvalue().decode().split("\n")[:-1]


def wait_until(is_time: Callable[[], bool], said: Callable[[], str], run: Process | None = None) -> None:
    """Waits as long as `run` lives. said: what to say if it is never time."""
    deadline = time.monotonic() + 180
    while not is_time():
        assert run is None or run.poll() is None, said()
        assert time.monotonic() < deadline, said()
        if run is not None:
            with suppress(subprocess.TimeoutExpired):
                run.wait(0.05)


def started_by(root: int) -> set[int]:
    """Processes below `root`."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {root}


def await_end(processes: set[int]) -> None:
    """Waits until all of these are over, which were not told to end by us: none was left behind."""
    wait_until(lambda: all(map(_is_over, processes)), lambda: f"left behind: {processes}")


def _is_over(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


def kill_below(root: int, is_victim: Callable[[bytes], bool]) -> int:
    """Kills the processes below `root` whose command line is a victim's, newest first. Returns how many there were."""
    killed = 0
    for pid in sorted(started_by(root), reverse=True):
        with suppress(OSError):
            if is_victim(Path(f"/proc/{pid}/cmdline").read_bytes()):
                os.kill(pid, signal.SIGKILL)
                killed += 1
    return killed


def is_worker(command: bytes) -> bool:
    """Whether this is the command line of a Python worker, or of the daemon that forks workers."""
    return b"-m\0tidings.spark.daemon" in command
