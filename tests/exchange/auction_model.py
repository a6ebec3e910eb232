"""Auctions in memory, in plain Python: what the exchange should answer and tell, for tests to compare with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from tidings.sql import parse_catalog

CATALOG = parse_catalog("""
CREATE TABLE sales (item TEXT, price DOUBLE) WITH (rows = 'constraints', auction = 'price DESC');
CREATE TABLE tenders (item TEXT, price INT) WITH (rows = 'constraints', auction = 'price ASC');
""")
IS_HIGHEST = {"sales": True, "tenders": False}


@dataclass(frozen=True)
class Wish:
    """A constraint of a lot or a bid: an item, or any of them; the least and the greatest price, if there are such."""

    item: str | None
    lo: int | None
    hi: int | None

    @property
    def where(self) -> str:
        item = [f"item = '{self.item}'"] if self.item is not None else []
        lo = [f"price >= {self.lo}"] if self.lo is not None else []
        hi = [f"price <= {self.hi}"] if self.hi is not None else []
        return " AND ".join(item + lo + hi)

    @property
    def has_price(self) -> bool:
        return self.lo is not None or self.hi is not None


def amount_of(lot: Wish, bid: Wish, is_highest: bool) -> int | str:
    """What the bid amounts to, or the name of the error it is refused with."""
    lo = max((wish.lo for wish in (lot, bid) if wish.lo is not None), default=None)
    hi = min((wish.hi for wish in (lot, bid) if wish.hi is not None), default=None)
    is_apart = lo is not None and hi is not None and lo > hi
    if (lot.item is not None and lot.item != bid.item) or (lot.has_price and not bid.has_price) or is_apart:
        return "NoMatchError"
    best = hi if is_highest else lo
    return "NoAmountError" if best is None else best


@dataclass(frozen=True)
class PlainBid:
    id: str
    bidder: str
    amount: float
    seq: int


@dataclass
class PlainAuction:
    """One auction. notices: (id, destination, body) in the order in which they are told."""

    table: str
    lot: str
    owner: str
    wish: Wish
    bids: list[PlainBid] = field(default_factory=list)
    versions: list[int | None] = field(default_factory=list)
    notices: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    is_closed: bool = False

    @property
    def ranked(self) -> list[PlainBid]:
        sign = -1 if IS_HIGHEST[self.table] else 1
        return sorted(self.bids, key=lambda bid: (sign * bid.amount, bid.seq))

    def bid(self, id: str, bidder: str, amount: float) -> None:
        """Accepts a bid."""
        previous = self.ranked[0] if self.bids else None
        bid = PlainBid(id, bidder, amount, len(self.bids) + 1)
        self.bids.append(bid)
        if self.ranked[0] is not bid:
            self.versions.append(None)
            return
        version = 1 + sum(known is not None for known in self.versions)
        self.versions.append(version)
        now = {"amount": amount, "seq": bid.seq, "version": version}
        self._tell("best", bid.seq, self.owner, {"bid": id, "bidder": bidder, **now})
        if previous is not None and previous.bidder != bidder:
            self._tell("outbid", bid.seq, previous.bidder, {"bid": previous.id, **now})

    def close(self) -> None:
        self.is_closed = True
        seq = len(self.bids) + 1
        told: set[str] = set()
        for bid in self.ranked:
            if bid.bidder not in told:
                event = "lost" if told else "won"
                told.add(bid.bidder)
                self._tell(event, seq, bid.bidder, {"bid": bid.id, "amount": bid.amount})
        winner = None
        if self.bids:
            best = self.ranked[0]
            winner = {"bid": best.id, "bidder": best.bidder, "amount": best.amount, "seq": best.seq}
        self._tell("closed", seq, self.owner, {"winner": winner})

    def _tell(self, event: str, seq: int, destination: str, more: dict[str, Any]) -> None:
        id = "/".join(quote(part, safe="") for part in (self.table, self.lot, str(seq), event, destination))
        self.notices.append((id, destination, {"event": event, "table": self.table, "lot": self.lot, **more}))
