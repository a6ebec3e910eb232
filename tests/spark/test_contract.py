"""The contract suite on Spark: few workloads, because each is a streaming query of its own, with random micro-batches."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tidings.spark.testing import run_spark
from tidings.testing import FAMILY_WORKLOADS, check_family, offers_workloads, with_transactions
from tidings.testing.checks import check_exact
from tidings.testing.offers_inputs import UNKEPT

pytestmark = pytest.mark.spark


@pytest.mark.extended
@pytest.mark.parametrize("family", FAMILY_WORKLOADS)
def test_answers_are_exact_on_spark(family: str, spark: SparkSession) -> None:
    check_family(family, FAMILY_WORKLOADS[family], engine=run_spark, checks=[check_exact], examples=1)


@pytest.mark.extended
def test_publications_that_nobody_keeps_are_exact_on_spark(spark: SparkSession) -> None:
    check_family("offers", offers_workloads(catalogs=UNKEPT), engine=run_spark, checks=[check_exact], examples=2)


@pytest.mark.parametrize("family", FAMILY_WORKLOADS)
def test_transactions_are_exact_on_spark(family: str, spark: SparkSession) -> None:
    """Several shards, micro-batches of random sizes: a commit is told once, as its net effect. Some records are in none."""
    check_family(
        family, with_transactions(FAMILY_WORKLOADS[family]), engine=run_spark, checks=[check_exact], examples=1
    )
