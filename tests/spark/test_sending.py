"""Envelopes with messages hold the wire format, and what is counted is what they hold. Needs no Spark session."""

from __future__ import annotations

import json

from tidings.families.registry import spaces_of
from tidings.model.blob import pack, unpack
from tidings.model.message import MessageBatch
from tidings.model.points import PointBatch
from tidings.network.wire import decode
from tidings.network.zones import ZoneMap
from tidings.pipeline.gateway import GatewayWork
from tidings.pipeline.host import Sent
from tidings.pipeline.staged import StagedEngine
from tidings.spark import envelope as kinds
from tidings.spark.message_workers import send
from tidings.spark.plan import Plan
from tidings.sql import parse_catalog

CATALOG = "CREATE TABLE t (id INT PRIMARY KEY, n INT);"
ZONES = 2


def test_what_is_counted_is_what_is_sent() -> None:
    points: list[PointBatch] = []
    messages: list[MessageBatch] = []

    def see(work: GatewayWork) -> None:
        points.extend(work.points)
        messages.extend(work.messages)

    engine = StagedEngine(parse_catalog(CATALOG), {"select": "region"}, on_work=see)
    for i in range(100):
        engine.door.create(f"s{i}", f"SELECT * FROM t WHERE n >= {i}", 0)
    engine.feed(
        json.dumps({"seq": i + 1, "table": "t", "op": "insert", "row": {"id": i, "n": i}}).encode() for i in range(100)
    )
    (batch,) = messages
    zones = ZoneMap.build(points, ZONES, spaces_of(parse_catalog(CATALOG)), split_points_min=2)
    plan = Plan("job", CATALOG, {}, ZONES, ZONES, pack(zones.state()))
    sent = list(send(plan, Sent([batch]), []))
    blobs = {key: blob for key, kind, blob, _ in sent if kind == kinds.MESSAGES}
    (metrics,) = (unpack(blob) for _, kind, blob, _ in sent if kind == kinds.METRICS)
    assert metrics == {"messages": {"select": 100}, "message_bytes": {"select": sum(map(len, blobs.values()))}}
    # Whoever is in one of the zones wants more than anybody in the other, and fewer messages go there.
    parts = [decode(blobs[plan.keys.zone(zone)]) for zone in range(ZONES)]
    assert {seq for part in parts for seq in part.seq.tolist()} == set(batch.seq.tolist())
    assert sum(map(len, parts)) < ZONES * len(batch)
    for part in parts:
        assert part.payload.equals(batch.take(part.seq - 1).payload)
