"""Each subscriber is told of each document exactly once, in order and as by direct evaluation, whatever happens on the way."""

from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from relay_plans import DOCUMENTS, OTHER_PATTERNS, PATTERNS, random_plan, views_of

from tidings.model.errors import UsageError
from tidings.relay.evaluate import evaluate_pattern
from tidings.relay.files import View
from tidings.relay.pattern import parse_pattern
from tidings.relay.plan import PUBLISHER, RelayPlan
from tidings.relay.runtime.ledger import Result
from tidings.relay.runtime.network import RelayNetwork
from tidings.relay.runtime.query import match_each

WINDOW = 4
VIEWS = views_of(PATTERNS)


def expected_results(views, name, document):
    return [Result(view.id, name, evaluate_pattern(view.query, document)) for view in sorted(views, key=by_id)]


def by_id(view):
    return view.id


class Relay(RuleBasedStateMachine):
    """Random schedules: messages overtake each other, arrive twice, nodes die, plans change."""

    def __init__(self):
        super().__init__()
        self.views = VIEWS
        self.random = Random(0)
        self.network = RelayNetwork(
            random_plan(self.random, VIEWS), VIEWS, window=WINDOW, replan=self.replan, matching=match_each
        )
        self.published = 0
        self.expected = []
        self.told = []

    def replan(self, plan, failed):
        assert set(failed) <= set(plan.inputs)
        if self.random.random() < 0.3:
            return plan
        # The views of an epoch are among these: a view that has come back with another pattern is its own choice here.
        views = [view for view in self.known(plan) if view.id in plan.inputs]
        return random_plan(self.random, views)

    def known(self, plan):
        for epoch in self.network._timeline.epochs:
            if epoch.plan is plan:
                return [View(id, query.pattern) for id, query in epoch.queries.items()]
        raise AssertionError("a plan that is not in force")

    @precondition(lambda self: self.network.has_room)
    @rule(at=st.integers(0, len(DOCUMENTS) - 1))
    def publish(self, at):
        self.published += 1
        name = f"{self.published}.xml"
        self.network.publish(name, DOCUMENTS[at])
        self.expected += expected_results(self.views, name, DOCUMENTS[at])

    @precondition(lambda self: self.network.in_flight)
    @rule(seed=st.integers(0, 1000), count=st.integers(1, 40))
    def deliver(self, seed, count):
        random = Random(seed)
        for _ in range(count):
            if self.network.in_flight:
                self.network.deliver(random.randrange(len(self.network.in_flight)))

    @precondition(lambda self: self.network.in_flight)
    @rule(seed=st.integers(0, 1000), count=st.integers(1, 10))
    def repeat(self, seed, count):
        random = Random(seed)
        for _ in range(count):
            self.network.in_flight.append(random.choice(self.network.in_flight))

    @precondition(lambda self: self.network._nodes)
    @rule(seed=st.integers(0, 1000), count=st.integers(1, 3))
    def fail(self, seed, count):
        self.random = Random(seed)
        views = sorted(self.network._nodes)
        self.network.fail(self.random.sample(views, min(count, len(views))))

    @rule(seed=st.integers(0, 1000))
    def switch(self, seed):
        self.random = Random(seed)
        views = [view for view in VIEWS if self.random.random() < 0.7]
        if self.random.random() < 0.3:
            views = [view for view in views if view.id != "v1"]
            views.append(View("v1", parse_pattern(self.random.choice(OTHER_PATTERNS))))
        self.network.switch(random_plan(self.random, views), views)
        self.views = views

    @invariant()
    def told_in_order(self):
        self.told += self.network.results()
        assert self.told == self.expected[: len(self.told)]

    def teardown(self):
        self.network.run()
        self.told += self.network.results()
        assert self.told == self.expected
        # Nothing is kept for ever.
        assert not self.network._documents
        assert not self.network._said
        assert not any(node.held for node in self.network._nodes.values())


Relay.TestCase.settings = settings(max_examples=25, stateful_step_count=30)
test_random_schedules = Relay.TestCase


def test_a_stream_of_documents():
    network = RelayNetwork(random_plan(Random(1), VIEWS), VIEWS)
    for number, document in enumerate(DOCUMENTS):
        network.publish(f"{number}", document)
        network.run()
        assert list(network.results()) == expected_results(VIEWS, f"{number}", document)
    assert network.messages > len(VIEWS) * len(DOCUMENTS)


def test_the_window_bounds_what_is_in_the_network():
    network = RelayNetwork(random_plan(Random(1), VIEWS), VIEWS, window=2)
    network.publish("1", DOCUMENTS[0])
    network.publish("2", DOCUMENTS[0])
    assert not network.has_room
    with pytest.raises(UsageError, match="2 unfinished documents"):
        network.publish("3", DOCUMENTS[0])
    network.run()
    assert network.has_room


def test_views_at_a_site_fail_together():
    views = [View("v0", VIEWS[0].query, "s1"), View("v1", VIEWS[1].query, "s1"), VIEWS[2]]
    network = RelayNetwork(RelayPlan({"v0": (PUBLISHER,), "v1": (PUBLISHER,), "v2": (PUBLISHER,)}), views)
    network.publish("1", DOCUMENTS[0])
    assert network.views_at("s1") == ["v0", "v1"]
    assert network.views_at("v2") == ["v2"]
    network.fail(network.views_at("s1"))
    network.run()
    assert list(network.results()) == expected_results(views, "1", DOCUMENTS[0])
    with pytest.raises(UsageError, match="'v7' is not in the network"):
        network.fail(["v7"])


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ({"v0": (PUBLISHER,)}, "lacks the view 'v1'"),
        ({"v0": (PUBLISHER,), "v1": (PUBLISHER,), "v2": (PUBLISHER,)}, "a view 'v2' that is not among"),
        ({"v0": (PUBLISHER,), "v1": ("v0",)}, "view 'v1' cannot be computed from its inputs 'v0'"),
        ({"v0": ("v1",), "v1": ("v0",)}, "from itself"),
    ],
)
def test_plans_that_do_not_fit(inputs, reason):
    with pytest.raises(UsageError, match=reason):
        RelayNetwork(RelayPlan(inputs), VIEWS[:2])
