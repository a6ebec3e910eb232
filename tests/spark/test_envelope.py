"""Shard names spread evenly over partitions, which needs Spark's own hash, computed here, to be right."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tidings.spark.envelope import Keys, spark_hash

pytestmark = pytest.mark.spark


def test_hash_is_sparks(spark: SparkSession) -> None:
    texts = ["", "a", "abcd", "table/0#1", "zone/12#345", "é" * 7, 'group/["x"]/3#0']
    frame = spark.createDataFrame([(text,) for text in texts], "text string").selectExpr("text", "hash(text) AS hash")
    assert {row["text"]: row["hash"] for row in frame.collect()} == {text: spark_hash(text) for text in texts}


@pytest.mark.parametrize("partitions", [1, 2, 3, 8])
def test_each_shard_has_its_own_partition(partitions: int) -> None:
    keys = Keys(partitions)
    for name in (keys.table, keys.zone, lambda shard: keys.group("g", shard)):
        found = [spark_hash(name(shard)) % partitions for shard in range(partitions)]
        assert sorted(found) == list(range(partitions))
    firsts = {spark_hash(keys.group(f"g{i}", 0)) % partitions for i in range(100)}
    assert firsts == set(range(partitions))
