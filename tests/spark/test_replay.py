"""The Spark engine says, line for line, what the inline engine says, for any micro-batch boundaries."""

from __future__ import annotations

import fcntl
import json
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from workload import Recorded

from tidings.model.errors import UsageError
from tidings.spark.replay import replay_on_spark

pytestmark = pytest.mark.spark


def test_spark_equals_inline(spark: SparkSession, tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, 1, subscriptions=400, changes=700)
    recorded.spoil(random.Random(1), 25)
    out, quarantine = tmp_path / "out.jsonl", tmp_path / "quarantine.jsonl"
    files = (recorded.catalog, recorded.subscriptions, recorded.changes, out, quarantine)
    stats = replay_on_spark(*files, [97], "local[2]")
    told, refused = recorded.inline()
    assert out.read_text().splitlines() == told
    assert sorted(quarantine.read_text().splitlines()) == sorted(refused)
    assert stats["notifications"] == len(told)
    assert stats["quarantined"] == len(refused) >= 25
    assert stats["changes"] == 700
    assert not list(tmp_path.glob("*.work*"))


def test_an_interrupted_run_with_other_input_starts_afresh(spark: SparkSession, tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, 4, subscriptions=20, changes=60)
    out = tmp_path / "out.jsonl"
    work = tmp_path / "out.jsonl.work"
    work.mkdir()
    (work / "fingerprint").write_text("of another input")
    (work / "ready.json").write_text(json.dumps(["never to be seen"]))
    files = (recorded.catalog, recorded.subscriptions, recorded.changes, out, tmp_path / "q.jsonl")
    stats = replay_on_spark(*files, [50], "local[2]")
    assert out.read_text().splitlines() == recorded.inline()[0]
    assert stats["quarantined"] == 0


def test_a_second_run_of_the_same_output_is_refused(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, 6, subscriptions=1, changes=1)
    out = tmp_path / "out.jsonl"
    files = (recorded.catalog, recorded.subscriptions, recorded.changes, out, tmp_path / "q.jsonl")
    with (tmp_path / "out.jsonl.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another run is writing"):
            replay_on_spark(*files, [50], "local[2]")
    assert not out.exists()
