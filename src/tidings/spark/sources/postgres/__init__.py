"""PostgreSQL as a source: a snapshot of the tables, then every committed change, by logical replication.

    settings -> begin (publication, slot, snapshot) -> ChangeStream -> Spark's data source `tidings-postgres`

Nothing is installed on the server; a slot keeps its log until a micro-batch is done.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from pyspark.sql import DataFrame, SparkSession

from tidings.spark.endpoint import Endpoint
from tidings.spark.sources.postgres import reader
from tidings.spark.sources.postgres.server import driver
from tidings.spark.sources.postgres.settings import Settings
from tidings.spark.sources.postgres.source import FORMAT, PostgresDataSource

__all__ = ["FORMAT", "begun", "check", "read", "register"]


def check(source: Endpoint, start: str = "") -> None:
    """UsageError if something is wrong with the options or the server."""
    driver()
    reader.check(Settings.of(_options(source, start)))


def begun(source: Endpoint, start: str = "") -> AbstractContextManager[object]:
    """Makes publication, slot and snapshot of a new run. They are removed if the context ends with an error."""
    return reader.begun(Settings.of(_options(source, start)))


def read(spark: SparkSession, source: Endpoint, start: str = "") -> DataFrame:
    """The stream of a source."""
    register(spark)
    return spark.readStream.format(FORMAT).options(**_options(source, start)).load()


def register(spark: SparkSession) -> None:
    """Makes the format known to a session."""
    spark.dataSource.register(PostgresDataSource)


def _options(source: Endpoint, start: str) -> dict[str, str]:
    """The options of Spark's data source. The path of an endpoint is a connection string."""
    path = source.required_path("connection")
    options = {**source.options, "dsn": f"postgresql:{path}" if path.startswith("//") else path}
    return {**options, "start": start} if start else options
