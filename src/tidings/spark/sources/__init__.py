"""Sources of a live run, one a file, each with a function `read`.

`read` gives a streaming DataFrame with a column `value` (a record, or lines of records, as text or bytes), with the place of
the record in its partition (`offset`, a number, or `order`, a text), and where the source has them with `partition` and
`time` (a timestamp: when the change was made, or came into the source).
"""

from __future__ import annotations

from importlib import import_module

from pyspark.sql import DataFrame, SparkSession

from tidings.model.errors import UsageError
from tidings.spark.endpoint import Endpoint

_MODULES = ("files", "kafka", "nats", "postgres")


def read(spark: SparkSession, source: Endpoint, start: str = "") -> DataFrame:
    """The stream of a source. start: where a run without a checkpoint begins: earliest, latest or a position of the source;
    empty: as the source does by default. Formats that are not ours are Spark's own.
    """
    if source.format in _MODULES:
        found: DataFrame = import_module(f"{__name__}.{source.format}").read(spark, source, start)
        return found
    if start:
        raise UsageError(
            f"--from is not for Spark's source {source.format!r}: give it an option of its own that says where to begin"
        )
    reader = spark.readStream.format(source.format).options(**source.options)
    return reader.load(source.path) if source.path else reader.load()
