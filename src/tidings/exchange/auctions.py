"""Auctions: lots are published, bids accepted, offers ranked, winners chosen, each in one transaction with what is told of it.

Every transaction begins by locking the auction's row, so that those of one auction follow one another, and the number it takes
there, its seq, is its place in the commit order. What is told goes to the outbox in the same transaction: a crash leaves all of
a bid or a close behind, or nothing. Whoever does not know which calls again with the same id, and gets the first answer.

A bid is matched when it comes. As neither lot nor bid can change, the final match of a close is the ranking of what the bids
amounted to then.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Row, Select, delete, insert, select, update

from tidings.exchange import notices, outbox
from tidings.exchange.errors import ClosedError, ConflictError, UnknownLotError
from tidings.exchange.ids import checked_id
from tidings.exchange.records import BestOffer, Bid, Lot, Outcome, Receipt
from tidings.exchange.rules import AuctionRules
from tidings.exchange.schema import auctions, best_offers, bids, declarations, lots, receipts
from tidings.exchange.store import Store
from tidings.families.offers.constraint import Box
from tidings.model.catalog import Catalog
from tidings.model.errors import CatalogError, UsageError


class Auctions:
    """The auctions of one table. Any number of processes and threads may have one on the same store."""

    def __init__(self, store: Store, catalog: Catalog, table: str) -> None:
        self._store = store
        self._rules = AuctionRules(catalog, table)
        self._table = checked_id("table", table)
        if store.read(self._declared) is None:
            store.write(self._declare)

    def publish(self, id: str, where: str, *, owner: str) -> Lot:
        """Opens an auction. The lot is a constraint that bids must meet.

        The owner is told of every best offer, and of the outcome. Publishing the same again changes nothing. ConflictError if
        the id was used for another lot.
        """
        lot = Lot(checked_id("lot", id), checked_id("owner", owner), where)
        self._rules.boxes(where)
        self._store.write(lambda connection: self._publish(connection, lot))
        return lot

    def bid(self, id: str, lot: str, bidder: str, where: str) -> Receipt:
        """Bids for a lot. The bid is a constraint, and its amount the best value of the declared attribute that both allow.

        A bid that becomes the best is told to the lot's owner, and to the bidder it beats. Refused, with nothing written, by
        NoMatchError, NoAmountError, UnknownLotError, ClosedError, and ConflictError if the id was used for another bid. A bid
        that was accepted is answered with the same receipt whenever it is sent again, even after the close.
        """
        for what, text in (("bid", id), ("lot", lot), ("bidder", bidder)):
            checked_id(what, text)
        boxes = self._rules.boxes(where)
        return self._store.write(lambda connection: self._bid(connection, id, lot, bidder, where, boxes))

    def close(self, lot: str) -> Outcome:
        """Closes an auction: the best of all bids so far wins, all who bid and the owner are told, and later bids are refused.

        Lot, bids and best offer are deleted; outcome and receipts stay. Closing again gives the same outcome.
        """
        checked_id("lot", lot)
        return self._store.write(lambda connection: self._close(connection, lot))

    def best_offer(self, lot: str) -> BestOffer | None:
        """The best bid of an open auction; None if there is no bid yet."""

        def found(connection: Connection) -> BestOffer | None:
            self._open(connection, lot)
            return self._best_offer(connection, lot)

        return self._store.read(found)

    def best_match_first(self, lot: str, n: int) -> list[Bid]:
        """The n best bids of an open auction, best first."""

        def found(connection: Connection) -> list[Bid]:
            self._open(connection, lot)
            return [self._bid_of(row) for row in connection.execute(self._ranked(lot).limit(max(0, n)))]

        return self._store.read(found)

    def outcome(self, lot: str) -> Outcome | None:
        """How an auction ended; None while it is open."""
        return self._store.read(lambda connection: self._outcome(self._known(connection, lot)))

    def forget(self, lot: str) -> None:
        """Gives up the receipts of a closed auction's bids: who sends one of them again is told that it is too late."""

        def done(connection: Connection) -> None:
            if self._known(connection, lot).closed_seq is None:
                raise UsageError(f"auction {lot!r} is open: its receipts are needed until some time after the close")
            connection.execute(delete(receipts).where(*self._of(receipts, lot)))

        self._store.write(done)

    def _declared(self, connection: Connection) -> str | None:
        """How the table was declared when the store first had auctions of it. CatalogError if that was otherwise.

        What bids amounted to under one declaration means nothing under another.
        """
        then = connection.scalar(select(declarations.c.declaration).where(declarations.c.table_name == self._table))
        if then not in (None, self._rules.declaration):
            raise CatalogError(
                f"the store has auctions of a table {self._table!r} that was declared otherwise: {then}, now"
                f" {self._rules.declaration}; give the new table another name or another store"
            )
        return then

    def _declare(self, connection: Connection) -> None:
        if self._declared(connection) is None:
            row = {"table_name": self._table, "declaration": self._rules.declaration}
            connection.execute(insert(declarations).values(**row))

    def _publish(self, connection: Connection, lot: Lot) -> None:
        digest = _digest(lot.owner, lot.where)
        auction = self._locked(connection, lot.id)
        if auction is None:
            key = {"table_name": self._table, "lot": lot.id}
            connection.execute(insert(auctions).values(**key, owner=lot.owner, digest=digest, last_seq=0))
            connection.execute(insert(lots).values(**key, condition=lot.where))
        elif auction.digest != digest:
            raise ConflictError(
                f"lot {lot.id!r} was published with another owner or constraint; give this one its own id"
            )

    def _bid(self, connection: Connection, id: str, lot: str, bidder: str, where: str, boxes: Sequence[Box]) -> Receipt:
        auction = self._locked(connection, lot)
        digest = _digest(lot, bidder, where)
        query = select(receipts).where(receipts.c.table_name == self._table, receipts.c.id == id)
        earlier = connection.execute(query).one_or_none()
        if earlier is not None:
            if earlier.digest != digest:
                problem = f"bid {id!r} was made with another lot, bidder or constraint"
                raise ConflictError(f"{problem}; give this one its own id")
            return Receipt(self._bid_of(earlier), earlier.version)
        if auction is None:
            raise _unknown(lot)
        if auction.closed_seq is not None:
            raise ClosedError(f"auction {lot!r} is closed: bid {id!r} came too late")
        condition = connection.execute(select(lots.c.condition).where(*self._of(lots, lot))).scalar_one()
        amount = self._rules.amount(self._rules.lot_boxes(condition), boxes)
        seq = auction.last_seq + 1
        row = {"table_name": self._table, "lot": lot, "id": id, "bidder": bidder, "amount": amount, "seq": seq}
        version = self._improve(connection, auction.owner, row)
        connection.execute(insert(bids).values(**row, condition=where))
        connection.execute(insert(receipts).values(**row, digest=digest, version=version))
        connection.execute(update(auctions).where(*self._of(auctions, lot)).values(last_seq=seq))
        return Receipt(Bid(id, lot, bidder, self._rules.value(amount), seq), version)

    def _improve(self, connection: Connection, owner: str, row: dict[str, Any]) -> int | None:
        """Makes a new bid the best offer, if it is, and tells those concerned. The version of the offer; None if it is not."""
        lot, amount = row["lot"], row["amount"]
        held = connection.execute(select(best_offers).where(*self._of(best_offers, lot))).one_or_none()
        if held is not None and not self._rules.is_better(amount, held.amount):
            return None
        version = 1 if held is None else held.version + 1
        offer = {**row, "version": version}
        if held is None:
            connection.execute(insert(best_offers).values(**offer))
        else:
            connection.execute(update(best_offers).where(*self._of(best_offers, lot)).values(**offer))
        best = BestOffer(Bid(row["id"], lot, row["bidder"], self._rules.value(amount), row["seq"]), version)
        previous = None if held is None else self._bid_of(held)
        outbox.add(connection, notices.of_best_offer(self._table, owner, best, previous))
        return version

    def _close(self, connection: Connection, lot: str) -> Outcome:
        auction = self._locked(connection, lot)
        if auction is None:
            raise _unknown(lot)
        earlier = self._outcome(auction)
        if earlier is not None:
            return earlier
        rows = connection.execute(self._ranked(lot)).all()
        ranked = [self._bid_of(row) for row in rows]
        seq = auction.last_seq + 1
        outcome = Outcome(lot, auction.owner, seq, ranked[0] if ranked else None)
        written: dict[str, Any] = {"last_seq": seq, "closed_seq": seq}
        for first in islice(rows, 1):
            written |= {f"winner_{name}": getattr(first, name) for name in ("id", "bidder", "amount", "seq")}
        connection.execute(update(auctions).where(*self._of(auctions, lot)).values(**written))
        for table in (lots, bids, best_offers):
            connection.execute(delete(table).where(*self._of(table, lot)))
        outbox.add(connection, notices.of_outcome(self._table, outcome, ranked))
        return outcome

    def _locked(self, connection: Connection, lot: str) -> Row[Any] | None:
        """The auction's row, which no other transaction changes until this one ends."""
        query = select(auctions).where(*self._of(auctions, lot)).with_for_update()
        return connection.execute(query).one_or_none()

    def _known(self, connection: Connection, lot: str) -> Row[Any]:
        checked_id("lot", lot)
        found = connection.execute(select(auctions).where(*self._of(auctions, lot))).one_or_none()
        if found is None:
            raise _unknown(lot)
        return found

    def _open(self, connection: Connection, lot: str) -> None:
        if self._known(connection, lot).closed_seq is not None:
            raise ClosedError(f"auction {lot!r} is closed and its bids are gone; ask for its outcome")

    def _best_offer(self, connection: Connection, lot: str) -> BestOffer | None:
        held = connection.execute(select(best_offers).where(*self._of(best_offers, lot))).one_or_none()
        return None if held is None else BestOffer(self._bid_of(held), held.version)

    def _ranked(self, lot: str) -> Select[Any]:
        amount = bids.c.amount.desc() if self._rules.is_highest else bids.c.amount
        return select(bids).where(*self._of(bids, lot)).order_by(amount, bids.c.seq)

    def _outcome(self, row: Row[Any]) -> Outcome | None:
        if row.closed_seq is None:
            return None
        winner = None
        if row.winner_id is not None:
            amount = self._rules.value(row.winner_amount)
            winner = Bid(row.winner_id, row.lot, row.winner_bidder, amount, row.winner_seq)
        return Outcome(row.lot, row.owner, row.closed_seq, winner)

    def _bid_of(self, row: Row[Any]) -> Bid:
        return Bid(row.id, row.lot, row.bidder, self._rules.value(row.amount), row.seq)

    def _of(self, table: Any, lot: str) -> tuple[Any, Any]:
        """The condition that a row of the store is about a lot."""
        return table.c.table_name == self._table, table.c.lot == lot


def _unknown(lot: str) -> UnknownLotError:
    return UnknownLotError(f"there is no auction {lot!r}; publish the lot first")


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
