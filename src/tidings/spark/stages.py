"""The stages of the job: each turns envelopes into an object's work, and its results into envelopes for the next stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.engine import Stats
from tidings.model.blob import pack, unpack
from tidings.model.catalog import Catalog
from tidings.model.change import ChangeBatch
from tidings.model.message import SnapshotBatch
from tidings.model.points import PointBatch
from tidings.model.quarantine import Quarantined
from tidings.network.zones import ZoneMap
from tidings.pipeline.deliver import Gateway, GatewayWork
from tidings.pipeline.forms import FormShard, FormsWork, by_value, group_of, shard_of_values
from tidings.pipeline.host import Sent
from tidings.pipeline.ingest import Ingest
from tidings.pipeline.tables import TableShard, TablesWork
from tidings.spark import envelope as kinds
from tidings.spark.envelope import Envelope, Keys
from tidings.spark.processor import Shard
from tidings.sql import parse_catalog


@dataclass(frozen=True)
class Plan:
    """What every worker must know: tables, strategies, how many shards and which zones. Pickled into the job."""

    job: str
    catalog_sql: str
    strategies: Mapping[str, str]
    shards: int
    partitions: int
    zone_state: bytes

    @cached_property
    def catalog(self) -> Catalog:
        return parse_catalog(self.catalog_sql)

    @cached_property
    def zones(self) -> ZoneMap:
        return ZoneMap.from_state(unpack(self.zone_state))

    @cached_property
    def keys(self) -> Keys:
        return Keys(self.partitions)

    @cached_property
    def ingest(self) -> Ingest:
        return Ingest(self.catalog)

    def __reduce__(self) -> tuple[Any, ...]:
        fields = (self.job, self.catalog_sql, dict(self.strategies), self.shards, self.partitions, self.zone_state)
        return (_plan, fields)


_plans: dict[tuple[str, bytes], Plan] = {}


def _plan(job: str, catalog_sql: str, strategies: dict[str, str], shards: int, partitions: int, zones: bytes) -> Plan:
    """A plan as unpickled in a worker: the same object every time, so that what it has parsed is kept."""
    key = (job, zones)
    if key not in _plans:
        _plans[key] = Plan(job, catalog_sql, strategies, shards, partitions, zones)
    return _plans[key]


def ingest_batches(plan: Plan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The ingest stage, without state: blocks of lines -> typed changes for every table shard."""
    for batch in batches:
        for row in batch.to_pylist():
            yield _to_arrow(_ingest(plan, row["kind"], row["position"], row["value"]))


def _ingest(plan: Plan, kind: str, position: int | None, value: bytes) -> list[Envelope]:
    tables = [plan.keys.table(shard) for shard in range(plan.shards)]
    if kind != kinds.LINES:
        return [Envelope(table, kind, value) for table in tables]
    parsed = plan.ingest.parse([line.rstrip(b"\r") for line in value.split(b"\n")], position or 0)
    if position is None:
        # The source does not say in which order its records came: they are taken in order of their numbers.
        parsed.changes = [replace(changes, position=changes.seq) for changes in parsed.changes]
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
        envelopes.append(Envelope(tables[0], kinds.REFUSED, pack_refused(parsed.refused)))
    return envelopes


def _to_arrow(envelopes: list[Envelope]) -> pa.RecordBatch:
    key, kind, blob = zip(*envelopes, strict=True) if envelopes else ((), (), ())
    arrays = [pa.array(key, pa.string()), pa.array(kind, pa.string()), pa.array(blob, pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, ["key", "kind", "blob"])


def pack_refused(refused: list[Quarantined]) -> bytes:
    return pack([[entry.position, entry.line()] for entry in refused])


@dataclass(frozen=True)
class TablesStage:
    plan: Plan
    name: str = "tables"

    @property
    def job(self) -> str:
        return self.plan.job

    def owns(self, key: str) -> bool:
        return key.startswith("table/")

    def shard(self, key: str) -> Shard:
        return _Tables(self.plan, int(key.removeprefix("table/").partition("#")[0]))


class _Tables:
    def __init__(self, plan: Plan, number: int) -> None:
        self._plan = plan
        self._number = number
        self._shard = TableShard(plan.catalog, plan.strategies)
        self.replay, self.dump, self.load = self._shard.replay, self._shard.dump, self._shard.load

    def handle(self, inputs: list[Envelope]) -> tuple[list[Envelope], bytes]:
        work, passing = TablesWork(), []
        for _, kind, blob in inputs:
            if kind == kinds.CHANGES:
                part = unpack(blob)
                work.changes.extend(part["changes"])
                work.positions = np.concatenate([work.positions, part["positions"]])
                work.seqs = np.concatenate([work.seqs, part["seqs"]])
            elif kind == kinds.POINTS:
                work.points.extend(unpack(blob))
            elif kind == kinds.END:
                work.is_end = True
            else:
                passing.append(Envelope(self._plan.keys.zone(0), kind, blob))
        result, entry = self._shard.apply(work)
        if result.refused:
            passing.append(Envelope(self._plan.keys.zone(0), kinds.REFUSED, pack_refused(result.refused)))
        outputs = [*passing, *send(self._plan, result.sent, result.released)]
        if self._number == 0:
            outputs.extend(place(self._plan, result.released))
            outputs.extend(self._to_groups(by_value(result.released)))
        for changes in result.images:
            for group, shard, part in self._shard.groups.split(changes, self._plan.shards):
                outputs.append(Envelope(self._plan.keys.group(group, shard), kinds.CHANGES, pack([part])))
        counts = {"changes": result.accepted, "passed": result.passed, "is_end": work.is_end}
        outputs.append(Envelope(self._plan.keys.zone(0), kinds.METRICS, pack(counts)))
        return outputs, entry

    def _to_groups(self, released: list[PointBatch]) -> Iterator[Envelope]:
        for points in released:
            group = group_of(points.form)
            for shard in self._shard.groups.shards(group, self._plan.shards):
                yield Envelope(self._plan.keys.group(group, shard), kinds.POINTS, pack([points]))


@dataclass(frozen=True)
class FormsStage:
    plan: Plan
    name: str = "forms"

    @property
    def job(self) -> str:
        return self.plan.job

    def owns(self, key: str) -> bool:
        return key.startswith("group/")

    def shard(self, key: str) -> Shard:
        return _Forms(self.plan)


class _Forms:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._shard = FormShard(plan.catalog, plan.strategies)
        self.replay, self.dump, self.load = self._shard.replay, self._shard.dump, self._shard.load

    def handle(self, inputs: list[Envelope]) -> tuple[list[Envelope], bytes]:
        work = FormsWork()
        for _, kind, blob in inputs:
            if kind == kinds.CHANGES:
                work.changes.extend(unpack(blob))
            elif kind == kinds.POINTS:
                work.points.extend(unpack(blob))
        sent, entry = self._shard.apply(work)
        return list(send(self._plan, sent, work.points)), entry


@dataclass(frozen=True)
class DeliverStage:
    plan: Plan
    name: str = "deliver"

    @property
    def job(self) -> str:
        return self.plan.job

    def owns(self, key: str) -> bool:
        return key.startswith("zone/")

    def shard(self, key: str) -> Shard:
        return _Deliver(self.plan)


class _Deliver:
    def __init__(self, plan: Plan) -> None:
        self._gateway = Gateway(plan.catalog)
        self.replay, self.dump, self.load = self._gateway.replay, self._gateway.dump, self._gateway.load

    def handle(self, inputs: list[Envelope]) -> tuple[list[Envelope], bytes]:
        work, outputs = GatewayWork(), []
        for key, kind, blob in inputs:
            if kind == kinds.POINTS:
                work.points.extend(unpack(blob))
            elif kind == kinds.MESSAGES:
                work.messages.extend(unpack(blob))
            elif kind == kinds.SNAPSHOTS:
                work.snapshots.extend(unpack(blob))
            else:
                outputs.append(Envelope(key, kind, blob))
        deliveries, told = self._gateway.deliveries.copy(), self._gateway.notifications.copy()
        notifications, entry = self._gateway.apply(work)
        key = inputs[0].key
        if len(notifications):
            outputs.append(Envelope(key, kinds.NOTIFICATIONS, pack(vars(notifications))))
        counts = {
            "deliveries": dict(self._gateway.deliveries - deliveries),
            "notifications": dict(self._gateway.notifications - told),
        }
        outputs.append(Envelope(key, kinds.METRICS, pack(counts)))
        return outputs, entry


def send(plan: Plan, sent: Sent, released: list[PointBatch]) -> Iterator[Envelope]:
    """Messages to every zone their region meets, snapshots to the zone of the subscription, and what that costs."""
    stats = Stats()
    messages = sent.merged()
    stats.count_messages(messages)
    for batch in messages:
        for zone, mask in plan.zones.route(batch):
            part = batch if mask.all() else batch.take(np.flatnonzero(mask))
            yield Envelope(plan.keys.zone(zone), kinds.MESSAGES, pack([part]))
    if sent.snapshots:
        yield from _send_snapshots(plan, sent.snapshots, released)
    counts = {"messages": dict(stats.messages), "message_bytes": dict(stats.message_bytes)}
    yield Envelope(plan.keys.zone(0), kinds.METRICS, pack(counts))


def _send_snapshots(plan: Plan, snapshots: list[SnapshotBatch], released: list[PointBatch]) -> Iterator[Envelope]:
    homes: dict[tuple[str, str, int], int] = {}
    for points in released:
        zones = plan.zones.locate(points)
        at = np.flatnonzero(points.home & (points.event == 0))
        names = zip(points.id.take(pa.array(at)).to_pylist(), points.after[at].tolist(), strict=True)
        homes.update({(points.form, *name): zone for name, zone in zip(names, zones[at].tolist(), strict=True)})
    for batch in snapshots:
        names = zip(batch.target.to_pylist(), batch.seq.tolist(), strict=True)
        zone_of = np.array([homes[batch.form, *name] for name in names], np.int64)
        for zone in np.unique(zone_of).tolist():
            at = np.flatnonzero(zone_of == zone)
            chosen = pa.array(at)
            part = SnapshotBatch(batch.form, batch.seq[at], batch.target.take(chosen), batch.payload.take(chosen))
            yield Envelope(plan.keys.zone(zone), kinds.SNAPSHOTS, pack([part]))


def place(plan: Plan, released: list[PointBatch]) -> Iterator[Envelope]:
    """Subscription events to the zones their points lie in."""
    for points in released:
        zones = plan.zones.locate(points)
        for zone in np.unique(zones).tolist():
            yield Envelope(plan.keys.zone(zone), kinds.POINTS, pack([points.take(zones == zone)]))


def read_metrics(blob: bytes) -> dict[str, Any]:
    metrics: dict[str, Any] = unpack(blob)
    return metrics
