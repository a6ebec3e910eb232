"""All kinds of bad input in one run on Spark: quarantine holds what the inline engine puts there, for the same reasons."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bad_changes import BAD_CHANGES, CATALOG
from bad_subscriptions import BAD_SUBSCRIPTIONS
from test_bad_input import GOOD_AFTER, GOOD_BEFORE, GOOD_SUBSCRIPTIONS, UNDISTURBED, run
from tidings.spark.replay import replay_on_spark

pytestmark = pytest.mark.spark


def test_all_bad_input_at_once(spark: SparkSession, tmp_path: Path) -> None:
    bad_changes = [line for line in BAD_CHANGES.values() if b"\n" not in line]
    bad_subscriptions = [line for line in BAD_SUBSCRIPTIONS.values() if b"\n" not in line]
    changes = [*GOOD_BEFORE, *bad_changes, *GOOD_AFTER]
    subscriptions = [*GOOD_SUBSCRIPTIONS, *bad_subscriptions]
    files = [
        tmp_path / name for name in ("catalog.sql", "subscriptions.jsonl", "changes.jsonl", "out.jsonl", "q.jsonl")
    ]
    files[0].write_text(CATALOG)
    files[1].write_bytes(b"".join(line + b"\n" for line in subscriptions))
    files[2].write_bytes(b"".join(line + b"\n" for line in changes))
    stats = replay_on_spark(*files, [161], "local[2]")
    lines, at_door, refused = run(subscriptions, [changes])
    assert files[3].read_text(encoding="utf-8").split("\n")[:-1] == lines
    assert set(UNDISTURBED[0]) <= set(lines)
    assert files[4].read_text(encoding="utf-8").split("\n")[:-1] == [entry.line() for entry in (*at_door, *refused)]
    assert stats["quarantined"] >= 300
