"""Joins of different tables that filter a table alike share its rows, and answers stay as exact as if they did not."""

import json

import hypothesis.strategies as st
import pytest

from tidings.families.join.family import STRATEGIES, JoinFamily
from tidings.families.join.strategies import server_of
from tidings.families.optional import FamilyServer
from tidings.pipeline.staged import StagedEngine as Engine
from tidings.sql import parse_catalog
from tidings.testing import CHECKS, ENGINE_CHECKS, STAGE_CHECKS, Workload, check_family
from tidings.testing.deployment import deploy, run_steps
from tidings.testing.join_inputs import selects_either

pytestmark = pytest.mark.extended


STAR = """
CREATE TABLE sales (id BIGINT PRIMARY KEY, shop BIGINT, item BIGINT, price DOUBLE);
CREATE TABLE shops (shop BIGINT PRIMARY KEY, size DOUBLE);
CREATE TABLE items (item BIGINT PRIMARY KEY, weight DOUBLE);
"""
SHOPS = "sales JOIN shops USING (shop)"
ITEMS = "items JOIN sales USING (item)"
BOTH = "sales JOIN items USING (item) JOIN shops USING (shop)"
TURNED = "shops JOIN sales USING (shop) JOIN items USING (item)"
RANGES = {"sales": "price", "shops": "size", "items": "weight"}
INEXACT = {"has_exact_regions": lambda *_: False, "may_hear_twice": True}
FEW = st.integers(0, 3)
VALUES = st.one_of(st.none(), FEW)


def sql_of(source, ends):
    where = [
        f"{table}.{column} BETWEEN {lo} AND {hi}"
        for (table, column), (lo, hi) in zip(RANGES.items(), ends, strict=True)
        if table in source
    ]
    return f"SELECT * FROM {source} WHERE {' AND '.join(where)}"


@st.composite
def subscriptions(draw):
    records = []
    for number in range(draw(st.integers(1, 6))):
        ends = draw(st.lists(st.tuples(FEW, FEW), min_size=3, max_size=3))
        born = draw(st.integers(0, 6))
        source = draw(st.sampled_from([SHOPS, ITEMS, BOTH, TURNED]))
        records.append({"id": f"s{number}", "sql": sql_of(source, ends), "after": born})
        if draw(st.booleans()):
            records.append({"id": f"s{number}", "drop": True, "after": born + draw(st.integers(0, 6))})
    return records


@st.composite
def changes(draw):
    rows = {
        "sales": {"id": FEW, "shop": VALUES, "item": VALUES, "price": VALUES},
        "shops": {"shop": FEW, "size": VALUES},
        "items": {"item": FEW, "weight": VALUES},
    }
    records = []
    for seq in range(1, draw(st.integers(1, 20)) + 1):
        table = draw(st.sampled_from(list(rows)))
        row = {name: draw(values) for name, values in rows[table].items()}
        records.append(
            {"seq": seq, "table": table, "op": draw(st.sampled_from(["upsert", "upsert", "delete"])), "row": row}
        )
    return records


def star_workloads():
    return st.builds(Workload, st.just(STAR), subscriptions(), changes())


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check):
    check_family("join", star_workloads(), checks=[check], examples=4, may_reach=selects_either, **INEXACT)


@pytest.mark.parametrize("check", (*ENGINE_CHECKS, *STAGE_CHECKS), ids=lambda check: check.__name__)
def test_forms_may_leave_a_shared_semijoin(check, monkeypatch):
    monkeypatch.setattr("tidings.families.join.semijoin.server._RECONSIDER_AFTER", 2)
    monkeypatch.setattr("tidings.families.join.semijoin.server._MUCH_CHEAPER", 1.0)
    monkeypatch.setattr(JoinFamily, "strategies", ("auto", "ref-sj:clu"))
    check_family("join", star_workloads(), checks=[check], examples=4, **INEXACT)


def test_a_server_is_restored_from_changes_that_come_to_nothing():
    rows = [
        {"seq": seq, "table": table, "op": op, "row": {key: 1}}
        for seq, (table, op, key) in enumerate(
            [
                ("sales", "upsert", "id"),
                ("shops", "upsert", "shop"),
                ("sales", "delete", "id"),
                ("shops", "delete", "shop"),
            ],
            1,
        )
    ]
    full = {"sales": {"shop": 1, "item": 1, "price": 1}, "shops": {"size": 1}}
    for record in rows:
        record["row"] = full[record["table"]] | record["row"]
    workload = Workload(STAR, [{"id": "s", "sql": sql_of(SHOPS, [(0, 3)] * 3), "after": 0}], rows)
    deployment = deploy(workload, {"join": "auto"})
    lines = [line for step in run_steps(deployment, workload.change_lines(), [len(rows)]) for line in step.lines]
    told = [json.loads(line)["seq"] for line in lines]
    assert told == [0, 2, 3]
    for stage in deployment.stages:
        stage.crash()
    assert deployment.feed([json.dumps({**rows[0], "seq": 5}).encode()]).lines == []
    assert len(deployment.feed([json.dumps({**rows[1], "seq": 6}).encode()]).lines) == 1


def played(strategy, sources, records):
    """Messages of the last change, by tables that they are for, and everybody's lines."""
    sent = []
    engine = Engine(parse_catalog(STAR), {"join": strategy}, on_work=lambda work: sent.append(work.messages))
    engine.door.read(
        json.dumps({"id": f"s{i}", "sql": sql_of(source, [(0, 3)] * 3)}).encode() for i, source in enumerate(sources)
    )
    for record in records:
        lines = engine.feed([json.dumps(record).encode()]).notifications.lines()
    return [batch for batch in sent[-1] if len(batch)], [json.loads(line)["subscription"] for line in lines]


ROWS = [
    {"seq": 1, "table": "shops", "op": "insert", "row": {"shop": 1, "size": 1}},
    {"seq": 2, "table": "items", "op": "insert", "row": {"item": 1, "weight": 1}},
    {"seq": 3, "table": "sales", "op": "insert", "row": {"id": 9, "shop": 1, "item": 1, "price": 1}},
    {"seq": 4, "table": "sales", "op": "insert", "row": {"id": 1, "shop": 1, "item": 1, "price": 1}},
]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_row_goes_out_once_for_all_who_filter_it_alike(strategy):
    messages, told = played(strategy, [SHOPS, ITEMS, BOTH, TURNED], ROWS)
    assert told == ["s0", "s1", "s2", "s3"]
    # Sales are filtered by items, but for those who have none: these are by shops.
    semijoins = {"rel-sel": [4]}.get(strategy, [1, 3])
    if isinstance(server_of(parse_catalog(STAR), strategy), FamilyServer):
        assert sorted(len(batch.to) for batch in messages) == semijoins
        assert [len(batch) for batch in messages] == [1] * len(semijoins)
    else:
        assert all(not batch.to for batch in messages) and sum(map(len, messages)) == 4


def test_other_predicates_make_another_semijoin():
    sources = [SHOPS, SHOPS]
    messages, _ = played("ref-sj:clu", sources, ROWS)
    assert [batch.to for batch in messages] == [messages[0].to] and len(messages[0].to) == 1
    other = "SELECT * FROM sales JOIN shops USING (shop) WHERE price >= 0"
    engine = Engine(parse_catalog(STAR), {"join": "ref-sj:clu"})
    engine.door.read(
        json.dumps({"id": id, "sql": sql}).encode() for id, sql in (("a", other), ("b", sql_of(SHOPS, [(0, 3)] * 3)))
    )
    for record in ROWS:
        engine.feed([json.dumps(record).encode()])
    # Sales 9 and 1 to each of the two, and shop 1 late to each.
    assert engine.stats.messages["join"] == 6
