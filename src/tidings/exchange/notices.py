"""Who is told what: the notices of an accepted bid and of a close, as values that go to the outbox."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from tidings.exchange.amounts import json_of
from tidings.exchange.records import BestOffer, Bid, Notice, Outcome


def of_best_offer(table: str, owner: str, offer: BestOffer, previous: Bid | None) -> Iterator[Notice]:
    """Of a bid that became the best: `best` to the lot's owner, `outbid` to who had the best bid before.

    Whoever raises their own bid is not outbid.
    """
    bid = offer.bid
    now = {**_described(bid), "version": offer.version}
    yield _notice(table, bid.lot, bid.seq, "best", owner, now)
    if previous is not None and previous.bidder != bid.bidder:
        by = {"amount": json_of(bid.amount), "seq": bid.seq, "version": offer.version}
        yield _notice(table, bid.lot, bid.seq, "outbid", previous.bidder, {"bid": previous.id, **by})


def of_outcome(table: str, outcome: Outcome, ranked: Sequence[Bid]) -> Iterator[Notice]:
    """Of a close: `won` to the winner, `lost` to everyone else who bid, once, about their best bid, `closed` to the owner.

    ranked: all bids, best first.
    """
    lot, seq, winner = outcome.lot, outcome.seq, outcome.winner
    told = set()
    for bid in ranked:
        if bid.bidder not in told:
            told.add(bid.bidder)
            event = "won" if bid == winner else "lost"
            yield _notice(table, lot, seq, event, bid.bidder, {"bid": bid.id, "amount": json_of(bid.amount)})
    yield _notice(table, lot, seq, "closed", outcome.owner, {"winner": None if winner is None else _described(winner)})


def _described(bid: Bid) -> dict[str, Any]:
    return {"bid": bid.id, "bidder": bid.bidder, "amount": json_of(bid.amount), "seq": bid.seq}


def _notice(table: str, lot: str, seq: int, event: str, destination: str, more: dict[str, Any]) -> Notice:
    # Quoted, no part has a slash: different notices have different ids.
    id = "/".join(quote(part, safe="") for part in (table, lot, str(seq), event, destination))
    return Notice(id, destination, {"event": event, "table": table, "lot": lot, **more})
