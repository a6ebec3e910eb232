"""Changes of the auctions workload, made one by one from the current rows: every update and delete finds its row.

An auction's popularity is its place among the open ones; an auction with `BIDS_MAX` bids is closed. Half of the opened auctions
were open before: their ids return, with the opening price.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import chain

from tidings.workloads.auctions.start import (
    SALES_MAX,
    Auction,
    Person,
    Start,
    city_of,
    end_time,
    new_auction,
    new_person,
    new_rating,
    popular,
)
from tidings.workloads.pool import Pool

BIDS_MAX = 150
"""Highest number of bids of one auction."""
_RAISE = 0.03
"""Highest raise of a bid, as a share of the price."""
_COMES_BACK = 0.5
_UPSERTED = 0.03


class House:
    """The current people, auctions and bids. `changes` yields lines without end."""

    def __init__(self, start: Start, seed: int) -> None:
        self._start = start
        self._rng = random.Random(f"auctions changes {seed}")
        self._seq = 0
        self._people: dict[int, Person] = {}
        self._auctions: dict[int, Auction] = {}
        self._bids: dict[int, tuple[int, int, float]] = {}
        """Bid -> (auction, bidder, amount)."""
        self._people_pool, self._open, self._bid_pool = Pool(), Pool(), Pool()
        self._bids_of: dict[int, list[int]] = {}
        self._sales_of: dict[int, set[int]] = {}
        self._closed: list[tuple[int, Auction]] = []
        self._left: list[int] = []
        self._auction_next = len(start.auctions) + 1
        self._person_next = len(start.people) + 1
        self._bid_next = 1

    def changes(self) -> Iterator[bytes]:
        return chain(self._fill(), self._live())

    def _fill(self) -> Iterator[bytes]:
        for id, person in self._start.people.items():
            yield self._put_person(id, Person(**vars(person)), "insert")
        for id, auction in self._start.auctions.items():
            yield self._put_auction(id, Auction(**vars(auction)), "insert")
        for _ in range(self._start.bids):
            yield self._new_bid(self._any_auction())

    def _live(self) -> Iterator[bytes]:
        # (share, what happens); one event may be several changes.
        events = (
            (30, self._bid),
            (12, self._raise_bid),
            (8, self._retract_bid),
            (20, self._revise_auction),
            (4, self._open_auction),
            (2, self._close_any_auction),
            (10, self._revise_person),
            (1.5, self._join),
            (0.5, self._leave),
        )
        shares, kinds = [share for share, _ in events], [event for _, event in events]
        while True:
            for event in self._rng.choices(kinds, shares, k=1_000):
                yield from event()

    def _bid(self) -> Iterator[bytes]:
        """A bid above the price; mostly it becomes the price."""
        auction = self._any_auction()
        yield self._new_bid(auction)
        if self._rng.random() < 0.7:
            amount = self._bids[self._bids_of[auction][-1]][2]
            self._auctions[auction].price = max(amount, self._auctions[auction].price)
            yield self._auction_line(auction, self._changed_op())
        if len(self._bids_of[auction]) >= BIDS_MAX:
            yield from self._close_auction(auction)

    def _raise_bid(self) -> Iterator[bytes]:
        if self._bid_pool:
            id = self._rng.choice(self._bid_pool.ids)
            auction, bidder, amount = self._bids[id]
            self._bids[id] = auction, bidder, round(amount * (1 + _RAISE * self._rng.random()) + 0.01, 2)
            yield self._bid_line(id, self._changed_op())

    def _retract_bid(self) -> Iterator[bytes]:
        if self._bid_pool:
            id = self._rng.choice(self._bid_pool.ids)
            self._bids_of[self._bids[id][0]].remove(id)
            yield self._drop_bid(id)

    def _revise_auction(self) -> Iterator[bytes]:
        """A seller changes the price, the reserve or the end."""
        rng, id = self._rng, self._any_auction()
        auction = self._auctions[id]
        part = rng.random()
        if part < 0.4:
            auction.price = round(auction.opening * rng.uniform(0.8, 1.4), 2)
        elif part < 0.7:
            auction.reserve = round(auction.opening * rng.uniform(0.9, 1.6), 2)
        else:
            auction.ends = end_time(rng.random())
        yield self._auction_line(id, self._changed_op())

    def _open_auction(self) -> Iterator[bytes]:
        rng = self._rng
        if self._closed and rng.random() < _COMES_BACK:
            at = rng.randrange(len(self._closed))
            self._closed[at], self._closed[-1] = self._closed[-1], self._closed[at]
            id, auction = self._closed.pop()
            auction.price, auction.ends = auction.opening, end_time(rng.random())
        else:
            id, auction = self._auction_next, new_auction(rng, 0)
            self._auction_next += 1
        auction.seller = self._any_seller()
        yield self._put_auction(id, auction, "insert")

    def _close_any_auction(self) -> Iterator[bytes]:
        yield from self._close_auction(self._any_auction())

    def _close_auction(self, id: int) -> Iterator[bytes]:
        """Deletes the auction and its bids, in either order. Keeps the last auction, so that there is always one to bid on."""
        if len(self._open) == 1:
            return
        bids = self._bids_of.pop(id)
        is_first = self._rng.random() < 0.3
        if is_first:
            yield self._drop_auction(id)
        for bid in bids:
            yield self._drop_bid(bid)
        if not is_first:
            yield self._drop_auction(id)

    def _revise_person(self) -> Iterator[bytes]:
        """Changes a person's rating or place."""
        rng, id = self._rng, self._any_person()
        person = self._people[id]
        if rng.random() < 0.8:
            person.rating = new_rating(rng)
        else:
            person.city = city_of(rng, person.state)
        yield self._person_line(id, self._changed_op())

    def _join(self) -> Iterator[bytes]:
        if self._left and self._rng.random() < _COMES_BACK:
            id = self._left.pop()
        else:
            id = self._person_next
            self._person_next += 1
        yield self._put_person(id, new_person(self._rng), "insert")

    def _leave(self) -> Iterator[bytes]:
        """Deletes a person and closes their auctions; their bids stay."""
        if len(self._people_pool) == 1:
            return
        id = self._any_person()
        for auction in sorted(self._sales_of.get(id, ())):
            yield from self._close_auction(auction)
        del self._people[id]
        self._people_pool.remove(id)
        self._left.append(id)
        yield self._line("people", "delete", f'"id": {id}')

    def _any_auction(self) -> int:
        """A popular auction, or any auction if that one has BIDS_MAX bids."""
        id = self._open.ids[popular(self._rng, len(self._open))]
        return id if len(self._bids_of[id]) < BIDS_MAX else self._rng.choice(self._open.ids)

    def _any_person(self) -> int:
        return self._rng.choice(self._people_pool.ids)

    def _any_seller(self) -> int:
        """A popular seller, or any person if that one has SALES_MAX auctions."""
        id = self._people_pool.ids[popular(self._rng, len(self._people_pool))]
        return id if len(self._sales_of.get(id, ())) < SALES_MAX else self._any_person()

    def _changed_op(self) -> str:
        return "upsert" if self._rng.random() < _UPSERTED else "update"

    def _new_bid(self, auction: int) -> bytes:
        id = self._bid_next
        self._bid_next += 1
        amount = round(self._auctions[auction].price * (1 + _RAISE * self._rng.random()) + 0.01, 2)
        self._bids[id] = auction, self._any_person(), amount
        self._bids_of[auction].append(id)
        self._bid_pool.add(id)
        return self._bid_line(id, "insert")

    def _put_person(self, id: int, person: Person, op: str) -> bytes:
        self._people[id] = person
        self._people_pool.add(id)
        return self._person_line(id, op)

    def _put_auction(self, id: int, auction: Auction, op: str) -> bytes:
        self._auctions[id] = auction
        self._open.add(id)
        self._bids_of[id] = []
        self._sales_of.setdefault(auction.seller, set()).add(id)
        return self._auction_line(id, op)

    def _drop_auction(self, id: int) -> bytes:
        auction = self._auctions.pop(id)
        self._open.remove(id)
        self._sales_of[auction.seller].discard(id)
        self._closed.append((id, auction))
        return self._line("auctions", "delete", f'"id": {id}')

    def _drop_bid(self, id: int) -> bytes:
        del self._bids[id]
        self._bid_pool.remove(id)
        return self._line("bids", "delete", f'"id": {id}')

    def _person_line(self, id: int, op: str) -> bytes:
        p = self._people[id]
        row = f'"id": {id}, "name": "{p.name}", "city": "{p.city}", "state": "{p.state}", "rating": {p.rating}'
        return self._line("people", op, row)

    def _auction_line(self, id: int, op: str) -> bytes:
        a = self._auctions[id]
        row = (
            f'"id": {id}, "seller": {a.seller}, "item": "{a.item}", "category": "{a.category}", '
            f'"price": {a.price}, "reserve": {a.reserve}, "ends": "{a.ends}"'
        )
        return self._line("auctions", op, row)

    def _bid_line(self, id: int, op: str) -> bytes:
        auction, bidder, amount = self._bids[id]
        return self._line("bids", op, f'"id": {id}, "auction": {auction}, "bidder": {bidder}, "amount": {amount}')

    def _line(self, table: str, op: str, row: str) -> bytes:
        self._seq += 1
        return f'{{"seq": {self._seq}, "table": "{table}", "op": "{op}", "row": {{{row}}}}}'.encode()
