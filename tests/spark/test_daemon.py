"""Workers are forked with what replicas need already loaded, and all kinds of tasks share them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_workers_have_everything_when_they_start(spark: SparkSession) -> None:
    # Inside, so that it travels by value: workers cannot import test files.
    def loaded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        modules = [name for name in ("numba", "pandas", "tidings.spark.replica_worker") if name in sys.modules]
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"parent": [os.getppid()], "modules": [",".join(modules)]})

    frame = spark.range(0, 4, 1, 4).mapInArrow(loaded, "parent long, modules string")
    rows = frame.collect()
    assert {row["modules"] for row in rows} == {"numba,pandas,tidings.spark.replica_worker"}
    (daemon,) = {row["parent"] for row in rows}
    # Tasks of both kinds, plain functions and those of SQL, get workers of the same daemon.
    (other,) = set(spark.sparkContext.range(2).map(lambda _: os.getppid()).collect())
    assert other == daemon
