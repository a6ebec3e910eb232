"""A folder of files: one manifest per micro-batch, which names the files that count (`sinks/parts.py`)."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidings.files import write_text
from tidings.model.errors import UsageError
from tidings.spark.endpoint import Endpoint
from tidings.spark.sinks.parts import PartsSink

_MARK = ".run"


def sink(sink: Endpoint, guard: AbstractContextManager[None], run: str) -> FilesSink:
    return FilesSink(sink, guard, run)


class FilesSink:
    """run: identity of the run, which it keeps for as long as its checkpoint lives."""

    def __init__(self, sink: Endpoint, guard: AbstractContextManager[None], run: str) -> None:
        self._folder = Path(sink.required_path("folder"))
        if "://" in sink.path:
            raise UsageError(f"the sink files writes to folders that this machine has, not to {sink.path}")
        if self._folder.exists() and not self._folder.is_dir():
            raise UsageError(f"the sink files writes to a folder, but {self._folder} is a file")
        self._run = run
        self._guard = guard
        self.parts = str(self._folder.resolve())
        self._check()

    def _check(self) -> None:
        """UsageError if the folder has output of another run, whose micro-batches have the same numbers."""
        mark = self._folder / _MARK
        known = mark.read_text() if mark.exists() else ""
        is_own = known and known == self._run
        if not is_own and (known or any(self._folder.glob("manifest-*.json"))):
            raise UsageError(
                f"{self._folder} has the output of another run (one with another checkpoint): name another folder, or move it"
                " away"
            )

    def prepare(self) -> None:
        self._check()
        self._folder.mkdir(parents=True, exist_ok=True)
        write_text(self._folder / _MARK, self._run)

    def writer(self, envelopes: DataFrame) -> DataStreamWriter:
        return envelopes.writeStream.foreachBatch(self._write)

    def _write(self, frame: DataFrame, batch: int) -> None:
        with self._guard:
            # Names of files and counts only: the lines are in files that replicas wrote.
            PartsSink(self._folder).write(batch, frame.select("kind", "blob").collect())
