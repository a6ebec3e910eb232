"""How forms are shared out: by rows, keys or values of columns, and along which axes their spaces may be cut."""

import pytest

from research.stages.sharding import (
    CHANNEL,
    ByKey,
    ByRow,
    ByValues,
    Together,
    common_columns,
    is_with_rows,
    sharding_of,
    zoned_space,
)
from tidings.pipeline.door import Door
from tidings.sql import Compiler, parse_catalog

CATALOG = parse_catalog("""
CREATE TABLE stocks (symbol TEXT, market TEXT, sector TEXT, per DOUBLE, price DOUBLE, PRIMARY KEY (market, symbol));
CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol TEXT, rating DOUBLE);
CREATE TABLE authors (id BIGINT PRIMARY KEY, review BIGINT);
""")
REVIEWED = "stocks JOIN reviews ON stocks.symbol = reviews.symbol"


def form(sql):
    return Door(CATALOG).place(sql).form


def test_a_selection():
    found = form("SELECT symbol FROM stocks WHERE sector = 'tech' AND per >= 4")
    assert sharding_of(found, CATALOG) == ByRow() and is_with_rows(found, CATALOG)
    assert zoned_space(found, CATALOG).zone_axes == (CHANNEL, "lo stocks.per", "hi stocks.per")


def test_a_movement():
    one = form("SELECT * FROM stocks WHERE market = 'x' AND symbol = 'GOOG' AND moved(price) >= 5")
    # The primary key is market, symbol.
    assert sharding_of(one, CATALOG) == ByKey((1, 0)) and is_with_rows(one, CATALOG)
    space = zoned_space(one, CATALOG)
    assert space.uncut == {space.axes[1]}
    several = form("SELECT * FROM stocks WHERE market = 'x' AND symbol IN ('GOOG', 'IBM') AND moved(price) >= 5")
    assert zoned_space(several, CATALOG).zone_axes == ()
    assert sharding_of(form("SELECT * FROM stocks WHERE moved(price) >= 5"), CATALOG) == ByRow()


def test_a_ranking():
    found = form("SELECT * FROM stocks WHERE sector = 'tech' AND per >= 4 ORDER BY price LIMIT 3")
    assert sharding_of(found, CATALOG) == ByValues((("stocks", ("sector",)),)) and not is_with_rows(found, CATALOG)
    assert isinstance(sharding_of(form("SELECT * FROM stocks ORDER BY price LIMIT 3"), CATALOG), Together)
    several = form("SELECT * FROM stocks WHERE sector IN ('a', 'b') ORDER BY price LIMIT 3")
    assert zoned_space(several, CATALOG).zone_axes == ()


def test_a_join():
    found = form(f"SELECT * FROM {REVIEWED} WHERE per >= 4 AND rating = 3")
    assert sharding_of(found, CATALOG) == ByValues((("stocks", ("symbol",)), ("reviews", ("symbol",))))
    assert not is_with_rows(found, CATALOG)
    chain = form(f"SELECT * FROM {REVIEWED} JOIN authors ON authors.review = reviews.id")
    assert sharding_of(chain, CATALOG) == Together("reviews")


@pytest.mark.parametrize(
    ("source", "columns"),
    [
        ("stocks JOIN reviews USING (symbol)", {"stocks": ("symbol",), "reviews": ("symbol",)}),
        ("stocks JOIN reviews USING (symbol) JOIN authors ON authors.review = reviews.id", {}),
    ],
)
def test_work_is_spread_by_what_all_tables_are_joined_by(source, columns):
    shape = Compiler(CATALOG).compile(f"SELECT * FROM {source}").shape
    assert common_columns(shape) == columns
