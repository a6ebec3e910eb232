"""A call that is interrupted leaves nothing behind, at whichever of its statements that is; the next one does all of it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from auction_model import CATALOG
from crash_point import ConnectionDropped, CrashPoint
from sqlalchemy import select

from tidings.exchange import Auctions, Notice, Outbox, Store
from tidings.exchange.schema import metadata

Calls = dict[str, Callable[[Auctions], Any]]
CALLS: Calls = {
    "publish": lambda sales: sales.publish("watch", "price >= 1", owner="ann"),
    "best bid": lambda sales: sales.bid("b3", "clock", "cem", "price = 30"),
    "other bid": lambda sales: sales.bid("b3", "clock", "cem", "price = 5"),
    "close": lambda sales: sales.close("clock"),
}
MOMENTS = ("statement", "commit")


def prepared(url: str) -> tuple[Store, Auctions, CrashPoint]:
    store = Store(url)
    sales = Auctions(store, CATALOG, "sales")
    sales.publish("clock", "price >= 1", owner="ann")
    for id, price in (("b1", 10), ("b2", 20)):
        sales.bid(id, "clock", "bob", f"price = {price}")
    return store, sales, CrashPoint(store)


def contents(store: Store) -> dict[str, list[Any]]:
    return store.read(
        lambda connection: {
            table.name: sorted(map(str, connection.execute(select(table)))) for table in metadata.sorted_tables
        }
    )


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("name", CALLS)
def test_all_or_nothing(url: str, name: str, moment: str) -> None:
    store, sales, crash = prepared(url)
    with store:
        before = contents(store)
        for n in count(1):
            crash.set(moment, n)
            try:
                first = CALLS[name](sales)
                break
            except ConnectionDropped:
                crash.set("never")
                assert contents(store) == before
        crash.set("never")
        assert n > (3 if moment == "statement" else 1), "no moment was tried"
        after = contents(store)
        assert after != before
        assert CALLS[name](sales) == first and contents(store) == after


@pytest.mark.parametrize("moment", [*MOMENTS, "send"])
@pytest.mark.parametrize("batch", [1, 2, 10])
def test_deliveries_go_on_where_they_were(url: str, moment: str, batch: int) -> None:
    store, sales, crash = prepared(url)
    with store:
        sales.bid("b3", "clock", "cem", "price = 30")
        sales.close("clock")
        expected = ["best", "best", "best", "outbid", "won", "lost", "closed"]
        sent: list[Notice] = []

        def send(notice: Notice) -> None:
            sent.append(notice)
            crash.reached("send")

        crashes = 0
        for n in count(1):
            crash.set(moment, n)
            try:
                Outbox(store).deliver(send, batch=batch)
                break
            except ConnectionDropped:
                crashes += 1
        crash.set("never")
        first = {notice.id: notice.body["event"] for notice in sent}
        assert list(first.values()) == expected
        assert crashes > 0 and Outbox(store).pending() == 0
