"""Bandwidths: no site sends more bytes a second than it may, and what is delivered stays the same."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_patterns import json_documents, patterns_within, xml_documents
from relay_plans import delivered, said_directly

from tidings.model.errors import UsageError
from tidings.relay.document import Document
from tidings.relay.files import PUBLISHER, Site, View
from tidings.relay.limits import Limits
from tidings.relay.live import LiveRelay
from tidings.relay.message import encode_parts
from tidings.relay.pattern import parse_pattern
from tidings.relay.plan import RelayPlan, site_of
from tidings.relay.planner import Planned, plan_relay
from tidings.relay.planning.instance import UNLIMITED
from tidings.relay.planning.latency import Haste
from tidings.relay.runtime.epochs import queries_of
from tidings.relay.workloads.documents import document_xml
from tidings.relay.workloads.views import distinct_views
from tidings.relay.xml_document import parse_xml


def sent_by_definition(planned: Planned, rate: float) -> Counter[str]:
    sites = {view.id: site_of(view) for view in planned.views}
    found: Counter[str] = Counter()
    for view, inputs in planned.plan.inputs.items():
        for source in inputs:
            if source != PUBLISHER and sites[source] != sites[view]:
                found[sites[source]] += rate * planned.message_bytes[source]
    return found


@st.composite
def relays(draw: st.DrawFn) -> tuple[list[View], list[Document], list[Site]]:
    documents = draw(st.lists(xml_documents() | json_documents(), min_size=1, max_size=2))
    patterns = draw(st.lists(patterns_within(draw(st.sampled_from(documents))), min_size=1, max_size=6))
    sites = [Site("s1", bandwidth=draw(st.sampled_from([30.0, 90.0, 400.0]))), Site("s2", 2)]
    at = st.sampled_from([None, None, "s1", "s2"])
    views = [View(f"v{n}", draw(st.sampled_from(patterns)), draw(at)) for n in range(draw(st.integers(1, 20)))]
    return views, documents, sites


@settings(max_examples=40)
@given(
    relays(),
    st.sampled_from([40.0, 60.0, 150.0, 1_000.0]),
    st.sampled_from([0.5, 1.0, 3.0]),
    st.sampled_from([1.0, 1.5]),
)
def test_plans_keep_bandwidths_and_deliver_what_each_view_says(
    relay: tuple[list[View], list[Document], list[Site]], bandwidth: float, rate: float, slack: float
) -> None:
    views, documents, sites = relay
    planned = plan_relay(views, documents, sites=sites, bandwidth=bandwidth, rate=rate, haste=Haste(slack=slack))
    sent = sent_by_definition(planned, rate)
    assert planned.limits.sent(planned.plan, views, planned.message_bytes) == pytest.approx(
        dict(sent) | {site_of(view): sent[site_of(view)] for view in views}
    )
    own = {"s1": sites[0].bandwidth}
    assert all(bytes <= slack * (own.get(site) or bandwidth) for site, bytes in sent.items())
    assert delivered(planned.plan, views, documents) == said_directly(views, documents)


def test_a_bandwidth_limits_bytes_where_a_capacity_limits_views() -> None:
    """Sizes are those of the messages: with as many feeds, large views send much more than small ones."""
    views = [View(f"v{n}", pattern) for n, pattern in enumerate(islice(distinct_views(3), 1_500))]
    documents = [parse_xml(document_xml(3, n)) for n in range(3)]
    by_views = plan_relay(views, documents, capacity=8)
    most = max(sent_by_definition(by_views, 2.0).values())
    by_bytes = plan_relay(views, documents, bandwidth=most / 8, rate=2.0)
    assert max(sent_by_definition(by_bytes, 2.0).values()) <= most / 8
    fed = Counter(source for inputs in by_bytes.plan.inputs.values() for source in inputs if source != PUBLISHER)
    assert max(fed.values()) > 8, "small views feed more than the capacity would let them"
    # On the wire, too, where sizes are a little off: what the busiest view says, as it is encoded, as often as it is said.
    queries = queries_of(views)
    wire = {view: np.mean([len(encode_parts(queries[view].match(document))) for document in documents]) for view in fed}
    assert max(2.0 * wire[view] * count for view, count in fed.items()) <= 1.05 * most / 8
    both = plan_relay(views, documents, capacity=8, bandwidth=most / 8, rate=2.0)
    assert both.solution.use >= max(by_views.solution.bound, by_bytes.solution.bound)


def test_equal_views_that_cannot_send_their_message_once_are_fed_by_others() -> None:
    views = [View(f"v{n}", parse_pattern("//a/b{val}")) for n in range(5)]
    document = parse_xml(b"<a>" + b"<b>0123456789</b>" * 20 + b"</a>")
    plan = plan_relay(views, [document], bandwidth=10.0).plan
    assert set(plan.inputs.values()) == {(PUBLISHER,)}
    assert plan_relay(views, [document], bandwidth=100_000.0).plan.feeds == 1


def test_views_at_one_site_share_its_line() -> None:
    names, prices = (View(id, parse_pattern(f"//item/{id}{{val}}"), "s") for id in ("name", "price"))
    gold = [View(f"v{n}", parse_pattern(f'//item[/name="{n}"]/price{{val}}')) for n in range(3)]
    document = parse_xml(b"<x>" + b"<item><name>1</name><price>2</price></item>" * 3 + b"</x>")

    def feeds(bandwidth: float | None) -> int:
        return plan_relay([names, prices, *gold], [document], sites=[Site("s", bandwidth=bandwidth)]).plan.feeds

    each = sum(list(plan_relay([names, prices], [document]).message_bytes.values()))
    assert [feeds(None), feeds(2.5 * each), feeds(0.9 * each)] == [2, 3, 5]


def test_limits() -> None:
    limits = Limits([Site("s", 3, bandwidth=100.0), Site(PUBLISHER, 3)], 5, 1_000.0, 2.0)
    assert limits.of_views(np.array([40.0, 99.5, 600.0])).tolist() == [5, 5, 0]
    capacity, bandwidth = limits.of_sites(2)
    assert (capacity.tolist(), bandwidth.tolist()) == ([3, 3], [50, 500])
    roomy = limits.with_slack(1.5)
    assert (roomy.capacity, roomy.bandwidth) == (7, 1_500.0)
    assert [(site.capacity, site.bandwidth) for site in roomy.sites] == [(4, 150.0), (3, None)]
    assert Limits().of_views(np.array([1.0])).tolist() == [UNLIMITED]
    plan, views = RelayPlan({"a": (PUBLISHER,), "b": ("a",)}), [View(id, parse_pattern("//a{id}")) for id in "ab"]
    with pytest.raises(UsageError, match="send 1,200 bytes a second; its bandwidth is 1,000"):
        limits.check_bandwidths(plan, views, {"a": 600.0, "b": 600.0})
    with pytest.raises(UsageError, match="the site 'publisher' has a bandwidth"):
        Limits([Site(PUBLISHER, bandwidth=1.0)])


def test_a_live_relay_keeps_no_bandwidths() -> None:
    with pytest.raises(UsageError, match="planned as a whole"):
        LiveRelay(plan_relay([View("a", parse_pattern("//a{id}"))], [], bandwidth=1_000.0))
