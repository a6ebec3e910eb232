"""Sources of a live run on Spark, one a file, each with a function `read`: those of `tidings.sources`, and Kafka.

`read` gives a streaming DataFrame with a column `value` (a record, or lines of records, as text or bytes), with the place of
the record in its partition (`offset`, a number, or `order`, a text), and where the source has them with `partition` and
`time` (a timestamp: when the change was made, or came into the source).
"""

from __future__ import annotations

from importlib import import_module

from pyspark.sql import DataFrame, SparkSession

from tidings import sources
from tidings.endpoint import Endpoint
from tidings.model.errors import UsageError
from tidings.spark.sources import kafka

FORMATS = ("files", "kafka", "nats", "postgres")


def check(source: Endpoint, start: str = "") -> None:
    """UsageError for what is wrong with a source. start: as in `read`."""
    if source.format in sources.FORMATS:
        sources.check(source, start)
    elif source.format == "kafka":
        kafka.check(source, start)
    elif start:
        raise UsageError(
            f"--from is not for Spark's source {source.format!r}: give it an option of its own that says where to begin"
        )


def read(spark: SparkSession, source: Endpoint, start: str = "") -> DataFrame:
    """The stream of a source that was checked. start: where a run without a checkpoint begins: earliest, latest or a position
    of the source; empty: as the source does by default. Formats that are not ours are Spark's own.
    """
    if source.format in FORMATS:
        found: DataFrame = import_module(f"{__name__}.{source.format}").read(spark, source, start)
        return found
    reader = spark.readStream.format(source.format).options(**source.options)
    return reader.load(source.path) if source.path else reader.load()
