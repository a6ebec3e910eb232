"""Dewey numbers read back, and tell order and ancestry."""

import pytest

from tidings.relay.dewey import dewey_text, document_order, is_ancestor, is_parent, parse_dewey


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
