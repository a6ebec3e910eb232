"""Files that appear in a folder, as a stream of their lines: a data source `tidings-files` of Spark's.

Spark's own source of files forgets those that are older than its newest by a week, takes a backlog by time, and becomes slow
with their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from tidings.model.errors import UsageError
from tidings.spark.endpoint import Endpoint
from tidings.spark.sources.files.folder import FolderStream, Offset, Settings, text_of

FORMAT = "tidings-files"
_SCHEMA = "value binary, order string, time timestamp"
_FIELDS = pa.schema([("value", pa.binary()), ("order", pa.string()), ("time", pa.timestamp("us", "UTC"))])
_TASK_BYTES, _BATCH_BYTES = 8 * 2**20, 4 * 2**20
_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}


def read(spark: SparkSession, source: Endpoint, start: str = "") -> DataFrame:
    return files(spark, source.path, source.options)


def check(source: Endpoint, start: str = "") -> None:
    """UsageError if the source cannot be read. Says which names of the folder are passed over."""
    if start not in ("", "earliest"):
        raise UsageError(f"a folder of files is read from its first file on: --from {start} is not possible")
    Settings.of({**source.options, "path": source.required_path("folder")}).say_passed_over()


def files(spark: SparkSession, folder: str, options: Mapping[str, str] | None = None) -> DataFrame:
    """Files that appear in a folder, as a stream of their lines in the order in which they are found, then of their names.

    folder: or a single file. options: spool, a folder for a log of what was read, to be kept with the checkpoint (by default
    `.tidings` in the folder itself); maxFilesPerTrigger, maxBytesPerTrigger (64 MiB), pathGlobFilter, cleanSource=delete.
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
        rows: list[_Row] = []
        size = 0
        for path in partition.paths:
            rows.append(_row(path))
            size += len(rows[-1].value)
            if size >= _BATCH_BYTES:
                yield _batch(rows)
                rows, size = [], 0
        if rows:
            yield _batch(rows)

    def commit(self, end: Offset) -> None:
        self._stream.commit(end)


class _Row(NamedTuple):
    value: bytes
    order: str
    time: int
    """In microseconds."""


def _row(path: Path) -> _Row:
    try:
        return _Row(_unpacked(path.read_bytes(), path.suffix), text_of(path.name), path.stat().st_mtime_ns // 1000)
    except OSError as error:
        raise UsageError(
            f"cannot read {path}, which belongs to a micro-batch that has begun: {error.strerror}. Put it back, and start again"
        ) from None


def _unpacked(data: bytes, suffix: str) -> bytes:
    """The contents of a file that may be compressed. What cannot be unpacked is left as it is, to be refused as a record."""
    if suffix in _CODECS:
        with suppress(OSError), pa.CompressedInputStream(pa.BufferReader(data), _CODECS[suffix]) as source:
            return bytes(source.read())
    return data


def _batch(rows: list[_Row]) -> pa.RecordBatch:
    columns = [pa.array(values, type) for values, type in zip(zip(*rows, strict=True), _FIELDS.types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=_FIELDS)
