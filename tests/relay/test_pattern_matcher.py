"""Many patterns matched at once have the matches that each has by itself."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from random_patterns import json_documents, pattern_nodes, patterns_within, xml_documents

from tidings.relay.evaluate import node_matches
from tidings.relay.matching import PatternMatcher
from tidings.relay.matching.forest import PatternForest
from tidings.relay.pattern import Axis, Pattern, PatternNode, parse_pattern
from tidings.relay.xml_document import parse_xml

DOCUMENTS = xml_documents() | json_documents()


def check(patterns, documents):
    matcher = PatternMatcher(patterns)
    for document in documents:
        matches = matcher.match(document)
        found = [[images.tolist() for images in matches.of(number)] for number in range(len(matches))]
        assert found == [node_matches(pattern, document) for pattern in patterns]
        assert matches.all() == found
        assert matches.matched().tolist() == [number for number, images in enumerate(found) if images[0]]


@settings(max_examples=20)
@given(st.data())
def test_patterns_that_mostly_match(data):
    documents = data.draw(st.lists(DOCUMENTS, min_size=1, max_size=3))
    of_documents = st.sampled_from(documents).flatmap(patterns_within)
    check(data.draw(st.lists(of_documents, min_size=1, max_size=8)), documents)


@settings(max_examples=20)
@given(st.lists(pattern_nodes().map(Pattern), max_size=12), st.lists(DOCUMENTS, min_size=1, max_size=2))
def test_patterns_of_any_kind(patterns, documents):
    check(patterns, documents)


def test_patterns_that_differ_only_in_order_and_returns_are_one_tree():
    texts = ["//a[/b{id}]//c", "//a[//c{val}]/b", "//a[/b][/b]//c{cont}", "/a[/b{id}]//c"]
    patterns = [parse_pattern(text) for text in texts]
    document = parse_xml(b"<a><b/><a><b/><d><c/></d></a></a>")
    check(patterns, [document])
    forest = PatternForest(patterns)
    assert len(forest.arrays.tree_starts) - 1 == 2
    assert len(forest.arrays.subtree_tests) == 3
    assert forest.node_places.tolist() == [0, 1, 2, 0, 2, 1, 0, 1, 1, 2, 3, 4, 5]


def test_lists_beyond_the_first_room_are_kept():
    """More distinct lists and semi-joins than tables have room for at first."""
    leaves = "".join(f'<i k="{n}"><x/></i>' for n in range(600))
    document = parse_xml(f"<r><s>{leaves}</s><t>{leaves}</t></r>".encode())
    x = PatternNode("x", Axis.CHILD)
    patterns = [
        Pattern(PatternNode(top, Axis.DESCENDANT, (PatternNode("i", Axis.CHILD, (attribute,), following=x),)))
        for n in range(600)
        for attribute in [PatternNode("@k", Axis.CHILD, constant=str(n))]
        for top in ("r", "s", "t")
    ]
    matches = PatternMatcher(patterns).match(document)
    lists = [tuple(matches.nodes[first:behind].tolist()) for first, behind in pairwise(matches.starts)]
    assert len(set(lists)) == len(lists) > 3 * 600
    for number in range(0, len(patterns), 97):
        assert [images.tolist() for images in matches.of(number)] == node_matches(patterns[number], document)
    assert len(matches.matched()) == 2 * 600


def test_no_patterns():
    assert len(PatternMatcher([]).match(parse_xml(b"<a/>"))) == 0
