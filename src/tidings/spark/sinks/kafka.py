"""Notifications as messages of Kafka, through Spark's own connector: the key is the subscription's id."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidings.spark.endpoint import Endpoint
from tidings.spark.stream import notifications_of


def sink(sink: Endpoint, guard: object) -> KafkaSink:
    return KafkaSink(sink)


class KafkaSink:
    parts = ""

    def __init__(self, sink: Endpoint) -> None:
        self._sink = sink

    def writer(self, envelopes: DataFrame) -> DataStreamWriter:
        found = notifications_of(envelopes).selectExpr("subscription AS key", "to_json(struct(*)) AS value")
        writer = found.writeStream.format("kafka").options(**self._sink.options)
        return writer.option("topic", self._sink.path) if self._sink.path else writer
