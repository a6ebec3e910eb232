"""Replicas: lines depend neither on how subscriptions are spread over replicas nor on restarts of replicas from dumps."""

from __future__ import annotations

import numpy as np

from tidings.families.optional import SHARED
from tidings.kernels.lines import index_lines, merge_lines
from tidings.model.notification import NotificationBatch
from tidings.pipeline.door import Door
from tidings.pipeline.partition import share
from tidings.pipeline.replica.replica import Replica
from tidings.testing.checks.case import Case
from tidings.testing.workload import chunks


def check_replicas(case: Case) -> None:
    catalog, count = case.workload.catalog, case.rng.randint(1, 3)
    door = Door(catalog)
    door.read(case.workload.subscription_lines())
    points = door.take()
    waiting = [share(points, count, number) for number in range(count)]
    replicas = [Replica(catalog, keeps_points=True) for _ in range(count)]
    lines: list[str] = []
    position = 0
    for chunk in [*chunks(case.workload.change_lines(), case.sizes()), None]:
        told = []
        for number, replica in enumerate(replicas):
            points, waiting[number] = waiting[number], []
            told.append(replica.apply(chunk or [], position, points, is_end=chunk is None).notifications)
            if case.rng.random() < 0.4:
                replicas[number] = Replica(catalog, keeps_points=True)
                replicas[number].load(replica.dump())
        position += len(chunk or [])
        lines.extend(_merged(told))
    assert lines == case.lines(case.strategy(SHARED)), f"lines change with {count} replicas that are restarted"


def _merged(parts: list[NotificationBatch]) -> list[str]:
    """The lines of all replicas in order: as files of them are merged, and as their columns are."""
    merged, *others = (np.frombuffer(bytearray(b"".join(part.text())), np.uint8) for part in parts)
    for other in others:
        merged = merge_lines(merged, index_lines(merged), other, index_lines(other))
    lines: list[str] = merged.tobytes().decode().split("\n")[:-1]
    assert NotificationBatch.merge(parts).lines() == lines
    return lines
