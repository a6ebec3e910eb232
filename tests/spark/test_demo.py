"""The demo says who wants what, what they are told and why; and Ctrl-C ends it well, with nothing left behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tidings.workloads.market.customers import CUSTOMERS

pytestmark = pytest.mark.spark

_TOLD = re.compile(r"  Ada: \w+ (?:came into|left|moved within) the range|  Cleo: GOOG moved by [+-][\d.]+ %: ")


def test_demo_names_customers_and_reasons_and_exits_0(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tidings.cli.main", "demo", "--subscriptions=2000", "--rate=2000"]
    command += ["--master=local[2]", f"--picture={tmp_path / 'demo.svg'}"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    ) as run:
        assert run.stdout is not None
        shown = []
        for line in run.stdout:
            shown.append(line.rstrip())
            if _TOLD.match(line):
                # As Ctrl-C in a terminal does.
                os.killpg(run.pid, signal.SIGINT)
                break
        _, errors = run.communicate(timeout=180)
    assert run.returncode == 0, errors
    assert "Traceback" not in errors
    for customer in CUSTOMERS:
        assert shown[shown.index(f"{customer.name} wants {customer.wish}") + 1] == f"    {customer.sql}"
    assert any(
        re.match(r"batch 0: [\d,]+ changes, [\d,]+ notifications; [\d.]+ s, [\d.]+ s behind", line) for line in shown
    )
    total = re.search(r"^([\d,]+) notifications$", errors, re.MULTILINE)
    assert total is not None and int(total[1].replace(",", "")) > 2000
    assert "starting Java" in errors
    assert "Cleo" in (tmp_path / "demo.svg").read_text()
    assert [path.name for path in tmp_path.glob("tidings-*")] == []
