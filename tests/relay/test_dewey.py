"""Dewey numbers read back, and tell order and ancestry."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.relay.dewey import (
    dewey_key,
    dewey_text,
    document_order,
    is_ancestor,
    is_parent,
    key_behind,
    key_parent,
    key_text,
    parse_dewey,
)
from tidings.relay.document import DOCUMENT_NODES_MAX


@pytest.mark.parametrize(("id", "text"), [((1,), "1"), ((1, 3, 12), "1.3.12"), ((1, 3, "@a.b"), "1.3.@a.b")])
def test_text(id, text):
    assert dewey_text(id) == text
    assert parse_dewey(text) == id


@pytest.mark.parametrize("text", ["", "1.", "a", "1.@", "@a", "01", "1.0", "-1", "1 .2", "1.²"])
def test_other_texts(text):
    with pytest.raises(ValueError):
        parse_dewey(text)


def test_ancestry():
    assert is_parent((1,), (1, 2))
    assert is_parent((1, 2), (1, 2, "@a"))
    assert not is_parent((1,), (1, 2, 3))
    assert not is_parent((1,), (1,))
    assert is_ancestor((1,), (1, 2, 3))
    assert not is_ancestor((1, 2), (1, 20))
    assert not is_ancestor((1, 2), (1, 2))


def test_document_order():
    ids = [(1,), (1, "@a"), (1, "@b"), (1, 1), (1, 2), (1, 2, "@a"), (1, 2, 1), (1, 10)]
    backwards = ids[::-1]
    assert sorted(backwards, key=document_order) == ids


NUMBERS = st.integers(1, 3) | st.sampled_from([0xD7FF, 0xD800, 0xDFFF, 0xE000, DOCUMENT_NODES_MAX])
ATTRIBUTES = st.sampled_from(["@k", "@kind", "@a.b"])


@st.composite
def ids(draw):
    numbers = (1, *draw(st.lists(NUMBERS, max_size=3)))
    return (*numbers, draw(ATTRIBUTES)) if draw(st.booleans()) else numbers


@given(ids(), ids())
def test_keys_say_what_ids_say(one, other):
    key, other_key = dewey_key(one), dewey_key(other)
    assert key_text(key) == dewey_text(one)
    assert key_parent(key) == dewey_key(one[:-1])
    assert (key < other_key) == (document_order(one) < document_order(other))
    assert (key < other_key < key_behind(key)) == is_ancestor(one, other)
    assert key.encode().decode() == key
