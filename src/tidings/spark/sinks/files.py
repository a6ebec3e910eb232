"""A folder of files (`tidings.sinks.parts`), to which replicas write their lines themselves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidings.endpoint import Endpoint
from tidings.model.blob import unpack
from tidings.sinks.parts import PartsSink, add_metrics, check_folder, claim_folder
from tidings.spark import envelope as kinds
from tidings.spark.sinks.guard import Guard


def sink(sink: Endpoint, guard: Guard, run: str) -> FilesSink:
    return FilesSink(sink, guard, run)


class FilesSink:
    """run: identity of the run, which it keeps for as long as its checkpoint lives.

    With the option `format=columns`, parts are as `PartsSink.columns` reads them, for whoever has no need of lines.
    """

    def __init__(self, sink: Endpoint, guard: Guard, run: str) -> None:
        self._folder = check_folder(sink.required_path("folder"), run)
        self.has_columns = sink.options.get("format", "lines") == "columns"
        self._run = run
        self._guard = guard
        self.parts = str(self._folder.resolve())

    def prepare(self) -> None:
        claim_folder(str(self._folder), self._run)

    def writer(self, envelopes: DataFrame) -> DataStreamWriter:
        return envelopes.writeStream.foreachBatch(self._write)

    def _write(self, frame: DataFrame, batch: int) -> None:
        with self._guard:
            # Names of files and counts only: the lines are in files that replicas wrote.
            write_envelopes(PartsSink(self._folder), batch, frame.select("kind", "blob").collect())


def write_envelopes(sink: PartsSink, batch: int, rows: Iterable[Any]) -> dict[str, Any]:
    """Writes one micro-batch of envelopes (rows with kind and blob). Returns its metrics.

    Lines are in files that replicas have written, which envelopes name.
    """
    files: dict[str, list[str]] = {}
    metrics: dict[str, Any] = {}
    for row in rows:
        blob = bytes(row["blob"])
        if row["kind"] == kinds.PART:
            files.setdefault(blob.decode().rpartition(".")[2], []).append(blob.decode())
        elif row["kind"] == kinds.METRICS:
            add_metrics(metrics, unpack(blob))
    sink.write(batch, {}, metrics, files)
    return metrics
