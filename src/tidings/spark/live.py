"""Live input from Spark's own sources: any stream of raw lines, and a folder where compiled subscription events arrive."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, lit

from tidings.model.blob import pack
from tidings.model.points import PointBatch
from tidings.spark import envelope as kinds


def live_source(lines: DataFrame, points: DataFrame) -> DataFrame:
    """The job's input: `lines` has raw records in a column `value` (one or many lines each), `points` packed events."""
    records = lines.select(lit(kinds.LINES).alias("kind"), _no_position(), col("value").cast("binary").alias("value"))
    events = points.select(lit(kinds.POINTS).alias("kind"), _no_position(), col("content").alias("value"))
    return records.unionByName(events)


def points_folder(spark: SparkSession, folder: Path) -> DataFrame:
    """The stream of subscription events put into a folder by `drop_points`."""
    return spark.readStream.format("binaryFile").schema(_BINARY_FILE).load(str(folder))


def drop_points(folder: Path, name: str, points: list[PointBatch]) -> None:
    """Hands subscription events to a running job; the file appears at once or not at all."""
    partial = folder / f".{name}.partial"
    partial.write_bytes(pack(points))
    partial.replace(folder / name)


_BINARY_FILE = "path string, modificationTime timestamp, length long, content binary"


def _no_position() -> Column:
    return lit(None).cast("long").alias("position")
