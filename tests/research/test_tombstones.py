"""Rows that go are dropped by those who may hold them, and, where partners are few, by nobody else."""

import json

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from join_star import check_that_rows_are_dropped_where_they_came

from research.servers.forms import project_all
from research.stages.staged import StagedEngine as Engine
from research.strategies.join.relations.tombstones import FEW, NEVER, Tombstones
from tidings.sql import parse_catalog

pytestmark = pytest.mark.extended


TABLES = """
CREATE TABLE sales (id BIGINT PRIMARY KEY, shop BIGINT, price DOUBLE);
CREATE TABLE shops (id BIGINT PRIMARY KEY, shop BIGINT, size DOUBLE);
"""
SQL = (
    "SELECT * FROM sales JOIN shops ON sales.shop = shops.shop "
    "WHERE price BETWEEN 0 AND 9 AND size BETWEEN {size} AND {size}"
)
steps = st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.integers(0, 9)), max_size=30)


@given(steps=steps)
def test_tombstones_are_of_all_rows_that_went(steps):
    tombstones, gone = Tombstones(), []
    for clock, (value, is_few, code) in enumerate(steps):
        tombstones.add(np.array([value]), np.array([[code]]), np.array([is_few]), clock)
        gone.append((clock, value, code))
    for value in range(4):
        known = int(tombstones.known_since(np.array([value]))[0])
        for since in range(known, len(steps)):
            expected = [code for clock, of, code in gone if of == value and clock > since]
            assert [int(codes[0]) for codes in tombstones.after(value, since)] == expected
            assert len(expected) <= FEW
    assert tombstones.known_since(np.array([NEVER, 3])).tolist() == [NEVER, NEVER]


class Market:
    """An engine, and whom the messages of the last change reach."""

    def __init__(self, sizes):
        self.sent = []
        self.engine = Engine(parse_catalog(TABLES), {"join": "auto"}, on_work=lambda work: self.sent.append(work))
        lines = [json.dumps({"id": f"s{size}", "sql": SQL.format(size=size)}).encode() for size in sizes]
        self.engine.door.read(lines)
        self.points = {}
        self.seq = 0

    def change(self, table, op, **row):
        self.seq += 1
        self.engine.feed([json.dumps({"seq": self.seq, "table": table, "op": op, "row": row}).encode()])
        work = self.sent[-1]
        for points in work.points:
            self.points |= dict(zip(points.id.to_pylist(), points.coords.tolist(), strict=True))
        own = [batch for messages in work.messages for batch in project_all(messages, self.engine.catalog)]
        return sorted(
            id
            for id, point in self.points.items()
            if any(batch.regions.contains(i, point) for batch in own for i in range(len(batch)))
        )


def test_a_row_is_dropped_by_those_who_have_or_had_a_partner_for_it():
    market = Market([1, 2, 3, 4])
    market.change("shops", "insert", id=7, shop=1, size=1)
    market.change("sales", "insert", id=1, shop=1, price=5)
    market.change("sales", "insert", id=2, shop=1, price=5)
    assert market.change("sales", "delete", id=1) == ["s1"]
    market.change("shops", "update", id=7, shop=1, size=2)
    market.change("sales", "insert", id=3, shop=1, price=5)
    # The second came when the shop was small, the third after it had grown.
    assert market.change("sales", "delete", id=3) == ["s2"]
    assert market.change("sales", "delete", id=2) == ["s1", "s2"]


def test_a_row_that_never_had_a_partner_goes_unnoticed():
    market = Market([1])
    market.change("sales", "insert", id=1, shop=1, price=5)
    market.change("sales", "insert", id=2, shop=None, price=5)
    assert market.change("sales", "delete", id=1) == market.change("sales", "delete", id=2) == []
    assert [len(batch) for batch in market.sent[-1].messages] == []


def test_with_many_partners_everyone_who_selected_a_row_drops_it():
    market = Market([1, 2])
    for number in range(FEW + 1):
        market.change("shops", "insert", id=number, shop=1, size=1)
    market.change("sales", "insert", id=1, shop=1, price=5)
    market.change("sales", "insert", id=2, shop=1, price=5)
    assert market.change("sales", "delete", id=1) == ["s1", "s2"]
    for number in range(FEW + 1):
        market.change("shops", "delete", id=number)
    # Those that went first were too many to be noted.
    assert market.change("sales", "delete", id=2) == ["s1", "s2"]


def test_a_row_is_dropped_by_those_it_reached_though_only_some_columns_of_a_partner_suit_them():
    check_that_rows_are_dropped_where_they_came("auto")
