"""Tidings between DataFrames: changes and subscription events in, notifications out, with any source and sink that Spark has.

    changes = spark.readStream.format("kafka").options(**kafka, subscribe="changes").load()
    wishes = spark.readStream.format("kafka").options(**kafka, subscribe="subscriptions").load()
    notifications(spark, catalog_sql, changes, wishes).writeStream.format("delta").start("notifications")

Both inputs have a column `value` with a record, or several lines of them, as text or bytes, and say in which order records
stand: a column `offset` (a number) or `order` (a text, such as the name of a file, or a struct of numbers, such as the version
of a commit and a row), and where there are several partitions a column `partition`. A column `time` (`timestamp` in Kafka) says
when a change was made. Within a partition the order is kept. Between partitions it is the order in which micro-batches take
records in, and within a micro-batch that of the partitions: the same at every replay.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import (
    coalesce,
    col,
    concat,
    concat_ws,
    encode,
    from_json,
    hex,
    lit,
    lpad,
    struct,
    to_json,
    unhex,
    unix_micros,
)
from pyspark.sql.types import IntegerType, LongType, StringType, StructType, TimestampType

from tidings.model.blob import unpack
from tidings.model.change import NO_TIME
from tidings.model.errors import UsageError
from tidings.model.notification import NotificationBatch
from tidings.pipeline.stream_lines import NUMBER, NUMBERS, TEXT
from tidings.sinks.messages import KINDS
from tidings.spark import envelope as kinds
from tidings.spark.job import evaluated
from tidings.spark.plan import Plan
from tidings.spark.session import LIVE_SETTINGS, default_shards
from tidings.sql import parse_catalog

_OUTPUTS = "kind string, value string"
_NOTIFICATIONS = "subscription string, seq long, snapshot boolean, changes string, time timestamp, tx string"
_CHANGES = "array<struct<op: string, old: string, row: string>>"
_INTEGERS = (LongType, IntegerType)
_TIME = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"


def notifications(
    spark: SparkSession,
    catalog: str,
    changes: DataFrame,
    subscriptions: DataFrame,
    *,
    shards: int = 0,
    as_structs: bool = False,
    by_commit: bool = True,
) -> DataFrame:
    """Notifications as rows (subscription, seq, snapshot, changes, time, tx).

    catalog: CREATE TABLE statements. shards: number of shares of the subscriptions, each with a copy of the tables and a
    task of its own; 0: as many as there are cores. A job that goes on from a checkpoint must have as many as before.
    as_structs: `changes` is an array of structs (op, old, row), the rows as JSON text; else it is JSON text as in
    `out.jsonl`. by_commit: notifications are of the net effect of each transaction (records with the same `tx`); else of
    every record. `time` is that of the change and `tx` its transaction, if the source says; a snapshot has neither.
    Answers to subscription events and refused records are not in the result: see `outputs`.
    """
    plan = plan_of(spark, catalog, shards, by_commit=by_commit)
    found = notifications_of(envelopes(changes, subscriptions, plan))
    return found.withColumn("changes", from_json("changes", _CHANGES)) if as_structs else found


def outputs(
    spark: SparkSession,
    catalog: str,
    changes: DataFrame,
    subscriptions: DataFrame,
    *,
    shards: int = 0,
    by_commit: bool = True,
) -> DataFrame:
    """All that comes out, as rows (kind, value) with a line of JSON each; parameters as those of `notifications`.

    Kinds: `notification`; `answer`, to a subscription event: accepted as of a seq, or refused and why; `refused`, a change
    that could not be used, with the reason; `warning`, about a change that was used, as when a row comes by two partitions.
    """
    return outputs_of(envelopes(changes, subscriptions, plan_of(spark, catalog, shards, by_commit=by_commit)))


def rows(
    frame: DataFrame,
    table: str,
    columns: Mapping[str, str | Column] | None = None,
    *,
    op: str | Column = "upsert",
    order: str | Column = "offset",
    partition: str | Column | None = None,
    time: str | Column | None = None,
) -> DataFrame:
    """Changes of one table that a DataFrame has in columns, as an input of `notifications`.

    columns: column of the table -> column of the frame; None: all columns of the frame that no other parameter names, under
    their own names. op: a column with the op, or the op of all rows: insert, update, upsert or delete. order: a number, a
    text, or a struct of numbers. Times are written in UTC. Several tables: unionByName of the results.
    """
    ops = ("insert", "update", "upsert", "delete")
    op_column = lit(op) if isinstance(op, str) and op in ops else _column(op)
    if columns is None:
        named = {name for name in (op, order, partition, time) if isinstance(name, str)}
        columns = {name: name for name in frame.columns if name not in named}
    row = struct(*(_column(source).alias(name) for name, source in columns.items()))
    record = struct(lit(table).alias("table"), op_column.alias("op"), row.alias("row"))
    # Every column is there, nulls too: a record that lacks a column would be refused.
    options = {"ignoreNullFields": "false", "timeZone": "UTC", "timestampFormat": _TIME, "timestampNTZFormat": _TIME}
    place = _column(order)
    is_number = isinstance(frame.select(place.alias("place")).schema["place"].dataType, _INTEGERS)
    found = [to_json(record, options).alias("value"), place.alias("offset" if is_number else "order")]
    found += [lit("").alias("partition") if partition is None else _column(partition).cast("string").alias("partition")]
    found += [] if time is None else [_column(time).alias("time")]
    return frame.select(*found)


def _column(column: str | Column) -> Column:
    return col(column) if isinstance(column, str) else column


def outputs_of(envelopes: DataFrame) -> DataFrame:
    """Envelopes of replicas as `outputs` gives them."""
    return envelopes.select("kind", "blob").mapInArrow(_outputs, _OUTPUTS)


def notifications_of(envelopes: DataFrame) -> DataFrame:
    """Envelopes of replicas as `notifications` gives them."""
    return envelopes.where(col("kind") == kinds.NOTIFICATIONS).select("blob").mapInArrow(_notifications, _NOTIFICATIONS)


def plan_of(spark: SparkSession, catalog: str, shards: int = 0, **more: Any) -> Plan:
    """The plan of a stream. more: fields of `Plan`. Sets what the session's queries with state need."""
    parse_catalog(catalog)
    for name, value in LIVE_SETTINGS.items():
        spark.conf.set(name, value)
    count = shards or default_shards(spark)
    name = f"stream-{uuid.uuid4().hex}"
    return Plan(name, catalog, count, is_stream=True, **more)


def envelopes(changes: DataFrame, subscriptions: DataFrame, plan: Plan, requests: DataFrame | None = None) -> DataFrame:
    """What replicas make of the inputs, as envelopes. requests: more subscription events."""
    records = _records(changes, "changes", kinds.LINES).unionAll(_records(subscriptions, "subscriptions", kinds.EVENTS))
    if requests is not None:
        records = records.unionAll(_records(requests, "requests", kinds.EVENTS))
    return evaluated(records.mapInArrow(_blocks, "kind string, blob binary"), plan)


def _blocks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from tidings.pipeline.stream_lines import block_lines

    return block_lines(batches)


def _records(frame: DataFrame, name: str, kind: str) -> DataFrame:
    """An input as rows (kind, partition, place, time, value) for `block_lines`. UsageError if the input lacks a column."""
    columns = {field.name: field.dataType for field in frame.schema.fields}
    if "value" not in columns:
        raise UsageError(f"the {name} have no column 'value' with records; they have {', '.join(columns) or 'none'}")
    order = columns.get("order")
    if isinstance(columns.get("offset"), _INTEGERS):
        place = concat(lit(bytearray(NUMBER)), _sortable(col("offset")))
    elif isinstance(order, StringType):
        place = concat(lit(bytearray(TEXT)), encode(col("order"), "UTF-8"))
    elif (
        isinstance(order, StructType) and order.fields and all(isinstance(f.dataType, _INTEGERS) for f in order.fields)
    ):
        place = concat(lit(bytearray(NUMBERS)), *(_sortable(col("order")[field.name]) for field in order.fields))
    else:
        raise UsageError(
            f"the {name} do not say in which order they stand: give them a column 'offset' (a number: an offset, a line, "
            "a position in a log) or 'order' (a text that sorts as they came, such as the name of a file, or a struct of "
            "numbers, such as the version of a commit and a row)"
        )
    partition = coalesce(col("partition").cast("string"), lit("")) if "partition" in columns else lit("")
    if isinstance(columns.get("topic"), StringType) and "partition" in columns:
        # Topics of Kafka have partitions of their own.
        partition = concat_ws("-", "topic", "partition")
    time = next((col(name) for name in ("time", "timestamp") if isinstance(columns.get(name), TimestampType)), None)
    return frame.select(
        lit(kind).alias("kind"),
        partition.alias("partition"),
        place.alias("place"),
        (lit(None).cast("long") if time is None else unix_micros(time)).alias("time"),
        col("value").cast("binary").alias("value"),
    )


def _sortable(number: Column) -> Column:
    """A number as 8 bytes that sort as the numbers do: highest byte first, the sign turned over."""
    return unhex(lpad(hex(number.cast("long").bitwiseXOR(lit(-(2**63)))), 16, "0"))


def _outputs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Envelopes as rows (kind, value)."""
    for batch in batches:
        for kind, blob in zip(batch["kind"].to_pylist(), batch["blob"].to_pylist(), strict=True):
            if kind not in KINDS:
                continue
            found = unpack(blob).lines() if kind == kinds.NOTIFICATIONS else blob.decode().split("\n")[:-1]
            names = pa.array([KINDS[kind]] * len(found), pa.string())
            yield pa.record_batch([names, pa.array(found, pa.string())], ["kind", "value"])


def _notifications(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Envelopes with notifications as rows of their fields."""
    for batch in batches:
        for blob in batch["blob"].to_pylist():
            told: NotificationBatch = unpack(blob)
            columns = [
                told.subscriptions().cast(pa.string()),
                pa.array(told.seq),
                pa.array(told.is_snapshot),
                told.changes().cast(pa.string()),
                pa.array(told.time, pa.timestamp("us", "UTC"), mask=told.time == NO_TIME),
                pa.array(told.tx(), pa.string()),
            ]
            yield pa.RecordBatch.from_arrays(columns, ["subscription", "seq", "snapshot", "changes", "time", "tx"])
