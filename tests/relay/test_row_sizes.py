"""Sizes of row views, against plain sums over what each says of each document."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_rows import CATALOG, batches, document_of, related_selections, selections

from tidings.relay.json_document import parse_json
from tidings.relay.pattern import parse_pattern
from tidings.relay.row_views.query import parse_row_query
from tidings.relay.row_views.sizes import guess_rows, measure_rows
from tidings.relay.sizes import MESSAGE_BYTES, TEXT_BYTES, measure_views


def plain_sizes(query, document):
    parts = query.match(document)
    if parts is None:
        return 0, MESSAGE_BYTES
    (part,) = parts
    texts = [*part.ids, *(text for column in part.columns for text in column)]
    return len(part.ids), MESSAGE_BYTES + sum(TEXT_BYTES + len(text.encode()) for text in texts)


@settings(max_examples=20)
@given(st.lists(selections(), max_size=10) | related_selections(), st.lists(batches(), min_size=1, max_size=3))
def test_sizes_are_means_over_documents(chosen, found):
    queries = [selection.query for selection in chosen]
    documents = [*map(document_of, found), parse_json(b'{"a": 1}')]
    sizes = measure_rows(queries, documents)
    plain = np.mean([[plain_sizes(query, document) for query in queries] for document in documents], axis=0).reshape(
        -1, 2
    )
    assert sizes.ids == pytest.approx(plain[:, 0])
    assert sizes.bytes == pytest.approx(plain[:, 1])
    bytes = [getattr(document, "size", len('{"a":1}')) for document in documents]
    assert sizes.document_bytes == pytest.approx(np.mean(bytes))
    assert measure_views([], documents).document_bytes == sizes.document_bytes


def test_patterns_find_nothing_in_rows():
    documents = [document_of([("u", {"id": 1, "x": 2, "y": "z"})]), parse_json(b'{"id": 1}')]
    sizes = measure_views([parse_pattern("//id{val}")], documents)
    assert (sizes.ids.tolist(), sizes.bytes[0] > MESSAGE_BYTES) == ([0.5], True)


def test_without_documents_sizes_are_guessed():
    texts = ["SELECT id FROM u", "SELECT * FROM u", "SELECT * FROM u WHERE x < 1 AND x > 2"]
    queries = [parse_row_query(text, CATALOG) for text in texts]
    guessed, measured = guess_rows(queries), measure_rows(queries, [])
    assert (guessed.bytes == measured.bytes).all()
    assert measured.bytes[0] < measured.bytes[1]
    assert (measured.ids[2], measured.bytes[2]) == (0, MESSAGE_BYTES)
