"""Publications that nobody keeps: each is told once, to those whom it meets at its seq, and is in no snapshot and no memory."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.engine import Engine
from tidings.model.errors import SqlError, TidingsError
from tidings.pipeline.door import Door
from tidings.placed import PlacedEngine
from tidings.plain import PlainEngine
from tidings.sql import parse_catalog
from tidings.testing import CHECKS, check_family, offers_workloads, with_transactions
from tidings.testing.offers_inputs import UNKEPT
from tidings.testing.workload import chunks

CATALOG = "CREATE TABLE market (x INT, y INT) WITH (rows = 'constraints', keep = 'no');"
WORKLOADS = offers_workloads(catalogs=UNKEPT)


def publication(seq, id="p", where="x = 1", op="insert", **more):
    return json.dumps({"seq": seq, "table": "market", "op": op, "id": id, "where": where, **more}).encode()


def lines(engine, subscriptions, *batches):
    engine.door.read([json.dumps(record).encode() for record in subscriptions])
    found = [line for batch in batches for line in engine.feed(batch).notifications.lines()]
    return [json.loads(line) for line in found + engine.finish().notifications.lines()]


def told(records):
    return [
        (
            record["subscription"],
            record["seq"],
            record["snapshot"],
            [(c["op"], c["row"]["id"]) for c in record["changes"]],
        )
        for record in records
    ]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check):
    check_family("offers", WORKLOADS, checks=[check], examples=6)


def test_transactions():
    check_family("offers", with_transactions(WORKLOADS), examples=6)


@settings(max_examples=20)
@given(with_transactions(WORKLOADS), st.sampled_from([1, 3, 1_000]))
def test_the_plain_engine(workload, size):
    catalog = parse_catalog(workload.catalog_sql)
    engines = Engine(catalog), PlainEngine(catalog, Door(catalog, keeps_queries=True))
    batches = list(chunks(workload.change_lines(), [size]))
    found = []
    for engine in engines:
        engine.door.read(workload.subscription_lines())
        results = [*(engine.feed(batch) for batch in batches), engine.finish()]
        refused = [(entry.seq, entry.reason) for result in results for entry in result.refused]
        found.append(([line for result in results for line in result.notifications.lines()], refused))
    assert found[0] == found[1]


@pytest.mark.parametrize("make", [Engine, lambda catalog: PlacedEngine(catalog, 3)])
def test_a_publication_is_told_once_and_is_gone(make):
    people = [
        {"id": "early", "sql": "SELECT id FROM market WHERE x = 1 AND y = 1"},
        {"id": "late", "sql": "SELECT id FROM market WHERE x >= 1", "after": 1},
    ]
    batch = [publication(1), publication(2), publication(3, id="q", where="y = 1"), publication(4, where="x = 2")]
    found = told(lines(make(parse_catalog(CATALOG)), people, batch[:2], batch[2:]))
    assert found == [
        ("early", 0, True, []),
        ("early", 1, False, [("insert", "p")]),
        ("late", 1, True, []),
        ("early", 2, False, [("insert", "p")]),
        ("late", 2, False, [("insert", "p")]),
        ("early", 3, False, [("insert", "q")]),
        ("late", 4, False, [("insert", "p")]),
    ]


def test_kept_publications_are_told_again_when_they_go_and_are_in_snapshots():
    """The same with `expires`, which is the nearest that tables have that keep their rows."""
    kept = CATALOG.replace(", keep = 'no'", "")
    people = [
        {"id": "early", "sql": "SELECT id FROM market WHERE x = 1"},
        {"id": "late", "sql": "SELECT id FROM market WHERE x = 1", "after": 1},
    ]
    batch = [publication(1, expires=1), publication(2, id="q", expires=2), publication(3, id="r", expires=3)]
    counts = []
    for catalog in (kept, CATALOG):
        records = lines(
            Engine(parse_catalog(catalog)), people, [line if catalog is kept else _lasting(line) for line in batch]
        )
        changes = [change for record in records for change in record["changes"]]
        counts.append((len(changes), sum(len(record["changes"]) for record in records if record["snapshot"])))
    assert counts == [(10, 1), (5, 0)]


def _lasting(line):
    record = json.loads(line)
    del record["expires"]
    return json.dumps(record).encode()


def test_nothing_is_held():
    engine = Engine(parse_catalog(CATALOG))
    engine.door.read([json.dumps({"id": "s", "sql": "SELECT * FROM market WHERE x >= 0"}).encode()])
    for start in range(0, 300, 100):
        engine.feed([publication(start + i + 1, id=f"p{start + i}", where=f"x = {i}") for i in range(100)])
        store = engine._replica.store
        assert store.row_count == store.rows.alive.sum() == 0


def test_in_a_transaction_the_last_of_an_id_counts():
    people = [{"id": "s", "sql": "SELECT * FROM market WHERE x >= 0"}]
    batch = [
        publication(1, tx="t"),
        publication(2, where="x = 2", tx="t"),
        publication(3, id="q", where="x = 3", tx="t"),
    ]
    (_, record) = lines(Engine(parse_catalog(CATALOG)), people, batch)
    assert record["seq"] == 3
    assert [change["row"] for change in record["changes"]] == [
        {"id": "p", "where": "x = 2"},
        {"id": "q", "where": "x = 3"},
    ]


def test_with_option_net_all_publications_of_a_micro_batch_are_told_at_once():
    people = [{"id": "s", "sql": "SELECT id FROM market WHERE x >= 0", "option": "net"}]
    batches = [publication(1), publication(2, id="q")], [publication(3), publication(4)]
    assert told(lines(Engine(parse_catalog(CATALOG)), people, *batches))[1:] == [
        ("s", 2, False, [("insert", "p"), ("insert", "q")]),
        ("s", 4, False, [("insert", "p"), ("insert", "p")]),
    ]


def test_what_makes_no_sense_is_refused():
    engine = Engine(parse_catalog(CATALOG))
    records = [publication(1), publication(2, op="update"), publication(3, op="delete"), publication(4, expires=9)]
    reasons = [entry.reason for entry in engine.feed(records).refused]
    assert len(reasons) == 3 and "leave out 'expires'" in reasons[2]
    with pytest.raises(SqlError, match="are not kept, so that none is the first"):
        Door(parse_catalog(CATALOG)).place("SELECT * FROM market WHERE x = 1 ORDER BY x LIMIT 1")
    with pytest.raises(TidingsError, match="publications are kept or not"):
        parse_catalog(CATALOG.replace("'no'", "'never'"))
    with pytest.raises(TidingsError, match="lots of an auction are kept"):
        parse_catalog(CATALOG.replace("'no'", "'no', auction = 'x DESC'"))
