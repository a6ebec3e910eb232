"""Plans are valid, their bounds are bounds, and they are as good as the best plan by definition."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from random_instances import SEEDS, instance_of, instances, random_instance

from tidings.relay.planning import UNLIMITED, Infeasible, publisher_feeds, solve, violations
from tidings.relay.planning.reference import exact

TOLERANCE = 1e-6


def fewest_fed(instance):
    """How many nodes the publisher feeds at least."""
    cost = instance.is_published.astype(np.float64)
    counted = replace(instance, cost=cost, publisher_capacity=UNLIMITED)
    return round(counted.use(exact(counted)))


@settings(max_examples=25, deadline=None)
@given(instances())
def test_as_good_as_the_best_plan(instance):
    best = exact(instance)
    try:
        solution = solve(instance)
    except Infeasible as infeasible:
        assert best is None
        fewest = fewest_fed(instance)
        assert (infeasible.needed, infeasible.fed) == (fewest, fewest)
        assert infeasible.capacity < fewest
        relaxed = replace(instance, publisher_capacity=fewest)
        assert violations(relaxed, infeasible.least_overflow.columns) == []
        assert relaxed.use(exact(relaxed)) == pytest.approx(infeasible.least_overflow.use, TOLERANCE)
    else:
        assert violations(instance, solution.columns) == []
        assert solution.use == pytest.approx(instance.use(solution.columns))
        assert solution.use == pytest.approx(instance.use(best), TOLERANCE)
        assert solution.bound <= solution.use <= solution.bound * (1 + TOLERANCE) + TOLERANCE


@settings(max_examples=15, deadline=None)
@given(instances(nodes_max=30))
def test_without_the_integer_program_plans_are_valid_and_bounds_hold(instance):
    best = exact(instance)
    try:
        solution = solve(instance, integer_columns_max=0)
    except Infeasible as infeasible:
        fewest = fewest_fed(instance)
        assert infeasible.needed <= fewest <= infeasible.fed
        assert not infeasible.is_proven or best is None
        solution = infeasible.least_overflow
        instance = replace(instance, publisher_capacity=infeasible.fed)
        best = exact(instance)
    assert violations(instance, solution.columns) == []
    assert solution.bound <= instance.use(best) + TOLERANCE
    assert solution.use >= instance.use(best) - TOLERANCE
    assert (solution.prices >= 0).all()


@settings(max_examples=6, deadline=None)
@given(SEEDS)
def test_a_core_that_is_too_small_still_gives_a_bound(seed):
    instance = random_instance(seed, 60)
    solution = solve(instance, core_columns_max=40, integer_columns_max=20)
    best = instance.use(exact(instance))
    assert violations(instance, solution.columns) == []
    assert solution.bound <= best + TOLERANCE
    assert best <= solution.use + TOLERANCE


def test_larger_instances_are_within_a_thousandth():
    instance = random_instance(7, 400, capacity_max=2)
    solution = solve(instance)
    best = instance.use(exact(instance))
    assert violations(instance, solution.columns) == []
    assert best * (1 - TOLERANCE) <= solution.use <= best * 1.001


def test_the_same_plan_every_time():
    instance = random_instance(3, 200)
    assert (solve(instance).columns == solve(instance).columns).all()


def test_units_of_one_pool_count_each():
    # Nodes 0 and 1 share a pool of three units: two nodes that need both do not fit.
    both = (1.0, (0, 1))
    columns = [[(1.0, ())], [(1.0, ())], [(9.0, ()), both], [(10.0, ()), both]]
    solution = solve(instance_of(columns, pool=[0, 0, 1, 2], capacity=[3, 0, 0]))
    assert solution.columns.tolist() == [0, 1, 2, 5]
    assert solution.use == 12.0


def test_a_site_feeds_itself_for_nothing():
    columns = [[(1.0, ())], [(9.0, ()), (1.0, (0,))], [(9.0, ()), (1.0, (0,))]]
    solution = solve(instance_of(columns, pool=[0, 0, 1], capacity=[0, 0], site=[4, 4, 5]))
    assert solution.columns.tolist() == [0, 2, 3]


def test_infeasible_says_what_is_needed():
    columns = [[(1.0, ())], [(9.0, ()), (1.0, (0,))], [(9.0, ()), (1.0, (0,))]]
    instance = instance_of(columns, capacity=[1, 0, 0], publisher_capacity=1)
    with pytest.raises(
        Infeasible,
        match="at most 1 views: by the rewritings considered it must feed at least 2; with 2 there is a plan",
    ) as caught:
        solve(instance)
    assert publisher_feeds(instance, caught.value.least_overflow.columns) == 2


def test_violations_are_found():
    columns = [[(1.0, ())], [(9.0, ()), (1.0, (0,))], [(9.0, ()), (1.0, (0,))]]
    instance = instance_of(columns, capacity=[1, 0, 0], publisher_capacity=1)
    assert violations(instance, np.array([0, 2, 4])) == ["pool 0 feeds 2, 1 allowed"]
    assert violations(instance, np.array([0, 1, 4])) == ["the publisher feeds 2, 1 allowed"]
    assert violations(instance, np.array([0, 3, 4])) == ["node 1 is fed by column 3, which is not its own"]
    assert violations(instance, np.array([0, 2])) == ["2 columns for 3 nodes"]
    cyclic = instance_of([[(1.0, ()), (1.0, (1,))], [(1.0, ()), (1.0, (0,))]])
    assert violations(cyclic, np.array([1, 3])) == ["2 nodes are not reached from the publisher"]


def test_no_nodes():
    solution = solve(instance_of([]))
    assert (len(solution.columns), solution.use, solution.bound, solution.gap) == (0, 0.0, 0.0, 0.0)
