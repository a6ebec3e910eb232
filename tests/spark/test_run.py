"""`tidings run`: killed and started again, it tells everybody exactly what an undisturbed run would; stops: test_signals.py."""

from __future__ import annotations

import os
import signal
import socket
import time
import urllib.request
from pathlib import Path

import pytest
from live_run import CATALOG, LINES, QUERIES, Live, expected

from tidings.pipeline.warm import STEPS
from tidings.spark.envelope import ANSWERS
from tidings.terminal import compile_kernels

pytestmark = pytest.mark.spark


def test_a_kill_changes_nothing(tmp_path: Path) -> None:
    compile_kernels(STEPS)
    with Live(tmp_path) as live:
        port = _free_port()
        live.put_changes()
        run = live.start("--metrics", str(port))
        live.wait_for(run, LINES)
        assert "tidings_subscriptions 5.0" in _metrics(port, 'tidings_notifications_total{family="select"}')
        live.put_changes()
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        live.put_changes()
        live.put_changes()
        # The catalog may grow between two runs, and does no harm to what was there.
        (tmp_path / "catalog.sql").write_text(f"{CATALOG}\nCREATE TABLE later (id BIGINT PRIMARY KEY);")
        live.finish()
        assert live.told() == expected(4)
        assert {(answer["id"], answer["seq"]) for answer in live.lines(ANSWERS)} == {(id, 1) for id in QUERIES}
        assert "batch 0: " in live.errors and "5 subscription events (0 refused)" in live.errors
        # What cannot go on from the checkpoint is refused before Spark starts.
        (tmp_path / "catalog.sql").write_text("CREATE TABLE t (id BIGINT PRIMARY KEY);")
        assert live.start().wait(60) == 2
        assert "the catalog does not go on from that of the checkpoint" in live.errors


def _metrics(port: int, wanted: str) -> str:
    """The page with metrics, once it has what is wanted: Spark reports a micro-batch a moment after it is done."""
    deadline = time.monotonic() + 60
    while True:
        page: str = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
        if wanted in page:
            return page
        assert time.monotonic() < deadline, page


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
