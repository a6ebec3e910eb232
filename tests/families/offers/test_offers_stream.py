"""Offers of a stream: records without numbers, of several partitions, which expire and are told as those of a file are."""

import json

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidings.engine import Engine
from tidings.pipeline.door import Door
from tidings.pipeline.replica.batch import Places
from tidings.pipeline.replica.replica import Replica
from tidings.testing import offers_workloads


def places(partitions):
    number = np.array(partitions, np.int64)
    return Places(["0", "1"], number, ["a", "b"], number, np.arange(len(number)))


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(workload=offers_workloads(has_times=True), rng=st.randoms(use_true_random=False))
def test_a_stream_is_as_its_records_in_their_order(workload, rng):
    catalog = workload.catalog
    subscriptions = [
        json.dumps({**record, "after": 0}).encode()
        for record in workload.subscriptions
        if not record.get("drop") and not any(r["id"] == record["id"] and r.get("drop") for r in workload.subscriptions)
    ]
    plain = [{name: value for name, value in record.items() if name != "seq"} for record in workload.changes]
    numbered = [json.dumps({"seq": seq, **record}).encode() for seq, record in enumerate(plain, 1)]
    engine = Engine(catalog)
    engine.door.read(subscriptions)
    result = engine.feed(numbered)
    door = Door(catalog)
    door.read(subscriptions)
    replica = Replica(catalog, keeps_points=True, is_stream=True)
    lines, refused = [], []
    points = door.take()
    at = 0
    while at < len(plain) or points:
        size = rng.randint(1, 4)
        chunk = [json.dumps(record).encode() for record in plain[at : at + size]]
        applied = replica.apply(chunk, places([rng.randrange(2) for _ in chunk]), points)
        points, at = [], at + size
        lines += applied.notifications.lines()
        refused += applied.refused
        if rng.random() < 0.3:
            restored = Replica(catalog, keeps_points=True, is_stream=True)
            restored.load(replica.dump())
            replica = restored
    assert lines == result.notifications.lines()
    assert sorted(entry.reason for entry in refused) == sorted(entry.reason for entry in result.refused)
