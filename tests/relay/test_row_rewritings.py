"""Rewritings of row views: each is minimal and gives exactly the target's rows, all are found where there are few, and nobody
feeds itself."""

import random
from itertools import combinations

import numpy as np
from cover_definition import in_order, minimal_covers
from hypothesis import given, settings
from hypothesis import strategies as st
from random_rows import CATALOG, batches, document_of, related_selections, selections

from tidings.relay.rewriting.row_rewritings import find_row_rewritings, row_rewritings_of
from tidings.relay.rewriting.row_table import RowTable
from tidings.relay.row_views.embedding import embeds, is_row_rewriting, row_coverage, row_needs
from tidings.relay.row_views.query import parse_row_query
from tidings.sql import parse_catalog

SELECTIONS = st.lists(selections(), max_size=14) | related_selections()
SETS = SELECTIONS.map(lambda chosen: [selection.query for selection in chosen])


def admitted(queries, target, ordered=True):
    """Sources of a target with what they cover, by definition."""
    found = {}
    for number, query in enumerate(queries):
        mask = row_coverage(query, queries[target])
        if number == target or mask is None:
            continue
        precedes = (-len(row_needs(query)), number) < (-len(row_needs(queries[target])), target)
        if not ordered or precedes or not embeds(queries[target], query):
            found[number] = mask
    return found


def full_mask(query):
    return (1 << len(row_needs(query))) - 1


@settings(max_examples=25)
@given(SETS, st.integers(1, 30), st.integers(0, 9), batches())
def test_rewritings_are_the_minimal_covers_and_give_the_target(queries, k, seed, batch):
    chance = random.Random(seed)
    cost = np.array([chance.randint(0, 9) for _ in queries], np.float64)
    found = find_row_rewritings(queries, cost, k, threads=1)
    document = document_of(batch)
    said = [query.match(document) for query in queries]
    embedded = dropped = 0
    for target, query in enumerate(queries):
        masks = admitted(queries, target)
        covers = minimal_covers(masks, full_mask(query))
        rewritings = in_order(found.of(target))
        assert len(set(rewritings)) == len(rewritings)
        assert {one for one in rewritings if len(one) < 5} <= set(covers)
        assert len(rewritings) >= min(k, len(covers))
        for one in rewritings:
            assert is_row_rewriting([queries[source] for source in one], query)
            derive = query.derivation([queries[source] for source in one])
            assert derive([said[source] for source in one]) == said[target]
        embeddings = sum(embeds(other, query) for number, other in enumerate(queries) if number != target)
        embedded += embeddings
        dropped += embeddings - len(masks)
    assert (found.embedded, found.dropped) == (embedded, dropped)


@settings(max_examples=25)
@given(SELECTIONS, batches())
def test_a_source_that_embeds_has_all_rows_of_the_target(chosen, batch):
    document = document_of(batch)
    for one, other in combinations(chosen, 2):
        source, target = one.query, other.query
        if embeds(source, target):
            inner, outer = ((query.match(document) or [None])[0] for query in (target, source))
            assert inner is None or set(inner.ids) <= set(outer.ids)


@settings(max_examples=20)
@given(SETS)
def test_no_query_feeds_itself(queries):
    found = find_row_rewritings(queries, np.zeros(len(queries)), threads=1)
    users = {target: {source for one in found.of(target) for source in one} for target in range(len(queries))}
    while users:
        free = [target for target, sources in users.items() if not sources & users.keys()]
        assert free
        for target in free:
            del users[target]


@settings(max_examples=20)
@given(SETS.filter(bool))
def test_a_query_that_came_last_is_fed_by_any_other(queries):
    last = len(queries) - 1
    found = row_rewritings_of(RowTable(queries), np.array([last]), np.zeros(len(queries)), 30, ordered=False)
    found = in_order(found.of(0))
    covers = minimal_covers(admitted(queries, last, ordered=False), full_mask(queries[last]))
    assert {one for one in found if len(one) < 5} <= set(covers)
    assert len(found) >= min(30, len(covers))


def rewritings_of(*texts):
    queries = [parse_row_query(text, CATALOG) for text in texts]
    found = find_row_rewritings(queries, np.zeros(len(queries)), threads=1)
    return [sorted(in_order(found.of(target))) for target in range(len(queries))]


def test_two_views_each_bring_one_end():
    assert rewritings_of(
        "SELECT id FROM u WHERE x >= 1", "SELECT id FROM u WHERE x < 7", "SELECT id FROM u WHERE x >= 1 AND x < 7"
    ) == [[], [], [(0, 1)]]


def test_a_column_that_is_shown_can_be_compared():
    assert rewritings_of(
        "SELECT x FROM u WHERE x < 9", "SELECT id FROM u WHERE x = 7", "SELECT * FROM u WHERE x = 7 AND y = 'a'"
    ) == [[], [(0,)], []]


def test_a_key_is_known_from_ids():
    assert rewritings_of("SELECT y FROM u", "SELECT id, y FROM u WHERE id BETWEEN 3 AND 5") == [[], [(0,)]]


def test_null_is_in_no_range():
    assert rewritings_of("SELECT id FROM u WHERE x IS NOT NULL", "SELECT id FROM u") == [[], []]
    assert rewritings_of("SELECT y FROM u WHERE x IS NOT NULL", "SELECT y FROM u") == [[], []]
    assert rewritings_of("SELECT x FROM u", "SELECT id FROM u WHERE x IS NOT NULL") == [[], [(0,)]]


def test_a_view_that_can_have_no_rows_is_fed_by_any():
    assert rewritings_of("SELECT id FROM u WHERE id < 3", "SELECT * FROM u WHERE x < 3 AND x > 5") == [[], [(0,)]]


def test_queries_with_more_needs_than_a_word_has_bits_get_no_rewritings():
    names = [f"c{number}" for number in range(70)]
    catalog = parse_catalog(f"CREATE TABLE w (id INT PRIMARY KEY, {', '.join(f'{name} INT' for name in names)});")
    texts = [
        "SELECT * FROM w",
        "SELECT * FROM w WHERE id > 1",
        f"SELECT {', '.join(names[:63])} FROM w",
        "SELECT c69 FROM w",
    ]
    queries = [parse_row_query(text, catalog) for text in texts]
    found = find_row_rewritings(queries, np.zeros(4), threads=1)
    assert [found.of(target) for target in range(4)] == [[], [], [(0,)], [(0,)]]
    assert (found.embedded, found.dropped) == (9, 3)
