"""A folder of files: one manifest per micro-batch, which names the files that count (`sinks/parts.py`)."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidings.spark.endpoint import Endpoint
from tidings.spark.sinks.parts import PartsSink


def sink(sink: Endpoint, guard: AbstractContextManager[None]) -> FilesSink:
    return FilesSink(sink, guard)


class FilesSink:
    def __init__(self, sink: Endpoint, guard: AbstractContextManager[None]) -> None:
        folder = Path(sink.required_path("folder"))
        self._sink = PartsSink(folder)
        self._guard = guard
        self.parts = str(folder.resolve())

    def writer(self, envelopes: DataFrame) -> DataStreamWriter:
        return envelopes.writeStream.foreachBatch(self._write)

    def _write(self, frame: DataFrame, batch: int) -> None:
        with self._guard:
            # Names of files and counts only: the lines are in files that replicas wrote.
            self._sink.write(batch, frame.select("kind", "blob").collect())
