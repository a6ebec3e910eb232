"""Files of row views and batches of rows are read as written; a batch with a mistake is refused as a whole, with its line."""

import json

import pytest

from tidings.model.errors import UsageError
from tidings.relay import DocumentError
from tidings.relay import document as limits
from tidings.relay.files import View, parse_document, read_documents, read_views
from tidings.relay.grouping import group_views
from tidings.relay.pattern import parse_pattern
from tidings.relay.row_views.document import RowDocument, parse_rows
from tidings.relay.row_views.query import parse_row_query
from tidings.sql import parse_catalog

CATALOG = parse_catalog(
    "CREATE TABLE stocks (id BIGINT PRIMARY KEY, name TEXT, price DOUBLE);"
    "ALTER TABLE stocks ADD COLUMN day DATE;"
    "CREATE TABLE ticks (stock TEXT, at TIMESTAMP, size INT, PRIMARY KEY (stock, at));"
    "CREATE TABLE offers (price INT) WITH (rows = 'constraints');"
)
STOCK = '{"table": "stocks", "row": {"id": 1, "name": "a", "price": 2}}'


def rows_of(text, sql):
    query = parse_row_query(sql, CATALOG)
    return query.rows(query.match(parse_rows(text.encode(), CATALOG)))


def test_rows_as_written():
    text = (
        "\ufeff"
        '{"table": "stocks", "op": "upsert", "seq": 7, "row": {"id": 10, "name": null, "price": -0.0, "day": "2024-02-29"}}\r\n'
        "\n  \n"
        '{"row": {"price": 3, "id": 9, "name": "\\u00e9\\n"}, "table": "stocks", "op": "insert"}\n'
        '{"table": "ticks", "row": {"stock": "x", "at": "2024-01-01T01:00:00+01:00", "size": 1}}\n'
        '{"table": "ticks", "row": {"stock": "x", "at": "2024-01-01T01:00:00.5", "size": 1}}'
    )
    assert rows_of(text, "SELECT * FROM stocks") == [(10, None, 0.0, "2024-02-29"), (9, "é\n", 3.0, None)]
    assert rows_of(text, "SELECT size FROM ticks") == [(1,)]
    assert rows_of(text, "SELECT size, at FROM ticks WHERE stock = 'x' AND at <= '2024-01-01'") == [
        (1, "2024-01-01T00:00:00")
    ]
    found = parse_rows(text.encode(), CATALOG)
    assert found.tables["ticks"].ids == ['["x", "2024-01-01T00:00:00"]', '["x", "2024-01-01T01:00:00.500000"]']
    assert found.size == len(text.encode())


def test_no_rows():
    assert parse_rows(b"\n", CATALOG).tables == {}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (STOCK, "table 'stocks' has a row with the key 1 on line 2 already"),
        ('{"table": "stocks", "op": "delete", "row": {"id": 2}}', "the op 'delete': a batch has rows"),
        ('{"table": "stocks", "op": "update", "row": {"id": 2, "name": "a", "price": 2}}', "the op 'update'"),
        ('{"table": "stocks", "op": "frob", "row": {"id": 2, "name": "a", "price": 2}}', "the op 'frob'"),
        ('{"table": "bonds", "row": {"id": 2}}', "unknown table 'bonds'; the catalog has stocks, ticks, offers"),
        ('{"table": "offers", "row": {"price": 2}}', "table 'offers' holds constraints"),
        (
            '{"table": "stocks", "row": {"id": 2, "name": "a", "price": 2, "size": 1}}',
            "row of table 'stocks': unknown column or field `size`",
        ),
        ('{"table": "stocks", "row": {"id": 2, "name": "a"}}', "row of table 'stocks': lacks `price`"),
        ('{"table": "stocks", "row": {"id": null, "name": "a", "price": 2}}', "Expected `int`, got `null`"),
        (
            '{"table": "stocks", "row": {"id": 2, "name": 7, "price": 2}}',
            "Expected `str | null`, got `int` - at `name`",
        ),
        ('{"table": "stocks", "row": {"id": 9223372036854775808, "name": "a", "price": 2}}', "`id`"),
        ('{"table": "stocks", "row": {"id": 2, "name": "a", "price": "2"}}', "got `str` - at `price`"),
        ('{"table": "stocks", "row": {"id": 2, "name": "a", "price": NaN}}', "not JSON"),
        ('{"table": "stocks", "row": {"id": 2, "name": "a", "price": 1e999}}', "Number out of range"),
        ('{"table": "stocks", "row": {"id": 2, "name": "a", "price": 2, "day": "soon"}}', "`day`"),
        (
            '{"table": "ticks", "row": {"stock": "x", "at": "0001-01-01T00:00:00+01:00", "size": 1}}',
            "outside of the years 1 to 9999",
        ),
        ('{"table": "stocks", "row": null}', "Expected `object`, got `null`"),
        ('{"table": "stocks"}', "lacks `row`"),
        ('{"row": {"id": 2, "name": "a", "price": 2}}', "lacks `table`"),
        ('{"table": "stocks", "row": {"id": 2, "name": "a", "price": 2}, "time": 1}', "unknown column or field `time`"),
        ('{"table": "stocks", "seq": "x", "row": {"id": 2, "name": "a", "price": 2}}', "`seq`"),
        ("[]", "Expected `object`, got `array`"),
        ("{", "not JSON"),
        ('{"table": "stocks", "row": ' + "[" * 100_000, "not JSON"),
        ('{"table": "stocks", "row": {"id": 2, "name": "\\ud800", "price": 2}}', "not JSON"),
    ],
)
def test_rows_that_are_refused(line, reason):
    with pytest.raises(DocumentError) as caught:
        parse_rows(f"\n{STOCK}\n{line}\n".encode(), CATALOG)
    assert str(caught.value).startswith("line 3: ")
    assert reason in str(caught.value)


def test_bytes_that_are_no_text():
    with pytest.raises(DocumentError, match="line 1: "):
        parse_rows(b'{"table": "stocks", "row": {"id": 2, "name": "\xff", "price": 2}}', CATALOG)


def test_a_batch_that_is_too_large(monkeypatch):
    monkeypatch.setattr(limits, "DOCUMENT_BYTES_MAX", 10)
    with pytest.raises(DocumentError, match="the limit is 10"):
        parse_rows(STOCK.encode(), CATALOG)


def test_documents_of_a_folder(tmp_path):
    for name, text in {"a.jsonl": STOCK, "b.JSONL": STOCK + "\n" + STOCK, "c.json": STOCK}.items():
        (tmp_path / name).write_text(text)
    with_catalog, without = list(read_documents(tmp_path, CATALOG)), list(read_documents(tmp_path))
    assert [type(found).__name__ for _, found in with_catalog] == ["RowDocument", "DocumentError", "Document"]
    assert str(with_catalog[1][1]) == "line 2: table 'stocks' has a row with the key 1 on line 1 already"
    assert isinstance(parse_document("x.jsonl", b"", CATALOG), RowDocument)
    assert [type(found).__name__ for _, found in without] == ["DocumentError", "DocumentError", "Document"]
    assert "--catalog" in str(without[0][1])


def written(tmp_path, *records):
    path = tmp_path / "views.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    return path


def test_views_of_both_kinds(tmp_path):
    texts = ["SELECT name, price FROM stocks WHERE price > 3", "SELECT price, name FROM stocks WHERE price > 3.0"]
    path = written(
        tmp_path,
        {"id": "r", "sql": texts[0], "site": "s"},
        {"id": "p", "pattern": "/a{id}"},
        {"id": "q", "sql": texts[1], "site": "s", "pattern": None},
    )
    views = read_views(path, ["s"], CATALOG)
    queries = [parse_row_query(text, CATALOG) for text in texts]
    assert views == [View("r", queries[0], "s"), View("p", parse_pattern("/a{id}")), View("q", queries[1], "s")]
    assert group_views(views, []).query_of.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT * FROM bonds", "the SQL of view 'v' is refused: unknown table 'bonds'"),
        ("SELECT * FROM stocks ORDER BY id LIMIT 3", "views over rows cannot rank them near 'ORDER BY id LIMIT 3'"),
        ("SELEC", "the SQL of view 'v' is refused: "),
    ],
)
def test_views_that_are_refused(tmp_path, sql, reason):
    with pytest.raises(UsageError, match="line 1: ") as caught:
        read_views(written(tmp_path, {"id": "v", "sql": sql}), None, CATALOG)
    assert reason in str(caught.value)
