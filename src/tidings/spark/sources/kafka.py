"""Topics of Kafka, through Spark's own connector."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from tidings.spark.endpoint import Endpoint


def read(spark: SparkSession, source: Endpoint, start: str = "") -> DataFrame:
    """start: `earliest`, `latest`, or positions as Spark's option startingOffsets takes them."""
    options = dict(source.options)
    if source.path:
        options["subscribe"] = source.path
    if start:
        options["startingOffsets"] = start
    found = spark.readStream.format("kafka").options(**options).load()
    return found.select("value", "partition", "offset", col("timestamp").alias("time"))
