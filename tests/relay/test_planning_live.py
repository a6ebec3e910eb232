"""Whatever comes and goes, the plan stays valid, and nodes that lost a source are fed by another if any fits."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_instances import SEEDS, instance_of, random_instance

from tidings.relay.planning import NO_SITE, UNLIMITED, Infeasible, publisher_feeds, solve, violations
from tidings.relay.planning.live import Column, LivePlan, NoRoom


def live_plan(instance):
    return LivePlan(instance, solve(instance, integer_columns_max=0))


def check(live):
    """The plan is valid but for the overflow of the publisher; then all its nodes that have a choice find no room elsewhere."""
    shot = live.snapshot()
    fed = publisher_feeds(shot.instance, shot.columns)
    assert live.overflow == max(0, fed - shot.instance.publisher_capacity)
    allowed = replace(shot.instance, publisher_capacity=shot.instance.publisher_capacity + live.overflow)
    assert violations(allowed, shot.columns) == []
    assert list(live.nodes) == shot.node.tolist()
    assert live.use == pytest.approx(shot.instance.use(shot.columns))
    for place, node in enumerate(shot.node.tolist()):
        index, column = live.choice(node)
        assert shot.index[shot.columns[place]] == index
        assert live.columns_of(node)[index] == column
        assert shot.node[shot.instance.sources_of(shot.columns[place])].tolist() == list(column.sources)
        assert all(node in live.dependants(source) for source in column.sources)
    return shot


def fitting(shot, node):
    """Columns of a node, beyond the publisher's, that fit beside the rest of the plan."""
    found = []
    for column in shot.instance.columns_of(node)[1:]:
        other = shot.columns.copy()
        other[node] = column
        if violations(replace(shot.instance, publisher_capacity=UNLIMITED), other) == []:
            found.append(column)
    return found


def newcomer(rng, live):
    alive = list(live.nodes)
    columns = [Column(float(rng.integers(20, 40)))]
    for _ in range(rng.integers(0, 4) if alive else 0):
        sources = rng.choice(alive, min(len(alive), int(rng.integers(1, 4))), replace=False)
        columns.append(Column(float(rng.integers(0, 15)), tuple(sources.tolist()), 0.5))
    return columns


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.integers(1, 14), st.booleans())
def test_valid_after_every_change(seed, nodes, is_limited):
    rng = np.random.default_rng(seed)
    limit = int(rng.integers(0, nodes + 2)) if is_limited else UNLIMITED
    try:
        live = live_plan(random_instance(seed, nodes, publisher_capacity=limit))
    except Infeasible:
        return
    check(live)
    for _ in range(8):
        before = check(live)
        alive = list(live.nodes)
        what = rng.integers(0, 6)
        if what <= 2 or not alive:
            pool = (
                int(rng.integers(0, len(before.instance.capacity))) if what else live.add_pool(int(rng.integers(0, 3)))
            )
            site = -1 if rng.random() < 0.5 else int(rng.integers(0, 4))
            try:
                node = live.add(newcomer(rng, live), pool, site)
            except NoRoom:
                assert list(live.nodes) == alive
                continue
            if not is_limited:
                # One more, which the newcomer could feed.
                live.extend(live.add([Column(30.0)], pool), [Column(2.0, (node,))])
            continue
        example = int(rng.integers(0, len(alive)))
        site, pool = int(before.instance.site[example]), int(before.instance.pool[example])
        if what == 3 or (what == 4 and site == NO_SITE):
            lost, remove = [alive[example]], partial(live.remove, alive[example])
        elif what == 4:
            lost, remove = before.node[before.instance.site == site].tolist(), partial(live.remove_site, site)
        else:
            lost, remove = before.node[before.instance.pool == pool].tolist(), partial(live.remove_pool, pool)
        dependants = set().union(*(live.dependants(node) for node in lost)) - set(lost)
        changed = remove()
        assert set(changed[: len(dependants)]) == dependants
        after = check(live)
        assert set(after.node.tolist()) == set(alive) - set(lost)
        for node in set(alive) - set(lost) - set(changed):
            place = before.node.tolist().index(node)
            now = after.node.tolist().index(node)
            assert before.index[before.columns[place]] == after.index[after.columns[now]]
        for node in changed:
            place = after.node.tolist().index(node)
            if live.choice(node)[0] == 0:
                assert fitting(after, place) == []


def test_a_newcomer_takes_the_cheapest_that_fits():
    columns = [[(5.0, ())], [(5.0, ())], [(9.0, ()), (1.0, (0,))]]
    live = live_plan(instance_of(columns, capacity=[1, 1, 0], publisher_capacity=3))
    ways = [Column(9.0), Column(1.0, (0,)), Column(3.0, (1,)), Column(2.0, (0, 1))]
    first = live.add(ways, live.add_pool(1))
    assert live.choice(first) == (2, Column(3.0, (1,)))
    second = live.add(ways, live.add_pool(1))
    assert live.choice(second) == (0, Column(9.0))
    with pytest.raises(NoRoom, match="plan anew"):
        live.add(ways, live.add_pool(1))
    assert live.remove(2) == []
    third = live.add(ways, live.add_pool(1))
    assert live.choice(third) == (1, Column(1.0, (0,)))
    check(live)


def test_prices_keep_room_for_others():
    # Node 0 has one unit; both nodes behind it want it, and one of them loses 8 without: that is its price.
    columns = [[(5.0, ())], [(5.0, ())], [(9.0, ()), (1.0, (0,))], [(9.0, ()), (1.0, (0,)), (4.0, (1,))]]
    live = live_plan(instance_of(columns, capacity=[1, 2, 0, 0]))
    assert live.choice(2) == (1, Column(1.0, (0,)))
    live.remove(2)
    node = live.add([Column(9.0), Column(3.5, (0,)), Column(4.0, (1,))], live.add_pool(0))
    assert live.choice(node) == (2, Column(4.0, (1,)))


def test_thirty_dependants_find_another_source():
    columns = [[(5.0, ())], *([[(6.0, ())]] * 3)]
    columns += [[(40.0, ()), (1.0, (0,)), *((2.0 + source, (source,)) for source in (1, 2, 3))] for _ in range(30)]
    live = live_plan(instance_of(columns, capacity=[30, 10, 10, 10, *[0] * 30], publisher_capacity=10))
    assert live.dependants(0) == set(range(4, 34))
    assert live.remove(0) == list(range(4, 34))
    assert live.overflow == 0
    assert [len(live.dependants(source)) for source in (1, 2, 3)] == [10, 10, 10]
    check(live)


def test_one_moves_to_make_room_for_an_orphan():
    # The orphan of 0 can only go to 1, which is full with 4; that one can go to 2.
    columns = [[(5.0, ())], [(5.0, ())], [(5.0, ())]]
    columns += [[(40.0, ()), (1.0, (0,)), (2.0, (1,))], [(40.0, ()), (1.0, (1,)), (3.0, (2,))]]
    live = live_plan(instance_of(columns, capacity=[1, 1, 1, 0, 0], publisher_capacity=3))
    assert live.remove(0) == [3, 4]
    assert live.choice(3) == (2, Column(2.0, (1,)))
    assert live.choice(4) == (2, Column(3.0, (2,)))
    check(live)


def test_orphans_that_fit_nowhere_overflow_the_publisher():
    columns = [[(5.0, ())], [(9.0, ()), (1.0, (0,))], [(9.0, ()), (1.0, (0,))]]
    live = live_plan(instance_of(columns, publisher_capacity=1))
    assert live.remove(0) == [1, 2]
    assert live.overflow == 1
    live.remove(1)
    assert live.overflow == 0
    with pytest.raises(KeyError):
        live.remove(1)
    check(live)


def test_a_plan_made_anew_of_a_snapshot():
    live = live_plan(random_instance(5, 30))
    live.remove(3)
    shot = live.snapshot()
    again = LivePlan(shot.instance, solve(shot.instance))
    assert again.use <= live.use + 1e-9
    check(again)
