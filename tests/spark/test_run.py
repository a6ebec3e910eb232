"""`tidings run`: killed, stopped, started again, it tells everybody exactly what an undisturbed run would."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tidings.engine import Engine
from tidings.pipeline.warm import STEPS
from tidings.spark.envelope import ANSWERS
from tidings.spark.sinks.parts import PartsSink
from tidings.sql import parse_catalog
from tidings.terminal import compile_kernels

pytestmark = pytest.mark.spark

CATALOG = "CREATE TABLE t (id BIGINT PRIMARY KEY, kind TEXT, x DOUBLE);"
QUERIES = {
    "s1": "SELECT * FROM t WHERE x >= 10",
    "s2": "SELECT id FROM t WHERE kind = 'a' AND x < 30",
    "s3": "SELECT * FROM t ORDER BY x DESC LIMIT 3",
    "s4": "SELECT * FROM t WHERE moved(x) >= 5",
}
FILES, LINES = 6, 20


def change(number: int) -> dict[str, object]:
    return {"table": "t", "op": "upsert", "row": {"id": number % 7, "kind": "ab"[number % 2], "x": number * 7.0 % 40}}


class Live:
    """A folder with sources, sink and checkpoint, and the command on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("changes", "wishes"):
            (folder / name).mkdir()
        (folder / "catalog.sql").write_text(CATALOG)
        self.put("wishes", 0, [{"id": id, "sql": sql} for id, sql in QUERIES.items()])

    def put(self, name: str, number: int, records: list[dict[str, object]]) -> None:
        partial = self.folder / f".{number}"
        partial.write_text("\n".join(map(json.dumps, records)))
        partial.rename(self.folder / name / f"{number:03d}.jsonl")

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        options = {"catalog": "catalog.sql", "source": "files:changes", "subscriptions": "files:wishes"}
        options |= {"sink": "files:out", "checkpoint": "checkpoint", "master": "local[2]"}
        command = [sys.executable, "-m", "tidings.cli.main", "run"]
        command += [word for name, value in options.items() for word in (f"--{name}", value)]
        return subprocess.Popen([*command, *words], cwd=self.folder, stderr=subprocess.DEVNULL)

    def wait_for(self, run: subprocess.Popen[bytes], changes: int) -> None:
        deadline = time.monotonic() + 120
        while (
            not (self.folder / "out").exists() or PartsSink(self.folder / "out").metrics().get("changes", 0) < changes
        ):
            assert run.poll() is None, "ended by itself"
            assert time.monotonic() < deadline, "no progress"
            with suppress(subprocess.TimeoutExpired):
                run.wait(0.1)

    def told(self) -> list[str]:
        sink = io.BytesIO()
        PartsSink(self.folder / "out").copy(sink)
        return sink.getvalue().decode().split("\n")[:-1]


def expected() -> list[str]:
    """Subscription events have seq 1, changes those from 2 on."""
    engine = Engine(parse_catalog(CATALOG))
    for id, sql in QUERIES.items():
        engine.door.create(id, sql, 1)
    lines = [json.dumps({"seq": number + 2, **change(number)}).encode() for number in range(FILES * LINES)]
    return [*engine.feed(lines).notifications.lines(), *engine.finish().notifications.lines()]


def test_kills_and_stops_change_nothing(tmp_path: Path) -> None:
    compile_kernels(STEPS)
    live = Live(tmp_path)
    numbers = [range(number * LINES, (number + 1) * LINES) for number in range(FILES)]
    live.put("changes", 0, list(map(change, numbers[0])))
    run = live.start()
    live.wait_for(run, LINES)
    live.put("changes", 1, list(map(change, numbers[1])))
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    live.put("changes", 2, list(map(change, numbers[2])))
    run = live.start()
    live.wait_for(run, 3 * LINES)
    live.put("changes", 3, list(map(change, numbers[3])))
    run.send_signal(signal.SIGTERM)
    assert run.wait(60) == 0
    live.put("changes", 4, list(map(change, numbers[4])))
    live.put("changes", 5, list(map(change, numbers[5])))
    assert live.start("--trigger", "once").wait(120) == 0
    assert live.told() == expected()
    sink = PartsSink(tmp_path / "out")
    parts = [path for batch in sink.batches() for path in sink.parts(batch, ANSWERS)]
    answers = [json.loads(line) for path in parts for line in path.read_text().splitlines()]
    assert {(answer["id"], answer["seq"]) for answer in answers} == {(id, 1) for id in QUERIES}
