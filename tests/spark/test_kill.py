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

from live_run import is_worker, kill_below
from tidings.pipeline.warm import STEPS
from tidings.terminal import compile_kernels

pytestmark = [pytest.mark.spark, pytest.mark.extended]

BATCHES = 6


def test_kills_change_nothing(tmp_path: Path) -> None:
    """All workers are killed within a micro-batch; the job puts up with it, and is killed within a later one."""
    compile_kernels(STEPS)
    rng = random.Random(20)
    # So many subscriptions that a worker which starts again has something to do.
    recorded = Recorded(tmp_path, 5, subscriptions=3_000, changes=BATCHES * 60)
    recorded.spoil(rng, 10)
    out = tmp_path / "out.jsonl"
    command = [sys.executable, "-m", "tidings.cli.main", "replay", "--engine", "spark", "--batch", "60"]
    command += [*recorded.options(out), "--master", "local[2]"]
    run = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    for batches, victim in ((1, "workers"), (2, "job")):
        _await_batches(run, tmp_path / "out.jsonl.work" / "parts", batches)
        # At a random point within the next batch.
        time.sleep(rng.random() / 2)
        assert run.poll() is None, "finished before it could be killed"
        if victim == "workers":
            assert _kill_workers(run.pid) > 0
        else:
            os.kill(run.pid, signal.SIGKILL)
    run.wait()
    finished = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert "going on after micro-batch" in finished.stderr
    told, refused = recorded.inline()
    assert out.read_bytes() == "".join(line + "\n" for line in told).encode()
    quarantine = (tmp_path / "out.jsonl.quarantine.jsonl").read_text().splitlines()
    assert sorted(quarantine) == sorted(refused)


def _await_batches(run: subprocess.Popen[bytes], parts: Path, batches: int) -> None:
    deadline = time.monotonic() + 120
    while run.poll() is None and len(list(parts.glob("manifest-*"))) < batches:
        assert time.monotonic() < deadline, "no progress"
        time.sleep(0.02)


def _kill_workers(root: int) -> int:
    """Kills every Python worker below a process, and the daemon that forks them; gives their number."""
    return kill_below(root, is_worker)
