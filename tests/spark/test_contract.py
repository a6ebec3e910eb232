"""The contract suite on Spark: few workloads, because each is a streaming query of its own, with random micro-batches."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tidings.spark.testing import run_spark
from tidings.testing import (
    check_family,
    drift_workloads,
    join_workloads,
    offers_workloads,
    topk_workloads,
    with_transactions,
)
from tidings.testing.checks import check_exact
from tidings.testing.select_inputs import select_workloads

pytestmark = pytest.mark.spark


WORKLOADS = {
    "select": select_workloads(changes_max=40),
    "drift": drift_workloads(),
    "topk": topk_workloads(),
    "join": join_workloads(),
    "offers": offers_workloads(),
}


@pytest.mark.extended
@pytest.mark.parametrize("family", WORKLOADS)
def test_answers_are_exact_on_spark(family: str, spark: SparkSession) -> None:
    check_family(family, WORKLOADS[family], engine=run_spark, checks=[check_exact], examples=1)


@pytest.mark.parametrize("family", WORKLOADS)
def test_transactions_are_exact_on_spark(family: str, spark: SparkSession) -> None:
    """Several shards, micro-batches of random sizes: a commit is told once, as its net effect. Some records are in none."""
    check_family(family, with_transactions(WORKLOADS[family]), engine=run_spark, checks=[check_exact], examples=1)
