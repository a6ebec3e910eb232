"""What goes wrong outside of the data ends `tidings run` with one line: what it is and what to do; and the exit code fits."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from live_run import CATALOG, change
from tidings.endpoint import Endpoint
from tidings.live.progress import Batch
from tidings.model.errors import RunError, TidingsError, UsageError
from tidings.signals import Stop
from tidings.spark.run import Run, run

pytestmark = pytest.mark.spark


@pytest.fixture
def settings(tmp_path: Path, spark: SparkSession) -> Run:
    """A run on folders with a file each, in the session of all tests."""
    for name in ("changes", "wishes"):
        (tmp_path / name).mkdir()
    put(tmp_path, 0)
    (tmp_path / "wishes" / "0.jsonl").write_text('{"id": "s1", "sql": "SELECT * FROM t WHERE x >= 10"}\n')
    ends = (Endpoint("files", str(tmp_path / name)) for name in ("changes", "wishes", "out"))
    return Run(CATALOG, *ends, tmp_path / "checkpoint", "once", shards=2)


def put(folder: Path, number: int) -> None:
    (folder / "changes" / f"{number}.jsonl").write_text("\n".join(json.dumps(change(number + i)) for i in range(3)))


def attempt(settings: Run, on_batch: Callable[[Batch], object] = lambda batch: None) -> None:
    run(settings, Stop(), on_batch, lambda step: None)


def refused(settings: Run, kind: type[TidingsError], words: str) -> str:
    with pytest.raises(kind, match=words) as caught:
        attempt(settings)
    assert type(caught.value) is kind and "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("option", ["source", "subscriptions", "sink"])
def test_unknown_formats(settings: Run, option: str) -> None:
    said = refused(replace(settings, **{option: Endpoint("nope", "x")}), UsageError, f"^--{option} nope: ")
    assert "there is no such format; known are files, kafka, nats" in said and "spark.jars" in said


def test_what_the_file_system_refuses(settings: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    below = str(tmp_path / "file" / "out")
    refused(replace(settings, sink=Endpoint("files", below)), UsageError, f"--sink files: cannot use {below}: Not a")
    refused(
        replace(settings, trigger="soon"),
        UsageError,
        "--trigger is 'once' or an interval such as '1 second', not 'soon'",
    )


def test_a_full_disk(settings: Run, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "manifest-00000000.json.partial").symlink_to("/dev/full")
    refused(settings, RunError, r"^the disk is full \(No space left on device\): make room for .*give the same command")
    (tmp_path / "out" / "manifest-00000000.json.partial").unlink(missing_ok=True)
    attempt(settings)
    assert (tmp_path / "out" / "manifest-00000000.json").exists()


def test_a_checkpoint_that_is_not_whole(settings: Run, tmp_path: Path) -> None:
    attempt(settings)
    shutil.copytree(settings.checkpoint, tmp_path / "kept")
    own = settings.checkpoint / "checkpoint"

    def restore() -> None:
        shutil.rmtree(settings.checkpoint)
        shutil.copytree(tmp_path / "kept", settings.checkpoint)

    for lost in (own, own / "offsets", own / "state", own / "metadata"):
        shutil.rmtree(lost) if lost.is_dir() else lost.unlink()
        refused(settings, UsageError, f"^{lost} is missing, so {settings.checkpoint} is not a whole checkpoint: ")
        restore()
    for damaged, kind in (
        (settings.checkpoint / "plan.json", UsageError),
        (own / "metadata", UsageError),
        (own / "offsets" / "0", RunError),
    ):
        damaged.write_text("garbage")
        said = refused(
            settings, kind, "is not a whole checkpoint: restore it, or begin with a new checkpoint and a new"
        )
        assert damaged.name in said
        restore()
    put(tmp_path, 1)
    attempt(settings)
    assert (tmp_path / "out" / "manifest-00000001.json").exists()


def test_a_checkpoint_that_is_removed_meanwhile(settings: Run, tmp_path: Path) -> None:
    def remove(batch: Batch) -> None:
        if batch.number == 0:
            shutil.rmtree(settings.checkpoint / "checkpoint", ignore_errors=True)

    with pytest.raises(RunError, match=f"removed .*, so {settings.checkpoint} is not a whole checkpoint: ") as caught:
        attempt(replace(settings, trigger=""), remove)
    assert "\n" not in str(caught.value)
