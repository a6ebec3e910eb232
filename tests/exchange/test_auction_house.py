"""Each rule of an auction, on both databases: order of bids, best offers, idempotence, refusals, the close."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from sqlalchemy import select

from tidings.exchange import (
    Auctions,
    BestOffer,
    Bid,
    ClosedError,
    ConflictError,
    Lot,
    NoAmountError,
    NoMatchError,
    Notice,
    Outbox,
    Outcome,
    Receipt,
    Store,
    UnknownLotError,
)
from tidings.exchange.schema import auctions, best_offers, bids, lots, metadata, outbox, receipts
from tidings.model.errors import CatalogError, SqlError, TidingsError, UsageError
from tidings.sql import parse_catalog

CATALOG = parse_catalog("""
CREATE TABLE sales (item TEXT, price DOUBLE) WITH (rows = 'constraints', auction = 'price DESC');
CREATE TABLE tenders (item TEXT, days INT) WITH (rows = 'constraints', auction = 'days ASC');
CREATE TABLE market (item TEXT, price DOUBLE) WITH (rows = 'constraints');
""")


@pytest.fixture
def sales(store: Store) -> Auctions:
    """The table where the highest bid wins, with one open auction."""
    found = Auctions(store, CATALOG, "sales")
    found.publish("clock", "item = 'clock' AND price >= 100", owner="ann")
    return found


def told(store: Store) -> list[tuple[str, dict[str, Any]]]:
    """(destination, body) of what is told now, without what all bodies have."""
    found: list[Notice] = []
    Outbox(store).deliver(found.append)
    return [(notice.destination, dict(notice.body)) for notice in found]


def events(store: Store) -> list[tuple[str, str]]:
    return [(destination, body["event"]) for destination, body in told(store)]


def contents(store: Store) -> dict[str, list[Any]]:
    """Everything in the store."""
    return store.read(
        lambda connection: {
            table.name: sorted(tuple(row) for row in connection.execute(select(table)))
            for table in metadata.sorted_tables
        }
    )


def clock(price: str) -> str:
    return f"item = 'clock' AND price {price}"


def test_a_bid_is_answered_with_its_amount_and_its_place(sales: Auctions) -> None:
    assert sales.bid("b1", "clock", "bob", clock("<= 120")) == Receipt(Bid("b1", "clock", "bob", 120.0, 1), version=1)
    assert sales.bid("b2", "clock", "cem", clock("= 110")) == Receipt(Bid("b2", "clock", "cem", 110.0, 2), version=None)
    assert sales.bid("b3", "clock", "cem", clock("= 130")).is_best
    assert sales.best_offer("clock") == BestOffer(Bid("b3", "clock", "cem", 130.0, 3), version=2)


def test_an_open_end_attains_the_next_double(sales: Auctions) -> None:
    below = sales.bid("b1", "clock", "bob", clock("< 120")).bid.amount
    assert below == math.nextafter(120.0, 0) and repr(below) == "119.99999999999999"
    assert sales.bid("b2", "clock", "cem", clock("<= 120")).is_best


def test_of_equal_bids_the_earlier_stays_best(sales: Auctions) -> None:
    sales.bid("b1", "clock", "bob", clock("<= 120"))
    assert not sales.bid("b0", "clock", "ada", clock("= 120")).is_best
    assert [bid.id for bid in sales.best_match_first("clock", 9)] == ["b1", "b0"]
    assert sales.close("clock").winner == Bid("b1", "clock", "bob", 120.0, 1)


def test_best_match_first_ranks_by_amount_then_commit_order(sales: Auctions) -> None:
    for number, price in enumerate((110, 140, 120, 140, 110)):
        sales.bid(f"b{number}", "clock", f"p{number}", clock(f"= {price}"))
    assert [bid.id for bid in sales.best_match_first("clock", 99)] == ["b1", "b3", "b2", "b0", "b4"]
    assert [bid.id for bid in sales.best_match_first("clock", 2)] == ["b1", "b3"]
    assert sales.best_match_first("clock", 0) == []


def test_the_lowest_bid_wins_where_the_table_says_so(store: Store) -> None:
    tenders = Auctions(store, CATALOG, "tenders")
    tenders.publish("roof", "item = 'roof' AND days <= 30", owner="ann")
    for id, days in (("b1", "= 20"), ("b2", "> 11"), ("b3", "= 12"), ("b4", "= 25")):
        tenders.bid(id, "roof", id, f"item = 'roof' AND days {days}")
    assert tenders.best_offer("roof") == BestOffer(Bid("b2", "roof", "b2", 12, 2), version=2)
    assert [bid.id for bid in tenders.best_match_first("roof", 4)] == ["b2", "b3", "b1", "b4"]
    winner = tenders.close("roof").winner
    assert winner is not None and winner.id == "b2"


def test_a_lot_of_alternatives(store: Store) -> None:
    sales = Auctions(store, CATALOG, "sales")
    sales.publish("either", "item = 'clock' AND price >= 100 OR item = 'watch' AND price >= 10", owner="ann")
    assert sales.bid("b1", "either", "bob", "item = 'watch' AND price = 20").bid.amount == 20.0
    assert sales.bid("b2", "either", "bob", "item IN ('clock', 'watch') AND price <= 50").bid.amount == 50.0
    with pytest.raises(NoMatchError, match="no alternative"):
        sales.bid("b3", "either", "bob", "item = 'clock' AND price = 20")


def test_tables_of_one_store_do_not_share_ids(store: Store) -> None:
    sales, tenders = Auctions(store, CATALOG, "sales"), Auctions(store, CATALOG, "tenders")
    sales.publish("x", "price >= 1", owner="ann")
    tenders.publish("x", "days <= 9", owner="ann")
    sales.bid("b", "x", "bob", "price = 2")
    tenders.bid("b", "x", "bob", "days = 3")
    assert len({body["table"] for _, body in told(store)}) == 2
    first, second = sales.close("x").winner, tenders.close("x").winner
    assert first is not None and second is not None and (first.amount, second.amount) == (2.0, 3)


def test_who_is_told_of_a_new_best_offer(sales: Auctions, store: Store) -> None:
    sales.bid("b1", "clock", "bob", clock("= 110"))
    sales.bid("b2", "clock", "cem", clock("= 105"))
    sales.bid("b3", "clock", "cem", clock("= 120"))
    common = {"table": "sales", "lot": "clock"}
    assert told(store) == [
        ("ann", {"event": "best", **common, "bid": "b1", "bidder": "bob", "amount": 110.0, "seq": 1, "version": 1}),
        ("ann", {"event": "best", **common, "bid": "b3", "bidder": "cem", "amount": 120.0, "seq": 3, "version": 2}),
        ("bob", {"event": "outbid", **common, "bid": "b1", "amount": 120.0, "seq": 3, "version": 2}),
    ]
    sales.bid("b4", "clock", "cem", clock("= 130"))
    assert events(store) == [("ann", "best")], "whoever raises their own bid is not outbid"


def test_the_close_tells_winner_losers_and_owner(sales: Auctions, store: Store) -> None:
    for id, bidder, price in (("b1", "bob", 110), ("b2", "cem", 130), ("b3", "bob", 120), ("b4", "dot", 105)):
        sales.bid(id, "clock", bidder, clock(f"= {price}"))
    told(store)
    winner = Bid("b2", "clock", "cem", 130.0, 2)
    assert sales.close("clock") == Outcome("clock", "ann", 5, winner)
    common = {"table": "sales", "lot": "clock"}
    described = {"bid": "b2", "bidder": "cem", "amount": 130.0, "seq": 2}
    assert told(store) == [
        ("cem", {"event": "won", **common, "bid": "b2", "amount": 130.0}),
        ("bob", {"event": "lost", **common, "bid": "b3", "amount": 120.0}),
        ("dot", {"event": "lost", **common, "bid": "b4", "amount": 105.0}),
        ("ann", {"event": "closed", **common, "winner": described}),
    ]


def test_a_close_without_bids_has_no_winner(sales: Auctions, store: Store) -> None:
    assert sales.outcome("clock") is None
    assert sales.close("clock") == Outcome("clock", "ann", 1, None) == sales.outcome("clock")
    assert told(store) == [("ann", {"event": "closed", "table": "sales", "lot": "clock", "winner": None})]


def test_the_close_deletes_the_auctions_rows_and_no_others(sales: Auctions, store: Store) -> None:
    sales.publish("watch", "price >= 1", owner="ann")
    for lot in ("clock", "watch"):
        sales.bid(f"on {lot}", lot, "bob", clock("= 110"))
    sales.close("clock")
    left = contents(store)
    assert [{row[1] for row in left[table.name]} for table in (lots, bids, best_offers)] == [{"watch"}] * 3
    assert [len(left[table.name]) for table in (auctions, receipts)] == [2, 2]


def test_closing_again_changes_nothing(sales: Auctions, store: Store) -> None:
    sales.bid("b1", "clock", "bob", clock("= 110"))
    outcome, before = sales.close("clock"), contents(store)
    assert sales.close("clock") == outcome == sales.outcome("clock")
    assert contents(store) == before


def test_a_bid_that_comes_again_gets_its_first_answer(sales: Auctions, store: Store) -> None:
    receipt = sales.bid("b1", "clock", "bob", clock("= 110"))
    sales.bid("b2", "clock", "cem", clock("= 120"))
    before = contents(store)
    assert sales.bid("b1", "clock", "bob", clock("= 110")) == receipt
    assert contents(store) == before
    sales.close("clock")
    before = contents(store)
    assert sales.bid("b1", "clock", "bob", clock("= 110")) == receipt, "after the close too: it was in time"
    assert contents(store) == before


def test_an_id_stands_for_one_bid(sales: Auctions, store: Store) -> None:
    sales.publish("watch", "price >= 1", owner="ann")
    sales.bid("b1", "clock", "bob", clock("= 110"))
    before = contents(store)
    for lot, bidder, where in (
        ("clock", "bob", clock("= 111")),
        ("clock", "cem", clock("= 110")),
        ("watch", "bob", clock("= 110")),
        ("nothing", "bob", clock("= 110")),
    ):
        with pytest.raises(ConflictError, match="bid 'b1' was made with another lot, bidder or constraint; give"):
            sales.bid("b1", lot, bidder, where)
    assert contents(store) == before


def test_a_lot_that_is_published_again(sales: Auctions, store: Store) -> None:
    before = contents(store)
    same = Lot("clock", "ann", "item = 'clock' AND price >= 100")
    assert sales.publish(same.id, same.where, owner=same.owner) == same
    assert contents(store) == before
    for owner, where in (("bob", same.where), ("ann", "item = 'clock' AND price >= 99")):
        with pytest.raises(ConflictError, match="lot 'clock' was published with another owner or constraint"):
            sales.publish("clock", where, owner=owner)
    sales.close("clock")
    before = contents(store)
    sales.publish(same.id, same.where, owner=same.owner)
    assert contents(store) == before, "a closed auction is not opened again"


@pytest.mark.parametrize(
    ("lot", "where", "error", "message"),
    [
        (
            "clock",
            "item = 'clock' AND price < 100",
            NoMatchError,
            "does not match the lot; they allow no common 'price'",
        ),
        ("clock", "price = 110", NoMatchError, "the lot constrains 'item' and the bid does not"),
        ("clock", "item = 'clock' AND price >= 110", NoAmountError, "a bid must name an amount"),
        (
            "bench",
            "item = 'clock' AND price = 110",
            UnknownLotError,
            "there is no auction 'bench'; publish the lot first",
        ),
        ("sold", "price = 110", ClosedError, "auction 'sold' is closed: bid 'b9' came too late"),
        ("clock", "price = 'high'", SqlError, "column 'price' is DOUBLE .* line 1, column 1"),
    ],
)
def test_refused_bids_leave_nothing_behind(
    sales: Auctions, store: Store, lot: str, where: str, error: type[TidingsError], message: str
) -> None:
    sales.publish("sold", "price >= 1", owner="ann")
    sales.close("sold")
    sales.bid("b1", "clock", "bob", clock("= 110"))
    before = contents(store)
    with pytest.raises(error, match=message):
        sales.bid("b9", lot, "cem", where)
    assert contents(store) == before
    sales.bid("b9", "clock", "cem", clock("= 120"))


def test_questions_about_auctions_that_are_closed_or_unknown(sales: Auctions) -> None:
    for ask in (sales.close, sales.best_offer, sales.outcome, lambda lot: sales.best_match_first(lot, 1)):
        with pytest.raises(UnknownLotError, match="there is no auction 'bench'"):
            ask("bench")
    assert sales.best_offer("clock") is None
    sales.close("clock")
    for ask in (sales.best_offer, lambda lot: sales.best_match_first(lot, 1)):
        with pytest.raises(ClosedError, match="ask for its outcome"):
            ask("clock")


def test_receipts_are_given_up_when_nobody_asks_any_more(sales: Auctions, store: Store) -> None:
    sales.bid("b1", "clock", "bob", clock("= 110"))
    with pytest.raises(UsageError, match="auction 'clock' is open"):
        sales.forget("clock")
    outcome = sales.close("clock")
    sales.forget("clock")
    assert contents(store)[receipts.name] == []
    assert sales.outcome("clock") == outcome
    with pytest.raises(ClosedError):
        sales.bid("b1", "clock", "bob", clock("= 110"))


def test_ids_that_no_database_keeps(sales: Auctions) -> None:
    calls: tuple[Callable[[Any], Any], ...] = (
        lambda id: sales.publish(id, "price = 1", owner="ann"),
        lambda id: sales.publish("x", "price = 1", owner=id),
        lambda id: sales.bid(id, "clock", "bob", clock("= 110")),
        lambda id: sales.bid("b1", id, "bob", clock("= 110")),
        lambda id: sales.bid("b1", "clock", id, clock("= 110")),
        sales.close,
        sales.outcome,
    )
    for call, id in product(calls, ("", "a\0b", "\ud800", "x" * 201, None, 7)):
        with pytest.raises(UsageError, match="the id of a"):
            call(id)


def test_ids_may_be_long_and_odd(store: Store) -> None:
    sales = Auctions(store, CATALOG, "sales")
    lot, owner, bidder, other = (mark + "\U0001f514" * 49 for mark in "/%' ")
    sales.publish(lot, "price >= 1", owner=owner)
    sales.bid("b1", lot, bidder, "price = 2")
    sales.bid("b2", lot, other, "price = 3")
    sales.close(lot)
    assert [event for _, event in events(store)] == ["best", "best", "outbid", "won", "lost", "closed"]
    ids = [row[1] for row in contents(store)[outbox.name]]
    assert len(set(ids)) == 6 and all(id.count("/") == 4 for id in ids)


def test_tables_without_auctions_and_other_declarations_are_refused(store: Store, sales: Auctions) -> None:
    with pytest.raises(CatalogError, match="table 'market' has no auctions"):
        Auctions(store, CATALOG, "market")
    with pytest.raises(CatalogError, match="unknown table 'boats'"):
        Auctions(store, CATALOG, "boats")
    for declaration in ("price DESC', matching = 'classic", "price ASC"):
        text = f"CREATE TABLE sales (item TEXT, price DOUBLE) WITH (rows = 'constraints', auction = '{declaration}');"
        with pytest.raises(CatalogError, match="a table 'sales' that was declared otherwise"):
            Auctions(store, parse_catalog(text), "sales")
    assert Auctions(store, CATALOG, "sales").best_offer("clock") is None
