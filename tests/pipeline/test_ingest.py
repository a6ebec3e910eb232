"""Ingest gives typed columns in arrival order and keeps every record's place and text."""

import base64
import datetime as dt
import json

import pytest

from research.stages.parsing import parse as parse_lines
from tidings.model.change import SEQ_NEXT, Op
from tidings.pipeline.ingest import RECORD_BYTES_MAX, Ingest
from tidings.sql import parse_catalog

CATALOG = parse_catalog(
    """
    CREATE TABLE items (
        id BIGINT PRIMARY KEY, n INT, price DOUBLE, name TEXT, is_open BOOLEAN, day DATE, moment TIMESTAMP, data BINARY
    );
    CREATE TABLE notes (at_time TIMESTAMP PRIMARY KEY, note TEXT);
    """
)
ROW = {
    "id": -(2**63),
    "n": 2**31 - 1,
    "price": 3,
    "name": "ü€𝄞\u0000",
    "is_open": False,
    "day": "0001-01-01",
    "moment": "2024-01-31T12:00:00.000001",
    "data": base64.b64encode(b"\x00\xff").decode(),
}


def parse(*records, first_position=0):
    lines = [record if isinstance(record, bytes) else json.dumps(record).encode() for record in records]
    return parse_lines(Ingest(CATALOG), CATALOG, lines, first_position)


def change(seq=1, table="items", op="insert", row=ROW):
    return {"seq": seq, "table": table, "op": op, "row": row}


def test_values_of_all_types():
    (batch,) = parse(change()).changes
    assert batch.rows.schema == CATALOG.table("items").schema
    assert batch.rows.to_pylist() == [
        {
            "id": -(2**63),
            "n": 2**31 - 1,
            "price": 3.0,
            "name": "ü€𝄞\u0000",
            "is_open": False,
            "day": dt.date(1, 1, 1),
            "moment": dt.datetime(2024, 1, 31, 12, 0, 0, 1),
            "data": b"\x00\xff",
        }
    ]


def test_null_is_allowed_outside_the_key():
    (batch,) = parse(change(row={**dict.fromkeys(ROW), "id": 1})).changes
    assert batch.rows.to_pylist() == [{**dict.fromkeys(ROW), "id": 1}]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-03-01T00:30:00+01:00", dt.datetime(2024, 2, 29, 23, 30)),
        ("2024-03-01T00:30:00Z", dt.datetime(2024, 3, 1, 0, 30)),
        ("2024-03-01 00:30:00", dt.datetime(2024, 3, 1, 0, 30)),
    ],
)
def test_times_are_kept_in_utc(text, moment):
    (items, notes) = parse(
        change(row={**ROW, "moment": text}), change(2, "notes", row={"at_time": text, "note": "x"})
    ).changes
    assert items.rows.column("moment").to_pylist() == [moment]
    assert notes.rows.column("at_time").to_pylist() == [moment]


def test_a_delete_needs_the_key_alone():
    (batch,) = parse(change(op="delete", row={"id": 1}), change(2, op="delete", row=ROW)).changes
    assert batch.op.tolist() == [Op.DELETE, Op.DELETE]
    assert batch.rows.column("id").to_pylist() == [1, -(2**63)]
    assert batch.rows.column("name").to_pylist() == [None, "ü€𝄞\u0000"]


def test_records_keep_place_order_and_text():
    records = [
        change(5),
        b"",
        b" \t",
        b"garbage",
        change(3, "notes", row={"at_time": ROW["moment"], "note": None}),
        change(4),
    ]
    parsed = parse(*records, first_position=100)
    by_table = {batch.table: batch for batch in parsed.changes}
    assert by_table["items"].position.tolist() == [100, 105]
    assert by_table["items"].seq.tolist() == [5, 4]
    assert by_table["notes"].position.tolist() == [104]
    assert [json.loads(raw) for raw in by_table["items"].raw.to_pylist()] == [change(5), change(4)]
    assert [(entry.position, entry.raw) for entry in parsed.refused] == [(103, "garbage")]


@pytest.mark.parametrize(
    ("op", "before", "after", "expected"),
    [
        ("c", None, ROW, Op.INSERT),
        ("r", None, ROW, Op.UPSERT),
        ("u", {"id": ROW["id"]}, ROW, Op.UPDATE),
        ("u", None, ROW, Op.UPDATE),
        ("d", {"id": ROW["id"]}, None, Op.DELETE),
        ("d", ROW, None, Op.DELETE),
    ],
)
def test_debezium_operations(op, before, after, expected):
    event = {"op": op, "before": before, "after": after, "source": {"table": "items"}}
    for record in (event, {"schema": {"type": "struct"}, "payload": event}):
        (batch,) = parse(record).changes
        assert batch.op.tolist() == [expected]
        assert batch.seq.tolist() == [SEQ_NEXT]
        assert batch.rows.column("id").to_pylist() == [ROW["id"]]


@pytest.mark.parametrize(
    ("numbers", "source", "seq"),
    [({"seq": 7}, {"lsn": 9}, 7), ({}, {"lsn": 9}, SEQ_NEXT), ({}, {}, SEQ_NEXT)],
)
def test_debezium_numbers(numbers, source, seq):
    (batch,) = parse({"op": "c", "after": ROW, "source": {"table": "items", **source}, **numbers}).changes
    assert batch.seq.tolist() == [seq]


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (change(op="merge"), ["'merge'", "insert", "delete"]),
        (change(table="nothing"), ["'nothing'", "items"]),
        (change(seq=0), ["seq", "1"]),
        (change(row={**ROW, "colour": 1}), ["items", "colour"]),
        (change(row={**ROW, "n": 2**31}), ["items", "n", "2147483647"]),
        (change(row={"id": 1}), ["items", "lacks", "`n`"]),
        ({"op": "x", "source": {"table": "items"}}, ["Debezium", "'x'"]),
        ({"op": "c"}, ["lacks", "table"]),
        (b"[1]", ["object"]),
        (b"{", ["JSON"]),
    ],
)
def test_reasons_name_what_is_wrong(record, words):
    (entry,) = parse(record).refused
    assert all(word in entry.reason for word in words), entry.reason


def test_a_record_may_be_as_long_as_the_limit_and_no_longer():
    empty = len(json.dumps(change(row={**ROW, "name": ""})).encode())
    fits = change(row={**ROW, "name": "x" * (RECORD_BYTES_MAX - empty)})
    assert len(parse(fits).changes) == 1
    too_long = change(row={**ROW, "name": "x" * (RECORD_BYTES_MAX - empty + 1)})
    assert f"{RECORD_BYTES_MAX:,}" in parse(too_long).refused[0].reason
