"""What a bid amounts to, by the definition: the best point that lot and bid have in common, and none without one."""

from __future__ import annotations

import datetime as dt
import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.exchange import NoAmountError, NoMatchError
from tidings.exchange.amounts import json_of
from tidings.exchange.rules import AuctionRules
from tidings.model.errors import CatalogError, SqlError
from tidings.sql import parse_catalog

COLUMNS = "item TEXT, price DOUBLE, pieces INT, total BIGINT, day DATE, moment TIMESTAMP, firm BOOLEAN, place POINT"


def rules(auction: str, more: str = "") -> AuctionRules:
    options = f"rows = 'constraints', auction = '{auction}'{more}"
    return AuctionRules(parse_catalog(f"CREATE TABLE lots ({COLUMNS}) WITH ({options});"), "lots")


def amount(auction: str, lot: str, bid: str, more: str = "") -> object:
    found = rules(auction, more)
    return found.value(found.amount(found.boxes(lot), found.boxes(bid)))


BEFORE_100, AFTER_100 = math.nextafter(100.0, 0), math.nextafter(100.0, 200)


@pytest.mark.parametrize(
    ("auction", "lot", "bid", "expected"),
    [
        ("price DESC", "price >= 100", "price = 120", 120.0),
        ("price DESC", "price >= 100", "price <= 120", 120.0),
        ("price DESC", "price BETWEEN 100 AND 110", "price <= 120", 110.0),
        ("price DESC", "price BETWEEN 50 AND 110", "price < 100", BEFORE_100),
        ("price DESC", "price < 100", "price >= 20", BEFORE_100),
        ("price DESC", "item = 'clock'", "item = 'clock' AND price <= 7", 7.0),
        ("price ASC", "price <= 100", "price = 80", 80.0),
        ("price ASC", "price <= 200", "price > 100", AFTER_100),
        ("price ASC", "price BETWEEN 100 AND 200", "price >= 80", 100.0),
        ("price DESC", "price BETWEEN -5 AND 5", "price < 0", -5e-324),
        ("price ASC", "price BETWEEN -5 AND 5", "price > -5e-324", 0.0),
        ("price DESC", "price IN (1, 3, 5)", "price <= 4", 3.0),
        ("price DESC", "price <> 3", "price BETWEEN 2 AND 3", math.nextafter(3.0, 0)),
        ("price DESC", "item = 'a' AND price >= 100 OR item = 'b' AND price >= 10", "item = 'b' AND price = 30", 30.0),
        ("price DESC", "price BETWEEN 1 AND 2 OR price BETWEEN 5 AND 6", "price <= 4", 2.0),
        ("price DESC", "price >= 1", "price = 2 OR price = 3 AND item = 'clock'", 3.0),
        ("price DESC", "item LIKE 'clo%' AND price >= 1", "item = 'clock' AND price = 2", 2.0),
        ("price DESC", "within(place, box(0, 0, 9, 9)) AND price >= 1", "place = point(5, 6) AND price = 2", 2.0),
        ("pieces DESC", "pieces < 100", "pieces >= 10", 99),
        ("pieces ASC", "pieces > 2", "pieces < 10", 3),
        ("total ASC", "total > 9007199254740992", "total >= 0", 9007199254740993),
        ("day ASC", "day > '2024-02-28'", "day <= '2024-06-01'", dt.date(2024, 2, 29)),
        ("moment DESC", "moment < '2024-01-01'", "moment >= '2023-01-01'", dt.datetime(2023, 12, 31, 23, 59, 59, 999999)),
        ("firm DESC", "item = 'clock'", "item = 'clock' AND firm = TRUE", True),
    ],
)  # fmt: skip
def test_a_bid_amounts_to_the_attained_end(auction: str, lot: str, bid: str, expected: object) -> None:
    found = amount(auction, lot, bid)
    assert (type(found), found) == (type(expected), expected)


@pytest.mark.parametrize(
    ("lot", "bid", "reason"),
    [
        ("price >= 100", "price < 100", "they allow no common 'price'"),
        ("price > 100", "price = 100", "they allow no common 'price'"),
        ("item = 'clock' AND price >= 1", "price = 2", "the lot constrains 'item' and the bid does not"),
        ("item = 'clock' AND price >= 1", "item = 'watch' AND price = 2", "they allow no common 'item'"),
        ("item = 'a' OR item = 'b'", "item = 'c' AND price = 1", "no alternative"),
        ("pieces >= 2", "price = 1", "the lot constrains 'pieces' and the bid does not"),
    ],
)
def test_bids_that_do_not_match_are_told_why(lot: str, bid: str, reason: str) -> None:
    with pytest.raises(NoMatchError, match=reason):
        amount("price DESC", lot, bid)


def test_the_lot_may_leave_out_what_the_bid_asks_about_and_in_classic_tables_the_other_way_round() -> None:
    lot, bid = "price >= 1", "price = 2 AND item = 'clock'"
    classic = ", matching = 'classic'"
    assert amount("price DESC", lot, bid) == 2.0
    with pytest.raises(NoMatchError, match="the bid constrains 'item' and the lot does not"):
        amount("price DESC", lot, bid, classic)
    assert amount("price DESC", bid, lot, classic) == 2.0
    with pytest.raises(NoMatchError, match="the lot constrains 'item' and the bid does not"):
        amount("price DESC", bid, lot)


@pytest.mark.parametrize(
    ("auction", "lot", "bid", "reason"),
    [
        ("price DESC", "price >= 100", "price >= 120", "bounds 'price' from above; .* price <="),
        ("price ASC", "price <= 100", "price < 120", "bounds 'price' from below; .* price >="),
        ("price DESC", "item = 'clock'", "item = 'clock'", "must name an amount"),
        ("price DESC", "price = 5 OR item = 'clock'", "price = 5 AND item = 'clock' OR item = 'clock'", "must name"),
        (
            "moment ASC",
            "moment > '9999-12-31 23:59:59.999999'",
            "moment > '2000-01-01'",
            "beyond all values of TIMESTAMP",
        ),
    ],
)
def test_a_bid_must_name_an_amount(auction: str, lot: str, bid: str, reason: str) -> None:
    with pytest.raises(NoAmountError, match=reason):
        amount(auction, lot, bid)


def test_better_is_strictly_higher_or_strictly_lower() -> None:
    highest, lowest = rules("pieces DESC"), rules("pieces ASC")
    assert [highest.is_better(code, 5) for code in (4, 5, 6)] == [False, False, True]
    assert [lowest.is_better(code, 5) for code in (4, 5, 6)] == [True, False, False]


def test_what_is_no_constraint_is_refused_at_its_place() -> None:
    found = rules("price DESC")
    with pytest.raises(SqlError, match="unknown column 'colour' near 'colour' at line 1, column 15"):
        found.boxes("price = 5 AND colour = 'red'")
    with pytest.raises(SqlError, match="NUL"):
        found.boxes("item = 'a\0b'")
    with pytest.raises(SqlError, match="not 5"):
        found.boxes(5)  # type: ignore[arg-type]


def test_a_table_without_auctions_is_refused() -> None:
    with pytest.raises(CatalogError, match="table 'lots' has no auctions; create it WITH"):
        AuctionRules(parse_catalog("CREATE TABLE lots (price DOUBLE) WITH (rows = 'constraints');"), "lots")


@pytest.mark.parametrize(
    ("amount", "text"), [(1.5, 1.5), (dt.date(2024, 2, 29), "2024-02-29"), (dt.datetime(2024, 1, 1), "2024-01-01T00:00:00")]
)  # fmt: skip
def test_amounts_in_json(amount: float | dt.date, text: object) -> None:
    assert json_of(amount) == text


# Constraints as sets that can be enumerated: alternatives, each with the values it allows of some attributes.
SIZES = range(4)
intervals = st.tuples(st.sampled_from(SIZES), st.sampled_from(SIZES)).map(sorted)
conjunctions = st.dictionaries(st.sampled_from(["pieces", "total"]), intervals, min_size=1)
alternatives = st.lists(conjunctions, min_size=1, max_size=3)


def text(constraint: list[dict[str, list[int]]]) -> str:
    return " OR ".join(
        "(" + " AND ".join(f"{name} BETWEEN {lo} AND {hi}" for name, (lo, hi) in one.items()) + ")"
        for one in constraint
    )


def holds(one: dict[str, list[int]], pieces: int, total: int) -> bool:
    values = {"pieces": pieces, "total": total}
    return all(lo <= values[name] <= hi for name, (lo, hi) in one.items())


@given(alternatives, alternatives, st.booleans(), st.booleans())
def test_amounts_equal_enumeration(
    lot: list[dict[str, list[int]]], bid: list[dict[str, list[int]]], is_highest: bool, is_classic: bool
) -> None:
    found: set[int | None] = set()
    for ours, theirs in product(lot, bid):
        asking, asked = (theirs, ours) if is_classic else (ours, theirs)
        if not asking.keys() <= asked.keys():
            continue
        common = [values for values in product(SIZES, SIZES) if holds(ours, *values) and holds(theirs, *values)]
        if common and "pieces" not in asked:
            found.add(None)
        found |= {pieces for pieces, _ in common if "pieces" in asked}
    auction = rules(f"pieces {'DESC' if is_highest else 'ASC'}", ", matching = 'classic'" if is_classic else "")
    boxes = auction.boxes(text(lot)), auction.boxes(text(bid))
    if not found:
        with pytest.raises(NoMatchError):
            auction.amount(*boxes)
    elif None in found:
        with pytest.raises(NoAmountError):
            auction.amount(*boxes)
    else:
        sizes = {size for size in found if size is not None}
        assert auction.value(auction.amount(*boxes)) == (max(sizes) if is_highest else min(sizes))
