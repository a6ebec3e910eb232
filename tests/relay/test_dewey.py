"""Dewey numbers, and their keys, which tell order and ancestry."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.relay.dewey import dewey_key, dewey_text, key_behind, key_parent, key_text
from tidings.relay.document import DOCUMENT_NODES_MAX


@pytest.mark.parametrize(("id", "text"), [((1,), "1"), ((1, 3, 12), "1.3.12"), ((1, 3, "@a.b"), "1.3.@a.b")])
def test_text(id, text):
    assert dewey_text(id) == text


def is_ancestor(upper, lower):
    return len(lower) > len(upper) and lower[: len(upper)] == upper


def document_order(id):
    """A node before its attributes, by name, and these before its children."""
    return tuple((0, part) if isinstance(part, str) else (part, "") for part in id)


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
