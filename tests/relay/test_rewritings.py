"""Rewritings of a set: each one is minimal and enough, all are found where there are few, and nobody can feed itself."""

import numpy as np
from cover_definition import in_order, minimal_covers
from hypothesis import given, settings
from hypothesis import strategies as st
from random_patterns import pattern_nodes

from tidings.relay.embedding import coverage, images, is_rewriting, needs
from tidings.relay.pattern import Axis, Pattern, PatternNode, Returned, parse_pattern
from tidings.relay.rewriting import PatternTable, find_rewritings
from tidings.relay.rewriting.rewritings import rewritings_of

LABELS = st.sampled_from(["a", "b", "c"])
PATTERNS = pattern_nodes(LABELS, st.sampled_from(["x", "y"]), depth=3).map(Pattern)
SETS = st.lists(PATTERNS, min_size=1, max_size=12)


def admitted(patterns, target):
    """Sources of a target with what they cover, by definition."""
    found = {}
    for number, pattern in enumerate(patterns):
        mask = coverage(pattern, patterns[target])
        if number == target or mask is None:
            continue
        precedes = (-len(needs(pattern)), number) < (-len(needs(patterns[target])), target)
        if precedes or images(patterns[target], pattern) is None:
            found[number] = mask
    return found


@settings(max_examples=25)
@given(SETS, st.integers(1, 30), st.data())
def test_rewritings_are_the_minimal_covers(patterns, k, data):
    cost = np.array(data.draw(st.lists(st.integers(0, 9), min_size=len(patterns), max_size=len(patterns))), np.float64)
    found = find_rewritings(PatternTable(patterns), cost, k, threads=1)
    embedded = dropped = 0
    for target, pattern in enumerate(patterns):
        masks = admitted(patterns, target)
        covers = minimal_covers(masks, (1 << len(needs(pattern))) - 1)
        rewritings = in_order(found.of(target))
        assert len(set(rewritings)) == len(rewritings)
        assert {one for one in rewritings if len(one) < 5} <= set(covers)
        assert len(rewritings) >= min(k, len(covers))
        for one in rewritings:
            assert is_rewriting([patterns[source] for source in one], pattern)
        others = [other for number, other in enumerate(patterns) if number != target]
        embeds = sum(images(other, pattern) is not None for other in others)
        embedded += embeds
        dropped += embeds - len(masks)
    assert (found.embedded, found.dropped) == (embedded, dropped)


@settings(max_examples=25)
@given(SETS)
def test_no_pattern_feeds_itself(patterns):
    found = find_rewritings(PatternTable(patterns), np.zeros(len(patterns)), threads=1)
    users = {target: {source for one in found.of(target) for source in one} for target in range(len(patterns))}
    while users:
        free = [target for target, sources in users.items() if not sources & users.keys()]
        assert free
        for target in free:
            del users[target]


@settings(max_examples=20)
@given(SETS, SETS)
def test_patterns_that_come_later_find_those_before_them(patterns, later):
    table = PatternTable(patterns)
    removed = {number for number in range(len(patterns)) if number % 3 == 1}
    for number in removed:
        table.remove(number)
    for number, pattern in enumerate(later, len(patterns)):
        table.extend([pattern])
        cost = np.zeros(len(table))
        found = in_order(rewritings_of(table, np.array([number]), cost, 30, ordered=False).of(0))
        known = [*patterns, *later[: number - len(patterns)]]
        masks = {n: coverage(p, pattern) for n, p in enumerate(known) if n not in removed}
        masks = {n: mask for n, mask in masks.items() if mask is not None}
        covers = minimal_covers(masks, (1 << len(needs(pattern))) - 1)
        assert {one for one in found if len(one) < 5} <= set(covers)
        assert len(found) >= min(30, len(covers))


def test_two_views_each_bring_what_the_other_lacks():
    texts = ["//a[/b]{val}", "//a[/c]{id}", "//a[/b][/c]{val}", "//a{val}"]
    found = find_rewritings(PatternTable(map(parse_pattern, texts)), np.zeros(4), threads=1)
    assert [sorted(found.of(target)) for target in range(4)] == [[], [], [(0, 1)], []]


def test_a_need_beyond_the_word_has_no_rewriting_by_masks():
    wide = Pattern(
        PatternNode("r", Axis.CHILD, tuple(PatternNode("a", Axis.CHILD, (), None, (Returned.VAL,)) for _ in range(40)))
    )
    table = PatternTable([wide, wide, parse_pattern("/r/a{val}")])
    assert table.full[0] == 0
    assert find_rewritings(table, np.zeros(3), threads=1).of(1) == []
