"""Files that appear in a folder, as a stream of their lines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, concat, lit, lpad, unix_micros

from tidings.model.errors import UsageError
from tidings.spark.endpoint import Endpoint

_BATCH_BYTES = 64 * 2**20


def read(spark: SparkSession, source: Endpoint, start: str = "") -> DataFrame:
    if start not in ("", "earliest"):
        raise UsageError(f"a folder of files is read from its first file on: --from {start} is not possible")
    return files(spark, source.required_path("folder"), source.options)


def files(spark: SparkSession, folder: str, options: Mapping[str, str] | None = None) -> DataFrame:
    """Files that appear in a folder, as a stream of their lines in the order in which they came: by time, then by name.

    folder: or a single file. options: of Spark's source of texts, such as maxFilesPerTrigger. A micro-batch takes files of
    about 64 MiB together, unless the option maxBytesPerTrigger or maxFilesPerTrigger says otherwise.
    """
    known = dict(options or {})
    if not {"maxFilesPerTrigger", "maxBytesPerTrigger"} & set(known):
        known["maxBytesPerTrigger"] = str(_BATCH_BYTES)
    if Path(folder).is_file():
        # Spark watches folders only.
        known["pathGlobFilter"], folder = Path(folder).name, str(Path(folder).parent)
    reader = spark.readStream.format("text").option("wholetext", "true").options(**known)
    # Not as a date: clocks of a time zone go back once a year.
    time = lpad(unix_micros(col("_metadata.file_modification_time")), 20, "0")
    return reader.load(folder).select(
        "value",
        concat(time, lit(" "), col("_metadata.file_name")).alias("order"),
        col("_metadata.file_modification_time").alias("time"),
    )
