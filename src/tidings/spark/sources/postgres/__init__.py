"""PostgreSQL as a source: a snapshot of the tables, then every committed change, by logical replication.

    settings -> begin (publication, slot, snapshot) -> ChangeStream -> Spark's data source `tidings-postgres`

Nothing is installed on the server; a slot keeps its log until a micro-batch is done.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from tidings.spark.endpoint import Endpoint
from tidings.spark.sources.postgres.reader import begin
from tidings.spark.sources.postgres.server import driver
from tidings.spark.sources.postgres.settings import Settings
from tidings.spark.sources.postgres.source import FORMAT, PostgresDataSource

__all__ = ["FORMAT", "read", "register"]


def read(spark: SparkSession, source: Endpoint, start: str = "") -> DataFrame:
    """The stream of a source; its path is the connection string. What is wrong with the server is said here."""
    driver()
    path = source.required_path("connection")
    options = {**source.options, "dsn": f"postgresql:{path}" if path.startswith("//") else path}
    if start:
        options["start"] = start
    begin(Settings.of(options))
    register(spark)
    return spark.readStream.format(FORMAT).options(**options).load()


def register(spark: SparkSession) -> None:
    """Makes the format known to a session."""
    spark.dataSource.register(PostgresDataSource)
