"""A route reaches every broker that has points in the region, and tells no broker twice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from traffic import traffics

from tidings.network.messages import SERVER, Event
from tidings.network.overlays import Can, Tree, Unicast, meetings
from tidings.network.reference import points_in
from tidings.network.zones import partition
from tidings.simulator.point_store import PointStore


def told(route):
    """Brokers in the order in which they are told."""
    order, at = list(route.children(SERVER)), 0
    while at < len(order):
        order.extend(route.children(order[at]))
        at += 1
    return order


@pytest.mark.parametrize("kind", ["can", "tree", "btree", "unicast"])
@given(data=st.data(), brokers=st.integers(1, 12))
def test_whoever_has_points_is_told_once(kind, data, brokers):
    traffic = data.draw(traffics(dims=st.just(1) if kind == "btree" else None))
    zone_map, cell_of = partition(traffic.points, brokers)
    store = PointStore(traffic.points, cell_of.copy())
    store.follow(zone_map)
    events = [Event(seq, lo, hi, 0, 0) for seq, (lo, hi) in enumerate(traffic.boxes)]
    if not events:
        return
    store.look_up(events)
    distance = np.arange(brokers)[::-1].copy()
    overlay = {
        "can": lambda: Can(zone_map, brokers, distance),
        "tree": lambda: Tree(zone_map, brokers, store.bounds()),
        "btree": lambda: Tree(zone_map, brokers),
        "unicast": lambda: Unicast(store.by_owner),
    }[kind]()
    met = meetings(zone_map, brokers, events)
    for event, route, of_event in zip(events, overlay.routes(events), met, strict=True):
        inside = points_in(traffic.points, event.lo, event.hi)
        assert sorted(store.reached(event).tolist()) == inside
        order = told(route)
        assert len(order) == len(set(order))
        assert set(cell_of[inside].tolist()) <= set(order)
        if kind == "can":
            # Exactly the zones that the region meets.
            assert sorted(order) == np.flatnonzero(of_event).tolist()
        if kind == "unicast":
            assert sum(route.copies.values()) == len(inside)


def test_a_connected_region_is_entered_once():
    points = np.random.default_rng(1).integers(0, 1_000, (2_000, 2))
    zone_map, _ = partition(points, 32)
    one = Event(0, np.array([[100, 100]]), np.array([[900, 900]]), 0, 0)
    two = Event(1, np.array([[0, 0], [990, 990]]), np.array([[9, 9], [999, 999]]), 0, 0)
    routes = Can(zone_map, 32, np.arange(32)).routes([one, two])
    assert [len(route.children(SERVER)) for route in routes] == [1, 2]
    # It is entered at the zone that is nearest to the server.
    assert routes[0].children(SERVER)[0] == min(told(routes[0]))


def test_links_of_a_tree_have_covers():
    """A region around one point goes down one path, not everywhere."""
    points = np.random.default_rng(2).integers(0, 10_000, (5_000, 3))
    zone_map, cell_of = partition(points, 200)
    store = PointStore(points, cell_of)
    store.follow(zone_map)
    events = [Event(seq, point[None], point[None], 0, 0) for seq, point in enumerate(points[:50])]
    reached = [len(told(route)) for route in Tree(zone_map, 200, store.bounds()).routes(events)]
    assert np.mean(reached) < 12
