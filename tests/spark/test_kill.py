"""Kill -9 anywhere, start again: nothing is lost, nothing is doubled, and the output is the same to the byte."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from workload import Recorded

from tidings.pipeline.warm import STEPS
from tidings.terminal import compile_kernels

pytestmark = pytest.mark.spark

KILLS = ("workers", "job")
BATCHES = 6


def test_kills_change_nothing(tmp_path: Path) -> None:
    compile_kernels(STEPS)
    rng = random.Random(20)
    # So many subscriptions that a worker which starts again has something to do.
    recorded = Recorded(tmp_path, 5, subscriptions=8_000, changes=BATCHES * 60)
    recorded.spoil(rng, 10)
    out = tmp_path / "out.jsonl"
    command = [sys.executable, "-m", "tidings.cli.main", "replay", "--engine", "spark", "--batch", "60"]
    command += [*recorded.options(out), "--master", "local[2]"]
    parts = tmp_path / "out.jsonl.work" / "parts"
    for kill, victim in enumerate(KILLS, 1):
        run = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        # A batch further each time, then at a random point within the next batch.
        while run.poll() is None and len(list(parts.glob("manifest-*"))) < kill:
            assert time.monotonic() < deadline, "no progress"
            time.sleep(0.02)
        time.sleep(rng.random())
        assert run.poll() is None, "finished before it could be killed"
        if victim == "workers":
            assert _kill_workers(run.pid) > 0
            # Spark may put up with it or give up; whatever it does, the same command goes on.
            while run.poll() is None and len(list(parts.glob("manifest-*"))) < kill + 1:
                assert time.monotonic() < deadline, "no progress"
                time.sleep(0.02)
        if run.poll() is None:
            os.kill(run.pid, signal.SIGKILL)
        run.wait()
    finished = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert "going on after micro-batch" in finished.stderr
    told, refused = recorded.inline()
    assert out.read_bytes() == "".join(line + "\n" for line in told).encode()
    quarantine = (tmp_path / "out.jsonl.quarantine.jsonl").read_text().splitlines()
    assert sorted(quarantine) == sorted(refused)


def _kill_workers(root: int) -> int:
    """Kills every Python worker below a process; gives their number."""
    parents: dict[int, int] = {}
    workers: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if b"tidings.spark.daemon" in (entry / "cmdline").read_bytes():
                workers.append(int(entry.name))
        except OSError:
            continue
    # The daemon itself has no daemon above it; those it forked are the workers.
    forked = [pid for pid in workers if parents[pid] in workers and root in _ancestors(pid, parents)]
    for pid in forked:
        os.kill(pid, signal.SIGKILL)
    return len(forked)


def _ancestors(pid: int, parents: dict[int, int]) -> set[int]:
    found: set[int] = set()
    while pid in parents and pid not in found:
        found.add(pid)
        pid = parents[pid]
    return found
