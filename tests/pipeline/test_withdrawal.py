"""Rows that a database has and the catalog cannot hold: withdrawn when they come, and back with the next whole row.

Records of a database are plain ones with Debezium's ops (as from PostgreSQL) or Debezium's events. What a subscriber holds
after every transaction is the database's rows without those that cannot be kept.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model.quarantine import Quarantined
from tidings.pipeline.door import Door
from tidings.pipeline.ingest import RECORD_BYTES_MAX, Ingest
from tidings.pipeline.replica.batch import Applied, Places
from tidings.pipeline.replica.replica import Replica
from tidings.sql import parse_catalog

CATALOG = parse_catalog("CREATE TABLE t (id BIGINT PRIMARY KEY, x DOUBLE, body TEXT);")
Row = dict[str, Any]
BAD = ("NaN", "Infinity", "1e999")
"""As PostgreSQL's source writes what is no number of ours, and a number that is too large."""


def row(id: int, x: Any = 1.0, body: str = "b") -> Row:
    return {"id": id, "x": x, "body": body}


class Subscriber:
    """A subscription to all rows, over a replica that gets lines of one partition."""

    def __init__(self) -> None:
        door = Door(CATALOG)
        door.create("s", "SELECT * FROM t", 0)
        self._replica = Replica(CATALOG, is_stream=True)
        self._replica.apply([], _places(0), door.take())
        self._offset = 0
        self.view: Counter[str] = Counter()
        self.reasons: list[str] = []

    def feed(self, *records: Row | str) -> list[str]:
        """Ops that are told for these records, in one micro-batch."""
        lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
        found: Applied = self._replica.apply([line.encode() for line in lines], _places(len(lines)))
        self.reasons += [entry.reason for entry in found.refused]
        told = [change for line in found.notifications.lines() for change in json.loads(line)["changes"]]
        for change in told:
            if change["op"] != "insert":
                self.view[json.dumps(change["old" if change["op"] == "update" else "row"])] -= 1
            if change["op"] != "delete":
                self.view[json.dumps(change["row"])] += 1
        self.view = +self.view
        return [change["op"] for change in told]


def _places(count: int) -> Places:
    return Places(["p"], np.zeros(count, np.int64), ["p"], np.zeros(count, np.int64), np.arange(count))


def plain(op: str, row: Row, **more: Any) -> Row:
    return {"tx": "7", "table": "t", "op": op, "row": row, **more}


def event(op: str, before: Row | None, after: Row | None) -> Row:
    return {"op": op, "before": before, "after": after, "source": {"table": "t", "txId": 7}}


@pytest.mark.parametrize("form", ["plain", "debezium", "wrapped"])
def test_a_row_is_withdrawn_and_comes_back(form: str) -> None:
    def record(op: str, row: Row) -> Row:
        if form == "plain":
            return plain(op, row)
        found = event(op, row, None) if op == "d" else event(op, None, row)
        return found if form == "debezium" else {"payload": found}

    found = Subscriber()
    assert found.feed(record("c", row(1))) == ["insert"]
    assert found.feed(record("u", row(1, "NaN"))) == ["delete"]
    assert found.feed(record("u", row(1, "Infinity"))) == []
    assert found.feed(record("u", row(1, 2.0))) == ["insert"]
    # Its insert was refused; the next whole row is the first that is known.
    assert found.feed(record("c", row(2, "NaN")), record("u", row(2, 5.0))) == ["insert"]
    huge = record("u", row(2, 5.0, "x" * RECORD_BYTES_MAX))
    assert found.feed(huge) == ["delete"]
    # Deleted while it is not here: nothing is wrong.
    assert found.feed(record("d", row(2))) == []
    assert [reason.partition(":")[0] for reason in found.reasons] == ["withdrawn"] * 4
    assert found.view == Counter({json.dumps(row(1, 2.0)): 1})


def test_other_records_that_are_refused_change_nothing() -> None:
    found = Subscriber()
    kept = {"table": "t", "op": "insert", "row": row(1)}
    assert found.feed(kept) == ["insert"]
    for op in ("insert", "update", "upsert", "r"):
        assert found.feed({**kept, "op": op, "row": row(1, "NaN")}) == []
    # Without a key that can be read nobody knows which row is meant.
    assert found.feed(plain("u", row("one"))) == [] and found.feed(plain("u", {"x": 1.0, "body": ""})) == []  # type: ignore[arg-type]
    assert found.feed(plain("u", row(1), other=1)) == []
    assert not any(reason.startswith("withdrawn") for reason in found.reasons) and len(found.reasons) == 7
    assert found.view == Counter({json.dumps(row(1)): 1})
    # Nor in a replay, where Debezium's events are what their ops say, and plain records do not have these ops.
    ingest, refused = Ingest(CATALOG), list[Quarantined]()
    for each in (event("u", None, row(1, "NaN")), {"seq": 1, **plain("u", row(1))}):
        assert ingest.read(json.dumps(each).encode(), 0, refused) is None
    assert [entry.reason[:9] for entry in refused] == ["row of ta", "unknown o"]


def test_an_event_that_changes_the_key_withdraws_the_row_before() -> None:
    found = Subscriber()
    found.feed(event("c", None, row(1)))
    assert found.feed(event("u", row(1), row(2))) == ["delete"]
    assert "changes the primary key" in found.reasons[0]


@st.composite
def histories(draw: st.DrawFn) -> list[list[tuple[Row, dict[int, Row]]]]:
    """Micro-batches of transactions of one record each, with the database's rows after it. Values may be left out (`keep`)."""
    rows: dict[int, Row] = {}
    steps: list[tuple[Row, dict[int, Row]]] = []
    values = st.sampled_from([1.0, 2.0, 3.0, *BAD])
    for number in range(draw(st.integers(1, 25))):
        id = draw(st.integers(0, 2))
        act = draw(st.sampled_from(["put", "put", "keep", "move", "delete", "truncate"]))
        tx = {"tx": str(number)}
        if act == "truncate":
            rows = {}
            steps.append(({**tx, "table": "t", "op": "truncate"}, rows))
        elif id not in rows:
            new = row(id, draw(values), draw(st.sampled_from("ab")))
            rows = {**rows, id: new}
            steps.append((plain("c", new, **tx), rows))
        elif act == "delete":
            rows = {key: value for key, value in rows.items() if key != id}
            steps.append((plain("d", {"id": id}, **tx), rows))
        else:
            target = draw(st.sampled_from([3, 4])) if act == "move" else id
            if target != id and target in rows:
                continue
            new = {**rows[id], "id": target, "x": draw(values)}
            rows = {**{key: value for key, value in rows.items() if key != id}, target: new}
            if act == "put":
                steps.append((plain("u", new, **tx), rows))
            else:
                old = {"old": {"id": id}} if target != id else {}
                steps.append((plain("u", {"id": target, "x": new["x"]}, keep=["body"], **old, **tx), rows))
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=25))
    batches, start = [], 0
    for size in [*sizes, len(steps)]:
        batches.append(steps[start : start + size])
        start += size
    return [batch for batch in batches if batch]


@settings(max_examples=40)
@given(histories())
def test_views_are_the_rows_that_can_be_kept(batches: list[list[tuple[Row, dict[int, Row]]]]) -> None:
    found, whole = Subscriber(), set[int]()
    for batch in batches:
        for record, rows in batch:
            # A row of which a part is unknown, since it was not here when the rest came, is not here until all of it comes.
            if record["op"] == "truncate":
                whole = set()
                continue
            id = record["row"]["id"]
            before = record.get("old", record["row"])["id"]
            is_kept = record["op"] != "d" and rows[id]["x"] not in BAD and ("keep" not in record or before in whole)
            whole -= {id, before}
            whole |= {id} if is_kept else set()
        found.feed(*(json.dumps(record).replace('"1e999"', "1e999") for record, _ in batch))
        rows = batch[-1][1]
        assert found.view == Counter(json.dumps(rows[id]) for id in whole)
    assert all(reason.startswith("withdrawn: ") for reason in found.reasons)
