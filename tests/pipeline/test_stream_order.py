"""Changes of a stream are applied in the order of its log: partitions keep theirs, and nothing is dropped without a word."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.engine import Engine
from tidings.model.blob import pack, unpack
from tidings.pipeline.door import Door
from tidings.pipeline.replica.replica import Replica
from tidings.spark.stream_lines import StreamLines
from tidings.sql import parse_catalog

CATALOG = parse_catalog("CREATE TABLE t (id BIGINT PRIMARY KEY, kind TEXT, x DOUBLE);")
QUERIES = ["SELECT * FROM t WHERE x >= 1", "SELECT id FROM t WHERE kind = 'a'", "SELECT * FROM t ORDER BY x LIMIT 2"]

rows = st.fixed_dictionaries(
    {"id": st.integers(0, 3), "kind": st.sampled_from(["a", "b"]), "x": st.sampled_from([0.5, 1.5, 2.5])}
)
records = st.fixed_dictionaries(
    {
        "seq": st.one_of(st.none(), st.integers(1, 9), st.just(2**63 - 2)),
        "op": st.sampled_from(["upsert", "delete"]),
        "row": rows,
    }
)
batches = st.lists(st.lists(st.tuples(st.sampled_from(["0", "1"]), records), max_size=6), max_size=4)


def line_of(record: dict[str, Any]) -> bytes:
    known = {name: value for name, value in record.items() if value is not None}
    return json.dumps({name: known[name] for name in ("seq", "table", "op", "row") if name in known}).encode()


def blob(partition: str, offset: int, text: bytes) -> bytes:
    place = b"\0" + offset.to_bytes(8, "big")
    parts = (len(partition).to_bytes(2, "big"), partition.encode(), len(place).to_bytes(2, "big"), place, text)
    return b"".join(parts)


def in_order(batch: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    return sorted(batch, key=lambda entry: entry[0])


def accepted(given_batches: list[list[tuple[str, dict[str, Any]]]]) -> tuple[list[list[bytes]], int]:
    """What must pass, numbered, by micro-batch; and how many records are duplicates."""
    latest: dict[str, int] = {}
    passed = repeated = 0
    found = []
    for batch in given_batches:
        found.append([])
        for partition, record in in_order(batch):
            own = record["seq"]
            if own is not None and own <= latest.get(partition, 0):
                repeated += 1
                continue
            latest[partition] = max(latest.get(partition, 0), own or 0)
            passed += 1
            found[-1].append(line_of({**record, "seq": passed, "table": "t"}))
    return found, repeated


def subscribed() -> Door:
    door = Door(CATALOG)
    for number, sql in enumerate(QUERIES):
        door.create(f"s{number}", sql, 0)
    return door


@settings(max_examples=300)
@given(batches, st.data())
def test_a_stream_is_as_its_records_in_the_order_of_the_log(
    given_batches: list[list[tuple[str, dict[str, Any]]]], data: st.DataObject
) -> None:
    expected, repeated = accepted(given_batches)
    engine = Engine(CATALOG, door=subscribed())
    plain = [engine.feed(lines) for lines in expected]
    replica, points = Replica(CATALOG, keeps_points=True, is_stream=True), subscribed().take()
    offsets = {"0": 0, "1": 0}
    duplicates = contradictions = changes = 0
    for batch, wanted in zip(given_batches, plain, strict=True):
        blobs = []
        for partition, record in in_order(batch):
            blobs.append(blob(partition, offsets[partition], line_of({**record, "table": "t"})))
            offsets[partition] += 1
        lines, places = StreamLines.of(data.draw(st.permutations(blobs)))
        if data.draw(st.booleans()):
            # A restart between any two micro-batches changes nothing.
            again = Replica(CATALOG, keeps_points=True, is_stream=True)
            again.load(replica.dump())
            replica = again
        before = replica.changes
        told, refused = replica.apply(lines, places, points)
        changes, points = changes + replica.changes - before, []
        assert b"".join(told.text()) == b"".join(wanted.notifications.text())
        assert [json.loads(entry.raw)["row"] for entry in refused if "which table" in entry.reason] == [
            json.loads(entry.raw)["row"] for entry in wanted.refused
        ]
        duplicates += sum("is a duplicate or out of order" in entry.reason for entry in refused)
        contradictions += len(wanted.refused)
        assert all(entry.partition in ("0", "1") for entry in refused)
        assert len(refused) == sum("is a duplicate" in entry.reason for entry in refused) + len(wanted.refused)
    assert duplicates == repeated
    assert changes == sum(map(len, given_batches)) - duplicates - contradictions


def test_a_broken_record_is_reported_with_its_place_and_harms_no_other() -> None:
    replica = Replica(CATALOG, is_stream=True)
    good = line_of({"table": "t", "op": "insert", "row": {"id": 1, "kind": "a", "x": 1.5}})
    lines, places = StreamLines.of([blob("10", 7, b"nonsense"), blob("9", 8, good), blob("10", 8, good)])
    _, refused = replica.apply(lines, places, subscribed().take())
    assert replica.changes == 1
    assert [(entry.partition, entry.position) for entry in refused] == [("10", 7), ("10", 8)]
    assert json.loads(refused[0].line())["offset"] == 7
    assert "insert of key 1, which table 't' has already" in refused[1].reason


def test_latest_seqs_of_partitions_survive_a_dump() -> None:
    replica = Replica(CATALOG, keeps_points=True, is_stream=True)
    record = {"seq": 5, "table": "t", "op": "upsert", "row": {"id": 1, "kind": "a", "x": 1.5}}
    replica.apply(*StreamLines.of([blob("0", 0, line_of(record))]))
    again = Replica(CATALOG, keeps_points=True, is_stream=True)
    again.load(replica.dump())
    _, refused = again.apply(*StreamLines.of([blob("0", 1, line_of(record)), blob("1", 0, line_of(record))]))
    assert [(entry.partition, entry.seq) for entry in refused] == [("0", 5)]
    assert unpack(pack({"passed": again.passed}))["passed"] == 2
