"""Files that appear in a folder: each is read once, whatever its name and time, also after a kill. By a job: test_run.py."""

from __future__ import annotations

import bz2
import gzip
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tidings.endpoint import Endpoint
from tidings.model.errors import UsageError
from tidings.sources.files import FolderStream, Settings
from tidings.spark.sources import check
from tidings.spark.sources.files import FilesReader

YEAR = 365 * 24 * 3600


def put(folder: Path, name: str, text: str = "", age: float = 0.0) -> None:
    """A file that is there whole. age: how many seconds ago it was changed last, as its time has it."""
    partial = folder / f".{name}"
    partial.write_text(text)
    moment = time.time() - age
    os.utime(partial, (moment, moment))
    partial.rename(folder / name)


class Reader:
    """Reads a folder as Spark does. A kill loses everything but the offsets that Spark has written."""

    def __init__(self, folder: Path, **options: str) -> None:
        self.folder = folder
        self._options = {"path": str(folder), "spool": str(folder.parent / "spool"), **options}
        self.done: dict[str, Any] | None = None
        self.batches: list[list[str]] = []
        self.restart()

    def restart(self) -> None:
        self._stream = FolderStream(Settings.of(self._options))

    def latest(self) -> dict[str, Any]:
        return self._stream.latest(self._start)

    @property
    def _start(self) -> dict[str, Any]:
        if self.done is None:
            self.done = self._stream.first()
        return self.done

    def read(self, end: dict[str, Any]) -> list[str]:
        return [path.name for path in self._stream.paths(self._start, end)]

    def commit(self, end: dict[str, Any]) -> None:
        self.batches.append(self.read(end))
        self.done = end
        self._stream.commit(end)

    def batch(self) -> list[str]:
        """Reads one micro-batch, if there is one."""
        end = self.latest()
        if end == self._start:
            return []
        self.commit(end)
        return self.batches[-1]


def test_times_do_not_matter_and_names_order_what_is_found_together(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    read = Reader(folder, maxFilesPerTrigger="2")
    for name, age in (("d", -YEAR), ("c", 50 * YEAR), ("b", 0.0), ("a", YEAR), ("e", 9 * 24 * 3600.0)):
        put(folder, name, age=age)
    assert [read.batch() for _ in range(3)] == [["a", "b"], ["c", "d"], ["e"]]
    put(folder, "0", age=56 * YEAR)
    put(folder, b"\xff".decode("utf-8", "surrogateescape"))
    assert read.batch() == ["0", "\udcff"]
    assert read.batch() == []


def test_every_file_is_read_once_whatever_happens(tmp_path: Path) -> None:
    """Random arrivals, micro-batches, commits and kills. What was read before a kill is read again the same, or not at all."""
    choose = random.Random(25)
    folder = tmp_path / "in"
    folder.mkdir()
    read = Reader(folder, maxBytesPerTrigger="30")
    names = [f"{choose.randrange(10**6)}.jsonl" for _ in range(1500)]
    unread = iter(dict.fromkeys(names))
    log = tmp_path / "spool"
    for _ in range(1500):
        act = choose.random()
        if act < 0.5 and (name := next(unread, None)):
            put(folder, name, "x" * choose.randrange(40), age=choose.uniform(-YEAR, 50 * YEAR))
        elif act < 0.8:
            read.batch()
        elif act < 0.9:
            end = read.latest()
            before = read.read(end)
            read.restart()
            if choose.random() < 0.5:
                # Spark had written the offset before it was killed, and runs the micro-batch again.
                assert read.read(end) == before
                read.commit(end)
        elif act < 0.95:
            for path in log.glob("files-*"):
                # Killed within the write of a line.
                with path.open("ab") as sink:
                    sink.write(b'{"batch": 17, "fi')
            read.restart()
        elif read.batches and (gone := read.batches[-1]) and choose.random() < 0.9:
            (folder / gone[0]).unlink(missing_ok=True)
    while read.batch():
        pass
    assert Counter(name for batch in read.batches for name in batch) == Counter(set(names) - set(unread))
    assert all(batch == sorted(batch) for batch in read.batches)


def test_the_log_does_not_grow_with_files_that_are_gone(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    read = Reader(folder, cleanSource="delete")
    other = Reader(folder, spool=str(tmp_path / "other"))
    for number in range(0, 10_000, 100):
        for name in range(number, number + 100):
            (folder / f"{name:05d}").touch()
        assert len(other.batch()) == len(read.batch()) == 100
    assert list(folder.iterdir()) == []
    for name in ("spool", "other"):
        (log,) = (tmp_path / name).iterdir()
        assert log.stat().st_size < 2000 * len('"00000": 1234567, ')
    (folder / "00007").touch()
    assert other.batch() == ["00007"], "a name that has left the folder is free again"


def test_names_that_are_passed_over_and_files_that_are_replaced_are_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    read = Reader(folder)
    for name in ("a.jsonl", "_SUCCESS", ".hidden", "b.tmp", "c.partial", "d._COPYING_"):
        (folder / name).write_text("{}")
    (folder / "below").mkdir()
    assert read.batch() == ["a.jsonl"]
    (folder / "e.tmp").touch()
    put(folder, "a.jsonl", "new")
    assert read.batch() == [] and read.batch() == []
    said = capfd.readouterr().err
    assert said.count("'.hidden' is passed over, as are all names that begin with '.' or '_'") == 1
    assert said.count("a.jsonl was replaced after it was read: it is not read again") == 1
    check(Endpoint("files", str(folder)))
    assert "is passed over" in capfd.readouterr().err


def test_packed_files_are_unpacked(tmp_path: Path) -> None:
    written = {"a.gz": gzip.compress(b"1\n"), "b.bz2": bz2.compress(b"2\n"), "c.gz": b"no gzip", "d": b""}
    for name, data in written.items():
        (tmp_path / name).write_bytes(data)
    reader = FilesReader(Settings.of({"path": str(tmp_path)}))
    start = reader.initialOffset()
    end = reader.latestOffset(start, None)
    rows = [
        row for task in reader.partitions(start, end) for row in pa.Table.from_batches(reader.read(task)).to_pylist()
    ]
    assert {row["order"]: row["value"] for row in rows} == written | {"a.gz": b"1\n", "b.bz2": b"2\n"}
    (tmp_path / "a.gz").unlink()
    with pytest.raises(UsageError, match="belongs to a micro-batch that has begun"):
        list(reader.read(reader.partitions(start, end)[0]))


@pytest.mark.parametrize(
    ("path", "options", "said"),
    [
        ("nowhere", {}, "there is no folder"),
        ("", {}, "write files:FOLDER"),
        ("s3a://bucket/in", {}, "folders that this machine and all executors see"),
        (".", {"maxFileAge": "7d"}, "has no option 'maxFileAge'; it has maxFilesPerTrigger"),
        (".", {"maxFilesPerTrigger": "0"}, "a number above 0"),
        (".", {"cleanSource": "archive"}, "off or delete"),
    ],
)
def test_what_is_wrong_is_said(path: str, options: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        check(Endpoint("files", path, options))


def test_checkpoints_of_sparks_own_source_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="of another version of the source files"):
        FolderStream(Settings.of({"path": str(tmp_path)})).latest({"logOffset": 4})
