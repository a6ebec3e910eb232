"""Records that say `truncate` or keep columns mean the same as the plain records they stand for, at any cut into batches."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model.quarantine import Quarantined
from tidings.pipeline.door import Door
from tidings.pipeline.replica.batch import Places
from tidings.pipeline.replica.replica import Replica
from tidings.sql import parse_catalog

CATALOG = parse_catalog(
    "CREATE TABLE t (id BIGINT PRIMARY KEY, kind TEXT, x DOUBLE);"
    "CREATE TABLE u (at TIMESTAMP, name TEXT, body TEXT, PRIMARY KEY (at, name));"
)
QUERIES = [
    "SELECT * FROM t WHERE x >= 1",
    "SELECT * FROM t ORDER BY x LIMIT 2",
    "SELECT * FROM t WHERE moved(x) >= 1",
    "SELECT * FROM u WHERE body >= 'a'",
]
AT = "2026-01-31T10:00:00"

Record = dict[str, Any]
Rows = dict[str, dict[Any, Record]]


def replica() -> Replica:
    door = Door(CATALOG)
    for number, sql in enumerate(QUERIES):
        door.create(f"s{number}", sql, 0)
    found = Replica(CATALOG, is_stream=True)
    found.apply([], places(0), door.take())
    return found


def places(count: int) -> Places:
    return Places(["p"], np.zeros(count, np.int64), ["p"], np.zeros(count, np.int64), np.arange(count))


def fed(batches: list[list[Record]]) -> tuple[list[str], list[Quarantined]]:
    told: list[str] = []
    refused: list[Quarantined] = []
    kept = replica()
    for batch in batches:
        found = kept.apply([json.dumps(record).encode() for record in batch], places(len(batch)))
        told += found.notifications.lines()
        refused += found.refused
    return told, refused


def key_of(record: Record, name: str = "row") -> Any:
    row = record[name]
    return row["id"] if record["table"] == "t" else (row["at"], row["name"])


def plain(record: Record, rows: Rows) -> list[Record]:
    """What a record stands for, and `rows` after it."""
    table = rows.setdefault(record["table"], {})
    if record["op"] == "truncate":
        gone = [{"table": record["table"], "op": "delete", "row": table[key]} for key in sorted(table)]
        table.clear()
        return gone
    keep, old = record.get("keep"), "old" if "old" in record else "row"
    found = [{name: value for name, value in record.items() if name not in ("keep", "old")}]
    if keep is not None:
        before = table.get(key_of(record, old))
        row = {**record["row"], **{name: None if before is None else before[name] for name in keep}}
        found = [{**found[0], "row": row}]
        if old == "old" and before is None:
            found = [{**found[0], "op": "update", "row": {**dict.fromkeys([*record["row"], *keep]), **record["old"]}}]
        elif old == "old":
            found = [{**found[0], "op": "delete", "row": record["old"]}, {**found[0], "op": "insert"}]
    for each in found:
        key = key_of(each)
        if each["op"] == "delete":
            table.pop(key, None)
        elif (key in table) != (each["op"] == "insert"):
            table[key] = each["row"]
    return found


t_rows = st.fixed_dictionaries(
    {"id": st.integers(0, 3), "kind": st.sampled_from(["a", "é\n", None]), "x": st.sampled_from([0.5, 1.5, 2.5])}
)
u_rows = st.fixed_dictionaries(
    {"at": st.just(AT), "name": st.sampled_from(["a", 'b"']), "body": st.sampled_from(["", "ab", "x" * 50, None])}
)


@st.composite
def records(draw: st.DrawFn) -> Record:
    table = draw(st.sampled_from("ttu"))
    row = draw(t_rows if table == "t" else u_rows)
    op = draw(st.sampled_from(["insert", "insert", "update", "delete", "truncate", "keep", "keep", "move"]))
    if op == "truncate":
        return {"table": table, "op": op}
    record = {"table": table, "op": op, "row": row}
    if op in ("keep", "move"):
        kept = "x" if table == "t" else "body"
        record = {"table": table, "op": "update", "row": {n: v for n, v in row.items() if n != kept}, "keep": [kept]}
        if op == "move":
            other = draw(t_rows if table == "t" else u_rows)
            record["old"] = {name: other[name] for name in CATALOG.table(table).key}
    return record


@settings(max_examples=25)
@given(st.lists(records(), max_size=25), st.integers(1, 12))
def test_special_records_are_as_the_plain_ones(given_records: list[Record], size: int) -> None:
    rows: Rows = {}
    meant = [each for record in given_records for each in plain(record, rows)]
    expected, refused = fed([[record] for record in meant])
    batches = [given_records[start : start + size] for start in range(0, len(given_records), size)]
    told, wrong = fed(batches)
    assert told == expected
    assert [entry.reason for entry in wrong] == [entry.reason for entry in refused]


def test_what_makes_no_sense_is_refused_with_a_reason() -> None:
    row = {"id": 1, "kind": "a"}
    wrong: list[Record] = [
        {"table": "z", "op": "truncate"},
        {"table": "t", "op": "truncate", "row": row},
        {"table": "t", "op": "update", "row": row, "keep": ["y"]},
        {"table": "t", "op": "update", "row": {"kind": "a", "x": 1.0}, "keep": ["id"]},
        {"table": "t", "op": "upsert", "row": row, "keep": ["x"]},
        {"table": "t", "op": "update", "row": row, "keep": ["x"]},
    ]
    _, refused = fed([wrong])
    assert len(refused) == len(wrong)
    assert refused[-2].reason == "row of table 't': lacks `x`"
    assert refused[-1].reason == "update of key 1, which table 't' does not have"


def test_a_text_that_only_looks_special_is_left_alone() -> None:
    told, refused = fed([[{"table": "t", "op": "insert", "row": {"id": 1, "kind": '"keep" "truncate"', "x": 5.0}}]])
    assert refused == [] and len(told) == 3


def test_a_repeated_record_is_refused_whatever_it_stands_for() -> None:
    first = {"table": "t", "op": "insert", "row": {"id": 1, "kind": "a", "x": 1.0}, "seq": 1}
    moved = {"table": "t", "op": "update", "row": {"id": 2, "kind": "a"}, "keep": ["x"], "old": {"id": 1}, "seq": 2}
    gone = {"table": "t", "op": "truncate", "seq": 3}
    last = {**first, "seq": 4}
    kept = replica()
    for batch in ([first, moved, gone, last], [moved, gone], [gone, moved, first]):
        found = kept.apply([json.dumps(record).encode() for record in batch], places(len(batch)))
        again = [] if batch[0] is first else batch
        assert [entry.seq for entry in found.refused] == [record["seq"] for record in again]
        assert all("is a duplicate" in entry.reason and entry.partition == "p" for entry in found.refused)
    assert list(kept.store.texts("t")) == [[b"1", b'"a"', b"1.0"]]


def test_every_change_knows_the_line_it_comes_from() -> None:
    rows = [{"table": "t", "op": "insert", "row": {"id": id, "kind": "a", "x": 1.0}} for id in (2, 1)]
    update = {"table": "t", "op": "update", "row": {"id": 5, "kind": "b"}, "keep": ["x"]}
    again = [{**rows[0], "row": {**rows[0]["row"], "id": 5}}, {"table": "t", "op": "delete", "row": {"id": 9}}]
    batch = [*rows, {"table": "t", "op": "truncate"}, *again, update]
    found = replica().apply([json.dumps(record).encode() for record in batch], places(len(batch)))
    seqs, lines = found.batch.numbered()
    assert lines.tolist() == [0, 1, 2, 2, 3, 5]
    assert seqs.tolist() == [1, 2, 3, 4, 5, 7]
    assert [entry.position for entry in found.refused] == [4]
