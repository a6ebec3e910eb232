"""Constraints matched by Spark SQL: the pairs of the definition, refusals beside them, and errors for frames that cannot be."""

from __future__ import annotations

import json
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from random_constraints import CATALOG_SQL, catalog, constraints
from research.bench.offers.agreement import WAYS, compare
from research.strategies.offers.spark_matching import match_relational
from tidings.model.errors import UsageError
from tidings.testing import run_inline

pytestmark = [pytest.mark.spark, pytest.mark.extended]

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


def test_replays_by_spark_sql_are_as_by_the_index(spark: SparkSession) -> None:
    """The strategy `relational`: offers with an order, several boxes, expiry, and subscriptions that come and go."""
    random = Random(5)
    asked, offered = (list(constraints(random, n, CATALOG.table("market"), CATALOG).values()) for n in (25, 60))
    orders = ["", "", " ORDER BY lot LIMIT 2"]
    subscriptions = [
        {"id": f"s{i}", "sql": f"SELECT * FROM market WHERE {where}{orders[i % 3]}", "after": 40 * (i % 2)}
        for i, where in enumerate(asked)
    ]
    changes = [{"op": "insert", "id": f"p{i}", "where": where} for i, where in enumerate(offered[:40])]
    changes += [{"op": "update", "id": f"p{i}", "where": where, "expires": 75} for i, where in enumerate(offered[40:])]
    changes += [{"op": "delete", "id": f"p{i}"} for i in range(20, 40)]
    changes = [{"seq": seq, "table": "market", **change} for seq, change in enumerate(changes, 1)]
    lines = [[json.dumps(record).encode() for record in records] for records in (subscriptions, changes)]
    told = [run_inline(CATALOG_SQL, *lines, [50, 30], {"offers": name}) for name in ("shared", "relational")]
    assert len(told[0]) > 200
    assert told[0] == told[1]
