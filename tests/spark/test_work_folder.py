"""A run resumes its own work folder, and harms no folder and no process that is not its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidings.model.errors import UsageError
from tidings.spark import work_folder
from tidings.spark.work_folder import MARK, discard, prepare


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """A process that lives until its input ends. Orphans are not waited for."""
    monkeypatch.setattr(work_folder, "_ORPHAN_SECONDS", 0.0)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_a_folder_of_the_same_run_is_kept_and_another_replaced(tmp_path: Path) -> None:
    work = tmp_path / "out.work"
    prepare(work, "one")
    (work / "parts").mkdir()
    prepare(work, "one")
    assert (work / "parts").is_dir()
    prepare(work, "another")
    assert [entry.name for entry in work.iterdir()] == [MARK]
    assert (work / MARK).read_text() == "another"


@pytest.mark.parametrize("name", ["out.work", "out.work.gone"])
def test_a_folder_that_is_not_ours_is_not_touched(tmp_path: Path, name: str) -> None:
    foreign = tmp_path / name / "photos"
    foreign.mkdir(parents=True)
    (foreign / "1").write_text("precious")
    with pytest.raises(UsageError, match="is in the way"):
        prepare(tmp_path / "out.work", "one")
        discard(tmp_path / "out.work")
    assert (foreign / "1").read_text() == "precious"


def test_a_folder_of_a_run_that_was_killed_while_it_was_made_or_removed_is_ours(tmp_path: Path) -> None:
    work, gone = tmp_path / "out.work", tmp_path / "out.work.gone"
    work.mkdir()
    (work / f".{MARK}.partial").write_text("on")
    gone.mkdir()
    (gone / MARK).write_text("one")
    (gone / "rest").write_text("")
    prepare(work, "one")
    discard(work)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("identity", [None, ["another boot", "1"]])
def test_a_process_that_only_has_the_number_of_ours_lives(
    tmp_path: Path, process: subprocess.Popen[bytes], identity: list[str] | None
) -> None:
    _interrupted(tmp_path, process.pid, identity)
    prepare(tmp_path, "one")
    assert process.poll() is None


def test_the_process_of_a_killed_run_is_ended(tmp_path: Path, process: subprocess.Popen[bytes]) -> None:
    _interrupted(tmp_path, process.pid, work_folder._identity(process.pid))
    prepare(tmp_path, "one")
    assert process.wait(10) != 0


def _interrupted(work: Path, pid: int, identity: list[str] | None) -> None:
    prepare(work, "one")
    (work / "java.json").write_text(json.dumps({"pid": pid, "identity": identity}))
