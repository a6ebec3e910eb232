"""What views compute from what other views say equals what they say of the document itself, for every rewriting."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_patterns import generalised, json_documents, patterns_within, rewritings, xml_documents

from tidings.relay import parse_pattern
from tidings.relay.embedding import is_rewriting
from tidings.relay.errors import RowsError
from tidings.relay.evaluate import evaluate_pattern, node_matches
from tidings.relay.json_document import parse_json
from tidings.relay.message import ViewMessage, decode_message, encode_message
from tidings.relay.runtime.pattern_query import PatternQuery, match_patterns
from tidings.relay.xml_document import parse_xml


def sent(query, document):
    """What a view says, as it arrives."""
    message = ViewMessage(1, 2, "a.xml", "v1", query.match(document))
    assert decode_message(encode_message(message)) == message
    return message.parts


def check_derived(target, sources, document):
    query = PatternQuery(target)
    derive = query.derivation([PatternQuery(source) for source in sources])
    assert (derive is not None) == is_rewriting(sources, target)
    if derive is None:
        return False
    parts = derive([sent(PatternQuery(source), document) for source in sources])
    assert parts == query.match(document)
    found = [[]] * len(target.nodes) if parts is None else [part.ids for part in parts]
    assert found == [[document.keys[node] for node in nodes] for nodes in node_matches(target, document)]
    assert query.rows(parts) == evaluate_pattern(target, document)
    return True


@st.composite
def targets_and_sources(draw, document):
    target = draw(patterns_within(document))
    views = draw(rewritings(target))
    if draw(st.booleans()):
        target = draw(generalised(target))
    return [(target, sources) for size in range(1, len(views) + 1) for sources in combinations(views, size)]


@settings(max_examples=40)
@given(st.data(), xml_documents())
def test_from_views_over_xml(data, document):
    for target, sources in data.draw(targets_and_sources(document)):
        check_derived(target, sources, document)


@settings(max_examples=25)
@given(st.data(), json_documents())
def test_from_views_over_json(data, document):
    for target, sources in data.draw(targets_and_sources(document)):
        check_derived(target, sources, document)


ITEMS = parse_xml(
    b"<site><item><name>pen</name><price>2</price></item><item><name>ink</name><price>2</price><sold/></item>"
    b'<shop><item k="1"><name>pen</name></item><price>7</price></shop></site>'
)
EXAMPLES = [
    ("//item/name{val}", ["//item/name{val}"]),
    ("//item[/name{val}]/price{val}", ["//item[/price{val}]/name{val}"]),
    ('//item/name="pen"{id}', ["//item/name{val}"]),
    ('//item/name="pen"{val}', ["//item/name{cont}"]),
    ("/site/item/name{val}", ["/site//item{id}", "//item/name{val}"]),
    ("//item[/name{val}][/price{val}]/sold{id}", ["//item/sold{id}", "//item/name{val}", "//item/price{val}"]),
    ("//shop[//name{val}]/price{val}", ["//shop//name{val}", "//shop/price{val}"]),
    ("//item{cont,val}/name{id}", ["//item{cont}", "//item/name{id}"]),
    ("//item[/@k{val}]/name{val}", ["//item[/@k{val}]{id}", "//name{val}", "//item/name{id}"]),
    ("//item[/name{id}]/name{val}", ["//item/name{val}"]),
]


@pytest.mark.parametrize(("target", "sources"), EXAMPLES)
def test_examples(target, sources):
    assert check_derived(parse_pattern(target), list(map(parse_pattern, sources)), ITEMS)


def test_what_is_no_rewriting():
    query = PatternQuery(parse_pattern("//item/name{val}"))
    for source in ("//item/name{id}", "//name{val}", '//item/name="pen"{val}', "/site/item/name{val}"):
        assert query.derivation([PatternQuery(parse_pattern(source))]) is None
    assert query.derivation([]) is None


def test_rows_are_bounded_as_in_documents():
    document = parse_json(b'{"a": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}')
    query = PatternQuery(parse_pattern("/root" + "[/a{id}]" * 40))
    with pytest.raises(RowsError):
        query.rows(query.match(document))


def test_many_patterns_at_once():
    queries = [PatternQuery(parse_pattern(target)) for target, _ in EXAMPLES]
    assert match_patterns(queries)(ITEMS) == [query.match(ITEMS) for query in queries]


def test_nothing_is_short():
    assert len(encode_message(ViewMessage(1, 1000, "a.xml", "v1", None))) < 20
