"""Sizes of views and costs of feeding them, against plain sums over what a view says of each document."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_patterns import json_documents, patterns_within, xml_documents

from tidings.relay import costs
from tidings.relay.costs import column_costs, column_delays
from tidings.relay.evaluate import node_matches
from tidings.relay.pattern import Returned, parse_pattern
from tidings.relay.sizes import MESSAGE_BYTES, TEXT_BYTES, ViewSizes, guess_views, id_bytes, measure_views
from tidings.relay.xml_document import parse_xml


def plain_ids(pattern, document):
    return sum(map(len, node_matches(pattern, document)))


def plain_bytes(pattern, document):
    texts = [
        text
        for node, images in zip(pattern.nodes, node_matches(pattern, document), strict=True)
        for image in images
        for text in sent_texts(node, document, image)
    ]
    ids = [document.ids[image] for images in node_matches(pattern, document) for image in images]
    return MESSAGE_BYTES + sum(TEXT_BYTES + len(text.encode()) for text in texts) + sum(id_bytes(id) + 1 for id in ids)


def sent_texts(node, document, image):
    if Returned.CONT in node.returns:
        yield document.cont(image)
    if (Returned.CONT in node.returns or Returned.VAL in node.returns) and node.constant is None:
        yield document.val(image)


@settings(max_examples=20)
@given(st.data())
def test_sizes_are_means_over_documents(data):
    documents = data.draw(st.lists(xml_documents() | json_documents(), min_size=1, max_size=3))
    patterns = data.draw(st.lists(st.sampled_from(documents).flatmap(patterns_within), max_size=6))
    sizes = measure_views(patterns, documents)
    assert sizes.ids == pytest.approx([np.mean([plain_ids(p, d) for d in documents]) for p in patterns])
    assert sizes.bytes == pytest.approx([np.mean([plain_bytes(p, d) for d in documents]) for p in patterns])
    assert sizes.document_bytes == pytest.approx(np.mean([len(document.cont(0).encode()) for document in documents]))


@pytest.mark.parametrize(
    ("id", "size"), [((1,), 1), ((1, 127), 2), ((1, 128, 3), 4), ((1, 0x800), 4), ((1, 0xD800), 4), ((1, "@né"), 6)]
)
def test_ids_take_a_character_a_level(id, size):
    assert id_bytes(id) == size


def test_a_view_that_matches_nothing_sends_that():
    sizes = measure_views([parse_pattern("//b{val}")], [parse_xml(b"<a/>")] * 2)
    assert (sizes.ids.tolist(), sizes.bytes.tolist()) == ([0.0], [MESSAGE_BYTES])


def test_without_documents_sizes_are_guessed_from_patterns():
    patterns = [parse_pattern(text) for text in ["//a{id}", "//a{val}", "//a{cont}", '//a="x"{val}', "//a[/b]/c{id}"]]
    sizes = measure_views(patterns, [])
    small, text, content, known, large = sizes.bytes
    assert MESSAGE_BYTES < small == known < text < content
    assert small < large
    assert sizes.ids.tolist() == guess_views(patterns).ids.tolist() == [3, 3, 3, 3, 9]


def test_costs_of_columns():
    """Views 0 to 2; view 2 from the publisher, from view 0, and from both others; view 1 from the publisher."""
    sizes = ViewSizes(np.array([10.0, 20.0, 5.0]), np.array([100.0, 300.0, 70.0]), 4_000.0)
    nodes, first_source, sources = np.array([2, 2, 2, 1]), np.array([0, 0, 1, 3, 3]), np.array([0, 0, 1], np.int32)
    from_publisher = costs.PUBLISHER_BYTE * 4_000 + costs.PUBLISHER_VIEW
    assert column_costs(sizes, nodes, first_source, sources) == pytest.approx(
        [
            from_publisher + 70 * costs.OUTPUT_BYTE,
            100 + 10 * costs.INPUT_ID + 70 * costs.OUTPUT_BYTE,
            400 + 30 * costs.INPUT_ID + 70 * costs.OUTPUT_BYTE,
            from_publisher + 300 * costs.OUTPUT_BYTE,
        ]
    )
    delays = column_delays(sizes, first_source, sources)
    assert delays == pytest.approx(costs.DELAY + costs.DELAY_ID * np.array([0, 10, 30, 0]))


def test_costs_of_the_publisher_alone():
    sizes = ViewSizes(np.array([1.0, 2.0]), np.array([50.0, 60.0]), 100.0)
    found = column_costs(sizes.of(np.array([1, 0])), np.array([0, 1]), np.zeros(3, np.int64), np.zeros(0, np.int32))
    assert found == pytest.approx(costs.PUBLISHER_VIEW + costs.PUBLISHER_BYTE * 100 + np.array([60.0, 50.0]))
