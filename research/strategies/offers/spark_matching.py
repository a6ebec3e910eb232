"""Constraints matched with constraints in one batch, by the relational architecture, as Spark SQL.

    with match_relational(spark, catalog_sql, "market", publications, subscriptions) as found:
        found.pairs.write.parquet("matches")
        found.refused.show()

Both inputs have the columns `id` and `where`. Tasks compile the constraints to rows of predicates, which Spark keeps in memory
or on disk (`research.strategies.offers.relational`). A job finds the pairs of operators in use; the matching pairs are computed
when they are used.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lit

from research.strategies.offers.relational import (
    KINDS,
    PUBLICATIONS,
    SPARK,
    SUBSCRIPTIONS,
    Kind,
    Reified,
    Side,
    match_query,
    pairs_in_use,
    reify,
)
from research.strategies.offers.relational.operators import Storage
from tidings.exchange.grid.constraints import Matches, compiled_batch, compiler_of, constraints_table
from tidings.families.offers.constraint import boxes_of, unpack
from tidings.model.catalog import Table
from tidings.model.errors import UsageError

_MASTER, _REFUSED = "master", "refused"
_ARROW: dict[Storage, pa.DataType] = {"integer": pa.int64(), "double": pa.float64(), "bytes": pa.binary()}
_WIDTHS: dict[Storage, int] = {"integer": 2, "double": 8, "bytes": 2}
# Rows of all tables in one frame, since a task has one output: `kind` says of which.
_SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("id", pa.string()),
        ("disjunct", pa.int32()),
        ("count", pa.int32()),
        ("field", pa.int32()),
        ("op", pa.string()),
        ("reason", pa.string()),
        *((f"{storage}_{place}", _ARROW[storage]) for storage, width in _WIDTHS.items() for place in range(width)),
    ]
)
_COLUMNS = "kind string, id string, disjunct int, count int, field int, op string, reason string, " + ", ".join(
    f"{storage}_{place} {SPARK.types[storage]}" for storage, width in _WIDTHS.items() for place in range(width)
)
_SIDES = {PUBLICATIONS: "publication", SUBSCRIPTIONS: "subscription"}


def match_relational(
    spark: SparkSession, catalog: str, table: str, publications: DataFrame, subscriptions: DataFrame
) -> Matches:
    """The pairs of publications and subscriptions that match, as the table's options say.

    catalog: CREATE TABLE statements. Both frames have columns `id`, unique in its frame, and `where`, a condition on the
    table's attributes. UsageError if ids repeat.
    """
    parsed = constraints_table(catalog, table)
    compiled = partial(_compiled, catalog, table)
    rows = {
        side: frame.select(col("id").cast("string"), col("where").cast("string"))
        .mapInArrow(compiled, _COLUMNS)
        .persist()
        for side, frame in ((PUBLICATIONS, publications), (SUBSCRIPTIONS, subscriptions))
    }
    return _matches(spark, parsed, rows)


def reified_packed(spark: SparkSession, table: Table, constraints: Sequence[tuple[str, bytes]]) -> DataFrame:
    """Rows of constraints, given by (id, packed boxes)."""
    rows = reify(((id, unpack(data)) for id, data in constraints), table)
    batches = list(_batches(rows))
    return spark.createDataFrame(pa.Table.from_batches(batches, _SCHEMA))


def match_reified(spark: SparkSession, table: Table, publications: DataFrame, subscriptions: DataFrame) -> DataFrame:
    """(p_id, s_id) of the pairs that match, of constraints that `reified_packed` gave."""
    return _matches(spark, table, {PUBLICATIONS: publications, SUBSCRIPTIONS: subscriptions}).pairs


def _matches(spark: SparkSession, table: Table, rows: Mapping[Side, DataFrame]) -> Matches:
    try:
        _check_ids(rows)
        used = [_used_operators(rows[side]) for side in (PUBLICATIONS, SUBSCRIPTIONS)]
    except BaseException:
        _forget(rows.values())
        raise
    prefix = f"tidings_{uuid.uuid4().hex}_"
    query = match_query(pairs_in_use(*used), SPARK, is_classic=table.constraints.is_classic, prefix=prefix)
    pairs = _with_views(spark, query, prefix, rows)
    refused = [
        frame.where(col("kind") == _REFUSED).select(lit(_SIDES[side]).alias("side"), "id", "reason")
        for side, frame in rows.items()
    ]
    return Matches(pairs, refused[0].unionAll(refused[1]), tuple(rows.values()))


def _forget(frames: Iterable[DataFrame]) -> None:
    for frame in frames:
        frame.unpersist()


def _check_ids(rows: Mapping[Side, DataFrame]) -> None:
    firsts = [
        frame.where((col("kind") == _MASTER) & (col("disjunct") == 0)).select(lit(_SIDES[side]).alias("side"), "id")
        for side, frame in rows.items()
    ]
    twice = reduce(DataFrame.unionAll, firsts).groupBy("side", "id").count().where("count > 1").limit(1).collect()
    if twice:
        (row,) = twice
        raise UsageError(f"{row['count']} {row['side']}s have the id {row['id']!r}: ids must differ")


def _used_operators(rows: DataFrame) -> list[tuple[str, str]]:
    found = rows.where(col("op").isNotNull()).select("kind", "op").distinct().collect()
    return [(row["kind"], row["op"]) for row in found]


def _with_views(spark: SparkSession, query: str, prefix: str, rows: Mapping[Side, DataFrame]) -> DataFrame:
    """The query over both sides' tables. Views are there only while Spark reads it."""
    views = {f"{prefix}{name}": frame for side in rows for name, frame in _tables(side, rows[side])}
    for name, frame in views.items():
        frame.createOrReplaceTempView(name)
    try:
        return spark.sql(query)
    finally:
        for name in views:
            spark.catalog.dropTempView(name)


def _tables(side: Side, rows: DataFrame) -> Iterator[tuple[str, DataFrame]]:
    key = [col("id").alias(side.id), col("disjunct").alias(side.disjunct)]
    yield side.master, rows.where(col("kind") == _MASTER).select(*key, "count")
    for kind in KINDS.values():
        values = [col(stored).alias(column) for stored, column in zip(_stored_columns(kind), kind.columns, strict=True)]
        found = rows.where(col("kind") == kind.name).select(*key, "field", "op", *values)
        yield side.predicates(kind.name), found


def _stored_columns(kind: Kind) -> list[str]:
    return [f"{kind.storage}_{place}" for place in range(len(kind.columns))]


# From here on in tasks.


def _compiled(catalog: str, table: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of constraints, and for those that cannot be used the reason."""
    _, parsed = compiler_of(catalog, table)
    for batch in batches:
        usable, refused = compiled_batch(
            catalog, table, batch, lambda statement: boxes_of(statement.shape, statement.constants, parsed)
        )
        yield from _batches(reify(usable, parsed))
        yield from _batch(_REFUSED, ["id", "reason"], refused)


def _batches(rows: Reified) -> Iterator[pa.RecordBatch]:
    yield from _batch(_MASTER, ["id", "disjunct", "count"], rows.masters)
    for kind in KINDS.values():
        columns = ["id", "disjunct", "field", "op", *_stored_columns(kind)]
        yield from _batch(kind.name, columns, rows.predicates[kind.name])


def _batch(kind: str, names: list[str], rows: list[Any]) -> Iterator[pa.RecordBatch]:
    """The rows with these columns of the schema; none if there are none."""
    if not rows:
        return
    given = dict(zip(names, zip(*rows, strict=True), strict=True))
    given["kind"] = (kind,) * len(rows)
    columns = [
        pa.array(given[column.name], column.type) if column.name in given else pa.nulls(len(rows), column.type)
        for column in _SCHEMA
    ]
    yield pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)
