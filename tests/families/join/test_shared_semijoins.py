"""Joins of different tables that filter a table alike share its rows, and answers stay as exact as if they did not."""

import json

import hypothesis.strategies as st
import pytest

from join_bounds import selects_either
from join_star import BOTH, ITEMS, ROWS, SHOPS, STAR, TURNED, played, sql_of
from research.stages.staged import StagedEngine as Engine
from tidings.sql import parse_catalog
from tidings.testing import CHECKS, ENGINE_CHECKS, STAGE_CHECKS, Workload, check_family

pytestmark = pytest.mark.extended


INEXACT = {"has_exact_regions": lambda *_: False, "may_hear_twice": True}
FEW = st.integers(0, 3)
VALUES = st.one_of(st.none(), FEW)


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
    check_family("join", star_workloads(), checks=[check], examples=4, **INEXACT)


def test_a_row_goes_out_once_for_all_who_filter_it_alike():
    messages, told = played("auto", [SHOPS, ITEMS, BOTH, TURNED], ROWS)
    assert told == ["s0", "s1", "s2", "s3"]
    # Sales are filtered by items, but for those who have none: these are by shops.
    assert sorted(len(batch.to) for batch in messages) == [1, 3]
    assert [len(batch) for batch in messages] == [1, 1]


def test_other_predicates_make_another_semijoin():
    sources = [SHOPS, SHOPS]
    messages, _ = played("auto", sources, ROWS)
    assert [batch.to for batch in messages] == [messages[0].to] and len(messages[0].to) == 1
    other = "SELECT * FROM sales JOIN shops USING (shop) WHERE price >= 0"
    engine = Engine(parse_catalog(STAR), {"join": "auto"})
    engine.door.read(
        json.dumps({"id": id, "sql": sql}).encode() for id, sql in (("a", other), ("b", sql_of(SHOPS, [(0, 3)] * 3)))
    )
    for record in ROWS:
        engine.feed([json.dumps(record).encode()])
    # Sales 9 and 1 to each of the two, and shop 1 late to each.
    assert engine.stats.messages["join"] == 6
