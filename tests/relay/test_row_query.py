"""Row views say what their SQL says of a batch of rows; what is no selection by ranges is refused."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_rows import CATALOG, batches, document_of, json_row, related_selections, selections

from tidings.model.errors import SqlError
from tidings.relay.json_document import parse_json
from tidings.relay.message import ViewMessage, decode_message, encode_message
from tidings.relay.pattern import parse_pattern
from tidings.relay.row_views.query import carried_query, parse_row_query
from tidings.relay.runtime.pattern_query import PatternQuery, match_patterns
from tidings.sql import parse_catalog

STOCKS = parse_catalog(
    "CREATE TABLE stocks (id BIGINT PRIMARY KEY, name TEXT, price DOUBLE, day DATE, open BOOLEAN);"
    "CREATE TABLE trades (id BIGINT PRIMARY KEY, stock BIGINT);"
    "CREATE TABLE offers (price INT) WITH (rows = 'constraints');"
)


def of(where, columns="*"):
    return parse_row_query(f"SELECT {columns} FROM stocks WHERE {where}", STOCKS)


def plain_rows(selection, batch):
    names = [column.name for column in selection.query.columns]
    rows = [json_row(row) for table, row in batch if table == selection.table and selection.holds(row)]
    # -0.0 is written as 0.0.
    found = {json.dumps([0.0 if row[n] == 0 and isinstance(row[n], float) else row[n] for n in names]) for row in rows}
    return [tuple(json.loads(row)) for row in found]


@settings(max_examples=25)
@given(selections(), batches())
def test_rows_are_those_that_satisfy_all_conditions(selection, batch):
    query, document = selection.query, document_of(batch)
    parts = query.match(document)
    rows = query.rows(parts)
    assert sorted(rows, key=repr) == sorted(plain_rows(selection, batch), key=repr)
    texts = [json.dumps(row, ensure_ascii=False) for row in rows]
    assert texts == sorted(set(texts))
    assert (parts is None) == (rows == [])
    message = ViewMessage(1, 2, "d", "v", parts)
    assert decode_message(encode_message(message)) == message
    if parts is not None:
        (part,) = parts
        assert part.ids == sorted(set(part.ids))
        assert all(len(column) == len(part.ids) for column in part.columns)
    assert query.derivation([query])([parts]) == parts


@settings(max_examples=25)
@given(st.lists(selections(), min_size=2) | related_selections(), batches())
def test_views_with_the_same_messages_are_equal_as_sources(chosen, batch):
    document = document_of(batch)
    said = {}
    for query in (selection.query for selection in chosen):
        parts = query.match(document)
        assert said.setdefault(carried_query(query), parts) == parts


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("id > 1 AND id < 5", "id BETWEEN 2 AND 4"),
        ("id = 7", "id IN (7)"),
        ("id > 1.5", "id >= 2"),
        ("name > 'a' AND name <= 'b'", "name <= 'b' AND name > 'a' AND name >= 'a'"),
        ("name = 'ab'", "name >= 'ab' AND name <= 'ab'"),
        ("open", "open > FALSE"),
        ("open >= FALSE", "open IS NOT NULL"),
        ("day > '2024-02-28' AND day < '2024-03-01'", "day = '2024-02-29'"),
        ("price < 0", "price < -0.0"),
        ("price >= -1e400", "price IS NOT NULL"),
        ("price > 2 AND price < 1", "name = 'a' AND name = 'b'"),
        ("name < ''", "id = 1 AND id = 2"),
        ("NOT id < 3", "id >= 3"),
        ("name LIKE 'ab%'", "name >= 'ab' AND name < 'ac'"),
    ],
)
def test_conditions_that_mean_the_same_are_equal(one, other):
    assert of(one) == of(other)
    assert hash(of(one)) == hash(of(other))


@pytest.mark.parametrize(
    ("one", "other"), [("id > 1", "id >= 1"), ("name > 'a'", "name >= 'a'"), ("price = 0", "price <= 0")]
)
def test_conditions_that_differ_in_an_end_are_not_equal(one, other):
    assert of(one) != of(other)


def test_what_messages_carry():
    assert of("price > 1").carried == ("day", "name", "open", "price")
    assert of("name = 'a' AND open", "price, open, id, name").carried == ("price",)
    assert of("price > 1", "id").carried == ()
    assert of("price > 2 AND price < 1").carried == ()
    assert carried_query(of("price > 1", "name, price")) == carried_query(of("price > 1", "price, id, name"))
    assert carried_query(of("price > 1", "name")) != carried_query(of("price > 1", "price"))


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (
            "SELECT * FROM stocks WHERE id = 1 OR name = 'a'",
            "the condition has several alternatives near 'OR' at line 1, column 35; a view over rows has one table and",
        ),
        (
            "SELECT * FROM stocks WHERE id IN (1, 2)",
            "the condition is no range of values near 'id IN (1, 2)' at line 1",
        ),
        (
            "SELECT * FROM stocks WHERE id = 1 OR id = 3",
            "the condition is no range of values near 'OR' at line 1, column 35",
        ),
        ("SELECT * FROM stocks WHERE name IS NULL", "the condition is no range of values near 'name IS NULL'"),
        ("SELECT * FROM stocks WHERE id <> 1", "the condition has several alternatives near '<>'"),
        ("SELECT * FROM stocks WHERE id NOT BETWEEN 1 AND 2", "several alternatives near 'NOT'"),
        (
            "SELECT * FROM stocks JOIN trades ON stocks.id = trades.stock",
            "cannot join tables near 'JOIN trades ON stocks.id = trades.stock' at line 1, column 22",
        ),
        ("SELECT * FROM stocks ORDER BY id LIMIT 3", "cannot rank them near 'ORDER BY id LIMIT 3'"),
        ("SELECT * FROM stocks WHERE moved_percent(price) >= 5", "know no earlier rows"),
        ("SELECT * FROM offers WHERE price > 3", "the rows of this table are constraints near 'FROM offers'"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELECT size FROM stocks", "size"),
        ("SELECT * FROM stocks WHERE day > 'soon'", "column 'day' is DATE: the literal does not fit"),
        ("SELECT count(*) FROM stocks", "count"),
        ("SELECT DISTINCT name FROM stocks", "DISTINCT is not supported"),
        ("", "SELECT"),
    ],
)
def test_what_is_refused(sql, words):
    with pytest.raises(SqlError) as caught:
        parse_row_query(sql, STOCKS)
    assert words in str(caught.value)


def test_a_batch_of_rows_and_a_tree_have_nothing_for_each_other():
    rows, tree = document_of([("u", {"id": 1, "x": 2, "y": "z"})]), parse_json(b'{"id": 1}')
    everything = parse_row_query("SELECT * FROM u", CATALOG)
    pattern = PatternQuery(parse_pattern("//id{val}"))
    assert everything.rows(everything.match(rows)) == [(1, 2, "z")]
    assert everything.match(tree) is None
    assert pattern.match(rows) is None
    assert match_patterns([pattern, PatternQuery(parse_pattern("//x{id}"))])(rows) == [None, None]
    assert everything.derivation([pattern]) is None
