"""Subscriptions of the auctions workload: people look at auctions they have seen, at what these cost, and at who sells them."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tidings.workloads.auctions.start import CATEGORIES, STATES, Start, city_of, end_time, popular

_POPULAR = 0.4
"""Share of the queries about a popular auction; the others are about any auction."""

_BIDS_AUCTIONS = "bids JOIN auctions ON bids.auction = auctions.id"
_AUCTIONS_PEOPLE = "auctions JOIN people ON auctions.seller = people.id"

# (share, query). Shares need not sum to anything; names in braces are made in `_look`.
_QUERIES: tuple[tuple[float, str], ...] = (
    # auctions and bids that somebody follows
    (8, "SELECT id, item, price FROM auctions WHERE id = {auction} AND price >= {above}"),
    (5, "SELECT * FROM bids WHERE auction = {auction} AND amount >= {above}"),
    (4, "SELECT id, auction, amount FROM bids WHERE bidder = {person}"),
    (3, "SELECT id, item, ends FROM auctions WHERE seller = {seller} AND ends <= '{time}'"),
    # searches
    (8, "SELECT * FROM auctions WHERE category = '{category}' AND price BETWEEN {price}"),
    (6, "SELECT id, item, price FROM auctions WHERE item = '{item}' AND price <= {cheap}"),
    (4, "SELECT * FROM auctions WHERE category = '{category}' AND price BETWEEN {price} AND reserve BETWEEN {reserve}"),
    (3, "SELECT * FROM people WHERE state = '{state}' AND rating BETWEEN {rating}"),
    (2, "SELECT * FROM bids WHERE amount BETWEEN {price}"),
    # lists
    (4, "SELECT id, price, reserve FROM auctions WHERE id IN ({auctions}) AND price >= {above}"),
    (3, "SELECT * FROM bids WHERE auction IN ({auctions}) AND amount > {above}"),
    (2, "SELECT name, city, rating FROM people WHERE city IN ('{city}', '{any_city}') AND rating >= {top_rating}"),
    (
        2,
        "SELECT id, item FROM auctions WHERE category IN ('{category}', '{any_category}') AND reserve BETWEEN {reserve}",
    ),
    # auctions and their sellers
    (
        7,
        f"SELECT auctions.id, item, price, name, rating FROM {_AUCTIONS_PEOPLE}"
        " WHERE category = '{category}' AND price BETWEEN {price} AND rating >= {top_rating}",
    ),
    (
        5,
        f"SELECT * FROM {_AUCTIONS_PEOPLE} WHERE state = '{{state}}' AND category = '{{category}}' AND price BETWEEN {{price}}",
    ),
    (4, f"SELECT item, price, city FROM {_AUCTIONS_PEOPLE} WHERE city = '{{city}}' AND price <= {{below}}"),
    # bids and what they are for
    (
        7,
        f"SELECT auctions.id, item, amount FROM {_BIDS_AUCTIONS}"
        " WHERE category = '{category}' AND reserve BETWEEN {reserve} AND amount >= {above}",
    ),
    (5, f"SELECT * FROM {_BIDS_AUCTIONS} WHERE seller = {{seller}} AND amount >= {{above}}"),
    # bids, what they are for, and who sells or bids
    (
        5,
        f"SELECT bids.id, item, amount, name FROM {_BIDS_AUCTIONS} JOIN people ON auctions.seller = people.id"
        " WHERE state = '{state}' AND category = '{category}' AND amount BETWEEN {price}",
    ),
    (
        3,
        f"SELECT item, amount, people.city, rating FROM {_BIDS_AUCTIONS} JOIN people ON bids.bidder = people.id"
        " WHERE item = '{item}' AND amount >= {above} AND rating >= {top_rating}",
    ),
    # the first of many
    (4, "SELECT * FROM bids WHERE auction BETWEEN {near} ORDER BY amount DESC LIMIT 10"),
    (
        4,
        "SELECT id, item, price FROM auctions WHERE category = '{category}' AND reserve BETWEEN {reserve}"
        " ORDER BY price LIMIT 10",
    ),
    (
        2,
        "SELECT id, name, rating FROM people WHERE state = '{state}' AND id BETWEEN {people} ORDER BY rating DESC LIMIT 5",
    ),
    (2, "SELECT id, item, ends FROM auctions WHERE price BETWEEN {price} ORDER BY ends LIMIT 5"),
)


def queries(start: Start, seed: int) -> Iterator[str]:
    """Endless SQL queries; the first n do not depend on n."""
    rng = random.Random(f"auctions queries {seed}")
    shares, texts = [share for share, _ in _QUERIES], [text for _, text in _QUERIES]
    while True:
        for text in rng.choices(texts, shares, k=1_000):
            yield text.format_map(_look(start, rng))


def _look(start: Start, rng: random.Random) -> dict[str, object]:
    """Values for the names in a query's braces: an auction, its seller, and ranges around its numbers."""
    count = len(start.auctions)
    ids = [1 + (popular(rng, count) if rng.random() < _POPULAR else rng.randrange(count)) for _ in range(3)]
    auction = start.auctions[ids[0]]
    seller = start.people[auction.seller]
    price = auction.opening
    person = rng.randint(1, len(start.people))
    top = rng.uniform(6.0, 9.8)
    return {
        "auction": ids[0],
        "auctions": ", ".join(map(str, dict.fromkeys(ids))),
        "near": f"{ids[0]} AND {ids[0] + rng.randint(1, 12)}",
        "person": person,
        "people": f"{person} AND {person + rng.randint(20, 200)}",
        "seller": auction.seller,
        "item": auction.item,
        "category": auction.category,
        "any_category": rng.choice(CATEGORIES),
        "state": seller.state,
        "city": seller.city,
        "any_city": city_of(rng, rng.choice(STATES)),
        "time": end_time(rng.random()),
        "price": _around(rng, price, 0.12),
        "reserve": _around(rng, auction.reserve, 0.15),
        "above": round(price * rng.uniform(0.9, 1.4), 2),
        "below": round(price * rng.uniform(0.6, 1.0), 2),
        "cheap": round(price * rng.uniform(0.3, 0.8), 2),
        "rating": _around(rng, seller.rating, 0.1),
        "top_rating": round(top, 1),
    }


def _around(rng: random.Random, centre: float, width: float) -> str:
    """A range, as SQL, of about `width` times its centre, slightly off centre."""
    half = centre * width * rng.lognormvariate(0.0, 0.5) / 2
    middle = centre + rng.gauss(0.0, 0.5) * half
    return f"{round(middle - half, 2)} AND {round(middle + half, 2)}"
