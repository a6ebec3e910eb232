"""The contract suite on Spark: few workloads, because each is a streaming query of its own, with random micro-batches."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tidings.spark.testing import run_spark
from tidings.testing import check_family, drift_workloads, join_workloads, offers_workloads, topk_workloads
from tidings.testing.checks import check_exact
from tidings.testing.select_inputs import select_workloads

pytestmark = pytest.mark.spark


def test_select_is_exact_on_spark(spark: SparkSession) -> None:
    check_family("select", select_workloads(changes_max=40), engine=run_spark, checks=[check_exact], examples=2)


def test_drift_is_exact_on_spark(spark: SparkSession) -> None:
    check_family("drift", drift_workloads(), engine=run_spark, checks=[check_exact], examples=1)


def test_topk_is_exact_on_spark(spark: SparkSession) -> None:
    check_family("topk", topk_workloads(), engine=run_spark, checks=[check_exact], examples=1)


def test_join_is_exact_on_spark(spark: SparkSession) -> None:
    check_family("join", join_workloads(), engine=run_spark, checks=[check_exact], examples=2, may_hear_twice=True)


def test_offers_are_exact_on_spark(spark: SparkSession) -> None:
    check_family("offers", offers_workloads(), engine=run_spark, checks=[check_exact], examples=2)
