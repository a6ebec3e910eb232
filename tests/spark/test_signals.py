"""Signals end `tidings run` when the micro-batch that has begun is finished, and a start at once; nothing is left behind.

Each signal goes to the whole process group, as a terminal and most supervisors send it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from live_run import CATALOG, LINES, Live, change, expected

pytestmark = pytest.mark.spark

_SECONDS_MAX = 5.0
"""From a signal during the start to the end. About one on an idle machine."""


class Grouped(Live):
    """The command as the leader of a process group of its own."""

    is_leader = True

    def await_words(self, run: subprocess.Popen[bytes], text: str) -> None:
        """Waits until the command has said so."""
        _wait(lambda: text in self.errors, lambda: f"{run.poll()}: {self.errors}", run)


def _wait(is_time: Callable[[], bool], said: Callable[[], str], run: subprocess.Popen[bytes] | None = None) -> None:
    deadline = time.monotonic() + 180
    while not is_time():
        assert run is None or run.poll() is None, said()
        assert time.monotonic() < deadline, said()
        if run is not None:
            with suppress(subprocess.TimeoutExpired):
                run.wait(0.05)


def _started_by(root: int) -> set[int]:
    """Processes below `root`."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {root}


def _is_over(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


@pytest.mark.parametrize(
    ("number", "step"),
    [(signal.SIGTERM, "starting Java"), (signal.SIGINT, "starting Spark"), (signal.SIGTERM, "starting Python workers")],
)
def test_a_start_ends_at_once(tmp_path: Path, number: signal.Signals, step: str) -> None:
    with Grouped(tmp_path) as live:
        begun = time.monotonic()
        run = live.start()
        live.await_words(run, "reading the catalog")
        assert time.monotonic() - begun < _SECONDS_MAX
        live.await_words(run, step)
        _wait(lambda: bool(_started_by(run.pid)), lambda: live.errors, run)
        below = _started_by(run.pid)
        begun = time.monotonic()
        os.killpg(run.pid, number)
        assert run.wait(60) == 0, live.errors
        assert time.monotonic() - begun < _SECONDS_MAX
        assert all(map(_is_over, below))
        assert "Traceback" not in live.errors


def test_signals_to_the_group_finish_what_has_begun(tmp_path: Path) -> None:
    with Grouped(tmp_path) as live:
        for number in (signal.SIGINT, signal.SIGTERM):
            put = live.put_changes()
            run = live.start()
            live.wait_for(run, put)
            # A micro-batch has begun, or is about to.
            live.put_changes()
            below = _started_by(run.pid)
            os.killpg(run.pid, number)
            assert run.wait(60) == 0, live.errors
            _wait(lambda found=below: all(map(_is_over, found)), lambda: "Java was left behind")
        told = expected(4)
        assert live.told() == told[: len(live.told())]
        assert "Traceback" not in live.errors and "Error" not in live.errors


def test_a_second_signal_does_not_wait(tmp_path: Path) -> None:
    with Grouped(tmp_path) as live:
        run = live.start()
        live.await_words(run, "waiting for changes")
        below = _started_by(run.pid)
        # Java stands still, so that nothing that has begun can be finished.
        java = next(pid for pid in below if b"java" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0])
        os.kill(java, signal.SIGSTOP)
        os.killpg(run.pid, signal.SIGINT)
        live.await_words(run, "again to stop at once")
        os.killpg(run.pid, signal.SIGINT)
        assert run.wait(60) == 128 + signal.SIGINT, live.errors
        _wait(lambda: all(map(_is_over, below)), lambda: f"left behind: {below}")
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
        _wait(log.exists, (tmp_path / "errors").read_text, run)
        below = _started_by(run.pid)
        os.killpg(run.pid, signal.SIGTERM)
        assert run.wait(60) == 128 + signal.SIGTERM
        assert all(map(_is_over, below)) and not (tmp_path / "out.jsonl").exists()
        assert (tmp_path / "errors").read_text() == ""
    finally:
        run.kill()
        run.wait()
