"""Constraints matched on Spark by the index: the pairs of the definition, each once, and refusals beside them."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from random_constraints import CATALOG_SQL, catalog, constraints
from research.bench.offers.agreement import WAYS, compare
from tidings.exchange.grid.spark import match_boxes
from tidings.model.errors import UsageError

pytestmark = pytest.mark.spark

CATALOG = catalog()


def _frame(spark: SparkSession, rows: list[tuple[str | None, str | None]]) -> DataFrame:
    ids, wheres = zip(*rows, strict=True)
    return spark.createDataFrame(pa.table({"id": pa.array(ids, pa.string()), "where": pa.array(wheres, pa.string())}))


@pytest.mark.parametrize(("table", "attribute"), [("market", None), ("market", "lot"), ("classic", "topic")])
def test_rows_of_the_grid_report_each_pair_once(spark: SparkSession, table: str, attribute: str | None) -> None:
    random = Random(3)
    sides = [constraints(random, count, CATALOG.table(table), CATALOG, None) for count in (60, 90)]
    frames = [_frame(spark, list(side.items())) for side in sides]
    with match_boxes(spark, CATALOG_SQL, table, *frames, attribute=attribute, rows=3) as found:
        pairs = [tuple(row) for row in found.pairs.collect()]
        assert found.partition.rows == 3
        assert found.refused.collect() == []
    right = compare(*sides, catalog_sql=CATALOG_SQL, table=table, ways={"definition": WAYS["definition"]})
    assert len(pairs) > 300
    assert sorted(pairs) == sorted(right.pairs)


def test_the_grid_refuses_what_is_bad(spark: SparkSession) -> None:
    many = " AND ".join(f"{name} IN ({', '.join(map(str, range(40)))})" for name in ("lot", "price"))
    publications = _frame(spark, [("p1", "lot = 5"), ("p2", "lot = 'many'"), ("p3", None), ("p4", many)])
    subscriptions = _frame(spark, [("s1", "lot > 1"), ("s2", "size = 5")])
    with match_boxes(spark, CATALOG_SQL, "market", publications, subscriptions, attribute="lot") as found:
        assert [tuple(row) for row in found.pairs.collect()] == [("p1", "s1")]
        assert {(row["side"], row["id"]) for row in found.refused.collect()} == {
            ("publication", "p2"),
            ("publication", "p3"),
            ("publication", "p4"),
            ("subscription", "s2"),
        }
    with pytest.raises(UsageError, match="has no attribute 'size'"):
        match_boxes(spark, CATALOG_SQL, "market", publications, subscriptions, attribute="size")
