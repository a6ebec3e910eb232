"""JSON as a tree: keys, members of arrays, scalars as they are written; what is broken is refused with a reason."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.relay.errors import DocumentError
from tidings.relay.json_document import parse_json


def nodes(text):
    document = parse_json(text.encode())
    return [(document.id(node), document.labels[node], document.val(node)) for node in range(len(document))]


def conts(text):
    document = parse_json(text.encode())
    return [document.cont(node) for node in range(len(document))]


def test_a_small_document():
    text = '{"name": "pen", "tags": ["red", "new"], "box": {"w": 1.50, "a": null}, "@id": true}'
    assert nodes(text) == [
        ("1", "root", "penrednew1.50nulltrue"),
        ("1.1", "name", "pen"),
        ("1.2", "tags", "red"),
        ("1.3", "tags", "new"),
        ("1.4", "box", "1.50null"),
        ("1.4.1", "w", "1.50"),
        ("1.4.2", "a", "null"),
        ("1.5", "@id", "true"),
    ]
    assert conts(text) == [
        '{"@id":true,"box":{"a":null,"w":1.50},"name":"pen","tags":["red","new"]}',
        '"pen"',
        '"red"',
        '"new"',
        '{"a":null,"w":1.50}',
        "1.50",
        "null",
        "true",
    ]


def test_nested_arrays_are_nodes_of_the_same_name():
    assert nodes('{"a": [[1, [2]], [], 3]}') == [
        ("1", "root", "123"),
        ("1.1", "a", "12"),
        ("1.1.1", "a", "1"),
        ("1.1.2", "a", "2"),
        ("1.1.2.1", "a", "2"),
        ("1.2", "a", ""),
        ("1.3", "a", "3"),
    ]


def test_an_empty_array_of_a_key_is_no_node():
    text = '{"a": [], "b": {}}'
    assert nodes(text) == [("1", "root", ""), ("1.1", "b", "")]
    assert conts(text) == ['{"a":[],"b":{}}', "{}"]


def test_documents_that_are_no_objects():
    assert nodes("[1, [2]]") == [
        ("1", "root", "12"),
        ("1.1", "root", "1"),
        ("1.2", "root", "2"),
        ("1.2.1", "root", "2"),
    ]
    assert nodes("[]") == [("1", "root", "")]
    assert nodes('"é"') == [("1", "root", "é")]
    assert conts('"\\u00e9\\n"') == ['"é\\n"']


@pytest.mark.parametrize("number", ["0", "-0", "1.10", "1E400", "9" * 5_000])
def test_numbers_are_as_they_are_written(number):
    assert nodes(number) == [("1", "root", number)]
    assert conts(number) == [number]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not JSON: Expecting value at line 1, column 1"),
        (b'{"a": 1,\n "b" 2}', "not JSON: Expecting ':' delimiter at line 2, column 6"),
        (b"{} {}", "not JSON: Extra data"),
        (b"[NaN]", "not JSON: NaN"),
        (b"[-Infinity]", "not JSON: -Infinity"),
        (b'"\xff"', "not JSON: byte 2 is not UTF-8"),
        (b'{"a": 1, "b": 2, "a": 3}', 'the key "a" stands twice in one object'),
        (b'"\\ud800"', "half a surrogate pair"),
        (b'{"\\udfff": []}', "half a surrogate pair"),
        (b"[" * 201 + b"]" * 201, "too deep"),
        (b"[" * 100_000, "too deep"),
    ],
)
def test_refusals(data, words):
    with pytest.raises(DocumentError) as caught:
        parse_json(data)
    assert words in str(caught.value)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=12,
)


@given(VALUES)
def test_contents_are_sorted_json(value):
    document = parse_json(json.dumps(value).encode())
    assert document.cont(0) == json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@given(st.lists(st.sampled_from(['{"a":', '"b":', "[", "]", "}", ",", "1", '"x"', "null", "NaN", "-", "\\", "\x00"])))
def test_a_document_is_read_or_refused(pieces):
    data = "".join(pieces).encode()
    try:
        document = parse_json(data)
    except DocumentError as error:
        assert str(error)
    else:
        assert json.loads(document.cont(0)) == json.loads(data)
