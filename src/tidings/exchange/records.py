"""What the exchange hands to its users: lots, bids, best offers, outcomes and notices, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidings.exchange.amounts import Amount


@dataclass(frozen=True)
class Lot:
    """What an auction is about: a constraint that bids must meet. owner: who is told of offers and of the outcome."""

    id: str
    owner: str
    where: str


@dataclass(frozen=True)
class Bid:
    """An accepted bid. seq: its place in the commit order of its auction; of equal amounts the earlier bid is the better."""

    id: str
    lot: str
    bidder: str
    amount: Amount
    seq: int


@dataclass(frozen=True)
class Receipt:
    """The answer to a bid, the same however often the bid is sent.

    version: of the best offer that the bid became; None if another one was better.
    """

    bid: Bid
    version: int | None

    @property
    def is_best(self) -> bool:
        """Whether the bid was the best when it was accepted."""
        return self.version is not None


@dataclass(frozen=True)
class BestOffer:
    """The best bid so far. version: rises by 1 whenever another bid takes its place."""

    bid: Bid
    version: int


@dataclass(frozen=True)
class Outcome:
    """How an auction ended. seq: bids before it counted; winner: None if there were none."""

    lot: str
    owner: str
    seq: int
    winner: Bid | None


@dataclass(frozen=True)
class Notice:
    """What one participant is told. id: the same at every delivery, and of no other notice."""

    id: str
    destination: str
    body: Mapping[str, Any]
