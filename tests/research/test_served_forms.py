"""How forms with region servers are spread over shards and zones."""

from research.servers.forms import ByKey, ByRow, ByValues, Together, spec_of
from research.servers.space import CHANNEL
from tidings.pipeline.door import Door
from tidings.sql import parse_catalog

CATALOG = parse_catalog("""
CREATE TABLE stocks (symbol TEXT, market TEXT, sector TEXT, per DOUBLE, price DOUBLE, PRIMARY KEY (market, symbol));
CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol TEXT, rating DOUBLE);
CREATE TABLE authors (id BIGINT PRIMARY KEY, review BIGINT);
""")
REVIEWED = "stocks JOIN reviews ON stocks.symbol = reviews.symbol"


def spec(sql):
    return spec_of(Door(CATALOG).place(sql).form, CATALOG)


def test_a_selection():
    found = spec("SELECT symbol FROM stocks WHERE sector = 'tech' AND per >= 4")
    assert (found.sharding, found.is_with_rows) == (ByRow(), True)
    assert found.space.zone_axes == (CHANNEL, "lo stocks.per", "hi stocks.per")


def test_a_movement():
    one = spec("SELECT * FROM stocks WHERE market = 'x' AND symbol = 'GOOG' AND moved(price) >= 5")
    # The primary key is market, symbol.
    assert (one.sharding, one.is_with_rows) == (ByKey((1, 0)), True)
    assert one.space.uncut == {one.space.axes[1]}
    several = spec("SELECT * FROM stocks WHERE market = 'x' AND symbol IN ('GOOG', 'IBM') AND moved(price) >= 5")
    assert several.space.zone_axes == ()
    assert spec("SELECT * FROM stocks WHERE moved(price) >= 5").sharding == ByRow()


def test_a_ranking():
    found = spec("SELECT * FROM stocks WHERE sector = 'tech' AND per >= 4 ORDER BY price LIMIT 3")
    assert (found.sharding, found.is_with_rows) == (ByValues((("stocks", ("sector",)),)), False)
    assert isinstance(spec("SELECT * FROM stocks ORDER BY price LIMIT 3").sharding, Together)
    assert spec("SELECT * FROM stocks WHERE sector IN ('a', 'b') ORDER BY price LIMIT 3").space.zone_axes == ()


def test_a_join():
    found = spec(f"SELECT * FROM {REVIEWED} WHERE per >= 4 AND rating = 3")
    assert (found.sharding, found.is_with_rows) == (
        ByValues((("stocks", ("symbol",)), ("reviews", ("symbol",)))),
        False,
    )
    chain = spec(f"SELECT * FROM {REVIEWED} JOIN authors ON authors.review = reviews.id")
    assert chain.sharding == Together("reviews")
