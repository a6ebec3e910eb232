"""Files that appear in a folder, as a stream of their lines."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, concat, date_format, lit

from tidings.model.errors import UsageError
from tidings.spark.endpoint import Endpoint


def read(spark: SparkSession, source: Endpoint, start: str = "") -> DataFrame:
    if start not in ("", "earliest"):
        raise UsageError(f"a folder of files is read from its first file on: --from {start} is not possible")
    return files(spark, source.required_path("folder"), source.options)


def files(spark: SparkSession, folder: str, options: Mapping[str, str] | None = None) -> DataFrame:
    """Files that appear in a folder, as a stream of their lines in the order in which they came: by time, then by name.

    options: of Spark's source of texts, such as maxFilesPerTrigger.
    """
    reader = spark.readStream.format("text").option("wholetext", "true").options(**(options or {}))
    time = date_format(col("_metadata.file_modification_time"), "yyyy-MM-dd HH:mm:ss.SSSSSS")
    return reader.load(folder).select(
        "value",
        concat(time, lit(" "), col("_metadata.file_name")).alias("order"),
        col("_metadata.file_modification_time").alias("time"),
    )
