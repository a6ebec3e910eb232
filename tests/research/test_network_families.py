"""The network reaches the points that the regions of every family contain, under faults and while zones move."""

from __future__ import annotations

import numpy as np
import pytest

from research.servers.check_regions import messages_of, with_servers
from research.servers.forms import project_all
from tidings.model.channel import channel_keys
from tidings.model.points import Event, PointBatch
from tidings.simulator.config import Config, Faults
from tidings.simulator.files import Traffic
from tidings.simulator.simulation import Simulation
from tidings.testing import (
    check_family,
    drift_workloads,
    join_workloads,
    offers_workloads,
    select_workloads,
    topk_workloads,
)

FAMILIES = {
    "select": (select_workloads(), ("region",)),
    "drift": (drift_workloads(), ("region",)),
    "topk": (topk_workloads(), ("dense", "sparse")),
    "join": (join_workloads(), ("auto",)),
    "offers": (offers_workloads(), ("region",)),
}
FAULTS = Faults(loss=0.05, delay_ms=(1.0, 40.0), restarts=2, partitions=1, splits=3, merges=2)


def routed(case, delivered):
    """Every form by itself: its points, with the channel as one dimension more, and the regions of all messages."""
    case = with_servers(case)
    for strategy in case.some_strategies():
        messages, points = messages_of(case, case.strategy(strategy))
        placed = {batch.form: batch for batch in PointBatch.by_form(points)}
        for batch in (own for sent in messages for own in project_all(sent, case.workload.catalog)):
            if batch.target is None and batch.form in placed:
                born = placed[batch.form]
                delivered.append(route(born.take(born.event == np.int8(Event.CREATE)), batch))


def route(born, batch):
    numbers = {}
    channel = [numbers.setdefault(key, len(numbers)) for key in channel_keys(born.channel, len(born))]
    coords = np.column_stack([np.array(channel, np.int64), born.coords]).astype(np.int64)
    boxes, expected = [], []
    for at, key in enumerate(channel_keys(batch.channel, len(batch))):
        own = slice(int(batch.regions.starts[at]), int(batch.regions.starts[at + 1]))
        here = np.full(own.stop - own.start, numbers.get(key, -1))
        boxes.append(tuple(np.column_stack([here, ends[own]]) for ends in (batch.regions.lo, batch.regions.hi)))
        inside = [number == numbers.get(key) for number in channel]
        expected.append([i for i, is_on in enumerate(inside) if is_on and batch.regions.contains(at, born.coords[i])])
    count = len(boxes)
    traffic = Traffic(
        range(len(coords)), coords, range(count), [50.0 * i for i in range(count)], boxes, [0] * count, [9] * count
    )
    for overlay in ("can", "tree", "unicast"):
        run = Simulation(Config(overlay, 5, 20, 100, 0.2, FAULTS), traffic, count, keeps_deliveries=True)
        run.run()
        assert run.outcome.is_right
        told = {}
        for message, _, points in run.deliveries():
            told.setdefault(message, []).extend(points)
        assert [sorted(told.get(i, [])) for i in range(count)] == expected, overlay
    return sum(map(len, expected))


# Top-k has many kernels to compile.
@pytest.mark.parametrize(
    "family", [pytest.param(name, marks=pytest.mark.extended if name == "topk" else ()) for name in FAMILIES]
)
def test_regions_of_a_family_reach_their_points(family):
    workloads, strategies = FAMILIES[family]
    delivered = []
    check_family(family, workloads, checks=[lambda case: routed(case, delivered)], examples=4, strategies=strategies)
    assert sum(delivered) > 0
