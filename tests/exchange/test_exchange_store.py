"""Transactions of many at once: they wait for each other, collide and go on, or say what is in their way."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError

from tidings.exchange import Auctions, Bid, ConflictError, Outbox, RefusedError, Store, StoreError, schema
from tidings.model.errors import TidingsError, UsageError
from tidings.sql import parse_catalog

CATALOG = parse_catalog("CREATE TABLE lots (price INT) WITH (rows = 'constraints', auction = 'price DESC');")
THREADS = 6


def at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    """What each of the calls gives when all begin at one moment; errors of ours as values."""
    barrier = Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        barrier.wait()
        try:
            return call()
        except TidingsError as error:
            return error

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(run, calls))


def test_threads_that_open_a_store_and_publish_at_once(url: str) -> None:
    def publish() -> None:
        with Store(url) as own:
            Auctions(own, CATALOG, "lots").publish("x", "price >= 1", owner="ann")

    assert at_once([publish] * THREADS) == [None] * THREADS


def test_threads_that_share_a_store(store: Store) -> None:
    auctions = Auctions(store, CATALOG, "lots")
    auctions.publish("x", "price >= 1", owner="ann")

    def several(bidder: int) -> list[Bid]:
        return [
            auctions.bid(f"{bidder}-{i}", "x", str(bidder), f"price = {1 + (7 * i + bidder) % 10}").bid
            for i in range(15)
        ]

    answered = [
        bid for bids in at_once([lambda bidder=bidder: several(bidder) for bidder in range(THREADS)]) for bid in bids
    ]
    ranked = sorted(answered, key=lambda bid: (-bid.amount, bid.seq))  # type: ignore[operator]
    assert auctions.best_match_first("x", 1000) == ranked
    assert sorted(bid.seq for bid in answered) == list(range(1, 15 * THREADS + 1))
    assert auctions.close("x").winner == ranked[0]


def test_one_bid_sent_by_all_at_once_counts_once(store: Store) -> None:
    auctions = Auctions(store, CATALOG, "lots")
    auctions.publish("x", "price >= 1", owner="ann")
    found = at_once([lambda: auctions.bid("b", "x", "bob", "price = 5")] * THREADS)
    assert len(set(found)) == 1
    assert len(auctions.best_match_first("x", 9)) == 1


def test_one_id_on_several_lots_at_once_counts_on_one(store: Store) -> None:
    auctions = Auctions(store, CATALOG, "lots")
    for number in range(THREADS):
        auctions.publish(f"x{number}", "price >= 1", owner="ann")
    calls = [lambda number=number: auctions.bid("b", f"x{number}", "bob", "price = 5") for number in range(THREADS)]
    found = at_once(calls)
    assert sum(isinstance(answer, ConflictError) for answer in found) == THREADS - 1
    assert sum(len(auctions.best_match_first(f"x{number}", 9)) for number in range(THREADS)) == 1


def test_closes_and_bids_at_once(store: Store) -> None:
    auctions = Auctions(store, CATALOG, "lots")
    for number in range(5):
        lot = f"x{number}"
        auctions.publish(lot, "price >= 1", owner="ann")
        bids = [lambda i=i, lot=lot: auctions.bid(f"{lot}-{i}", lot, "bob", f"price = {i + 1}") for i in range(THREADS)]
        found = at_once([*bids, lambda lot=lot: auctions.close(lot), lambda lot=lot: auctions.close(lot)])
        assert found[-1] == found[-2]
        accepted = [answer.bid for answer in found[:-2] if not isinstance(answer, RefusedError)]
        assert all(bid.seq < found[-1].seq for bid in accepted) and found[-1].seq == len(accepted) + 1
        assert found[-1].winner == max(accepted, key=lambda bid: bid.amount, default=None)
    count = store.read(lambda connection: len(connection.execute(select(schema.receipts)).all()))
    assert count <= 5 * THREADS and Outbox(store).pending() >= 5


def test_a_lock_that_is_not_given_back(sqlite_url: str, tmp_path: Path) -> None:
    with Store(sqlite_url, patience_s=0.1) as store:
        holder = sqlite3.connect(tmp_path / "exchange.db", isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(
            StoreError, match=r"locked for 0\.1 s; end the transaction that holds it, or raise patience_s"
        ):
            Auctions(store, CATALOG, "lots")
        assert Outbox(store).pending() == 0, "readers wait for nobody"
        holder.execute("ROLLBACK")
        holder.close()
        Auctions(store, CATALOG, "lots")


def test_a_writer_has_the_lock_before_it_reads(sqlite_url: str, tmp_path: Path) -> None:
    with Store(sqlite_url) as store:
        other = sqlite3.connect(tmp_path / "exchange.db", isolation_level=None, timeout=0)

        def try_to_lock(_: Any) -> str:
            with pytest.raises(sqlite3.OperationalError) as caught:
                other.execute("BEGIN IMMEDIATE")
            return str(caught.value)

        assert store.write(try_to_lock) == "database is locked"
        other.execute("BEGIN IMMEDIATE")
        assert store.read(lambda connection: connection.execute(select(schema.outbox)).all()) == []
        other.close()


def test_a_row_lock_that_is_not_given_back(postgres_url: str) -> None:
    with Store(postgres_url, patience_s=0.1) as store, Store(postgres_url) as other:
        auctions = Auctions(store, CATALOG, "lots")
        for lot in ("x", "y"):
            auctions.publish(lot, "price >= 1", owner="ann")

        def hold(connection: Any) -> None:
            connection.execute(select(schema.auctions).where(schema.auctions.c.lot == "x").with_for_update())
            with pytest.raises(StoreError, match="locked for"):
                auctions.bid("b", "x", "bob", "price = 1")
            assert auctions.bid("c", "y", "bob", "price = 1").is_best, "other auctions go on"

        other.write(hold)
        assert auctions.bid("b", "x", "bob", "price = 1").is_best


def test_what_others_write_under_the_same_key_is_tried_again_but_not_for_ever(store: Store) -> None:
    row = {"table_name": "t", "declaration": "d"}
    calls = []

    def twice(connection: Any) -> None:
        calls.append(1)
        connection.execute(insert(schema.declarations), [row, row])

    with pytest.raises(IntegrityError):
        store.write(twice)
    assert 1 < len(calls) < 10


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "no address", "mysql+nothing://x/y", "access://x"])
def test_addresses_that_are_refused(url: str) -> None:
    with pytest.raises(UsageError, match="sqlite:///FILE or postgresql://"):
        Store(url)


def test_databases_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("this is no database, and longer than the header of one would be" * 20)
    for url, message in (
        (f"sqlite:///{tmp_path}/no/such/folder.db", "unable to open"),
        (f"sqlite:///{tmp_path}/text", "not a database"),
        (
            f"postgresql://nobody@/nothing?host={tmp_path}",
            "cannot be used: .*; when it can, call again with the same ids",
        ),
    ):
        with pytest.raises(StoreError, match=message):
            Store(url)


def test_files_are_in_wal_mode_and_synced(sqlite_url: str) -> None:
    with Store(sqlite_url) as store, store.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2


def test_the_missing_package_is_named() -> None:
    code = "import sys; sys.modules['sqlalchemy'] = None\nfrom tidings.exchange import Auctions"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "auctions need the package SQLAlchemy: pip install '.[exchange]' in the clone" in done.stderr
