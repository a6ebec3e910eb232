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


def _claim(folder: Path, run: str) -> None:
    """Marks the folder as this run's. UsageError if it has output of another run, whose micro-batches have the same numbers."""
    mark = folder / _MARK
    known = mark.read_text() if mark.exists() else ""
    if known != run and (known or any(folder.glob("manifest-*.json"))):
        raise UsageError(
            f"{folder} has the output of another run (one with another checkpoint): name another folder, or move it away"
        )
    write_text(mark, run)


class FilesSink:
    """run: identity of the run, which it keeps for as long as its checkpoint lives."""

    def __init__(self, sink: Endpoint, guard: AbstractContextManager[None], run: str) -> None:
        folder = Path(sink.required_path("folder"))
        if "://" in str(sink.path):
            raise UsageError(f"the sink files writes to folders that this machine has, not to {sink.path}")
        self._sink = PartsSink(folder)
        _claim(folder, run)
        self._guard = guard
        self.parts = str(folder.resolve())

    def writer(self, envelopes: DataFrame) -> DataStreamWriter:
        return envelopes.writeStream.foreachBatch(self._write)

    def _write(self, frame: DataFrame, batch: int) -> None:
        with self._guard:
            # Names of files and counts only: the lines are in files that replicas wrote.
            self._sink.write(batch, frame.select("kind", "blob").collect())
