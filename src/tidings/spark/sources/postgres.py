"""PostgreSQL as a Python data source of Spark's, `tidings-postgres`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from tidings.endpoint import Endpoint
from tidings.sources.postgres import options_of
from tidings.sources.postgres.position import Position
from tidings.sources.postgres.reader import ChangeStream, Part, Row
from tidings.sources.postgres.settings import Settings

FORMAT = "tidings-postgres"
# Numbers, not a text, which would be the name of a file: the end of a file ends a transaction.
_SCHEMA = "value string, partition string, order struct<lsn: bigint, number: bigint>, time timestamp"
_PLACE = pa.struct([("lsn", pa.int64()), ("number", pa.int64())])
_ARROW = pa.schema(
    [("value", pa.string()), ("partition", pa.string()), ("order", _PLACE), ("time", pa.timestamp("us", "UTC"))]
)
_ROWS = 10_000


def read(spark: SparkSession, source: Endpoint, start: str = "") -> DataFrame:
    """The stream of a source."""
    register(spark)
    return spark.readStream.format(FORMAT).options(**options_of(source, start)).load()


def register(spark: SparkSession) -> None:
    """Makes the format known to a session."""
    spark.dataSource.register(PostgresDataSource)


@dataclass
class _Task(InputPartition):  # type: ignore[misc]
    part: Part


class PostgresDataSource(DataSource):  # type: ignore[misc]
    """Options: as in `Settings`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return _SCHEMA

    def streamReader(self, schema: Any) -> PostgresStreamReader:
        return PostgresStreamReader(Settings.of(dict(self.options)))


class PostgresStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """One slot has one reader at a time, so that changes are one partition; a snapshot has one per chunk."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stream = ChangeStream(settings)

    def initialOffset(self) -> dict[str, Any]:
        return self._stream.first().as_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._settings.max_rows)

    def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> dict[str, Any]:
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else self._settings.max_rows
        return self._stream.latest(Position.of(start), rows).as_json()

    def reportLatestOffset(self) -> dict[str, Any]:
        return self._stream.end().as_json()

    def prepareForTriggerAvailableNow(self) -> None:
        self._stream.stop_at_present()

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[InputPartition]:
        return [_Task(part) for part in self._stream.parts(Position.of(start), Position.of(end))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        try:
            rows = self._stream.rows(partition.part)
            while batch := list(islice(rows, _ROWS)):
                yield _arrow(batch, self._settings.slot)
        finally:
            self._stream.close()

    def commit(self, end: Mapping[str, Any]) -> None:
        self._stream.commit(Position.of(end))

    def stop(self) -> None:
        self._stream.close()


def _arrow(rows: list[Row], slot: str) -> pa.RecordBatch:
    columns = [
        pa.array([row.value for row in rows], pa.string()),
        pa.array([slot] * len(rows), pa.string()),
        pa.array([{"lsn": row.lsn, "number": row.number} for row in rows], _PLACE),
        pa.array([row.time for row in rows], pa.timestamp("us", "UTC")),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW)
