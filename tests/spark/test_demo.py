"""The demo runs, shows notifications, and ends well."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.spark


def test_demo_shows_notifications_and_exits_0() -> None:
    command = [sys.executable, "-m", "tidings.cli.main", "demo", "--seconds", "2", "--subscriptions", "2000"]
    done = subprocess.run([*command, "--rate", "400"], capture_output=True, text=True, check=False, timeout=180)
    assert done.returncode == 0, done.stderr
    samples = [line.strip() for line in done.stdout.splitlines() if line.startswith("  ")]
    assert samples
    # Samples are cut to the width of a screen, so they are recognised by their beginning.
    assert all(
        re.match(r'\{"subscription": "s\d+", "seq": \d+, "snapshot": false, "changes": \[\{"op": ', line)
        for line in samples
    )
    assert re.search(r"batch 0: [\d,]+ changes, [\d,]+ messages, [\d,]+ deliveries, [\d,]+ notifications", done.stdout)
    assert int(re.search(r"([\d,]+) notifications", done.stderr)[1].replace(",", "")) > 2000  # type: ignore[index]
