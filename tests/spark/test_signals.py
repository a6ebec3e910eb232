"""Signals during a start end it at once; nothing is left behind. What a signal does to a job that runs: test_run.py.

Each goes to the whole process group, as a terminal and most supervisors send it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from live_run import CATALOG, LINES, Live, await_end, change, started_by, wait_until

pytestmark = pytest.mark.spark

_SECONDS_MAX = 10.0
"""From a signal during the start to the end. About one on an idle machine; a start takes 15 and more."""


@pytest.mark.parametrize(
    ("number", "step"), [(signal.SIGTERM, "starting Java"), (signal.SIGINT, "starting Python workers")]
)
def test_a_start_ends_at_once(tmp_path: Path, number: signal.Signals, step: str) -> None:
    with Live(tmp_path) as live:
        run = live.start()
        live.await_words(run, step)
        assert live.errors.partition(" ")[2].startswith("reading the catalog")
        wait_until(lambda: bool(started_by(run.pid)), lambda: live.errors, run)
        below = started_by(run.pid)
        begun = time.monotonic()
        os.killpg(run.pid, number)
        assert run.wait(60) == 0, live.errors
        assert time.monotonic() - begun < _SECONDS_MAX
        await_end(below)
        assert "Traceback" not in live.errors


def test_a_replay_ends_at_once_and_says_that_it_is_not_done(tmp_path: Path) -> None:
    (tmp_path / "catalog").write_text(CATALOG)
    (tmp_path / "subscriptions").write_text('{"id": "s", "sql": "SELECT * FROM t WHERE x > 1"}\n')
    (tmp_path / "changes").write_text("".join(json.dumps({"seq": n + 1, **change(n)}) + "\n" for n in range(LINES)))
    files = [word for name in ("catalog", "subscriptions", "changes") for word in (f"--{name}", name)]
    command = [sys.executable, "-m", "tidings.cli.main", "replay", *files, "--out", "out.jsonl", "--engine", "spark"]
    with (tmp_path / "errors").open("wb") as errors:
        run = subprocess.Popen(command, cwd=tmp_path, stderr=errors, start_new_session=True)
    try:
        log = tmp_path / "out.jsonl.work" / "spark.log"
        wait_until(log.exists, (tmp_path / "errors").read_text, run)
        below = started_by(run.pid)
        os.killpg(run.pid, signal.SIGTERM)
        assert run.wait(60) == 128 + signal.SIGTERM
        await_end(below)
        assert not (tmp_path / "out.jsonl").exists()
        assert (tmp_path / "errors").read_text() == ""
    finally:
        run.kill()
        run.wait()
