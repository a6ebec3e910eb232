"""Files that appear in a folder, as a stream of their lines: a data source `tidings-files` of Spark's.

Spark's own source of files forgets those that are older than its newest by a week, takes a backlog by time, and becomes slow
with their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from tidings.endpoint import Endpoint
from tidings.sources import Offset, Record
from tidings.sources.files import FolderStream, Settings, read_file

FORMAT = "tidings-files"
_SCHEMA = "value binary, partition string, order string, time timestamp"
_FIELDS = pa.schema(
    [("value", pa.binary()), ("partition", pa.string()), ("order", pa.string()), ("time", pa.timestamp("us", "UTC"))]
)
_TASK_BYTES, _BATCH_BYTES = 8 * 2**20, 4 * 2**20


def read(spark: SparkSession, source: Endpoint, start: str = "") -> DataFrame:
    return files(spark, source.path, source.options)


def files(spark: SparkSession, folder: str, options: Mapping[str, str] | None = None) -> DataFrame:
    """Files that appear in a folder, as a stream of their lines in the order in which they are found, then of their names.

    folder: or a single file. options: spool, a folder for a log of what was read, to be kept with the checkpoint (by default
    `.tidings` in the folder itself); maxFilesPerTrigger, maxBytesPerTrigger (64 MiB), pathGlobFilter, cleanSource=delete;
    partitions=name, where names of files end with a tilde and the partition of their records.
    """
    known = {**(options or {}), "path": folder}
    Settings.of(known)
    spark.dataSource.register(FilesDataSource)
    return spark.readStream.format(FORMAT).options(**known).load()


class FilesDataSource(DataSource):  # type: ignore[misc]
    """Options: as in `files`, and path."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return _SCHEMA

    def streamReader(self, schema: Any) -> FilesReader:
        return FilesReader(Settings.of(dict(self.options)))


@dataclass
class _Files(InputPartition):  # type: ignore[misc]
    paths: list[Path]


class FilesReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    def __init__(self, settings: Settings) -> None:
        self._stream = FolderStream(settings)
        self._has_partitions = settings.has_partitions

    def initialOffset(self) -> Offset:
        return self._stream.first()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        return self._stream.latest(start)

    def prepareForTriggerAvailableNow(self) -> None:
        self._stream.stop_at_present()

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        tasks = [_Files([])]
        size = 0
        for path in self._stream.paths(start, end):
            if size >= _TASK_BYTES:
                tasks.append(_Files([]))
                size = 0
            tasks[-1].paths.append(path)
            size += path.stat().st_size if path.exists() else 0
        return tasks

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Files)
        rows: list[Record] = []
        size = 0
        for path in partition.paths:
            rows.append(read_file(path, self._has_partitions))
            size += len(rows[-1].value)
            if size >= _BATCH_BYTES:
                yield _batch(rows)
                rows, size = [], 0
        if rows:
            yield _batch(rows)

    def commit(self, end: Offset) -> None:
        self._stream.commit(end)


def _batch(rows: list[Record]) -> pa.RecordBatch:
    columns = (
        [row.value for row in rows],
        [row.partition for row in rows],
        [row.place[1:].decode() for row in rows],
        [row.time for row in rows],
    )
    arrays = [pa.array(values, type) for values, type in zip(columns, _FIELDS.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_FIELDS)
