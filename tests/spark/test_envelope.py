"""Shard names spread evenly over partitions, which needs Spark's own hash, computed here, to be right."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tidings.spark.envelope import replica_keys, spark_hash

pytestmark = pytest.mark.spark


def test_hash_is_sparks(spark: SparkSession) -> None:
    texts = ["", "a", "abcd", "replica/0", "replica/12#345", "é" * 7]
    frame = spark.createDataFrame([(text,) for text in texts], "text string").selectExpr("text", "hash(text) AS hash")
    assert {row["text"]: row["hash"] for row in frame.collect()} == {text: spark_hash(text) for text in texts}


@pytest.mark.parametrize("shards", [1, 2, 3, 8])
def test_each_replica_has_its_own_partition(shards: int) -> None:
    assert sorted(spark_hash(key) % shards for key in replica_keys(shards)) == list(range(shards))
