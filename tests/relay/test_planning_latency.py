"""Latency passes keep every rule of a plan, and never lose what they are asked to gain."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_instances import instance_of, instances

from tidings.relay.planning import solve, violations
from tidings.relay.planning.latency import order_of, paths_of, reduce_latency, total_latency
from tidings.relay.planning.reference import latencies, levels


def any_plan(instance):
    return solve(instance, integer_columns_max=0).columns


@settings(max_examples=20, deadline=None)
@given(instances(nodes_max=20, limited_publisher=False))
def test_paths_are_those_of_the_definition(instance):
    columns = any_plan(instance)
    paths = paths_of(instance, columns)
    assert paths.latency.tolist() == pytest.approx(latencies(instance, columns))
    assert paths.level.tolist() == levels(instance, columns)
    assert total_latency(instance, columns) == pytest.approx(np.dot(latencies(instance, columns), instance.weight))


@settings(max_examples=20, deadline=None)
@given(instances(nodes_max=20, limited_publisher=False))
def test_the_order_has_sources_first(instance):
    place = {node: place for place, node in enumerate(order_of(instance).tolist())}
    assert sorted(place) == list(range(instance.nodes))
    for node in range(instance.nodes):
        for column in instance.columns_of(node):
            assert all(place[source] < place[node] for source in instance.sources_of(column))


def test_a_cycle_is_refused():
    with pytest.raises(ValueError, match="cycle"):
        order_of(instance_of([[(1.0, ()), (1.0, (1,))], [(1.0, ()), (1.0, (0,))]]))


@settings(max_examples=25, deadline=None)
@given(
    instances(nodes_max=40, limited_publisher=False),
    st.sampled_from([None, 0.0, 0.5, 20.0]),
    st.sampled_from([0.0, 0.07, 5.0]),
)
def test_a_faster_plan_is_valid_and_better(instance, beta, use_slack):
    before = any_plan(instance)
    kept = before.copy()
    after = reduce_latency(instance, before, beta=beta, use_slack=use_slack)
    assert (before == kept).all()
    assert violations(instance, after) == []
    at_publisher = instance.first_column[:-1]
    assert ((before == at_publisher) == (after == at_publisher)).all()
    assert (instance.is_published[after] <= instance.is_published[before]).all()
    assert instance.use(after) <= instance.use(before) * (1 + use_slack) + 1e-9
    if beta is not None:
        gain = instance.use(before) - instance.use(after)
        gain += beta * (total_latency(instance, before) - total_latency(instance, after))
        assert gain >= -1e-9


def test_a_chain_becomes_a_star():
    # Each node can be fed by any before it; the one just before costs a little less.
    columns = [[(50.0, ())]]
    for node in range(1, 8):
        columns.append([(50.0, ()), *((10.0 + 0.1 * (node - source), (source,)) for source in range(node))])
    instance = instance_of(columns)
    chain = solve(instance).columns
    assert levels(instance, chain) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert levels(instance, reduce_latency(instance, chain)) == [1, 2, 2, 2, 2, 2, 2, 2]
    assert levels(instance, reduce_latency(instance, chain, use_slack=0.0)) == [1, 2, 3, 4, 5, 6, 7, 8]
    narrow = instance_of(columns, capacity=[2] * 8)
    assert max(levels(narrow, reduce_latency(narrow, solve(narrow).columns))) < 8


def test_a_node_that_many_wait_for_takes_the_place_of_one_that_none_waits_for():
    # Node 1 is slow, 0 is not, and feeds one node only. In the cheapest plan that is 2; 4, 5 and 6 wait for 3.
    slow_or_fast = [(90.0, ()), (10.0, (0,)), (10.0, (1,))]
    dearer = [(90.0, ()), (11.0, (0,)), (10.0, (1,))]
    columns = [[(20.0, ())], [(20.0, ())], slow_or_fast, dearer, *([[(90.0, ()), (10.0, (3,))]] * 3)]
    delay = [0.0, 30.0, *[0.0] * 12]
    instance = instance_of(columns, capacity=[1, 2, 0, 3, 0, 0, 0], delay=delay)
    before = np.array([0, 1, 3, 7, 9, 11, 13])
    assert violations(instance, before) == []
    after = reduce_latency(instance, before)
    assert after.tolist() == [0, 1, 4, 6, 9, 11, 13]
    assert violations(instance, after) == []


def test_the_way_from_the_publisher_counts():
    instance = instance_of(
        [[(1.0, ())], [(9.0, ()), (1.0, (0,))]],
        position=np.array([[0.0, 3.0], [4.0, 3.0]]),
        publisher_position=(0.0, 0.0),
        delay=[0.5, 0.0, 0.25],
    )
    assert latencies(instance, np.array([0, 2])) == [3.5, 7.75]
    assert latencies(instance, np.array([0, 1])) == [3.5, 5.0]
