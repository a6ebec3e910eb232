"""People and auctions at the start of the auctions workload."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from dataclasses import dataclass

CATEGORIES = (
    *("art", "books", "clocks", "coins", "computers", "furniture", "games", "guitars"),
    *("jewellery", "lamps", "maps", "motorcycles", "records", "stamps", "toys", "wine"),
)
_ADJECTIVES = ("antique", "blue", "broken", "early", "fine", "large", "plain", "rare", "restored", "signed", "used")
STATES = (
    *("AZ", "CA", "CO", "FL", "GA", "IL", "MA", "MI", "MN", "NC"),
    *("NJ", "NY", "OH", "OR", "PA", "TN", "TX", "VA", "WA", "WI"),
)
_PLACES = ("Ashford", "Bridgeport", "Clinton", "Dover", "Easton")
_FIRST_NAMES = ("Ada", "Bo", "Chidi", "Dana", "Eun", "Farah", "Gita", "Hugo", "Inés", "Jun", "Kofi", "Lena")
_LAST_NAMES = ("Abe", "Brandt", "Costa", "Diallo", "Ek", "Fischer", "García", "Haddad", "Ito", "Jensen")
_START = dt.datetime(2026, 3, 1)
SALES_MAX = 25
"""A person with this many open auctions is replaced by a random one as seller, who may have as many."""
_SHIFT = 12.0
"""About this many of the first numbers are nearly equally popular."""


@dataclass
class Person:
    name: str
    city: str
    state: str
    rating: float


@dataclass
class Auction:
    seller: int
    item: str
    category: str
    price: float
    reserve: float
    ends: str
    opening: float
    """Price at each opening."""


@dataclass(frozen=True)
class Start:
    """Ids go from 1; the lower an auction's, the more popular it is."""

    people: dict[int, Person]
    auctions: dict[int, Auction]
    bids: int

    @staticmethod
    def make(seed: int, bids: int) -> Start:
        rng = random.Random(f"auctions scene {seed}")
        people = {id: new_person(rng) for id in range(1, max(4, bids // 4) + 1)}
        auctions: dict[int, Auction] = {}
        sales: Counter[int] = Counter()
        for id in range(1, max(8, bids // 2) + 1):
            seller = 1 + popular(rng, len(people))
            if sales[seller] >= SALES_MAX:
                seller = rng.randint(1, len(people))
            sales[seller] += 1
            auctions[id] = new_auction(rng, seller)
        return Start(people, auctions, bids)

    @property
    def filling(self) -> int:
        """Number of the first changes, which fill the tables."""
        return len(self.people) + len(self.auctions) + self.bids


def popular(rng: random.Random, count: int) -> int:
    """A number below `count`, drawn by Zipf's law: n with a share of about 1 / (n + shift)."""
    return min(count - 1, int(_SHIFT * ((1 + count / _SHIFT) ** rng.random() - 1)))


def new_person(rng: random.Random) -> Person:
    state = rng.choice(STATES)
    name = f"{rng.choice(_FIRST_NAMES)} {rng.choice(_LAST_NAMES)}"
    return Person(name, city_of(rng, state), state, new_rating(rng))


def city_of(rng: random.Random, state: str) -> str:
    return f"{rng.choice(_PLACES)} {state}"


def new_rating(rng: random.Random) -> float:
    return round(10 * rng.betavariate(4.0, 2.0), 1)


def new_auction(rng: random.Random, seller: int) -> Auction:
    rank = popular(rng, len(CATEGORIES))
    category = CATEGORIES[rank]
    # Dear categories and cheap ones; within one, prices differ by a factor of five or so.
    opening = round(20.0 * 1.3**rank * rng.lognormvariate(0.0, 0.7), 2)
    reserve = round(opening * rng.uniform(1.0, 1.5), 2)
    item = f"{rng.choice(_ADJECTIVES)} {category}"
    return Auction(seller, item, category, opening, reserve, end_time(rng.random()), opening)


def end_time(share: float) -> str:
    """A minute of the month in which all auctions end."""
    return (_START + dt.timedelta(minutes=int(share * 30 * 24 * 60))).isoformat()
