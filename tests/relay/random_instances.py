"""Random instances of the planner: shared pools and sites, tight capacities, nodes without alternatives."""

import numpy as np
from hypothesis import strategies as st

from tidings.relay.planning.instance import NO_SITE, UNLIMITED, Instance

PART = -1


def instance_of(columns, *, pool=None, capacity=None, site=None, publisher_capacity=UNLIMITED, delay=None, **places):
    """`columns`: per node, pairs of cost and sources; the first is the publisher's. Each node has its own pool by default.

    PART among the sources: the publisher is an input too.
    """
    nodes = len(columns)
    flat = [(cost, sources) for own in columns for cost, sources in own]
    is_published = np.array([PART in sources or not sources for _, sources in flat], np.bool_)
    flat = [(cost, tuple(source for source in sources if source != PART)) for cost, sources in flat]
    pool = np.arange(nodes) if pool is None else np.array(pool)
    pools = int(pool.max(initial=-1)) + 1
    return Instance(
        first_column=np.cumsum([0, *map(len, columns)], dtype=np.int64),
        cost=np.array([cost for cost, _ in flat], np.float64),
        first_source=np.cumsum([0, *(len(sources) for _, sources in flat)], dtype=np.int64),
        sources=np.array([source for _, sources in flat for source in sources], np.int32),
        pool=pool.astype(np.int32),
        capacity=np.full(pools, UNLIMITED) if capacity is None else np.array(capacity, np.int64),
        site=np.full(nodes, NO_SITE, np.int32) if site is None else np.array(site, np.int32),
        publisher_capacity=publisher_capacity,
        is_published=is_published,
        sent=places.get("sent", np.ones(nodes, np.int32)),
        bandwidth=places.get("bandwidth", np.full(pools, UNLIMITED)),
        delay=np.zeros(len(flat)) if delay is None else np.array(delay, np.float64),
        position=places.get("position", np.full((nodes, 2), np.nan)),
        publisher_position=places.get("publisher_position", (np.nan, np.nan)),
        weight=places.get("weight", np.ones(nodes, np.int64)),
    )


def random_instance(seed, nodes, *, publisher_capacity=UNLIMITED, columns_max=6, capacity_max=3, parts=0.0, lines=0.0):
    """Nodes are numbered at random; sources come from before in some hidden order."""
    rng = np.random.default_rng(seed)
    number = rng.permutation(nodes)
    columns = [[] for _ in range(nodes)]
    for place in range(nodes):
        own = [(float(rng.integers(20, 40)), ())]
        count = 0 if place == 0 or rng.random() < 0.1 else rng.integers(1, columns_max)
        for _ in range(count):
            sources = rng.choice(place, min(place, rng.integers(1, 4)), replace=False)
            part = (PART,) if rng.random() < parts else ()
            own.append((float(rng.integers(0, 15) + rng.random()), (*number[sources].tolist(), *part)))
        columns[number[place]] = own
    sites = rng.integers(NO_SITE, max(1, nodes // 3), nodes)
    # Nodes of a site share a pool, and so do some that have no site.
    alone = sites == NO_SITE
    pool = np.where(alone, max(1, nodes // 3) + rng.integers(0, nodes, nodes), sites)
    capacity = rng.integers(0, capacity_max + 1, pool.max() + 1)
    capacity[rng.random(len(capacity)) < 0.2] = UNLIMITED
    total = sum(map(len, columns))
    sent = rng.integers(1, 1_000, nodes).astype(np.int32)
    bandwidth = np.where(rng.random(len(capacity)) < lines, rng.integers(0, 3_000, len(capacity)), UNLIMITED)
    return instance_of(
        columns,
        pool=pool,
        capacity=capacity,
        site=sites,
        publisher_capacity=publisher_capacity,
        delay=rng.random(total),
        position=np.where(rng.random((nodes, 1)) < 0.2, np.nan, rng.random((nodes, 2))),
        publisher_position=(0.5, 0.5) if rng.random() < 0.5 else (np.nan, np.nan),
        weight=rng.integers(1, 4, nodes),
        sent=sent,
        bandwidth=bandwidth,
    )


SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def instances(draw, nodes_max=14, limited_publisher=True):
    nodes = draw(st.integers(1, nodes_max))
    limit = draw(st.integers(0, nodes)) if limited_publisher and draw(st.booleans()) else UNLIMITED
    parts, lines = draw(st.sampled_from([0.0, 0.3])), draw(st.sampled_from([0.0, 0.7]))
    capacity_max = draw(st.integers(0, 4))
    return random_instance(
        draw(SEEDS), nodes, publisher_capacity=limit, capacity_max=capacity_max, parts=parts, lines=lines
    )
