"""Gateways as a sink (`tidings.sinks.places`), written to by Spark's driver."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidings.edge import open_writer
from tidings.endpoint import Endpoint
from tidings.model.blob import unpack
from tidings.pipeline.edge.wire import decode
from tidings.sinks.messages import KINDS
from tidings.sinks.parts import add_metrics
from tidings.sinks.places import options_of, way_of
from tidings.spark import envelope as kinds
from tidings.spark.sinks.guard import Guard


def sink(sink: Endpoint, guard: Guard, run: str) -> PlacesSink:
    return PlacesSink(sink, guard, run)


class PlacesSink:
    parts, has_columns = "", False

    def __init__(self, sink: Endpoint, guard: Guard, run: str) -> None:
        options_of(sink)
        self._writer = open_writer(way_of(sink), run)
        self._guard, self._run = guard, run

    def prepare(self) -> None:
        self._writer.prepare(self._run, self._guard.asked)

    def writer(self, envelopes: DataFrame) -> DataStreamWriter:
        return envelopes.select("kind", "blob").writeStream.foreachBatch(self._write)

    def _write(self, frame: DataFrame, batch: int) -> None:
        with self._guard:
            rows = [(row["kind"], bytes(row["blob"])) for row in frame.collect()]
            self._writer.write([decode(blob) for kind, blob in rows if kind == kinds.PARCEL])
            reports: dict[str, bytes] = {}
            metrics: dict[str, Any] = {}
            for kind, blob in rows:
                if kind in KINDS:
                    reports[kind] = reports.get(kind, b"") + blob
                elif kind == kinds.METRICS:
                    add_metrics(metrics, unpack(blob))
            self._writer.report(batch, reports, metrics)
