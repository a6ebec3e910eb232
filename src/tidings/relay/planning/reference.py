"""What a plan is, and the best one, by definition: the oracle of the tests.

A plan takes one column per node. It is valid if each column belongs to its node, no pool feeds more nodes than its capacity,
nor the publisher more than its own, and all nodes are reached from the publisher.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from tidings.relay.planning.highs import Program, minimise
from tidings.relay.planning.instance import UNLIMITED, Columns, Instance


def violations(instance: Instance, columns: Columns) -> list[str]:
    """What is wrong with a plan, one sentence each; empty if it is valid."""
    if len(columns) != instance.nodes:
        return [f"{len(columns)} columns for {instance.nodes} nodes"]
    wrong = [
        f"node {node} is fed by column {column}, which is not its own"
        for node, column in enumerate(columns.tolist())
        if column not in instance.columns_of(node)
    ]
    if wrong:
        return wrong
    used = Counter(pool for node, column in enumerate(columns.tolist()) for pool in instance.pools_used(node, column))
    fed = used.pop(instance.pools, 0)
    wrong += [
        f"pool {pool} feeds {units}, {instance.capacity[pool]} allowed"
        for pool, units in sorted(used.items())
        if units > instance.capacity[pool]
    ]
    sent: Counter[int] = Counter()
    for node, column in enumerate(columns.tolist()):
        for pool, bytes in instance.bytes_sent(node, column):
            sent[pool] += bytes
    wrong += [
        f"pool {pool} sends {bytes} bytes, {instance.bandwidth[pool]} allowed"
        for pool, bytes in sorted(sent.items())
        if bytes > instance.bandwidth[pool]
    ]
    if fed > instance.publisher_capacity:
        wrong.append(f"the publisher feeds {fed}, {instance.publisher_capacity} allowed")
    unreached = instance.nodes - _reached(instance, columns)
    if unreached:
        wrong.append(f"{unreached} nodes are not reached from the publisher")
    return wrong


def publisher_feeds(instance: Instance, columns: Columns) -> int:
    """How many nodes the publisher feeds."""
    return int(instance.is_published[columns].sum())


def _reached(instance: Instance, columns: Columns) -> int:
    """How many nodes get all their sources, beginning with those that need none."""
    dependants: list[list[int]] = [[] for _ in range(instance.nodes)]
    missing = []
    for node, column in enumerate(columns.tolist()):
        sources = instance.sources_of(column)
        missing.append(len(sources))
        for source in sources:
            dependants[source].append(node)
    reached = [node for node in range(instance.nodes) if missing[node] == 0]
    for node in reached:
        for dependant in dependants[node]:
            missing[dependant] -= 1
            if missing[dependant] == 0:
                reached.append(dependant)
    return len(reached)


def exact(instance: Instance) -> Columns | None:
    """A plan of least use; None if there is no plan. For small instances: the whole integer program, with every capacity."""
    rows: list[Counter[int]] = []
    limited = bool((instance.bandwidth < UNLIMITED).any())
    for node in range(instance.nodes):
        for column in instance.columns_of(node):
            row = Counter([node, *(instance.nodes + pool for pool in instance.pools_used(node, column))])
            for pool, bytes in instance.bytes_sent(node, column) if limited else ():
                row[instance.nodes + instance.pools + 1 + pool] += bytes
            rows.append(row)
    entries = [sorted(row.items()) for row in rows]
    flat = [entry for row in entries for entry in row]
    ones = np.ones(instance.nodes)
    capacity = np.append(instance.capacity, instance.publisher_capacity).astype(np.float64)
    if limited:
        capacity = np.append(capacity, instance.bandwidth)
    program = Program(
        instance.cost,
        np.cumsum([0, *map(len, entries)]),
        np.array([row for row, _ in flat], np.int32),
        np.array([units for _, units in flat], np.float64),
        np.append(ones, np.zeros(len(capacity))),
        np.append(ones, capacity),
    )
    values = minimise(program).values
    return None if values is None else np.flatnonzero(values).astype(np.int64)


def latencies(instance: Instance, columns: Columns) -> list[float]:
    """Of each node: when its slowest source has its data, and that has come, and the node's own is computed."""
    known: dict[int, float] = {}

    def latency(node: int) -> float:
        if node not in known:
            column = int(columns[node])
            sources = instance.sources_of(column)
            arrivals = [latency(source) + instance.distance(source, node) for source in sources]
            if instance.is_published[column]:
                arrivals.append(instance.publisher_distance(node))
            known[node] = max(arrivals) + float(instance.delay[column])
        return known[node]

    return [latency(node) for node in range(instance.nodes)]


def levels(instance: Instance, columns: Columns) -> list[int]:
    """Of each node, one more than the highest of its sources; 1 if the publisher feeds it."""
    known: dict[int, int] = {}

    def level(node: int) -> int:
        if node not in known:
            known[node] = 1 + max((level(source) for source in instance.sources_of(int(columns[node]))), default=0)
        return known[node]

    return [level(node) for node in range(instance.nodes)]
