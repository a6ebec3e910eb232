"""What forms are, as values: the spaces and tables of queries of each family; and that the protocol stays small."""

import pyarrow as pa
import pytest

from tidings.families import protocols
from tidings.families.registry import families, spec_of
from tidings.pipeline.door import Door
from tidings.sql import parse_catalog

CATALOG = parse_catalog("""
CREATE TABLE stocks (symbol TEXT, market TEXT, sector TEXT, per DOUBLE, price DOUBLE, PRIMARY KEY (market, symbol));
CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol TEXT, rating DOUBLE);
CREATE TABLE authors (id BIGINT PRIMARY KEY, review BIGINT);
""")
PER = ("lo stocks.per", "hi stocks.per")
REVIEWED = "stocks JOIN reviews ON stocks.symbol = reviews.symbol"


def spec(sql):
    return spec_of(Door(CATALOG).place(sql).form, CATALOG)


def test_a_selection():
    found = spec("SELECT symbol FROM stocks WHERE sector = 'tech' AND per >= 4")
    assert found.tables == ("stocks",)
    assert (found.space.axes, found.space.channel) == (PER, (("stocks.sector", pa.string()),))
    assert [name for _, name in found.shown] == ["symbol"]


def test_a_movement():
    one = spec("SELECT * FROM stocks WHERE market = 'x' AND symbol = 'GOOG' AND moved(price) >= 5")
    assert [name for name, _ in one.space.channel] == ["stocks.symbol", "stocks.market"]
    assert one.space.axes[0] == "moved stocks.price"
    several = spec("SELECT * FROM stocks WHERE market = 'x' AND symbol IN ('GOOG', 'IBM') AND moved(price) >= 5")
    assert several.space.axes != one.space.axes, "labels of two forms are not the same axis"


def test_a_ranking():
    found = spec("SELECT * FROM stocks WHERE sector = 'tech' AND per >= 4 ORDER BY price LIMIT 3")
    assert found.space.axes == PER
    assert spec("SELECT * FROM stocks ORDER BY price LIMIT 3").space.dims == 2


def test_a_join():
    found = spec(f"SELECT * FROM {REVIEWED} WHERE per >= 4 AND rating = 3")
    assert found.tables == ("stocks", "reviews")
    assert (found.space.axes, found.space.channel) == ((*PER, "lo reviews.rating", "hi reviews.rating"), ())
    assert [name for _, name in found.shown][4:] == ["price", "id", "reviews.symbol", "rating"]


def test_forms_of_several_families_have_axes_in_common():
    selection, ranking = (
        "SELECT * FROM stocks WHERE per >= 4",
        "SELECT * FROM stocks WHERE per >= 4 ORDER BY price LIMIT 3",
    )
    assert (
        spec(selection).space.axes
        == spec(ranking).space.axes
        == spec(f"SELECT * FROM {REVIEWED} WHERE per >= 4").space.axes
    )


def members(protocol):
    return {name for name in (*protocol.__annotations__, *vars(protocol)) if not name.startswith("_")}


def test_the_required_protocol_is_small():
    required = (protocols.Family, protocols.Server, protocols.Reference, protocols.Explanation)
    counts = {
        protocol.__name__: len({*protocol.__annotations__, *getattr(protocol, "__abstractmethods__", ())})
        for protocol in required
    }
    assert counts == {"Family": 9, "Server": 4, "Reference": 1, "Explanation": 2}
    assert sum(counts.values()) <= 20


@pytest.mark.parametrize("family", families(), ids=lambda family: family.name)
def test_families_have_nothing_public_that_no_protocol_has(family):
    known = {name for parent in type(family).__mro__[1:] for name in vars(parent)} | members(protocols.Family)
    assert {name for name in vars(type(family)) if not name.startswith("_")} <= known
