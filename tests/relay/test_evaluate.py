"""Evaluation equals its definition, over random documents and patterns; the definition equals what a reader expects."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_patterns import json_documents, patterns_within, xml_documents

from tidings.relay import parse_pattern, rows
from tidings.relay.errors import RowsError
from tidings.relay.evaluate import evaluate_pattern, node_matches
from tidings.relay.json_document import parse_json
from tidings.relay.reference import embeddings, reference_rows
from tidings.relay.xml_document import parse_xml

SITE = parse_xml(
    b'<site><item id="1"><name>ring</name><description>a <keyword>gold</keyword> ring</description></item>'
    b'<item id="2"><name>pen</name><description>blue</description></item>'
    b'<part><item id="3"><name>bar</name><name>ingot</name><x><keyword>gold</keyword></x><description/></item></part></site>'
)
EXPECTED = [
    (
        '//item[/name{val}][//keyword="gold"]/description{cont}',
        [
            ("bar", "<description></description>"),
            ("ingot", "<description></description>"),
            ("ring", "<description>a <keyword>gold</keyword> ring</description>"),
        ],
    ),
    ("/site{id}", [("1",)]),
    ("/item{id}", []),
    ("//site{id}", [("1",)]),
    ("/site/item{id}", [("1.1",), ("1.2",)]),
    ("/site//item/@id{id,val}", [("1.1.@id", "1"), ("1.2.@id", "2"), ("1.3.1.@id", "3")]),
    ('//item[/@id="2"]{id}/name{val}', [("1.2", "pen")]),
    ("//item[//@id{val}]{id}", [("1", "1.1"), ("2", "1.2"), ("3", "1.3.1")]),
    ('//description="a gold ring"{id}', [("1.1.2",)]),
    ("//keyword{val}", [("gold",)]),
    ("//item[/name][/name]{id}", [("1.1",), ("1.2",), ("1.3.1",)]),
    ("//part//name{val}", [("bar",), ("ingot",)]),
    ("//item//item{id}", []),
]


@pytest.mark.parametrize(("text", "expected"), EXPECTED)
def test_examples(text, expected):
    pattern = parse_pattern(text)
    assert reference_rows(pattern, SITE) == expected
    assert evaluate_pattern(pattern, SITE) == expected


def test_rows_are_sorted_as_texts():
    document = parse_json(b'{"a": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}')
    ids = [row[0] for row in evaluate_pattern(parse_pattern("//a{id}"), document)]
    assert ids[:3] == ["1.1", "1.10", "1.2"]


def check_equal(pattern, document):
    assert evaluate_pattern(pattern, document) == reference_rows(pattern, document)
    images = list(embeddings(pattern, document))
    assert node_matches(pattern, document) == [
        sorted({found[n] for found in images}) for n in range(len(pattern.nodes))
    ]


@given(st.data(), xml_documents())
def test_xml_as_defined(data, document):
    check_equal(data.draw(patterns_within(document)), document)


@given(st.data(), json_documents())
def test_json_as_defined(data, document):
    check_equal(data.draw(patterns_within(document)), document)


def test_deep_documents_with_one_label():
    document = parse_xml(b"<a>" * 12 + b"x" + b"</a>" * 12)
    check_equal(parse_pattern('/a[//a="x"]{id}//a{id}//a{val}'), document)
    assert len(evaluate_pattern(parse_pattern("//a{id}//a{id}//a{id}"), document)) == 12 * 11 * 10 // 6


def test_rows_are_bounded():
    document = parse_json(b'{"a": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}')
    pattern = parse_pattern("/root[/a{id}][/a{id}]/a{id}")
    assert len(evaluate_pattern(pattern, document, rows_max=1_000)) == 1_000
    with pytest.raises(RowsError, match="more than 999 rows"):
        evaluate_pattern(pattern, document, rows_max=999)
    with pytest.raises(RowsError):
        evaluate_pattern(parse_pattern("/root" + "[/a{id}]" * 40), document)


def test_equal_rows_count_once():
    document = parse_json(b'{"a": [0, 0, 0, 0, 0]}')
    assert evaluate_pattern(parse_pattern("//a{val}"), document, rows_max=1) == [("0",)]
    assert evaluate_pattern(parse_pattern("/root//a{val}"), document, rows_max=1) == [("0",)]


def test_partial_rows_are_bounded(monkeypatch):
    monkeypatch.setattr(rows, "PARTIAL_ROWS_MAX", 10)
    document = parse_xml(b"<a>" * 9 + b"<b/>" + b"</a>" * 9)
    assert evaluate_pattern(parse_pattern("//b{id}"), document) == [("1" + ".1" * 9,)]
    with pytest.raises(RowsError, match="partial rows"):
        evaluate_pattern(parse_pattern("//a{id}//b{id}"), document)


def test_what_returns_nothing_does_not_multiply():
    document = parse_json(b'{"a": [' + b",".join([b'{"b": [0, 1, 2]}'] * 300) + b"]}")
    assert len(evaluate_pattern(parse_pattern("/root" + "[/a/b]" * 12 + "/a[/b]{id}"), document)) == 300
