"""The demo runs, shows notifications, and ends well."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.spark


def test_demo_shows_notifications_and_exits_0() -> None:
    command = [sys.executable, "-m", "tidings.cli.main", "demo", "--seconds", "2", "--subscriptions", "2000"]
    done = subprocess.run([*command, "--rate", "400"], capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == 0, done.stderr
    samples = [line.strip() for line in done.stdout.splitlines() if line.startswith("  {")]
    whole = [json.loads(sample) for sample in samples if sample.endswith("}")]
    assert whole
    assert all(record["changes"] and not record["snapshot"] for record in whole)
    assert "batch 1:" in done.stdout
