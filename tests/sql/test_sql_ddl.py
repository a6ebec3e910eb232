"""Proves what `catalog.sql` may say, and that everything else is a CatalogError with a position."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model.catalog import Catalog
from tidings.model.errors import CatalogError
from tidings.model.types import ColumnType
from tidings.sql import parse_catalog


def test_types_keys_and_options() -> None:
    catalog = parse_catalog(
        """-- comment; with a semicolon
        create table a (i bigint primary key not null, j Integer, k INT, d DOUBLE, e double precision, t TEXT,
            u VARCHAR, v VARCHAR(20), w STRING, b BOOLEAN, x DATE, y TIMESTAMP, p BINARY, q BLOB, r BYTEA);
        CREATE TABLE "B b" (date DATE NOT NULL, "Key" TEXT, rows INT, default_ INT, PRIMARY KEY ("Key", date)) ;;
        CREATE TABLE c (p POINT, b BOX /* where */, t TEXT) WITH (rows = 'constraints')"""
    )
    a, b, c = catalog.tables
    types = "BIGINT INT INT DOUBLE DOUBLE TEXT TEXT TEXT TEXT BOOLEAN DATE TIMESTAMP BINARY BINARY BINARY"
    assert [column.type for column in a.columns] == [ColumnType(name) for name in types.split()]
    assert (a.name, a.key, a.rows) == ("a", ("i",), "values")
    assert (b.name, b.column_names, b.key) == ("B b", ("date", "Key", "rows", "default_"), ("Key", "date"))
    assert (c.key, c.rows) == (("id",), "constraints")
    assert [column.name for column in c.attributes] == ["p", "b", "t"]
    assert [axis.name for axis in c.axes] == ["p.x", "p.y", "b.x1", "b.x2", "b.x", "b.y1", "b.y2", "b.y", "t"]
    assert [column.name for column in c.shown] == ["id", "where"]


def test_types_as_databases_call_them() -> None:
    kept = {
        "INT": "SMALLINT; TINYINT; INT2; INT4; SERIAL",
        "BIGINT": "INT8; BIGSERIAL",
        "DOUBLE": "REAL; FLOAT; FLOAT(53); FLOAT4; FLOAT8; DECIMAL; DECIMAL(9); NUMERIC(9, 2)",
        "TEXT": "CHAR; CHAR(3); CHARACTER(3); CHARACTER VARYING; character varying (20); UUID; JSON; JSONB",
        "BOOLEAN": "BOOL",
        "BINARY": "VARBINARY; VARBINARY(16)",
        "TIMESTAMP": "TIMESTAMPTZ; DATETIME; TIMESTAMP(6); TIMESTAMP WITH TIME ZONE; timestamp (3) without time zone",
    }
    for type, names in kept.items():
        for name in names.split("; "):
            (table,) = parse_catalog(f"CREATE TABLE t (uuid {name}, k INT, PRIMARY KEY (k))").tables
            assert table.columns[0].type is ColumnType(type), name


def test_options_of_constraints() -> None:
    (lots,) = parse_catalog(
        "CREATE TABLE lots (item TEXT, Price DOUBLE)"
        " WITH (rows = 'constraints', matching = 'classic', auction = 'price desc')"
    ).tables
    assert (lots.constraints.is_classic, lots.constraints.auction) == (True, ("Price", True))


@pytest.mark.parametrize(
    ("text", "problem", "place"),
    [
        ("", "no tables", ""),
        ("-- only a comment", "no tables", ""),
        ("garbage", "CREATE is expected", "line 1, column 1"),
        ("DROP TABLE t", "CREATE is expected", "line 1, column 1"),
        ("CREATE VIEW v AS SELECT 1", "VIEW is not supported", "line 1, column 8"),
        ("CREATE TABLE IF NOT EXISTS t (a INT PRIMARY KEY)", "IF NOT EXISTS is not supported", "line 1, column 14"),
        ("CREATE TABLE s.t (a INT PRIMARY KEY)", "schemas are not supported", "line 1, column 15"),
        ("CREATE TABLE t AS SELECT 1", "AS is not supported", "line 1, column 16"),
        ("CREATE TABLE t ()", "name of a column is expected", "line 1, column 17"),
        ("CREATE TABLE t (a INT)", "no primary key", "line 1, column 14"),
        ("CREATE TABLE t (PRIMARY KEY (a))", "has no columns", "line 1, column 14"),
        ("CREATE TABLE t (a INT PRIMARY KEY", "is expected", "line 1, column 34"),
        ("CREATE TABLE t (a INT PRIMARY KEY,)", "name of a column", "line 1, column 35"),
        ("CREATE TABLE t (a INT PRIMARY KEY) x", "; is expected", "line 1, column 36"),
        (
            "CREATE TABLE t (a INT PRIMARY KEY, b INTERVAL)",
            "unknown type near 'INTERVAL'",
            "line 1, column 38; use BIGINT",
        ),
        ("CREATE TABLE t (a NUMERIC PRIMARY KEY)", "is DOUBLE and cannot be in a key", "line 1, column 27"),
        ("CREATE TABLE t (a INT PRIMARY KEY, b DECIMAL(3,x))", "a length is expected", "line 1, column 48"),
        ("CREATE TABLE t (a INT PRIMARY KEY, b Foo)", "unknown type near 'Foo'", "line 1, column 38"),
        ("CREATE TABLE t (a INT PRIMARY KEY, b)", "unknown type", "line 1, column 37"),
        ("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(x))", "a length is expected", "line 1, column 46"),
        ("CREATE TABLE t (a INT PRIMARY KEY, b TIMESTAMP WITH TIME)", "is expected", "line 1, column 57"),
        ("CREATE TABLE t (a INT PRIMARY KEY DEFAULT 1)", "DEFAULT is not supported", "line 1, column 35"),
        ("CREATE TABLE t (a INT PRIMARY KEY AUTO_INCREMENT)", "AUTO_INCREMENT is not", "line 1, column 35"),
        ("CREATE TABLE t (a INT PRIMARY KEY,\n b INT UNIQUE)", "UNIQUE is not supported", "line 2, column 8"),
        ("CREATE TABLE t (a INT PRIMARY KEY CHECK (a > 1))", "CHECK is not supported", "line 1, column 35"),
        ("CREATE TABLE t (a INT PRIMARY KEY REFERENCES b(c))", "REFERENCES is not", "line 1, column 35"),
        ("CREATE TABLE t (a INT PRIMARY KEY, UNIQUE (a))", "UNIQUE is not supported", "line 1, column 36"),
        ("CREATE TABLE t (a INT PRIMARY KEY, FOREIGN KEY (a) REFERENCES b(c))", "FOREIGN KEY", "line 1, column 36"),
        ("CREATE TABLE t (a INT, CONSTRAINT k PRIMARY KEY (a))", "CONSTRAINT is not", "line 1, column 24"),
        ("CREATE TABLE t (a INT PRIMARY KEY, b INT NOT NULL)", "NOT NULL is not supported", "line 1, column 42"),
        ("CREATE TABLE t (a DOUBLE PRIMARY KEY)", "DOUBLE and cannot be in a key", "line 1, column 26"),
        ("CREATE TABLE t (a BINARY, PRIMARY KEY (a))", "BINARY and cannot be in a key", "line 1, column 27"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (b))", "unknown column 'b'", "line 1, column 24"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (a, a))", "twice", "line 1, column 24"),
        ("CREATE TABLE t (a INT PRIMARY KEY, b INT PRIMARY KEY)", "more than one primary key", "line 1, column 42"),
        ("CREATE TABLE t (a INT PRIMARY KEY, PRIMARY KEY (a))", "more than one primary key", "line 1, column 36"),
        ("CREATE TABLE t (a INT PRIMARY KEY, A TEXT)", "defined twice", "line 1, column 36"),
        ("CREATE TABLE t (a INT PRIMARY KEY);\nCREATE TABLE T (a INT PRIMARY KEY)", "twice", "line 2, column 14"),
        ("CREATE TABLE t (a INT PRIMARY KEY, p POINT)", "is POINT", "line 1, column 36"),
        ("CREATE TABLE t (a INT PRIMARY KEY) WITH (rows = 'constraints')", "no primary key", "line 1, column 23"),
        ("CREATE TABLE t (a INT) WITH (rows = 'x')", "unknown kind of rows", "line 1, column 37"),
        ("CREATE TABLE t (a INT) WITH (cols = 'x')", "an option is expected", "line 1, column 30"),
        ("CREATE TABLE t (a INT) WITH (matching = 'classic')", "for tables of constraints", "line 1, column 24"),
        ("CREATE TABLE t (a INT) WITH (rows = 'constraints', rows = 'constraints')", "given twice", "column 52"),
        ("CREATE TABLE t (a INT) WITH (rows = 'constraints', matching = 'x')", "unknown matching", "column 63"),
        ("CREATE TABLE t (a INT) WITH (rows = 'constraints', auction = 'a')", "no attribute with a", "column 62"),
        ("CREATE TABLE t (a INT) WITH (rows = 'constraints', auction = 'b ASC')", "no attribute with a", "column 62"),
        ("CREATE TABLE t (a TEXT) WITH (rows = 'constraints', auction = 'a ASC')", "compared by TEXT", "column 63"),
        ("CREATE TABLE t (a 'x", "cannot be split", "line 1, column 19"),
        ("CREATE TABLE t (\ud800 INT PRIMARY KEY)", "not valid Unicode", "line 1, column 17"),
    ],
)
def test_refusals(text: str, problem: str, place: str) -> None:
    with pytest.raises(CatalogError) as caught:
        parse_catalog(text)
    assert problem in str(caught.value)
    assert place in str(caught.value)


WORDS = """
CREATE TABLE t a b INT TEXT POINT VARCHAR ( ) , ; . = ' " 1 PRIMARY KEY NOT NULL DEFAULT WITH rows 'constraints'
IF -- /* */
UNIQUE 'x' "y" é
"""


@given(st.one_of(st.text(), st.lists(st.sampled_from([*WORDS.split(), "\n"]), max_size=25).map(" ".join)))
@settings(max_examples=120, deadline=None)
def test_any_text_gives_a_catalog_or_a_catalog_error(text: str) -> None:
    for prefix in ("", "CREATE TABLE t (a INT PRIMARY KEY, "):
        with suppress(CatalogError):
            assert isinstance(parse_catalog(prefix + text), Catalog)
