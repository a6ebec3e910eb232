"""Changes of a stream are applied in the order of its log: partitions keep theirs, and nothing is dropped without a word."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.engine import Engine
from tidings.model.blob import pack, unpack
from tidings.pipeline.door import Door
from tidings.pipeline.replica.replica import Replica
from tidings.pipeline.stream_lines import NUMBER, StreamLines, block_lines
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


def records_of(entries: list[tuple[str, int, bytes]]) -> pa.RecordBatch:
    """Records, given as (partition, offset, text), as tasks get them from a source."""
    places = [NUMBER + (offset + 2**63).to_bytes(8, "big") for _, offset, _ in entries]
    columns = {
        "kind": ["lines"] * len(entries),
        "partition": [partition for partition, _, _ in entries],
        "place": pa.array(places, pa.binary()),
        "time": pa.array([offset * 1000 for _, offset, _ in entries], pa.int64()),
        "value": pa.array([text for _, _, text in entries], pa.binary()),
    }
    return pa.RecordBatch.from_pydict(columns)


def blobs_of(entries: list[tuple[str, int, bytes]]) -> list[bytes]:
    return [blob for batch in block_lines([records_of(entries)]) for blob in batch["blob"].to_pylist()]


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


@settings(max_examples=90)
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
        entries = []
        for partition, record in in_order(batch):
            entries.append((partition, offsets[partition], line_of({**record, "table": "t"})))
            offsets[partition] += 1
        # Records come in any order, to any number of tasks.
        entries = data.draw(st.permutations(entries))
        cut = data.draw(st.integers(0, len(entries)))
        lines, places, times = StreamLines.of([*blobs_of(entries[:cut]), *blobs_of(entries[cut:])])
        assert times.tolist() == [offset * 1000 for offset in places.offset.tolist()]
        if data.draw(st.booleans()):
            # A restart between any two micro-batches changes nothing.
            again = Replica(CATALOG, keeps_points=True, is_stream=True)
            again.load(replica.dump())
            replica = again
        before = replica.changes
        applied = replica.apply(lines, places, points)
        told, refused = applied.notifications, applied.refused
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
    lines, places, _ = StreamLines.of(blobs_of([("10", 7, b"nonsense"), ("9", 8, good), ("10", 8, good)]))
    refused = replica.apply(lines, places, subscribed().take()).refused
    assert replica.changes == 1
    assert [(entry.partition, entry.position) for entry in refused] == [("10", 7), ("10", 8)]
    assert json.loads(refused[0].line())["offset"] == 7
    assert "insert of key 1, which table 't' has already" in refused[1].reason


def test_many_partitions_survive_a_dump() -> None:
    replica = Replica(CATALOG, keeps_points=True, is_stream=True)
    record = {"seq": 5, "table": "t", "op": "upsert", "row": {"id": 1, "kind": "a", "x": 1.5}}
    replica.apply(*StreamLines.of(blobs_of([(str(name), 0, line_of(record)) for name in range(40)]))[:2])
    again = Replica(CATALOG, keeps_points=True, is_stream=True)
    again.load(replica.dump())
    refused = again.apply(*StreamLines.of(blobs_of([("39", 1, line_of(record))]))[:2]).refused
    assert [(entry.partition, entry.seq) for entry in refused] == [("39", 5)]


def test_records_without_a_place_are_kept_apart() -> None:
    batch = records_of([("0", 1, b"a\nb"), ("0", 2, b"c")])
    without = batch.set_column(2, "place", pa.array([None, batch["place"][1].as_py()], pa.binary()))
    blobs = [blob for part in block_lines([without]) for blob in part["blob"].to_pylist()]
    placed, lost = StreamLines.split(blobs)
    assert placed.lines == [b"c"] and list(lost.located()) == [("0", 0, b"a"), ("0", 1, b"b")]


def test_latest_seqs_of_partitions_survive_a_dump() -> None:
    replica = Replica(CATALOG, keeps_points=True, is_stream=True)
    record = {"seq": 5, "table": "t", "op": "upsert", "row": {"id": 1, "kind": "a", "x": 1.5}}
    replica.apply(*StreamLines.of(blobs_of([("0", 0, line_of(record))]))[:2])
    again = Replica(CATALOG, keeps_points=True, is_stream=True)
    again.load(replica.dump())
    repeated = StreamLines.of(blobs_of([("0", 1, line_of(record)), ("1", 0, line_of(record))]))
    refused = again.apply(*repeated[:2]).refused
    assert [(entry.partition, entry.seq) for entry in refused] == [("0", 5)]
    assert unpack(pack({"passed": again.passed}))["passed"] == 2


def test_a_row_that_comes_by_two_partitions_is_told_of() -> None:
    """It is applied in the order of micro-batches and partitions, and reported, before and after a restart."""
    replica = Replica(CATALOG, keeps_points=True, is_stream=True)

    def apply(*entries: tuple[str, int, int]) -> list[tuple[tuple[str | None, int], str]]:
        """entries: (partition, offset, key). (place of the record, other partition) of what is reported."""
        texts = [
            (partition, offset, line_of({"table": "t", "op": "upsert", "row": {"id": key, "kind": "a", "x": 1.5}}))
            for partition, offset, key in entries
        ]
        found = replica.apply(*StreamLines.of(blobs_of(texts))[:2])
        assert not found.refused
        return [(found.batch.place(line), other) for line, other in found.batch.shared]

    assert apply(("0", 0, 1), ("0", 1, 2)) == []
    assert apply(("1", 0, 3), ("1", 1, 1), ("0", 2, 2)) == [(("1", 1), "0")]
    again = Replica(CATALOG, keeps_points=True, is_stream=True)
    again.load(replica.dump())
    replica = again
    assert apply(("0", 3, 1), ("0", 4, 2), ("1", 2, 3)) == [(("0", 3), "1")]
    assert apply(("0", 5, 1), ("1", 3, 1)) == [(("1", 3), "0")]


texts = st.lists(
    st.tuples(
        st.sampled_from(["0", "1"]), st.integers(0, 5), st.sampled_from([b"a", b"b\nc", b"", b"\n\nd\r\n", None])
    ),
    max_size=12,
)


@given(texts, st.data())
def test_lines_stand_in_order_however_records_are_spread(
    entries: list[tuple[str, int, bytes]], data: st.DataObject
) -> None:
    """By partition, place, line; records of one place by their texts; small blocks and large ones, overlapping or not."""
    found = []
    for partition, offset, text in entries:
        lines = [line.rstrip(b"\r") for line in (text or b"").split(b"\n")]
        found += [(partition, offset, number, lines[number:], line) for number, line in enumerate(lines) if line]
    spread = data.draw(st.lists(st.integers(0, 2), min_size=len(entries), max_size=len(entries)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidings.pipeline.stream_lines._BLOCK_BYTES", data.draw(st.sampled_from([1, 2, 1000])))
        tasks = [[entry for entry, at in zip(entries, spread, strict=True) if at == task] for task in range(3)]
        blobs = data.draw(st.permutations([blob for task in tasks for blob in blobs_of(task)]))
        lines = StreamLines.of(blobs)
    named = [lines.places.names[at] for at in lines.places.partition.tolist()]
    assert sorted(zip(named, lines.places.offset.tolist(), lines.lines, strict=True)) == sorted(
        (partition, offset, line) for partition, offset, _, _, line in found
    )
    places = list(zip(named, lines.places.offset.tolist(), strict=True))
    assert places == sorted(places)
    again = StreamLines.of(data.draw(st.permutations(blobs)))
    assert again.lines == lines.lines
