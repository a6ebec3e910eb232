"""Tidings between DataFrames: changes and subscription events in, notifications out, with any source and sink that Spark has.

    changes = spark.readStream.format("kafka").options(**kafka, subscribe="changes").load()
    wishes = spark.readStream.format("kafka").options(**kafka, subscribe="subscriptions").load()
    notifications(spark, catalog_sql, changes, wishes).writeStream.format("delta").start("notifications")

Both inputs have a column `value` with a record, or several lines of them, as text or bytes, and say in which order records
stand: a column `offset` (a number) or `order` (a text, such as the name of a file), and where there are several partitions a
column `partition`. Kafka's source has these columns. Within a partition the order is kept. Between partitions it is the order
in which micro-batches take records in, and within a micro-batch that of the partitions: the same at every replay.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import msgspec
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import coalesce, col, concat, encode, hex, length, lit, lpad, unhex
from pyspark.sql.types import IntegerType, LongType, StringType

from tidings.model.blob import unpack
from tidings.model.errors import UsageError
from tidings.spark import envelope as kinds
from tidings.spark.job import evaluated
from tidings.spark.plan import Plan
from tidings.spark.session import STATE_STORE, default_partitions
from tidings.sql import parse_catalog

NOTIFICATION, ANSWER, REFUSED = "notification", "answer", "refused"
_OUTPUTS = "kind string, value string"
_NOTIFICATIONS = "subscription string, seq long, snapshot boolean, changes string"


def notifications(
    spark: SparkSession, catalog: str, changes: DataFrame, subscriptions: DataFrame, *, shards: int = 0
) -> DataFrame:
    """Notifications as rows (subscription, seq, snapshot, changes); `changes` is JSON text as in `out.jsonl`.

    catalog: CREATE TABLE statements. shards: number of shares of the subscriptions, each with a copy of the tables and a
    task of its own; 0: as many as there are cores. Answers to subscription events and refused records are not in the
    result: see `outputs`.
    """
    return notifications_of(envelopes(changes, subscriptions, plan_of(spark, catalog, shards)))


def outputs(
    spark: SparkSession, catalog: str, changes: DataFrame, subscriptions: DataFrame, *, shards: int = 0
) -> DataFrame:
    """All that comes out, as rows (kind, value) with a line of JSON each; parameters as those of `notifications`.

    Kinds: `notification`; `answer`, to a subscription event: accepted as of a seq, or refused and why; `refused`, a change
    that could not be used, with the reason.
    """
    return outputs_of(envelopes(changes, subscriptions, plan_of(spark, catalog, shards)))


def outputs_of(envelopes: DataFrame) -> DataFrame:
    """Envelopes of replicas as `outputs` gives them."""
    return envelopes.mapInArrow(_lines, _OUTPUTS)


def notifications_of(envelopes: DataFrame) -> DataFrame:
    """Envelopes of replicas as `notifications` gives them."""
    return outputs_of(envelopes).where(col("kind") == NOTIFICATION).select("value").mapInArrow(_parse, _NOTIFICATIONS)


def plan_of(spark: SparkSession, catalog: str, shards: int = 0, parts: str = "") -> Plan:
    """The plan of a stream. parts: as in `Plan`. Sets the session's state store to the one that is needed."""
    parse_catalog(catalog)
    spark.conf.set(*STATE_STORE)
    count = shards or default_partitions(spark.sparkContext.master)
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or count)
    return Plan(f"stream-{uuid.uuid4().hex}", catalog, {}, count, partitions, parts=parts, is_stream=True)


def envelopes(changes: DataFrame, subscriptions: DataFrame, plan: Plan) -> DataFrame:
    """What replicas make of the two inputs, as envelopes."""
    return evaluated(
        _blocks(changes, "changes", kinds.LINES).unionAll(_blocks(subscriptions, "subscriptions", kinds.EVENTS)), plan
    )


def _blocks(frame: DataFrame, name: str, kind: str) -> DataFrame:
    """An input as rows (kind, blob), each blob a `stream_lines.Block`. UsageError if the input lacks a column."""
    columns = {field.name: field.dataType for field in frame.schema.fields}
    if "value" not in columns:
        raise UsageError(f"the {name} have no column 'value' with records; they have {', '.join(columns) or 'none'}")
    if isinstance(columns.get("offset"), LongType | IntegerType):
        place = concat(lit(bytearray([0])), unhex(lpad(hex(col("offset").cast("long")), 16, "0")))
    elif isinstance(columns.get("order"), StringType):
        place = concat(lit(bytearray([1])), encode(col("order"), "UTF-8"))
    else:
        raise UsageError(
            f"the {name} do not say in which order they stand: give them a column 'offset' (a number: an offset, a line, "
            "a position in a log) or 'order' (a text that sorts as they came, such as the name of a file)"
        )
    partition = col("partition").cast("string") if "partition" in columns else lit("")
    value = coalesce(col("value").cast("binary"), lit(bytearray()))
    blob = concat(_sized(encode(coalesce(partition, lit("")), "UTF-8")), _sized(place), value)
    return frame.select(lit(kind).alias("kind"), blob.alias("blob"))


def _sized(value: Column) -> Column:
    """Bytes after their number in two bytes."""
    return concat(unhex(lpad(hex(length(value)), 4, "0")), value)


def _lines(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Envelopes as rows (kind, value)."""
    for batch in batches:
        for kind, blob in zip(batch["kind"].to_pylist(), batch["blob"].to_pylist(), strict=True):
            if kind == kinds.REFUSED:
                name, found = REFUSED, [line for _, line in unpack(blob)]
            elif kind in (kinds.NOTIFICATIONS, kinds.ANSWERS):
                name = NOTIFICATION if kind == kinds.NOTIFICATIONS else ANSWER
                found = blob.decode().split("\n")[:-1]
            else:
                continue
            yield pa.record_batch(
                [pa.array([name] * len(found), pa.string()), pa.array(found, pa.string())], ["kind", "value"]
            )


class _Notification(msgspec.Struct):
    subscription: str
    seq: int
    snapshot: bool
    changes: msgspec.Raw


def _parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Lines of notifications as rows of their fields."""
    decode = msgspec.json.Decoder(_Notification).decode
    for batch in batches:
        found = [decode(line) for line in batch["value"].to_pylist()]
        columns = [
            pa.array([each.subscription for each in found], pa.string()),
            pa.array([each.seq for each in found], pa.int64()),
            pa.array([each.snapshot for each in found], pa.bool_()),
            pa.array([bytes(each.changes).decode() for each in found], pa.string()),
        ]
        yield pa.RecordBatch.from_arrays(columns, ["subscription", "seq", "snapshot", "changes"])
