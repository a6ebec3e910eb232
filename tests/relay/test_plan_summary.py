"""The summary of a plan says what the plan is: checked on one made by hand, and by counting in random ones."""

import re
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from relay_plans import PATTERNS, random_plan, views_of

from tidings.relay.files import Site, View
from tidings.relay.load import histogram, loads_of
from tidings.relay.pattern import parse_pattern
from tidings.relay.plan import PUBLISHER, RelayPlan, own_site
from tidings.relay.summary import level_groups, levels_shown, summary_lines

PLAN = RelayPlan(
    {
        "a": (PUBLISHER,),
        "b": (PUBLISHER,),
        "c": ("a", "b"),
        "d": ("a",),
        "e": ("c", "b", "a"),
        "f": ("a",),
    },
    use=2_100.0,
    bound=1_990.0,
    gap=0.005,
    latency=12.0,
    least_use=2_000.0,
    least_use_latency=18.0,
)


def test_a_plan_made_by_hand():
    loads = loads_of(PLAN, capacity=4)
    assert summary_lines(PLAN, loads, distinct=5) == [
        "views      6, 5 different",
        "publisher  feeds 2 views (33.3%); 4 (66.7%) are fed by other views",
        "inputs     1.75 per view that is fed by other views, on average",
        "least use  2,000 bytes per document, to compute all views",
        "bound      1,990: no plan by these rewritings uses less (gap 0.50%)",
        "use        2,100 (+5.0%) after latency was reduced",
        "latency    3.00 -> 2.00 hops (-33.3%) from a document to a view's result, on average",
        "levels     3: so many views does a document pass on its way to the deepest one",
        "",
        "views per level (1: fed by the publisher; otherwise one more than the highest input)",
        "  1  2  " + "█" * 20,
        "  2  3  " + "█" * 30,
        "  3  1  " + "█" * 10,
        "",
        "views by how many others they feed, up to the capacity of 4",
        "    0  3  " + "█" * 30,
        "  1-2  2  " + "█" * 20,
        "  3-4  1  " + "█" * 10,
        "  at capacity, with no room for more: 1 view (16.7%)",
    ]


def test_what_nobody_has_worked_out_is_left_out():
    lines = summary_lines(RelayPlan(PLAN.inputs))
    names = {line.split()[0] for line in lines if line and not line.startswith(" ")}
    assert names == {"views", "publisher", "inputs", "levels"}
    assert not any("capacity" in line for line in lines)
    assert summary_lines(RelayPlan({})) == ["views      0"]


def test_a_site_feeds_for_all_of_its_views():
    pattern = parse_pattern("//a{id}")
    views = [View(id, pattern, site) for id, site in zip("abcdef", ["s", "s", "s", "t", None, "t"], strict=True)]
    loads = loads_of(PLAN, views, [Site("s", capacity=4), Site("t")], capacity=9)
    # a feeds d, e and f elsewhere, b and c feed e; c is at home.
    assert loads.fed == {"s": 5, "t": 0, own_site("e"): 0}
    assert loads.capacity == {"s": 4, "t": 9, own_site("e"): 9}
    assert [view for view in "abcdef" if loads.is_full(view)] == ["a", "b", "c"]
    assert "sites by how many views elsewhere they feed" in summary_lines(PLAN, loads)


@pytest.mark.parametrize(
    ("counts", "last", "expected"),
    [
        ([], None, [("0", 0)]),
        ([0, 1, 2, 3, 10], None, [("0", 1), ("1-2", 2), ("3-5", 1), ("6-10", 1)]),
        ([1], 1, [("0", 0), ("1", 1)]),
        ([4, 4], 4, [("0", 0), ("1-2", 0), ("3-4", 2)]),
        ([6], 6, [("0", 0), ("1-2", 0), ("3-5", 0), ("6", 1)]),
        ([7], 6, [("0", 0), ("1-2", 0), ("3-5", 0), ("6-10", 1)]),
        ([31, 20], 500, [("0", 0), ("1-2", 0), ("3-5", 0), ("6-10", 0), ("11-20", 1), ("21-50", 1)]),
    ],
)
def test_bins(counts, last, expected):
    assert histogram(counts, last) == expected


@given(st.lists(st.integers(0, 3_000)), st.none() | st.integers(1, 3_000))
@settings(max_examples=25, deadline=None)
def test_every_count_is_in_one_bin(counts, last):
    bins = histogram(counts, last)
    assert sum(many for _, many in bins) == len(counts)
    for name, many in bins:
        low, _, high = name.partition("-")
        assert many == sum(int(low) <= count <= int(high or low) for count in counts)


@given(st.randoms(use_true_random=False), st.integers(1, 40), st.none() | st.integers(1, 6))
@settings(max_examples=15, deadline=None)
def test_every_view_is_counted_on_a_level_and_by_its_load(random, count, capacity):
    plan = random_plan(Random(random.random()), views_of([random.choice(PATTERNS) for _ in range(count)]))
    lines = summary_lines(plan, loads_of(plan, capacity=capacity))
    first, second = (place for place, line in enumerate(lines) if not line)
    for part in (lines[first + 2 : second], lines[second + 2 :]):
        rows = [re.fullmatch(r" +([\d-]+) +(\d+)(?:  [█▏▎▍▌▋▊▉]+)?", line) for line in part]
        assert sum(int(row[2]) for row in rows if row is not None) == count


@given(st.integers(1, 300), st.integers(2, 30))
@settings(max_examples=25, deadline=None)
def test_deep_plans_are_shown_by_groups_of_levels(deepest, most):
    plan = RelayPlan({f"v{level}": (f"v{level - 1}" if level > 1 else PUBLISHER,) for level in range(1, deepest + 1)})
    groups = level_groups(plan, most)
    assert [level for group in groups for level in group] == list(range(1, deepest + 1))
    assert len(groups) <= most
    assert sum(count for _, count in levels_shown(plan, most)) == deepest
