"""Views that others know in part: the rest completes them exactly, and the publisher matches and sends less than without."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_patterns import json_documents, patterns_within, xml_documents
from random_rows import Selection, batches, document_of, related_selections
from relay_plans import delivered, said_directly

from tidings.model.errors import UsageError
from tidings.relay.document import Document
from tidings.relay.embedding import coverage, is_rewriting, needs
from tidings.relay.files import PUBLISHER, View
from tidings.relay.live import LiveRelay
from tidings.relay.message import encode_parts
from tidings.relay.pattern import Pattern, parse_pattern
from tidings.relay.plan import RelayPlan, check, parse_plan, plan_json
from tidings.relay.planner import Planned, plan_relay
from tidings.relay.rest import rest_of
from tidings.relay.row_views.document import RowDocument
from tidings.relay.row_views.embedding import embeds, is_row_rewriting
from tidings.relay.row_views.query import RowQuery
from tidings.relay.runtime.epochs import Epoch, queries_of
from tidings.relay.runtime.network import RelayNetwork
from tidings.relay.workloads.documents import document_xml
from tidings.relay.workloads.views import distinct_views
from tidings.relay.xml_document import parse_xml


@pytest.mark.parametrize(
    ("target", "sources", "rest"),
    [
        ('//item[/name="gold"]/stock/price{val}', ['//item[/name="gold"]/stock{id}'], "//price{val}"),
        ("//a[/b{val}][/c{val}]/d{val}", ["//a/d{val}"], "//a[/b{val}]/c{val}"),
        ("/a/b[/c{val}]{cont}", ["//b/c{val}"], "/a{id}/b{cont}"),
        ("/a//b/c{id,val}", ["//c{id}", "//b{val}"], "/a{id}//c{val}"),
        ('//a[/b="1"]{id}', ["//a/b{id}"], '//b="1"{id}'),
        ("//a/b{val}", ["//a/b{val}"], None),
    ],
)
def test_the_rest_has_what_is_missing(target: str, sources: list[str], rest: str | None) -> None:
    found = rest_of(parse_pattern(target), [parse_pattern(source) for source in sources])
    assert found == (None if rest is None else parse_pattern(rest).canonical)


@given(st.data(), xml_documents() | json_documents())
def test_a_rest_completes_its_sources_and_nothing_less_does(data: st.DataObject, document: Document) -> None:
    target, *others = data.draw(st.lists(patterns_within(document), min_size=2, max_size=5))
    sources = [other for other in others if coverage(other, target) is not None]
    rest = rest_of(target, sources)
    if rest is None:
        assert is_rewriting(sources, target)
        return
    assert isinstance(rest, Pattern) and not is_rewriting(sources, target)
    assert is_rewriting([*sources, rest], target) and len(rest.nodes) <= len(target.nodes)
    assert parse_pattern(rest.text) == rest
    known = 0
    for source in sources:
        known |= coverage(source, target) or 0
    missing = (1 << len(needs(target))) - 1 & ~known
    assert (coverage(rest, target) or 0) & missing == missing


@given(related_selections(6))
def test_a_rest_of_rows_completes_its_sources(selections: list[Selection]) -> None:
    target, *others = (selection.query for selection in selections)
    sources = [other for other in others if embeds(other, target)]
    rest = rest_of(target, sources)
    assert (rest is None) == is_row_rewriting(sources, target)
    if rest is not None:
        assert isinstance(rest, RowQuery) and is_row_rewriting([*sources, rest], target)


def results(planned: Planned, documents: Sequence[Document | RowDocument]) -> Any:
    """By the plan as it is written to a file, and checked."""
    plan = parse_plan(plan_json(planned.plan))
    check(plan, planned.views)
    return delivered(plan, planned.views, documents)


@st.composite
def mixed(draw: st.DrawFn) -> tuple[list[View], list[Document | RowDocument], int | None]:
    trees = draw(st.lists(xml_documents() | json_documents(), min_size=1, max_size=3))
    patterns = draw(st.lists(patterns_within(draw(st.sampled_from(trees))), min_size=1, max_size=8))
    queries = [*patterns, *(selection.query for selection in draw(related_selections(4)))]
    sites = st.sampled_from([None, None, "s1", "s2"])
    views = [View(f"v{n}", draw(st.sampled_from(queries)), draw(sites)) for n in range(draw(st.integers(1, 20)))]
    rows = [document_of(batch) for batch in draw(st.lists(batches(), max_size=2))]
    return views, [*trees, *rows], draw(st.none() | st.integers(1, 4))


@settings(max_examples=40)
@given(mixed())
def test_what_a_partial_plan_delivers_is_what_each_view_says(
    relay: tuple[list[View], list[Document | RowDocument], int | None],
) -> None:
    views, documents, capacity = relay
    planned = plan_relay(views, documents, capacity=capacity, partial=True)
    assert results(planned, documents) == said_directly(views, documents)


def published_work(planned: Planned, documents: list[Document]) -> tuple[int, int]:
    """Steps of patterns that the publisher matches, and bytes of what it sends."""
    epoch = Epoch(1, 1, planned.plan, queries_of(planned.views))
    steps = sum(len(query.pattern.nodes) for query in epoch.roots)
    sent = sum(
        len(views) * len(encode_parts(query.match(document)))
        for query, views in epoch.roots.items()
        for document in documents
    )
    return steps, sent


def test_with_few_views_the_publisher_matches_and_sends_less() -> None:
    views = [View(f"v{n}", pattern) for n, pattern in enumerate(islice(distinct_views(3), 300))]
    documents = [parse_xml(document_xml(3, n)) for n in range(3)]
    whole = plan_relay(views, documents, capacity=10)
    partial = plan_relay(views, documents, capacity=10, partial=True)
    assert whole.plan.feeds_in_part == 0 < partial.plan.feeds_in_part
    assert partial.solution.use < 0.8 * whole.solution.use
    (whole_steps, whole_bytes), (steps, sent) = published_work(whole, documents), published_work(partial, documents)
    assert steps < 0.8 * whole_steps and sent < whole_bytes
    assert results(partial, documents[:1]) == results(whole, documents[:1])


def plan_of(*inputs: str) -> tuple[RelayPlan, list[View]]:
    views = [
        View("v1", parse_pattern("//item/name{val}")),
        View("v2", parse_pattern("//item[/name{val}]/price{val}")),
    ]
    return RelayPlan({"v1": (PUBLISHER,), "v2": inputs}), views


def test_a_node_that_fails_is_sent_the_rest_again() -> None:
    plan, views = plan_of("v1", PUBLISHER)
    document = parse_xml(b"<shop><item><name>pen</name><price>2</price></item></shop>")
    network = RelayNetwork(plan, views)
    network.publish("a.xml", document)
    network.fail(["v2"])
    network.run()
    assert [tuple(result) for result in network.results()] == [
        ("v1", "a.xml", [("pen",)]),
        ("v2", "a.xml", [("pen", "2")]),
    ]


def test_a_publisher_with_nothing_left_to_send_is_refused() -> None:
    plan, views = plan_of("v1", PUBLISHER)
    views[1] = View("v2", parse_pattern('//item/name="pen"{val}'))
    with pytest.raises(UsageError, match="nothing is left to 'publisher'"):
        check(plan, views)
    with pytest.raises(UsageError, match="cannot be computed from its inputs"):
        RelayNetwork(plan, views)


def test_a_live_relay_says_that_it_cannot_follow() -> None:
    views = plan_of(PUBLISHER)[1]
    planned = plan_relay(views, [], partial=True)
    assert planned.plan.inputs["v2"] == ("v1", PUBLISHER)
    with pytest.raises(UsageError, match="planned as a whole"):
        LiveRelay(planned)
