"""Exact: a subscriber that applies its notifications to the rows it holds has the recomputed answer after every seq.

Of tables that keep no rows nothing is held from one seq to the next.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from tidings.testing.checks.case import Case
from tidings.testing.oracle import Expected
from tidings.testing.plain import Answer, canonical

Place = tuple[int, str, bool]


def check_exact(case: Case) -> None:
    """Compares the lines with the oracle, seq by seq, and checks the format of every line."""
    lines = case.lines(case.any_strategy(), case.sizes())
    told = [_parsed(line) for line in lines]
    places = [_place(record) for record in told]
    assert places == sorted(places), "lines are not ordered by seq, then id"
    assert len(set(places)) == len(places), f"told twice at one seq: {_doubles(places)}"
    expected = {entry.place: entry for entry in case.oracle(case.workload)}
    held: dict[str, Answer] = {}
    right: dict[str, Answer] = {}
    by_place = dict(zip(places, told, strict=True))
    # Of several with one seq, all but the first are refused.
    txs = {record["seq"]: record.get("tx") for record in reversed(case.workload.changes)}
    for (seq, _, is_snapshot), record in by_place.items():
        wanted = None if is_snapshot or txs.get(seq) is None else str(txs[seq])
        assert record.get("tx") == wanted, f"the transaction of {record} is {wanted!r}"
    for place in sorted({*expected, *by_place}):
        _, id, is_snapshot = place
        if is_snapshot:
            assert place in by_place, f"no snapshot of {id} at seq {place[0]}"
            assert place in expected, f"a snapshot of {id} at seq {place[0]}, where none is due"
            held[id], right[id] = Counter(), Counter()
        if place in expected and not is_snapshot:
            held[id] = Counter(expected[place].before)
        if place in by_place:
            assert id in held, f"{by_place[place]} comes before the subscription's snapshot"
            _apply(held[id], by_place[place])
        if place in expected:
            right[id] = expected[place].after
        assert held[id] == right[id], _difference(place, held[id], right[id], expected.get(place))


def _parsed(line: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(line)
    fields = [name for name in record if name != "tx" or record["snapshot"]]
    assert fields == ["subscription", "seq", "snapshot", "changes"], f"fields of {line}"
    assert "\n" not in line
    assert record["snapshot"] or record["changes"], f"an empty notification: {line}"
    for change in record["changes"]:
        wanted = ["op", "old", "row"] if change["op"] == "update" else ["op", "row"]
        assert list(change) == wanted, f"fields of change {change}"
        assert change["op"] == "insert" if record["snapshot"] else change["op"] in ("insert", "delete", "update"), line
    return record


def _place(record: dict[str, Any]) -> Place:
    return record["seq"], record["subscription"], record["snapshot"]


def _doubles(places: list[Place]) -> list[Place]:
    return [place for place, count in Counter(places).items() if count > 1]


def _apply(held: Answer, record: dict[str, Any]) -> None:
    gone: Answer = Counter()
    come: Answer = Counter()
    for change in record["changes"]:
        if change["op"] == "update":
            gone[canonical(change["old"])] += 1
            come[canonical(change["row"])] += 1
        else:
            (come if change["op"] == "insert" else gone)[canonical(change["row"])] += 1
    assert not gone & come, f"told of a row that goes and comes unchanged: {record}"
    assert gone <= held, f"told that a row goes which was not held: {record}"
    held.subtract(gone)
    held.update(come)
    for row in [row for row, count in held.items() if count == 0]:
        del held[row]


def _difference(place: Place, held: Answer, right: Answer, expected: Expected | None) -> str:
    seq, id, is_snapshot = place
    what = "snapshot" if is_snapshot else "change"
    reason = "nothing was to be told" if expected is None else "the answer is another"
    return f"{id} after {what} at seq {seq}: holds {dict(held)}, right is {dict(right)} ({reason})"
