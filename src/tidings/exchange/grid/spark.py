"""Constraints matched with constraints in one batch, by the index of boxes, spread over Spark by the partition grid.

    with match_boxes(spark, catalog_sql, "market", publications, subscriptions, attribute="price") as found:
        found.pairs.write.parquet("matches")

A row of the grid (`partition.py`) is a shard: it owns a part of the values of one attribute, gets the constraints that
meet that part, matches them by itself, and reports the pairs whose first common value it owns. So each pair is there once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from tidings.exchange.grid.constraints import Matches, compiled_batch, compiler_of, constraints_table
from tidings.exchange.grid.partition import Intervals, Partition, Side, balanced_cuts, report_codes, route
from tidings.families.offers.constraint import Box, boxes_of, packed, unpack
from tidings.families.offers.kernels.box_index import BoxIndex
from tidings.families.offers.kernels.packed import read_batch
from tidings.families.offers.subscription import packed_column
from tidings.model.catalog import Table
from tidings.model.codes import Int64Array
from tidings.model.errors import SqlError, UsageError
from tidings.spark.session import default_shards

_SAMPLE = 10_000
"""Constraints that the parts of rows are chosen from."""
_ROUTED = "row long, side string, id string, constraint binary, reason string"
_ROUTED_SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("side", pa.string()),
        ("id", pa.string()),
        ("constraint", pa.binary()),
        ("reason", pa.string()),
    ]
)
_PAIRS = "p_id string, s_id string"
_PAIRS_SCHEMA = pa.schema([("p_id", pa.string()), ("s_id", pa.string())])


@dataclass(frozen=True)
class GridMatches(Matches):
    """As `Matches`. partition: the parts that rows of the grid own."""

    partition: Partition


def match_boxes(
    spark: SparkSession,
    catalog: str,
    table: str,
    publications: DataFrame,
    subscriptions: DataFrame,
    *,
    attribute: str | None = None,
    rows: int = 0,
) -> GridMatches:
    """The pairs of publications and subscriptions that match, as the table's options say.

    catalog: CREATE TABLE statements. Both frames have columns `id`, unique in its frame, and `where`, a condition on the
    table's attributes. attribute: what rows of the grid are cut by (None: the first that most constraints of a sample
    compare); rows: how many (0: as many as there are cores).
    """
    parsed = constraints_table(catalog, table)
    sides = (("publication", publications), ("subscription", subscriptions))
    sample = [boxes for _, frame in sides for boxes in _sampled(catalog, table, frame)]
    axis = _axis(parsed, attribute, sample)
    everywhere = Side.SUBSCRIPTION if parsed.constraints.is_classic else Side.PUBLICATION
    cuts = balanced_cuts(_intervals(sample, axis), rows or default_shards(spark))
    partition = Partition(cuts, everywhere=everywhere)
    routed = None
    for side, frame in sides:
        work = partial(_routed, catalog, table, axis, partition, side)
        own = frame.select(col("id").cast("string"), col("where").cast("string")).mapInArrow(work, _ROUTED)
        routed = own if routed is None else routed.unionAll(own)
    assert routed is not None
    kept = routed.persist()
    usable = kept.where(col("reason").isNull()).drop("reason")

    # Spark reads the types of the function that it is given: a partial one has none.
    def matched(group: pa.Table) -> pa.Table:
        return _matched(catalog, table, axis, partition, group)

    pairs = usable.repartition(partition.rows, "row").groupBy("row").applyInArrow(matched, _PAIRS)
    refused = kept.where(col("reason").isNotNull()).select("side", "id", "reason")
    return GridMatches(pairs, refused, (kept,), partition)


def _sampled(catalog: str, table: str, frame: DataFrame) -> Iterator[tuple[Box, ...]]:
    compiler, parsed = compiler_of(catalog, table)
    for row in frame.select(col("where").cast("string")).where(col("where").isNotNull()).limit(_SAMPLE).collect():
        try:
            statement = compiler.compile(row[0])
            boxes = boxes_of(statement.shape, statement.constants, parsed)
        except SqlError:
            continue
        yield boxes


def _axis(table: Table, attribute: str | None, sample: list[tuple[Box, ...]]) -> int:
    """The axis that an attribute is compared on; the extent along x of a box."""
    if attribute is not None:
        for name in (attribute, f"{attribute}.x"):
            if name in table.axis_numbers:
                return table.axis_numbers[name]
        raise UsageError(f"table {table.name!r} has no attribute {attribute!r}; it has {', '.join(table.axis_numbers)}")
    counts = np.zeros(len(table.axes), np.int64)
    for boxes in sample:
        counts[sorted({axis for box in boxes for axis in box.axes})] += 1
    return int(counts.argmax())


def _intervals(constraints: Iterable[tuple[Box, ...]], axis: int) -> Intervals:
    """What each disjunct allows on an axis."""
    lo, hi, has, starts = [], [], [], [0]
    for boxes in constraints:
        for box in boxes:
            place = box.axes.index(axis) if axis in box.axes else -1
            has.append(place >= 0)
            lo.append(box.lo[place] if place >= 0 else 0)
            hi.append(box.hi[place] if place >= 0 else 0)
        starts.append(len(has))
    ends = np.array([lo, hi], np.int64)
    return Intervals(ends[0], ends[1], np.array(has, np.bool_), np.array(starts, np.int64))


# From here on in tasks.


def _routed(
    catalog: str, table: str, axis: int, partition: Partition, side: str, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Each constraint once for every row of the grid that holds it; those that cannot be used once, with the reason."""
    _, parsed = compiler_of(catalog, table)
    for batch in batches:
        usable, refused = compiled_batch(
            catalog, table, batch, lambda statement: packed(statement.shape, statement.constants, parsed)[0]
        )
        ids, data = [id for id, _ in usable], [packed_boxes for _, packed_boxes in usable]
        of, row = route(_intervals(map(unpack, data), axis), partition, Side(side))
        yield _table(row, side, [ids[i] for i in of.tolist()], [data[i] for i in of.tolist()], [None] * len(of))
        count = len(refused)
        reasons = [reason for _, reason in refused]
        yield _table(np.full(count, -1), side, [id for id, _ in refused], [None] * count, reasons)


def _table(row: Int64Array, side: str, id: list[Any], constraint: list[Any], reason: list[Any]) -> pa.RecordBatch:
    columns = (row, [side] * len(row), id, constraint, reason)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ROUTED_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ROUTED_SCHEMA)


def _matched(catalog: str, table: str, axis: int, partition: Partition, group: pa.Table) -> pa.Table:
    """The pairs that one row of the grid reports."""
    _, parsed = compiler_of(catalog, table)
    publications, subscriptions = (_side(group, side) for side in ("publication", "subscription"))
    if not len(publications) or not len(subscriptions):
        return _PAIRS_SCHEMA.empty_table()
    row = int(group.column("row")[0].as_py())
    index = BoxIndex([each.type.is_lossy for each in parsed.axes], is_classic=parsed.constraints.is_classic)
    held = read_batch(*packed_column(subscriptions.column("constraint")))
    asked = read_batch(*packed_column(publications.column("constraint")))
    index.add(np.arange(len(subscriptions)), held)
    found = index.match(asked)
    found = found[np.lexsort((found[:, 1], found[:, 0]))]
    # Entries of a new index are numbered as the boxes that they were made of.
    begins = [
        _intervals([(box,) for data in side.column("constraint").to_pylist() for box in unpack(data)], axis).begin
        for side in (publications, subscriptions)
    ]
    is_new = np.ones(len(found), np.bool_)
    is_new[1:] = (found[1:, 0] != found[:-1, 0]) | (found[1:, 1] != found[:-1, 1])
    firsts = np.flatnonzero(is_new)
    codes = report_codes(begins[0][found[:, 2]], begins[1][found[:, 3]], np.append(firsts, len(found)))
    own = found[firsts[partition.owner_of(codes) == row]]
    ids = [publications.column("id").take(pa.array(own[:, 0])), subscriptions.column("id").take(pa.array(own[:, 1]))]
    return pa.Table.from_arrays(ids, schema=_PAIRS_SCHEMA)


def _side(group: pa.Table, side: str) -> pa.RecordBatch:
    rows = group.filter(pc.equal(group.column("side"), side)).combine_chunks()
    batches = rows.to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=group.schema)
