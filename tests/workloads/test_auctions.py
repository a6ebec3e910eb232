"""The auctions workload obeys the file contract, is the same for the same seed, and has every kind of query and change."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice
from typing import Any

import pytest

from tidings.engine import Engine
from tidings.sql import parse_catalog
from tidings.sql.compiler import Compiler
from tidings.workloads import find
from tidings.workloads.auctions import CATALOG_SQL, auctions
from tidings.workloads.auctions.changes import BIDS_MAX, House
from tidings.workloads.auctions.start import Start


def _made(seed: int = 3, *, has_churn: bool = True, changes: int = 4_000) -> tuple[list[bytes], list[bytes]]:
    made = auctions(seed=seed, rows=400, subscriptions=600, changes=changes, has_churn=has_churn)
    return list(made.subscriptions), list(made.changes)


def _records(lines: list[bytes]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def made() -> tuple[list[bytes], list[bytes]]:
    return _made()


def test_every_line_is_accepted(made: tuple[list[bytes], list[bytes]]) -> None:
    subscriptions, changes = made
    engine = Engine(parse_catalog(CATALOG_SQL))
    assert engine.door.read(subscriptions) == []
    lines = 0
    for start in range(0, len(changes), 1_000):
        result = engine.feed(changes[start : start + 1_000])
        assert result.refused == []
        lines += sum(bytes(piece).count(b"\n") for piece in result.notifications.text())
    assert engine.finish().refused == []
    assert lines > len(subscriptions)


def test_lines_are_canonical(made: tuple[list[bytes], list[bytes]]) -> None:
    for line in (*made[0], *made[1]):
        assert json.dumps(json.loads(line), ensure_ascii=False).encode() == line


def test_same_seed_same_lines() -> None:
    assert _made(changes=1_500) == _made(changes=1_500)
    assert _made(seed=4, changes=1_500) != _made(seed=5, changes=1_500)


def test_a_shorter_run_is_the_beginning_of_a_longer_one() -> None:
    short, long = (auctions(rows=100, subscriptions=n, changes=20 * n, has_churn=False) for n in (50, 80))
    assert list(short.subscriptions) == list(islice(long.subscriptions, 50))
    assert list(short.changes) == list(islice(long.changes, 1_000))


def test_every_operation_finds_its_row_on_every_table(made: tuple[list[bytes], list[bytes]]) -> None:
    there: dict[str, set[int]] = {"people": set(), "auctions": set(), "bids": set()}
    seen = Counter()
    for at, change in enumerate(_records(made[1]), 1):
        table, op, id = change["table"], change["op"], change["row"]["id"]
        assert change["seq"] == at
        assert (id in there[table]) == (op != "insert")
        (there[table].discard if op == "delete" else there[table].add)(id)
        seen[table, op] += 1
    assert len(seen) == 3 * 4


def test_popular_auctions_have_many_bids_but_not_too_many() -> None:
    of: Counter[int] = Counter()
    auction_of: dict[int, int] = {}
    most = 0
    for line in islice(House(Start.make(1, 2_000), 1).changes(), 30_000):
        change = json.loads(line)
        if change["table"] != "bids":
            continue
        id = change["row"]["id"]
        if change["op"] == "insert":
            auction_of[id] = change["row"]["auction"]
            of[auction_of[id]] += 1
            most = max(most, of[auction_of[id]])
        elif change["op"] == "delete":
            of[auction_of.pop(id)] -= 1
    mean = sum(of.values()) / sum(count > 0 for count in of.values())
    assert 5 * mean < most <= BIDS_MAX


def test_closed_auctions_come_back(made: tuple[list[bytes], list[bytes]]) -> None:
    closed: set[int] = set()
    returned = 0
    for change in _records(made[1]):
        if change["table"] == "auctions" and change["op"] == "delete":
            closed.add(change["row"]["id"])
        elif change["table"] == "auctions" and change["op"] == "insert":
            returned += change["row"]["id"] in closed
    assert returned > 5


def test_all_kinds_of_queries_are_there(made: tuple[list[bytes], list[bytes]]) -> None:
    kinds: Counter[str] = Counter()
    compiler = Compiler(parse_catalog(CATALOG_SQL))
    for record in _records(made[0]):
        if "sql" not in record:
            continue
        sql = record["sql"]
        compiler.compile(sql)
        joins = sql.count(" JOIN ")
        kind = (
            f"join of {joins + 1}" if joins else "top-k" if " LIMIT " in sql else "IN" if " IN (" in sql else "select"
        )
        kinds[kind] += 1
    assert min(kinds.values()) > 0.05 * sum(kinds.values())
    assert set(kinds) == {"select", "IN", "join of 2", "join of 3", "top-k"}


def test_subscriptions_come_and_go_one_by_one(made: tuple[list[bytes], list[bytes]]) -> None:
    records = _records(made[0])
    created = {record["id"]: record["after"] for record in records if "sql" in record}
    dropped = {record["id"]: record["after"] for record in records if record.get("drop")}
    assert len(created) == 600
    later = [after for after in created.values() if after]
    assert 30 < len(later) < 100 and 30 < len(dropped) < 100
    assert all(created[id] <= after for id, after in dropped.items())
    moments = [*later, *dropped.values()]
    assert len(set(moments)) > 0.9 * len(moments)
    filling = 400 + 200 + 100
    assert filling <= min(moments) and max(moments) <= 4_000
    assert [record["after"] for record in records] == sorted(record["after"] for record in records)


def test_without_churn_everybody_is_there_from_the_start() -> None:
    records = _records(_made(has_churn=False)[0])
    assert len(records) == 600
    assert all(record["after"] == 0 and "sql" in record for record in records)


def test_it_is_registered_and_tiny_ones_work() -> None:
    made = find("auctions").load()(seed=0, rows=0, subscriptions=3, changes=60)
    engine = Engine(parse_catalog(made.catalog_sql))
    assert engine.door.read(made.subscriptions) == []
    assert engine.feed(list(made.changes)).refused == []
