"""Constraints matched by Spark SQL: the pairs of the definition, refusals beside them, and errors for frames that cannot be."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from random_constraints import CATALOG_SQL, catalog, constraints
from tidings.bench.offers.agreement import WAYS, compare
from tidings.model.errors import UsageError
from tidings.spark import match_relational

pytestmark = pytest.mark.spark

CATALOG = catalog()


def _frame(spark: SparkSession, rows: list[tuple[str | None, str | None]]) -> DataFrame:
    ids, wheres = zip(*rows, strict=True)
    return spark.createDataFrame(pa.table({"id": pa.array(ids, pa.string()), "where": pa.array(wheres, pa.string())}))


@pytest.mark.parametrize(("table", "names"), [("market", None), ("classic", ["topic", "lot", "area"])])
def test_spark_finds_what_the_definition_finds(spark: SparkSession, table: str, names: list[str] | None) -> None:
    random = Random(7)
    sides = [constraints(random, count, CATALOG.table(table), CATALOG, names) for count in (50, 80)]
    ways = {name: WAYS[name] for name in ("definition", "spark")}
    found = compare(*sides, catalog_sql=CATALOG_SQL, table=table, ways=ways)
    assert len(found.pairs) > 300
    assert found.differences() == []


def test_bad_constraints_are_refused_and_the_others_matched(spark: SparkSession) -> None:
    publications = _frame(spark, [("p1", "lot = 5"), ("p2", "lot = 'many'"), ("p3", None)])
    subscriptions = _frame(spark, [("s1", "lot > 1"), ("s2", "size = 5"), (None, "lot = 5"), ("s3", "lot < 5")])
    with match_relational(spark, CATALOG_SQL, "market", publications, subscriptions) as found:
        assert [tuple(row) for row in found.pairs.collect()] == [("p1", "s1")]
        refused = {(row["side"], row["id"]): row["reason"] for row in found.refused.collect()}
    assert refused.keys() == {
        ("publication", "p2"),
        ("publication", "p3"),
        ("subscription", "s2"),
        ("subscription", None),
    }
    assert "'lot' is BIGINT" in refused["publication", "p2"]
    assert refused["publication", "p3"] == "the constraint is null"
    assert "size" in refused["subscription", "s2"]
    assert refused["subscription", None] == "the id is null"


def test_nothing_matches_nothing(spark: SparkSession) -> None:
    publications, subscriptions = _frame(spark, [("p", "lot = 5")]), _frame(spark, [("s", "lot = ")])
    with match_relational(spark, CATALOG_SQL, "market", publications, subscriptions) as found:
        assert found.pairs.columns == ["p_id", "s_id"]
        assert found.pairs.collect() == []


def test_an_id_that_is_given_twice_is_an_error(spark: SparkSession) -> None:
    once, twice = _frame(spark, [("p", "lot = 5")]), _frame(spark, [("s", "lot = 5"), ("s", "lot = 6")])
    with pytest.raises(UsageError, match="2 subscriptions have the id 's'"):
        match_relational(spark, CATALOG_SQL, "market", once, twice)


def test_a_table_without_constraints_is_an_error(spark: SparkSession) -> None:
    frame = _frame(spark, [("p", "lot = 5")])
    with pytest.raises(UsageError, match="are no constraints"):
        match_relational(spark, "CREATE TABLE t (lot BIGINT PRIMARY KEY)", "t", frame, frame)
