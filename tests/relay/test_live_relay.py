"""Views that come and go, and sites that fail: the plan stays valid, and what runs by it stays what each view says."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_patterns import patterns_within, xml_documents

from tidings.model.errors import UsageError
from tidings.relay.document import Document
from tidings.relay.files import PUBLISHER, Site, View
from tidings.relay.live import LiveRelay
from tidings.relay.pattern import Pattern, parse_pattern
from tidings.relay.plan import check, site_of
from tidings.relay.planner import plan_relay
from tidings.relay.planning import NoRoom
from tidings.relay.reference import reference_rows
from tidings.relay.runtime.run import run_relay

SITES = [Site("s0", 2, (0.0, 0.0)), Site("s1", None, (3.0, 4.0)), Site("s2", 1)]


def capacities(views: list[View], capacity: int) -> dict[str, int]:
    return {site_of(view): capacity for view in views} | {"s0": 2, "s1": capacity, "s2": 1}


@settings(max_examples=15)
@given(st.data())
def test_every_change_leaves_a_plan_that_delivers(data: st.DataObject) -> None:
    document: Document = data.draw(xml_documents())
    patterns: list[Pattern] = data.draw(st.lists(patterns_within(document), min_size=1, max_size=6))
    capacity = data.draw(st.integers(1, 3))
    made = 0

    def view() -> View:
        nonlocal made
        made += 1
        site = data.draw(st.none() | st.sampled_from(["s0", "s1", "s2"]))
        return View(f"v{made}", data.draw(st.sampled_from(patterns)), site)

    held = {one.id: one for one in (view() for _ in range(data.draw(st.integers(1, 8))))}
    relay = LiveRelay(plan_relay(list(held.values()), [document], sites=SITES, capacity=capacity), [document])
    before = relay
    for _ in range(data.draw(st.integers(1, 8))):
        match data.draw(st.sampled_from(["add", "add", "remove", "fail", "replan"])):
            case "add":
                newcomer = view()
                assert relay.add(newcomer) == relay.inputs(newcomer.id)
                held[newcomer.id] = newcomer
            case "remove" if len(held) > 1:
                gone = data.draw(st.sampled_from(sorted(held)))
                fed = {id for id in held if gone in relay.inputs(id)}
                assert set(relay.remove(gone)) >= fed
                del held[gone]
            case "fail":
                site = data.draw(st.sampled_from(["s0", "s1", "s2"]))
                stay = {id: one for id, one in held.items() if one.site != site}
                if stay:
                    relay.fail(site)
                    held = stay
            case "replan":
                relay.follow(before := relay.replan()) if data.draw(st.booleans()) else before.follow(relay)
        views = list(held.values())
        assert {one.id: one for one in relay.views} == held
        plan = relay.plan()
        check(plan, views, capacities(views, capacity))
    told = list(run_relay(plan, views, [("d", document)], quarantine=lambda *refused: pytest.fail(str(refused))))
    rows = {one.id: reference_rows(one.query, document) for one in views}
    assert told == [(id, "d", rows[id]) for id in sorted(rows) if rows[id]]


def test_a_view_with_many_dependants_leaves_and_all_find_another_input() -> None:
    """Thirty views move from the only one that knew enough for them to one that came later."""
    wide = [View("w1", parse_pattern("//a[/b{val}]")), View("w2", parse_pattern("//a[/b{val}]/c{id}"))]
    narrow = [View(f"n{n}", parse_pattern(f'//a[/b="{n}"]/c{{id}}')) for n in range(30)]
    relay = LiveRelay(plan_relay([*wide, *narrow], [], capacity=30))
    assert {relay.inputs(view.id) for view in narrow} == {("w2",)}
    relay.add(View("w3", parse_pattern("//a[/b{val}]/c{id}")))
    assert relay.inputs("w3") == (PUBLISHER,)  # w2 has no capacity left
    assert set(relay.remove("w2")) == {view.id for view in narrow}
    assert {relay.inputs(view.id) for view in narrow} == {("w3",)}
    check(relay.plan(), list(relay.views), {site_of(view): 30 for view in relay.views})


def test_mistakes_are_refused() -> None:
    relay = LiveRelay(plan_relay([View("a", parse_pattern("//a{id}"))], [], sites=SITES))
    with pytest.raises(UsageError, match="already"):
        relay.add(View("a", parse_pattern("//b{id}")))
    with pytest.raises(UsageError, match="'nowhere', which is not known"):
        relay.add(View("b", parse_pattern("//b{id}"), "nowhere"))
    with pytest.raises(UsageError, match="no view 'b'"):
        relay.remove("b")
    with pytest.raises(UsageError, match="no site 's9'"):
        relay.fail("s9")
    assert [view.id for view in relay.views] == ["a"]


def test_a_view_for_which_there_is_no_room_feeds_nobody() -> None:
    relay = LiveRelay(plan_relay([View("one", parse_pattern("//c/e{val}"))], [], capacity=1, publisher_capacity=1))
    other, both = View("other", parse_pattern("//c/d{val}")), View("both", parse_pattern("//c[/d{val}]/e{val}"))
    for view in (other, both):
        with pytest.raises(NoRoom):
            relay.add(view)
    relay.remove("one")
    assert relay.add(both) == (PUBLISHER,)
