"""Any sequence of publications, bids, closes and deliveries, with crashes within transactions, says what plain Python says.

A crash is a connection that is dropped before a statement, before a commit, or after it and before the caller hears of it; the
process then starts again from the file. A lost answer is asked for again sooner or later, by the rule that sends bids again.
"""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from auction_model import CATALOG, IS_HIGHEST, PlainAuction, Wish, amount_of
from crash_point import ConnectionDropped, CrashPoint
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from sqlalchemy import Column, MetaData, Table, Text, insert, select

from tidings.exchange import Auctions, Inbox, Notice, Outbox, RefusedError, Store

effects = Table("effects", MetaData(), Column("id", Text))
prices = st.one_of(st.none(), st.integers(1, 6))
wishes = st.builds(Wish, st.sampled_from([None, "a", "b"]), prices, prices).filter(
    lambda wish: wish.where and (wish.lo is None or wish.hi is None or wish.lo <= wish.hi)
)
lots = st.tuples(st.sampled_from(sorted(IS_HIGHEST)), st.sampled_from("xy"))
crashes = st.one_of(
    st.none(), st.none(), st.tuples(st.sampled_from(["statement", "commit", "answer"]), st.integers(1, 9))
)
crashes_of_delivery = st.one_of(
    st.none(),
    st.tuples(st.just("statement"), st.integers(1, 25)),
    st.tuples(st.just("commit"), st.integers(1, 10)),
    st.tuples(st.just("send"), st.integers(1, 4)),
)
Crash = tuple[str, int] | None
LOST = "lost"


class Plain:
    """The expected state: auctions by (table, lot), and what every bid id stands for."""

    def __init__(self) -> None:
        self.auctions: dict[tuple[str, str], PlainAuction] = {}
        self.sent: dict[tuple[str, str], tuple[str, str, Wish]] = {}
        self.notices: list[str] = []

    def publish(self, table: str, lot: str, owner: str, wish: Wish) -> Any:
        held = self.auctions.setdefault((table, lot), PlainAuction(table, lot, owner, wish))
        return (lot, owner) if (held.owner, held.wish) == (owner, wish) else "ConflictError"

    def bid(self, table: str, id: str, lot: str, bidder: str, wish: Wish) -> Any:
        auction = self.auctions.get((table, lot))
        content = lot, bidder, wish
        if (table, id) not in self.sent:
            if auction is None:
                return "UnknownLotError"
            if auction.is_closed:
                return "ClosedError"
            amount = amount_of(auction.wish, wish, IS_HIGHEST[table])
            if isinstance(amount, str):
                return amount
            auction.bid(id, bidder, amount)
            self._told(auction)
            self.sent[table, id] = content
        elif self.sent[table, id] != content:
            return "ConflictError"
        assert auction is not None
        return next(
            ((bid.id, bid.bidder, bid.amount, bid.seq), version)
            for bid, version in zip(auction.bids, auction.versions, strict=True)
            if bid.id == id
        )

    def close(self, table: str, lot: str) -> Any:
        auction = self.auctions.get((table, lot))
        if auction is None:
            return "UnknownLotError"
        if not auction.is_closed:
            auction.close()
            self._told(auction)
        best = auction.ranked[0] if auction.bids else None
        return None if best is None else (best.id, best.bidder, best.amount, best.seq)

    def _told(self, auction: PlainAuction) -> None:
        known = set(self.notices)
        self.notices += [id for id, _, _ in auction.notices if id not in known]


class Machine(RuleBasedStateMachine):
    crash_count: ClassVar[int] = 0

    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tidings-auctions-"))
        self.plain = Plain()
        self.touched = ("sales", "x")
        self._open()
        self.store.write(effects.create)
        for table in IS_HIGHEST:
            self.publish((table, "x"), "ann", Wish("a", 1, 6), None)

    def _open(self) -> None:
        self.store = Store(f"sqlite:///{self.folder / 'exchange.db'}")
        self.tables = {table: Auctions(self.store, CATALOG, table) for table in IS_HIGHEST}
        self.inbox = Inbox(self.store, "all")
        self.crash_point = CrashPoint(self.store)

    def _attempt(self, call: Callable[[], Any], crash: Crash) -> tuple[bool, Any]:
        """(whether the call had its effect, its answer or LOST)."""
        if crash is not None:
            self.crash_point.set(*crash)
        try:
            answer = call()
        except ConnectionDropped:
            Machine.crash_count += 1
            self._restart()
            return False, LOST
        except RefusedError as error:
            answer = type(error).__name__
        if crash is not None and crash[0] == "answer":
            self._restart()
            return True, LOST
        self.crash_point.set("never")
        return True, answer

    def _restart(self) -> None:
        self.store.close()
        self._open()

    def _compare(self, expect: Callable[[Plain], Any], call: Callable[[], Any], crash: Crash) -> None:
        after = copy.deepcopy(self.plain)
        expected = expect(after)
        is_done, answer = self._attempt(call, crash)
        if is_done:
            self.plain = after
            assert answer in (LOST, expected)

    @rule(at=lots, owner=st.sampled_from(["ann", "bob"]), wish=wishes, crash=crashes)
    def publish(self, at: tuple[str, str], owner: str, wish: Wish, crash: Crash) -> None:
        self.touched = at
        table, lot = at

        def call() -> Any:
            opened = self.tables[table].publish(lot, wish.where, owner=owner)
            return opened.id, opened.owner

        self._compare(lambda plain: plain.publish(table, lot, owner, wish), call, crash)

    @rule(at=lots, id=st.integers(0, 30), bidder=st.sampled_from(["bob", "cem", "dot"]), wish=wishes, crash=crashes)
    def bid(self, at: tuple[str, str], id: int, bidder: str, wish: Wish, crash: Crash) -> None:
        self._bid(at[0], f"b{id}", at[1], bidder, wish, crash)

    @rule(
        at=lots, id=st.integers(31, 60), bidder=st.sampled_from(["bob", "cem"]), price=st.integers(1, 6), crash=crashes
    )
    def simple_bid(self, at: tuple[str, str], id: int, bidder: str, price: int, crash: Crash) -> None:
        self._bid(at[0], f"b{id}", at[1], bidder, Wish("a", price, price), crash)

    @rule(which=st.integers(0, 100), crash=crashes)
    def bid_again(self, which: int, crash: Crash) -> None:
        if self.plain.sent:
            (table, id), (lot, bidder, wish) = list(self.plain.sent.items())[which % len(self.plain.sent)]
            self._bid(table, id, lot, bidder, wish, crash)

    def _bid(self, table: str, id: str, lot: str, bidder: str, wish: Wish, crash: Crash) -> None:
        self.touched = table, lot
        self._compare(
            lambda plain: plain.bid(table, id, lot, bidder, wish),
            lambda: _receipt(self.tables[table].bid(id, lot, bidder, wish.where)),
            crash,
        )

    @rule(at=lots, crash=crashes)
    def close(self, at: tuple[str, str], crash: Crash) -> None:
        self.touched = at
        table, lot = at

        def call() -> Any:
            winner = self.tables[table].close(lot).winner
            return None if winner is None else (winner.id, winner.bidder, winner.amount, winner.seq)

        self._compare(lambda plain: plain.close(table, lot), call, crash)

    @rule(batch=st.integers(1, 5), crash=crashes_of_delivery)
    def deliver(self, batch: int, crash: Crash) -> None:
        self._attempt(lambda: Outbox(self.store).deliver(self._receive, batch=batch), crash)

    def _receive(self, notice: Notice) -> None:
        self.inbox.receive(notice, lambda connection, _: connection.execute(insert(effects).values(id=notice.id)))
        self.crash_point.reached("send")

    @rule()
    def restart(self) -> None:
        self._restart()

    @invariant()
    def the_auction_is_as_expected(self) -> None:
        table, lot = self.touched
        auction = self.plain.auctions.get(self.touched)
        if auction is None:
            return
        if auction.is_closed:
            outcome = self.tables[table].outcome(lot)
            assert outcome is not None and outcome.seq == len(auction.bids) + 1
            return
        ranked = [(bid.id, bid.bidder, bid.amount, bid.seq) for bid in self.tables[table].best_match_first(lot, 99)]
        assert ranked == [(bid.id, bid.bidder, bid.amount, bid.seq) for bid in auction.ranked]
        offer = self.tables[table].best_offer(lot)
        versions = [version for version in auction.versions if version is not None]
        assert (None if offer is None else (offer.bid.id, offer.version)) == (
            (ranked[0][0], max(versions)) if ranked else None
        )

    def teardown(self) -> None:
        Outbox(self.store).deliver(self._receive)
        told = self.store.read(lambda connection: list(connection.scalars(select(effects.c.id))))
        assert told == self.plain.notices
        self.store.close()
        shutil.rmtree(self.folder)


def _receipt(receipt: Any) -> Any:
    bid = receipt.bid
    return (bid.id, bid.bidder, bid.amount, bid.seq), receipt.version


def test_auctions_do_what_plain_ones_do() -> None:
    run_state_machine_as_test(Machine, settings=settings(max_examples=15, stateful_step_count=25))  # type: ignore[no-untyped-call]
    assert Machine.crash_count > 0
