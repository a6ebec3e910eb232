"""Plans of random view sets: they fit the views and the capacities, and what runs by them is what each view says by itself."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_patterns import json_documents, patterns_within, xml_documents
from relay_plans import delivered, said_directly

from tidings.relay.document import Document
from tidings.relay.files import PUBLISHER, Site, View
from tidings.relay.pattern import parse_pattern
from tidings.relay.plan import RelayPlan, check, parse_plan, plan_json, site_of
from tidings.relay.planner import Planned, plan_relay
from tidings.relay.planning.latency import Haste
from tidings.relay.planning.reference import exact
from tidings.relay.planning.solve import Infeasible
from tidings.relay.workloads.documents import document_xml
from tidings.relay.workloads.views import distinct_views
from tidings.relay.xml_document import parse_xml


@st.composite
def relays(draw: st.DrawFn) -> tuple[list[View], list[Site], list[Document], int | None]:
    documents = draw(st.lists(xml_documents() | json_documents(), min_size=1, max_size=3))
    patterns = draw(st.lists(patterns_within(draw(st.sampled_from(documents))), min_size=1, max_size=8))
    sites = [
        Site(f"s{n}", draw(st.none() | st.integers(1, 4)), draw(st.none() | st.just((float(n), 0.0))))
        for n in range(draw(st.integers(0, 3)))
    ]
    ids = [site.id for site in sites]
    count = draw(st.integers(1, 25))
    views = [
        View(f"v{n}", draw(st.sampled_from(patterns)), draw(st.none() | st.sampled_from(ids)) if ids else None)
        for n in range(count)
    ]
    return views, sites, documents, draw(st.none() | st.integers(1, 5))


@settings(max_examples=25)
@given(relays())
def test_what_a_plan_delivers_is_what_each_view_says(
    relay: tuple[list[View], list[Site], list[Document], int | None],
) -> None:
    views, sites, documents, capacity = relay
    planned = plan_relay(views, documents, sites=sites, capacity=capacity)
    given_capacities = {site.id: site.capacity for site in sites if site.capacity is not None}
    rest = {} if capacity is None else {site_of(view): capacity for view in views} | {s.id: capacity for s in sites}
    check(planned.plan, views, rest | given_capacities)
    assert parse_plan(plan_json(planned.plan)) == planned.plan
    assert delivered(planned.plan, views, documents) == said_directly(views, documents)


@settings(max_examples=15)
@given(relays(), st.integers(1, 4))
def test_a_publisher_that_cannot_feed_enough_is_told_how_many_it_must(
    relay: tuple[list[View], list[Site], list[Document], int | None], room: int
) -> None:
    views, sites, documents, capacity = relay
    try:
        planned = plan_relay(views, documents, sites=sites, capacity=capacity, publisher_capacity=room)
    except Infeasible as error:
        assert error.fed > room
        planned = plan_relay(views, documents, sites=sites, capacity=capacity, publisher_capacity=error.fed)
        assume(error.is_proven)
        assert error.needed <= planned.plan.feeds <= error.fed
    else:
        assert planned.plan.feeds <= room


@pytest.mark.parametrize("capacity", [2, 5])
def test_plans_of_a_thousand_views_are_within_a_thousandth_of_the_best(capacity: int) -> None:
    patterns = list(islice(distinct_views(3), 1_000))
    views = [View(f"v{n}", pattern) for n, pattern in enumerate(patterns)]
    documents = [parse_xml(document_xml(3, n)) for n in range(3)]
    planned = plan_relay(views, documents, capacity=capacity)
    best = exact(planned.instance)
    assert best is not None
    least = planned.instance.use(best)
    assert planned.solution.bound <= least * (1 + 1e-9)
    assert planned.solution.use <= least * 1.001


def mean_level(plan: RelayPlan) -> float:
    return sum(plan.levels.values()) / len(plan.levels)


def test_slack_and_weights_say_what_latency_may_cost() -> None:
    views = [View(f"v{n}", pattern) for n, pattern in enumerate(islice(distinct_views(3), 1_500))]
    documents = [parse_xml(document_xml(3, n)) for n in range(3)]

    def hastened(**weights: float) -> Planned:
        return plan_relay(views, documents, capacity=4, haste=Haste(**weights))

    tight, roomy = hastened(), hastened(slack=1.5)
    assert roomy.plan.least_use == tight.plan.least_use
    fed = [max(len(planned.plan.dependants[view.id]) for view in views) for planned in (tight, roomy)]
    assert fed == [4, 6]
    assert roomy.plan.feeds == tight.plan.feeds
    assert roomy.plan.latency < 0.97 * tight.plan.latency and mean_level(roomy.plan) < mean_level(tight.plan)
    # A hop for nothing is not bought; a dear one is, at any use that is allowed.
    thrifty, hurried = hastened(beta=0.0), hastened(alpha=0.0, beta=1.0)
    assert thrifty.plan.use <= thrifty.plan.least_use
    assert hurried.plan.latency <= tight.plan.latency < thrifty.plan.latency
    assert tight.plan.use < hurried.plan.use <= 1.07 * hurried.plan.least_use
    idle = plan_relay(views, documents, capacity=4, haste=None)
    assert idle.plan.latency == idle.plan.least_use_latency


@settings(max_examples=15)
@given(relays(), st.sampled_from([1.5, 2.0]))
def test_a_plan_with_slack_keeps_it_and_delivers_the_same(
    relay: tuple[list[View], list[Site], list[Document], int | None], slack: float
) -> None:
    views, sites, documents, capacity = relay
    planned = plan_relay(views, documents, sites=sites, capacity=capacity, haste=Haste(slack=slack))
    roomy = {} if capacity is None else {site_of(view): int(slack * capacity) for view in views}
    roomy |= {site.id: int(slack * site.capacity) for site in sites if site.capacity is not None}
    check(planned.plan, views, roomy)
    assert delivered(planned.plan, views, documents) == said_directly(views, documents)


def test_equal_views_form_a_tree_within_their_capacities() -> None:
    """17 views with 2 feeds each: 15 edges in the tree leave 19 for others."""
    views = [View(f"v{n}", parse_pattern("//a[/b]{val}")) for n in range(17)]
    views += [View(f"w{n}", parse_pattern(f'//a[/b][/c="{n}"]{{val}}')) for n in range(3)]
    plan = plan_relay(views, [], capacity=2).plan
    assert plan.feeds == 4  # one of the equal views; c is known to nobody
    fed = Counter(source for inputs in plan.inputs.values() for source in inputs if source != PUBLISHER)
    assert max(fed.values()) == 2
    assert max(plan.levels.values()) == 5
