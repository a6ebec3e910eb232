"""How semijoins are spread over shards, and by which neighbours tables are filtered."""

import pytest

from research.servers.forms import common_columns
from research.strategies.join.semijoin.decomposition import UNFILTERED, Traffic, cheapest, combinations_of
from tidings.sql import Compiler, parse_catalog
from tidings.testing import CHECKS, check_family, join_workloads

TABLES = """
CREATE TABLE stocks (symbol TEXT PRIMARY KEY, per DOUBLE);
CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol TEXT, rating DOUBLE);
CREATE TABLE authors (id BIGINT PRIMARY KEY, review BIGINT);
"""


@pytest.mark.parametrize(
    ("source", "columns"),
    [
        ("stocks JOIN reviews USING (symbol)", {"stocks": ("symbol",), "reviews": ("symbol",)}),
        (
            "stocks JOIN reviews USING (symbol) JOIN authors ON authors.review = reviews.id",
            {},
        ),
    ],
)
def test_work_is_spread_by_what_all_tables_are_joined_by(source, columns):
    shape = Compiler(parse_catalog(TABLES)).compile(f"SELECT * FROM {source}").shape
    assert common_columns(shape) == columns


def test_a_table_is_filtered_by_the_neighbour_that_makes_the_least_traffic():
    # The first neighbour has few partners, and rarely changes; the second has many, and often does.
    traffic = Traffic((10.0, 1.0, 5.0), {(0, 1): 2.0, (1, 0): 0.5, (0, 2): 2.0, (2, 0): 20.0})
    assert traffic.cost(0, (1,)) < traffic.cost(0, (2,)) < traffic.cost(0, UNFILTERED)
    assert cheapest(traffic, 0, [UNFILTERED, (2,), (1,)]) == (1,)
    assert traffic.cost(0, (1,)) == pytest.approx((10 / 16 * 0.5 / 2.5 + 1 / 16 * 2 * 2 / (2.5 * 3.5)) / 3)
    assert traffic.cost(0, (1, 2)) < traffic.cost(0, (1,))
    assert combinations_of([1, 2]) == [(), (1,), (2,), (1, 2)]


@pytest.mark.extended
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_filters_follow_the_traffic_and_answers_stay_exact(check, monkeypatch):
    monkeypatch.setattr("research.strategies.join.semijoin.server._RECONSIDER_AFTER", 2)
    monkeypatch.setattr("research.strategies.join.semijoin.server._MUCH_CHEAPER", 1.0)
    check_family("join", join_workloads(), checks=[check], examples=4, strategies=["auto"])
