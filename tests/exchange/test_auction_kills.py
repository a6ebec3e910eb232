"""Processes that bid, close and deliver on one store, killed by SIGKILL and started again, do together what one would do.

Each process dies several times: at a statement within a transaction, before a commit, after a commit and before it has noted
the answer, or whenever the signal comes from outside. Afterwards, whatever died when: every auction has one winner, the best
accepted bid by (amount, commit order); no bid that came after the close was accepted; every acknowledged bid counts as it was
acknowledged; every notice had its effect exactly once.
"""

from __future__ import annotations

import multiprocessing
import random
import time
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import pytest
from auction_model import CATALOG, IS_HIGHEST, PlainAuction, Wish, amount_of
from auction_workers import Piece, Plan, deliver, effects, entries, work
from sqlalchemy import Row, select

from tidings.exchange import Auctions, Outbox, Store
from tidings.exchange.schema import best_offers, bids, lots, receipts

LOTS = {
    ("sales", "clock"): ("ann", Wish("clock", 3, None)),
    ("sales", "watch"): ("ben", Wish(None, 1, 9)),
    ("tenders", "roof"): ("ann", Wish("roof", None, 9)),
    ("tenders", "clock"): ("ben", Wish(None, 2, 9)),
}
SECONDS_MAX = 120
"""Beyond all measure: something hangs."""
processes = multiprocessing.get_context("forkserver")
# Forked with everything loaded, a process starts in some milliseconds.
processes.set_forkserver_preload(["tidings.exchange", "tidings.sql.catalog.ddl", "tidings.sql.template", "psycopg"])


@dataclass
class Post:
    """A task that is begun again, by a new process, until it is done."""

    target: Any
    arguments: tuple[Any, ...]
    plans: list[Plan]
    process: Any = None
    kill_at: float = float("inf")
    deaths: list[str] = field(default_factory=list)

    def start(self) -> None:
        plan = self.plans[0] if self.plans else Plan("never")
        self.process = processes.Process(target=self.target, args=(*self.arguments, plan))
        self.process.start()
        self.kill_at = time.monotonic() + plan.n / 1000 if plan.moment == "parent" else float("inf")

    def has_ended(self) -> bool:
        """Whether the task is done; begins it again if its process was killed."""
        self.process.join()
        if self.process.exitcode == 0:
            return True
        assert self.process.exitcode == -9, f"{self.target.__name__} failed with exit code {self.process.exitcode}"
        self.deaths.append(self.plans.pop(0).moment)
        self.process.close()
        self.start()
        return False


def attend(posts: list[Post], is_enough: Any) -> None:
    """Kills and begins again, until enough is done."""
    deadline = time.monotonic() + SECONDS_MAX
    while not is_enough():
        now = time.monotonic()
        assert now < deadline, "the processes do not come to an end"
        running = {post.process.sentinel: post for post in posts}
        for sentinel in wait(running, max(0.0, min(deadline, *(post.kill_at for post in posts)) - now)):
            if running[sentinel].has_ended():
                posts.remove(running[sentinel])
        for post in posts:
            if post.kill_at <= time.monotonic():
                post.process.kill()
                post.kill_at = float("inf")


def make_work(rng: random.Random, workers: int, count: int) -> list[list[Piece]]:
    """Bids for all lots, some of them sent by every worker; each lot is closed by several workers, and bid for afterwards."""

    def bid(id: str) -> Piece:
        table, lot = rng.choice(sorted(LOTS))
        item = rng.choice([lot, lot, lot, "other"])
        price = rng.randint(1, 12)
        wish = rng.choice(
            [Wish(item, price, price), Wish(item, price, price + 2), Wish(item, None, price), Wish(item, price, None)]
        )
        return Piece(table, lot, id, f"p{rng.randrange(5)}", wish)

    shared = [bid(f"shared-{number}") for number in range(6)]
    found = []
    for worker in range(workers):
        pieces = shared + [bid(f"{worker}-{number}") for number in range(count)]
        rng.shuffle(pieces)
        for table, lot in sorted(LOTS):
            pieces.insert(rng.randrange(len(pieces) * 2 // 3, len(pieces)), Piece(table, lot))
        found.append(pieces)
    return found


def make_plans(rng: random.Random, count: int) -> list[Plan]:
    """Deaths of all kinds, at various moments."""
    spans = {"statement": (1, 60), "commit": (1, 9), "done": (1, 9), "parent": (0, 150)}
    moments = [moment for _ in range(count) for moment in spans]
    rng.shuffle(moments)
    return [Plan(moment, rng.randint(*spans[moment])) for moment in moments]


# Everyone's first death, so that none of the kinds is left to chance.
FIRST = (Plan("parent", 30), Plan("statement", 20), Plan("commit", 5))


def run_round(url: str, folder: Path, seed: int, *, count: int, kills: int) -> None:
    rng = random.Random(seed)
    pieces = make_work(rng, len(FIRST), count)
    journals = [folder / f"journal-{number}" for number in range(len(FIRST))]
    sent, over, consumers_url = folder / "sent", folder / "over", f"sqlite:///{folder / 'consumers.db'}"
    bidders = [
        Post(work, (url, LOTS, own, journal), [first, *make_plans(rng, kills)])
        for own, journal, first in zip(pieces, journals, FIRST, strict=True)
    ]
    delivery = Post(deliver, (url, consumers_url, sent, over), [Plan("done", 3), *make_plans(rng, kills)])
    posts = [*bidders, delivery]
    everyone = list(posts)
    try:
        for post in posts:
            post.start()
        attend(posts, lambda: posts == [delivery])
        over.touch()
        attend(posts, lambda: not posts)
    finally:
        for post in posts:
            post.process.kill()
            post.process.join()
    assert {moment for post in everyone for moment in post.deaths} == {"statement", "commit", "done", "parent"}
    with Store(url) as store, Store(consumers_url) as consumers:
        auctions = check_auctions(store, pieces, [entries(journal) for journal in journals])
        check_notices(store, consumers, entries(sent), auctions)


def check_auctions(store: Store, pieces: list[list[Piece]], answers: list[list[Any]]) -> list[PlainAuction]:
    """Compares outcomes and answers with the accepted bids, taken one after the other. Returns these auctions."""
    accepted = {
        (row.table_name, row.id): row
        for row in store.read(lambda connection: connection.execute(select(receipts)).all())
    }
    sent = {(piece.table, piece.id): piece for own in pieces for piece in own if piece.wish is not None}
    assert accepted.keys() <= sent.keys()
    auctions, closed_seq = {}, {}
    for (table, lot), (owner, wish) in LOTS.items():
        auction = auctions[table, lot] = PlainAuction(table, lot, owner, wish)
        rows = sorted(
            (row for row in accepted.values() if (row.table_name, row.lot) == (table, lot)), key=lambda row: row.seq
        )
        for seq, row in enumerate(rows, 1):
            piece = sent[table, row.id]
            assert piece.wish is not None
            amount = amount_of(wish, piece.wish, IS_HIGHEST[table])
            assert not isinstance(amount, str), "a bid was accepted that does not match"
            auction.bid(piece.id, piece.bidder, amount)
            assert (row.seq, row.bidder, row.version) == (seq, piece.bidder, auction.versions[-1])
        auction.close()
        outcome = Auctions(store, CATALOG, table).outcome(lot)
        assert outcome is not None and outcome.seq == len(rows) + 1, "a bid was accepted after the close"
        winner = outcome.winner and (
            outcome.winner.id,
            outcome.winner.bidder,
            outcome.winner.amount,
            outcome.winner.seq,
        )
        best = auction.ranked[0] if rows else None
        assert winner == (best and (best.id, best.bidder, best.amount, best.seq))
        closed_seq[table, lot] = outcome.seq
    for table in (lots, bids, best_offers):
        assert store.read(lambda connection, table=table: connection.execute(select(table)).all()) == []
    for own, told in zip(pieces, answers, strict=True):
        check_answers(own, told, accepted, auctions)
    return list(auctions.values())


def check_answers(
    pieces: list[Piece],
    answers: list[Any],
    accepted: dict[tuple[str, str], Row[Any]],
    auctions: dict[tuple[str, str], PlainAuction],
) -> None:
    """Compares what one worker was told, in its order, with what counts."""
    closed = set()
    for piece, answer in zip(pieces, answers, strict=True):
        auction = auctions[piece.table, piece.lot]
        row = accepted.get((piece.table, piece.id))
        if piece.wish is None:
            closed.add((piece.table, piece.lot))
            best = auction.ranked[0].id if auction.bids else None
            assert answer == ["closed", best, len(auction.bids) + 1]
        elif answer[0] == "accepted":
            assert row is not None, "an acknowledged bid was lost"
            bid, version = auction.bids[row.seq - 1], auction.versions[row.seq - 1]
            assert answer == ["accepted", bid.amount, row.seq, version]
            assert piece.id.startswith("shared") or (piece.table, piece.lot) not in closed, "accepted after the close"
        else:
            amount = amount_of(auction.wish, piece.wish, IS_HIGHEST[piece.table])
            assert row is None and answer[1] in (amount, "ClosedError")
    assert len(closed) == len(auctions)


def check_notices(store: Store, consumers: Store, sent: list[str], auctions: list[PlainAuction]) -> None:
    """Every notice had its effect once, those of an auction in order; and some were sent more than once."""
    query = select(effects).order_by(effects.c.position)
    acted = consumers.read(lambda connection: connection.execute(query).all())
    expected = {(destination, id) for auction in auctions for id, destination, _ in auction.notices}
    assert Outbox(store).pending() == 0
    assert len(acted) == len(expected) and {(row.consumer, row.id) for row in acted} == expected
    for auction in auctions:
        ids = [id for id, _, _ in auction.notices]
        assert [row.id for row in acted if row.id in set(ids)] == ids
    assert set(sent) == {row.id for row in acted} and len(sent) > len(acted)


@pytest.mark.parametrize("seed", range(3))
def test_processes_that_are_killed_on_sqlite(sqlite_url: str, tmp_path: Path, seed: int) -> None:
    run_round(sqlite_url, tmp_path, seed, count=40, kills=2)
    assert (tmp_path / "exchange.db").exists()


def test_processes_that_are_killed_on_postgresql(postgres_url: str, tmp_path: Path) -> None:
    run_round(postgres_url, tmp_path, 100, count=25, kills=1)
    assert not (tmp_path / "exchange.db").exists()
