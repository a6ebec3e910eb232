"""A first load is not news: its rows are in the snapshots of those who came before it ended, and told to nobody."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.engine import Engine
from tidings.model.catalog import Catalog
from tidings.pipeline.door import Door
from tidings.pipeline.registrar import Registrar
from tidings.pipeline.replica.batch import Places
from tidings.pipeline.replica.replica import Replica
from tidings.plain import PlainEngine
from tidings.sql import parse_catalog
from tidings.testing import Workload, drift_workloads, join_workloads, select_workloads, topk_workloads
from tidings.testing.oracle import Recomputation, walk
from tidings.testing.plain import canonical
from tidings.testing.workload import chunks

WORKLOADS = {
    "select": select_workloads(),
    "drift": drift_workloads(),
    "topk": topk_workloads(),
    "join": join_workloads(),
}
ORDERS = "CREATE TABLE orders (id BIGINT PRIMARY KEY, amount DOUBLE);"


def engines(catalog: Catalog) -> tuple[PlainEngine | Engine, ...]:
    return PlainEngine(catalog, Door(catalog, keeps_queries=True)), Engine(catalog)


def run(
    engine: PlainEngine | Engine, wishes: list[bytes], loaded: list[bytes], changes: list[list[bytes]]
) -> tuple[Any, ...]:
    """(lines, refused records, counts)"""
    engine.door.read(wishes)
    refused = engine.load(loaded)
    results = [*map(engine.feed, changes), engine.finish()]
    lines = [line for result in results for line in result.notifications.lines()]
    refused += [entry for result in results for entry in result.refused]
    return lines, refused, engine.stats.summary(0, 0)


def check_told(lines: list[str], expected: list[Any]) -> None:
    """The notifications are the expected ones, and lead to the expected answers."""
    told = [json.loads(line) for line in lines]
    assert [(record["seq"], record["subscription"], record["snapshot"]) for record in told] == [
        e.place for e in expected
    ]
    for record, entry in zip(told, expected, strict=True):
        view = entry.before.copy()
        for change in record["changes"]:
            view[canonical(change["row"])] += -1 if change["op"] == "delete" else 1
            if change["op"] == "update":
                view[canonical(change["old"])] -= 1
        assert +view == entry.after
        assert min(view.values(), default=0) >= 0


@pytest.mark.parametrize("family", WORKLOADS)
def test_rows_that_are_loaded(family: str) -> None:
    @settings(max_examples=20)
    @given(WORKLOADS[family], st.integers(0, 12), st.sampled_from([1, 3, 1_000]))
    def check(workload: Workload, count: int, size: int) -> None:
        rest, first = workload.changes[count:], list[dict[str, Any]]()
        for record in workload.changes[:count]:
            # Without its seq, a record that is out of order would not be refused.
            if not first or record["seq"] > first[-1]["seq"]:
                first.append(record)
        plain = Recomputation(workload.catalog)
        plain.commit(first)
        plain._passed = 0
        later = Workload(workload.catalog_sql, workload.subscriptions, rest)
        walk(later, plain)
        loaded = [json.dumps({k: v for k, v in record.items() if k != "seq"}).encode() for record in first]
        batches = list(chunks(later.change_lines(), [size] * len(rest)))
        found = [run(engine, workload.subscription_lines(), loaded, batches) for engine in engines(workload.catalog)]
        assert found[0] == found[1]
        check_told(found[0][0], sorted(plain.expected, key=lambda entry: entry.place))

    check()


@pytest.mark.parametrize("family", WORKLOADS)
def test_rows_that_a_source_reads_first(family: str) -> None:
    """Records with op r before the first other one: snapshots of those from before carry the last loaded seq."""

    @settings(max_examples=20)
    @given(WORKLOADS[family], st.integers(1, 12), st.sampled_from([1, 3, 1_000]))
    def check(workload: Workload, count: int, size: int) -> None:
        changes: list[dict[str, Any]] = []
        reads: list[dict[str, Any]] = []
        for number, record in enumerate(workload.changes):
            passed = max((known["seq"] for known in changes), default=0)
            if (number < count and record["op"] == "delete") or record["seq"] <= passed:
                continue
            changes.append({**record, "op": "upsert"} if number < count else record)
            read = {"op": "r", "source": {"table": record["table"]}, "after": record["row"], "seq": record["seq"]}
            reads.append(read if number < count else record)
        last = max((record["seq"] for record in reads if record["op"] == "r"), default=0)
        later = [{**wish, "after": max(last, wish.get("after", 0))} for wish in workload.subscriptions]
        plain = Recomputation(workload.catalog)
        walk(Workload(workload.catalog_sql, later, changes), plain)
        batches = list(chunks([json.dumps(record).encode() for record in reads], [size] * len(reads)))
        found = [run(engine, workload.subscription_lines(), [], batches) for engine in engines(workload.catalog)]
        assert found[0] == found[1]
        check_told(found[0][0], sorted(plain.expected, key=lambda entry: entry.place))

    check()


def order(id: int, amount: float, op: str = "r", **more: Any) -> bytes:
    return json.dumps({"table": "orders", "op": op, "row": {"id": id, "amount": amount}} | more).encode()


def stream() -> Any:
    """A function that feeds a live replica: (subscription events, lines of changes) -> notifications."""
    catalog = parse_catalog(ORDERS)
    replica = Replica(catalog, keeps_points=True, is_stream=True)
    registrar = Registrar(catalog, lambda id, place: True, lambda _: True)

    def feed(wishes: list[dict[str, Any]], lines: list[bytes], restarts: bool = True) -> list[Any]:
        nonlocal replica
        points = registrar.handle(
            [("", at, json.dumps(wish).encode()) for at, wish in enumerate(wishes)], replica.passed
        )[0]
        zeros = np.zeros(len(lines), np.int64)
        found = replica.apply(lines, Places(["p"], zeros, ["p"], zeros, np.arange(len(lines))), points)
        assert not found.refused
        if restarts:
            again = Replica(catalog, keeps_points=True, is_stream=True)
            again.load(replica.dump())
            replica = again
        told = [json.loads(line) for line in found.notifications.lines()]
        return [(record["seq"], record["snapshot"], len(record["changes"])) for record in told]

    return feed


WISH = {"id": "s", "sql": "SELECT * FROM orders WHERE amount < 100"}


def test_a_load_of_a_stream_goes_on_while_more_is_announced() -> None:
    feed = stream()
    assert feed([WISH], [order(1, 1.0, snapshot="true")]) == []
    assert feed([], [order(2, 2.0, snapshot="true")]) == []
    assert feed([], [order(3, 3.0, snapshot="last")]) == [(3, True, 3)]
    assert feed([], [order(3, 4.0, "update")]) == [(4, False, 1)]
    # Later ones are upserts.
    assert feed([], [order(4, 4.0)]) == [(5, False, 1)]


def test_the_mark_of_the_end_and_the_first_other_record_end_a_load() -> None:
    feed = stream()
    assert feed([WISH], [order(1, 1.0, snapshot="true")]) == []
    assert feed([], [b'{"op": "r", "snapshot": "last"}']) == [(1, True, 1)]
    feed = stream()
    assert feed([WISH], [order(1, 1.0, snapshot="true"), order(2, 5.0, "insert")]) == [(1, True, 1), (2, False, 1)]


def test_a_load_that_announces_nothing_ends_with_its_micro_batch() -> None:
    feed = stream()
    assert feed([WISH], [order(1, 1.0), order(2, 2.0)]) == [(2, True, 2)]
    assert feed([{**WISH, "id": "t"}], []) == [(2, True, 2)]
