"""Topics of Kafka, through Spark's own connector: notifications, answers and refused records, each in a topic of its own.

The key is the subscription's id, so that its notifications are in one partition and in order. The connector may store a message
again when a micro-batch is run again: readers tell it by the header `id`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidings.endpoint import Endpoint
from tidings.sinks.messages import ANSWER, NOTIFICATION, REFUSED, WARNING, Message
from tidings.spark.sinks.messages import messages_of
from tidings.spark.sources.kafka import options_of

_SCHEMA = "topic string, key binary, value binary, headers array<struct<key: string, value: binary>>"
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_FIELDS = pa.schema([("topic", pa.string()), ("key", pa.binary()), ("value", pa.binary()), ("headers", _HEADERS)])


def sink(sink: Endpoint, guard: object, run: str) -> KafkaSink:
    return KafkaSink(sink)


class KafkaSink:
    parts, has_columns = "", False

    def __init__(self, sink: Endpoint) -> None:
        self._options = options_of(sink)
        path = sink.required_path("topic")
        refused = self._options.pop("refusedTopic", f"{path}-refused")
        self._topics = {
            NOTIFICATION: path,
            ANSWER: self._options.pop("answersTopic", f"{path}-answers"),
            REFUSED: refused,
            WARNING: refused,
        }

    def prepare(self) -> None:
        pass

    def writer(self, envelopes: DataFrame) -> DataStreamWriter:
        found = messages_of(envelopes).mapInArrow(partial(_records, self._topics), _SCHEMA)
        return found.writeStream.format("kafka").options(**self._options)


def _records(topics: dict[str, str], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Messages as rows that Spark's connector writes."""
    for batch in batches:
        kind, key, id, value = (batch[name].to_pylist() for name in Message._fields)
        columns = [
            [topics[each] for each in kind],
            [each.encode() or None for each in key],
            [each.encode() for each in value],
            [[{"key": "id", "value": each.encode()}] for each in id],
        ]
        arrays = [pa.array(values, field.type) for values, field in zip(columns, _FIELDS, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=_FIELDS)
