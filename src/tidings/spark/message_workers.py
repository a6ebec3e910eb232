"""The stages of the message strategies as `Shard`s of the processor: decode envelopes, run the stage, encode its output."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tidings.model.blob import pack, unpack
from tidings.model.points import PointBatch
from tidings.network.wire import decode, encode_parts
from tidings.pipeline.dispatch import placed_points, placed_snapshots, routed_messages, to_forms
from tidings.pipeline.forms import FormShard, FormsWork
from tidings.pipeline.host import Sent
from tidings.pipeline.stats import Stats
from tidings.pipeline.tables import TableShard, TablesWork
from tidings.spark import envelope as kinds
from tidings.spark.envelope import Envelope
from tidings.spark.ingest import refused_lines
from tidings.spark.plan import Plan
from tidings.spark.stateful_processor import Handling


class _Worker:
    """nbytes: not counted, as these stages serve recorded input only, which ends."""

    nbytes = 0
    needs_base = False


class TablesWorker(_Worker):
    def __init__(self, plan: Plan, key: str) -> None:
        self._plan = plan
        number = next(shard for shard in range(plan.shards) if key == plan.keys.table(shard))
        self._is_first = number == 0
        self._shard = TableShard(plan.catalog, plan.strategies, number, plan.shards)
        self.replay, self.dump, self.load = self._shard.replay, self._shard.dump, self._shard.load

    def handle(self, inputs: list[Envelope]) -> Handling:
        work = TablesWork()
        for _, kind, blob, _ in inputs:
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
                yield Envelope(self._plan.keys.zone(0), kind, blob)
        result, entry = self._shard.apply(work)
        if result.refused:
            yield Envelope(self._plan.keys.zone(0), kinds.REFUSED, refused_lines(result.refused))
        yield from send(self._plan, result.sent, [*result.released, *result.placed])
        keys = self._plan.keys
        for parcel in placed_points(result, self._plan.zones, is_first=self._is_first):
            yield Envelope(keys.zone(parcel.zone), kinds.POINTS, pack([parcel.part]))
        for each in to_forms(result, self._shard.groups, is_first=self._is_first):
            kind = kinds.POINTS if isinstance(each.part, PointBatch) else kinds.CHANGES
            yield Envelope(keys.group(each.group, each.shard), kind, pack([each.part]))
        counts = {"changes": result.accepted, "passed": result.passed, "is_end": work.is_end}
        yield Envelope(keys.zone(0), kinds.METRICS, pack(counts))
        return entry


class FormsWorker(_Worker):
    def __init__(self, plan: Plan, key: str) -> None:
        self._plan = plan
        self._shard = FormShard(plan.catalog, plan.strategies)
        self.replay, self.dump, self.load = self._shard.replay, self._shard.dump, self._shard.load

    def handle(self, inputs: list[Envelope]) -> Handling:
        work = FormsWork()
        for _, kind, blob, _ in inputs:
            if kind == kinds.CHANGES:
                work.changes.extend(unpack(blob))
            elif kind == kinds.POINTS:
                work.points.extend(unpack(blob))
        for sent in self._shard.steps(work):
            yield from send(self._plan, sent, work.points)
        return self._shard.entry(work)


class DeliverWorker(_Worker):
    def __init__(self, plan: Plan, key: str) -> None:
        # Imported here because compiled kernels take a second to import, and only gateways need them.
        from tidings.pipeline.gateway import Gateway, GatewayWork

        self._work = GatewayWork
        self._gateway = Gateway(plan.catalog)
        self.replay, self.dump, self.load = self._gateway.replay, self._gateway.dump, self._gateway.load

    def handle(self, inputs: list[Envelope]) -> Handling:
        work = self._work()
        for key, kind, blob, _ in inputs:
            if kind == kinds.POINTS:
                work.points.extend(unpack(blob))
            elif kind == kinds.MESSAGES:
                work.messages.append(decode(blob))
            elif kind == kinds.SNAPSHOTS:
                work.snapshots.extend(unpack(blob))
            else:
                yield Envelope(key, kind, blob)
        deliveries, told = self._gateway.deliveries.copy(), self._gateway.notifications.copy()
        notifications, entry = self._gateway.apply(work)
        key = inputs[0].key
        if len(notifications):
            yield Envelope(key, kinds.NOTIFICATIONS, pack(notifications))
        counts = {
            "deliveries": dict(self._gateway.deliveries - deliveries),
            "notifications": dict(self._gateway.notifications - told),
        }
        yield Envelope(key, kinds.METRICS, pack(counts))
        return entry


def send(plan: Plan, sent: Sent, released: list[PointBatch]) -> Iterator[Envelope]:
    """Envelopes with messages and rows of snapshots for their zones, and one with counts of messages and bytes."""
    stats = Stats()
    for batch in sent.merged():
        sizes = []
        for zone, part in routed_messages(batch, plan.zones):
            for blob in encode_parts(part):
                sizes.append(len(blob))
                yield Envelope(plan.keys.zone(zone), kinds.MESSAGES, blob)
        stats.count_sent(batch, sizes)
    if sent.snapshots:
        for zone, rows in placed_snapshots(sent.snapshots, released, plan.zones):
            yield Envelope(plan.keys.zone(zone), kinds.SNAPSHOTS, pack([rows]))
    counts = {"messages": dict(stats.messages), "message_bytes": dict(stats.message_bytes)}
    yield Envelope(plan.keys.zone(0), kinds.METRICS, pack(counts))
