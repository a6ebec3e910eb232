"""A folder of files: one manifest per micro-batch, which names the files that count (`sinks/parts.py`)."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidings.spark.endpoint import Endpoint
from tidings.spark.sinks import OnBatch
from tidings.spark.sinks.parts import PartsSink


def sink(sink: Endpoint, guard: AbstractContextManager[None], on_batch: OnBatch) -> FilesSink:
    return FilesSink(sink, guard, on_batch)


class FilesSink:
    def __init__(self, sink: Endpoint, guard: AbstractContextManager[None], on_batch: OnBatch) -> None:
        folder = Path(sink.required_path("folder"))
        self._sink = PartsSink(folder)
        self._guard, self._on_batch = guard, on_batch
        self.parts = str(folder.resolve())

    def writer(self, envelopes: DataFrame) -> DataStreamWriter:
        return envelopes.writeStream.foreachBatch(self._write)

    def _write(self, frame: DataFrame, batch: int) -> None:
        started = time.monotonic()
        with self._guard:
            metrics = self._sink.write(batch, frame.collect())
        self._on_batch(batch, time.monotonic() - started, metrics)
