"""Processes that bid, close and deliver, and are killed meanwhile. Each can be started again, and goes on where it was.

What a process was answered it appends to its journal, a line each: these answers are acknowledged. It begins with the first
piece of work that its journal has no answer to, which may have been done already.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auction_model import CATALOG, IS_HIGHEST, Wish
from sqlalchemy import Column, Connection, Integer, MetaData, Table, Text, event, insert

from tidings.exchange import Auctions, Inbox, Notice, Outbox, RefusedError, Store

effects = Table(
    "effects",
    MetaData(),
    Column("position", Integer, primary_key=True),
    Column("consumer", Text),
    Column("id", Text),
    Column("body", Text),
)
"""What consumers did about notices."""


@dataclass(frozen=True)
class Piece:
    """A piece of work: a bid, or with no wish a close."""

    table: str
    lot: str
    id: str = ""
    bidder: str = ""
    wish: Wish | None = None


@dataclass(frozen=True)
class Plan:
    """When a process dies: at the nth statement, before the nth commit, or after the nth time that something was done.

    moment "never": it lives on; "parent": it is killed from outside, n milliseconds after its start.
    """

    moment: str
    n: int = 0


class KillPoint:
    """Carries a plan out."""

    def __init__(self, plan: Plan, *stores: Store) -> None:
        self._moment, self._left = plan.moment, plan.n
        for store in stores:
            event.listen(store.engine, "before_cursor_execute", lambda *_: self.reached("statement"))
            event.listen(store.engine, "commit", lambda _: self.reached("commit"))

    def reached(self, moment: str) -> None:
        if moment == self._moment:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def append(path: Path, entry: Any) -> None:
    """Appends a line in one piece."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, json.dumps(entry).encode() + b"\n")
    os.close(file)


def entries(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def work(
    url: str, owners: dict[tuple[str, str], tuple[str, Wish]], pieces: list[Piece], journal: Path, plan: Plan
) -> None:
    """Publishes all lots, as every worker does, then does the pieces of work that are left."""
    with Store(url) as store:
        kill = KillPoint(plan, store)
        tables = {table: Auctions(store, CATALOG, table) for table in IS_HIGHEST}
        for (table, lot), (owner, wish) in owners.items():
            tables[table].publish(lot, wish.where, owner=owner)
        for piece in pieces[len(entries(journal)) :]:
            answer = _answer(tables[piece.table], piece)
            kill.reached("done")
            append(journal, answer)


def _answer(auctions: Auctions, piece: Piece) -> list[Any]:
    if piece.wish is None:
        outcome = auctions.close(piece.lot)
        return ["closed", outcome.winner and outcome.winner.id, outcome.seq]
    try:
        receipt = auctions.bid(piece.id, piece.lot, piece.bidder, piece.wish.where)
    except RefusedError as error:
        return ["refused", type(error).__name__]
    return ["accepted", receipt.bid.amount, receipt.bid.seq, receipt.version]


def deliver(url: str, consumers_url: str, sent: Path, over: Path, plan: Plan) -> None:
    """Delivers to consumers, who have a database of their own, until no more is to come. sent: a line for every attempt."""
    with Store(url) as store, Store(consumers_url) as consumers:
        consumers.write(lambda connection: effects.create(connection, checkfirst=True))
        kill = KillPoint(plan, store, consumers)

        def act(connection: Connection, notice: Notice) -> None:
            row = {"consumer": notice.destination, "id": notice.id, "body": json.dumps(notice.body)}
            connection.execute(insert(effects).values(**row))

        def send(notice: Notice) -> None:
            append(sent, notice.id)
            Inbox(consumers, notice.destination).receive(notice, act)
            kill.reached("done")

        pause = threading.Event()
        is_over = False
        while not is_over:
            is_over = over.exists()
            Outbox(store).deliver(send)
            pause.wait(0.005)
