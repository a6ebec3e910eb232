"""Envelopes of replicas as messages of a queue (`tidings.sinks.messages`)."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from tidings.model.blob import unpack
from tidings.sinks.messages import KINDS, Message, notifications, placed
from tidings.spark import envelope

_SCHEMA = "kind string, key string, id string, value string"
_QUERY_ID = "sql.streaming.queryId"


def messages_of(envelopes: DataFrame) -> DataFrame:
    """Envelopes of replicas as rows with the fields of `Message`."""
    return envelopes.select("kind", "blob").mapInArrow(_messages, _SCHEMA)


def _messages(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    run = run_name()
    for batch in batches:
        for kind, blob in zip(batch["kind"].to_pylist(), batch["blob"].to_pylist(), strict=True):
            found: list[Message] = []
            if kind == envelope.NOTIFICATIONS:
                found = notifications(run, unpack(blob))
            elif kind in KINDS:
                found = [placed(run, KINDS[kind], line) for line in blob.decode().split("\n")[:-1]]
            columns = zip(*found, strict=True) if found else ([] for _ in Message._fields)
            yield pa.record_batch([pa.array(column, pa.string()) for column in columns], Message._fields)


def run_name() -> str:
    """A name of the running query that it keeps for as long as its checkpoint lives."""
    task = TaskContext.get()
    id = None if task is None else task.getLocalProperty(_QUERY_ID)
    return (id or "")[:8]
