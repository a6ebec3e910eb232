"""Orders of nodes in which sources come first, and how far the nodes of a plan are from the publisher."""

from __future__ import annotations

import numpy as np

from tidings.kernels.arrays import F64, I32, I64, Float, Int
from tidings.kernels.jit import kernel
from tidings.relay.planning.kernels.plan_layout import Places

_NEW, _OPEN, _DONE = 0, 1, 2


@kernel
def topological_order(first_column: I64, first_source: I64, sources: I32) -> I64:
    """All nodes, each behind the sources of all its columns. Shorter if there is a cycle."""
    nodes = len(first_column) - 1
    order = np.empty(nodes, np.int64)
    count = 0
    state = np.zeros(nodes, np.uint8)
    stack = np.empty(nodes, np.int64)
    # The sources of a node's columns lie side by side: one range, and how far it has been followed.
    place = np.empty(nodes, np.int64)
    for root in range(nodes):
        if state[root] != _NEW:
            continue
        depth = 0
        stack[0] = root
        state[root] = _OPEN
        place[root] = first_source[first_column[root]]
        while depth >= 0:
            node = stack[depth]
            if place[node] == first_source[first_column[node + 1]]:
                state[node] = _DONE
                order[count] = node
                count += 1
                depth -= 1
                continue
            source = sources[place[node]]
            place[node] += 1
            if state[source] == _OPEN:
                return order[:count]
            if state[source] == _NEW:
                state[source] = _OPEN
                place[source] = first_source[first_column[source]]
                depth += 1
                stack[depth] = source
    return order


@kernel
def distance(places: Places, source: Int, node: Int) -> Float:
    if places.site[source] >= 0 and places.site[source] == places.site[node]:
        return 0.0
    across = places.position[source, 0] - places.position[node, 0]
    along = places.position[source, 1] - places.position[node, 1]
    length = np.hypot(across, along)
    return places.hop if np.isnan(length) else length


@kernel
def column_latency(places: Places, latency: F64, node: Int, column: Int) -> tuple[Float, Int]:
    """When the node has its data if this column feeds it, and the source it waits for longest; -1: the publisher."""
    latest = places.from_publisher[node] if places.is_published[column] else -np.inf
    critical = -1
    for place in range(places.first_source[column], places.first_source[column + 1]):
        source = places.sources[place]
        arrival = latency[source] + distance(places, source, node)
        if arrival > latest:
            latest = arrival
            critical = source
    return latest + places.delay[column], critical


@kernel
def measure(places: Places, order: I64, columns: I64, latency: F64, critical: I64, level: I64) -> None:
    """Sets the latency, the critical source and the level of each node in a plan."""
    for node in order:
        column = columns[node]
        latency[node], critical[node] = column_latency(places, latency, node, column)
        level[node] = 1
        for place in range(places.first_source[column], places.first_source[column + 1]):
            level[node] = max(level[node], level[places.sources[place]] + 1)
