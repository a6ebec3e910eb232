"""The stateless first stage: parses blocks of input and sends each change to the tables shard of its primary key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from tidings.model.blob import pack
from tidings.model.change import ChangeBatch
from tidings.model.quarantine import Quarantined
from tidings.pipeline.partition import shard_of_values
from tidings.pipeline.stream_lines import split_lines
from tidings.spark import envelope as kinds
from tidings.spark.envelope import Envelope
from tidings.spark.plan import Plan


def ingest_batches(plan: Plan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for row in batch.to_pylist():
            for kind, position, value in plan.recording.rows(row["position"]):
                # One envelope per record batch: the copies for many shards together could exceed Arrow's 2 GiB.
                yield from map(to_arrow, _ingest(plan, kind, position, value))


def _ingest(plan: Plan, kind: str, position: int | None, value: bytes | None) -> list[Envelope]:
    tables = [plan.keys.table(shard) for shard in range(plan.shards)]
    if kind != kinds.LINES:
        return [Envelope(table, kind, value or b"") for table in tables]
    parsed = plan.ingest.parse(split_lines(value), position or 0)
    shares: list[list[ChangeBatch]] = [[] for _ in tables]
    for changes in parsed.changes:
        if plan.shards == 1:
            shares[0].append(changes)
            continue
        shard = shard_of_values(changes.rows, plan.catalog.table(changes.table).key, plan.shards)
        for number, share in enumerate(shares):
            share.append(changes.take(shard == number))
    order = {
        "positions": np.concatenate([np.empty(0, np.int64), *(c.position for c in parsed.changes)]),
        "seqs": np.concatenate([np.empty(0, np.int64), *(c.seq for c in parsed.changes)]),
    }
    envelopes = [
        Envelope(table, kinds.CHANGES, pack({**order, "changes": s})) for table, s in zip(tables, shares, strict=True)
    ]
    if parsed.refused:
        envelopes.append(Envelope(tables[0], kinds.REFUSED, refused_lines(parsed.refused)))
    return envelopes


def to_arrow(envelope: Envelope) -> pa.RecordBatch:
    types = (pa.string(), pa.string(), pa.binary(), pa.list_(pa.int64()))
    arrays = [pa.array([value], type) for value, type in zip(envelope, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, list(Envelope._fields))


def refused_lines(refused: list[Quarantined]) -> bytes:
    return b"".join(entry.line().encode() + b"\n" for entry in refused)
