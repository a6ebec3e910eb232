"""Offers of the market workload: lots of goods, published as constraints, and those who look for them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tidings.model.codes import BoolArray
from tidings.workloads.draws import FloatArray, IntArray, draw, zipf
from tidings.workloads.market.turnover import StrArray, Turnover
from tidings.workloads.publications import publish, withdraw

TABLE = "market"
SHARE = 0.1
"""Of offers among changes, and of their subscriptions among all."""

_CHUNK = 1_024
_QUALITIES = ("plain", "fine", "used", "rare", "blue", "green", "large", "small", "early", "late", "loose", "boxed")
_GOODS = (
    *("pencils", "paper", "ink", "lamps", "chairs", "tiles", "bolts", "cables", "barrels", "crates"),
    *("beans", "cocoa", "cotton", "wool", "copper", "zinc", "timber", "glass", "tea", "salt"),
)
TOPICS = tuple(f"{quality} {goods}" for goods in _GOODS for quality in _QUALITIES)
"""The most popular one first."""
_POPULARITY = np.cumsum(zipf(len(TOPICS), 1.0, 4.0))
_LOG_PRICE_SD, _LOG_LOT_SD = 0.15, 1.2
"""How much prices of one topic differ, and sizes of lots."""

# As many inserts as deletes, so that the number of offers stays as it is.
_PATTERN = ("insert", "update", "delete", "update", "insert", "update", "update", "delete")

# (share, constraint). Shares need not sum to anything; names in braces are made in `_looks`.
_CONSTRAINTS: tuple[tuple[float, str], ...] = (
    (60, "topic = '{topic}' AND lot BETWEEN {lots} AND price = {price}"),
    (20, "topic = '{topic}' AND lot BETWEEN {lots} AND price BETWEEN {prices}"),
    (12, "topic = '{topic}' AND lot <= {lot} AND price >= {price}"),
    (8, "topic = '{topic}' AND price = {price}"),
)
_QUERIES: tuple[tuple[float, str], ...] = (
    (45, "topic = '{topic}' AND lot BETWEEN {lots} AND price <= {price}"),
    (20, "topic = '{topic}' AND lot BETWEEN {lots} AND price BETWEEN {prices}"),
    (10, "topic = '{topic}' AND lot >= {lot} AND price < {price}"),
    (10, "topic IN ('{topic}', '{any_topic}') AND lot BETWEEN {lots} AND price <= {price}"),
    (5, "topic = '{topic}' AND price <= {price}"),
    (10, "topic = '{topic}' AND lot BETWEEN {lots} AND price BETWEEN {prices} ORDER BY price LIMIT 3"),
)


class OfferWalk:
    """Makes lines of offers. A topic follows from the offer's id, so that any number of offers costs no memory."""

    def __init__(self, seed: int, offers: int) -> None:
        """offers: their number at the start, about which it stays."""
        self.filling = offers
        self._rng = np.random.default_rng([seed, 4])
        self._log_price = _log_prices(seed)
        self._topic = draw(_POPULARITY, self._rng.random(65_536))
        self._turnover = Turnover(_PATTERN)

    def places(self, count: int) -> BoolArray:
        """Which of the next changes of the market are about offers."""
        return self._rng.random(count) < SHARE

    def inserts(self, seq: IntArray) -> list[bytes]:
        """Lines of the first offers."""
        return self._lines(seq, self._turnover.inserts(len(seq)), np.full(len(seq), "insert"))

    def live(self, seq: IntArray) -> list[bytes]:
        return self._lines(seq, *self._turnover.events(self._rng, len(seq)))

    def _lines(self, seq: IntArray, ids: IntArray, op: StrArray) -> list[bytes]:
        topic = self._topic[ids & 65_535]
        constraints = _texts(_CONSTRAINTS, self._rng, topic, self._log_price[topic])
        return [
            withdraw(number, TABLE, f"p{id}") if name == "delete" else publish(number, TABLE, name, f"p{id}", where)
            for number, id, name, where in zip(seq.tolist(), ids.tolist(), op.tolist(), constraints, strict=True)
        ]


def offer_queries(seed: int) -> Iterator[str]:
    """Endless SQL queries; the first n do not depend on n."""
    rng = np.random.default_rng([seed, 5])
    log_price = _log_prices(seed)
    while True:
        topic = draw(_POPULARITY, rng.random(_CHUNK))
        for where in _texts(_QUERIES, rng, topic, log_price[topic]):
            yield f"SELECT * FROM {TABLE} WHERE {where}"


def with_offers(queries: Iterator[str], seed: int) -> Iterator[str]:
    """The queries in their order, with those on offers among them."""
    rng = np.random.default_rng([seed, 6])
    asked = offer_queries(seed)
    while True:
        for is_offer in (rng.random(_CHUNK) < SHARE).tolist():
            yield next(asked) if is_offer else next(queries)


def _log_prices(seed: int) -> FloatArray:
    """Logarithm of the mean price of each topic."""
    return np.random.default_rng([seed, 7]).normal(np.log(8.0), 1.0, len(TOPICS))


def _texts(
    kinds: tuple[tuple[float, str], ...], rng: np.random.Generator, topic: IntArray, log_price: FloatArray
) -> Iterator[str]:
    """A condition of some kind for each topic."""
    chosen = draw(np.cumsum([share for share, _ in kinds]), rng.random(len(topic))).tolist()
    for kind, look in zip(chosen, _looks(rng, topic, log_price), strict=True):
        yield kinds[kind][1].format_map(look)


def _looks(rng: np.random.Generator, topic: IntArray, log_price: FloatArray) -> Iterator[dict[str, object]]:
    """Values for the names in a condition's braces: a topic, and numbers that suit it."""
    count = len(topic)
    prices = np.exp(log_price[:, None] + _LOG_PRICE_SD * rng.standard_normal((count, 2)))
    lots = np.exp(np.log(2_000.0) + _LOG_LOT_SD * rng.standard_normal((count, 2)))
    lots = 10 * np.ceil(np.sort(lots, axis=1) / 10).astype(np.int64)
    columns = (
        topic.tolist(),
        draw(_POPULARITY, rng.random(count)).tolist(),
        np.maximum(np.sort(prices, axis=1), 0.01).round(2).tolist(),
        lots.tolist(),
        rng.integers(2, size=count).tolist(),
    )
    for own, other, (cheap, dear), (few, many), side in zip(*columns, strict=True):
        yield {
            "topic": TOPICS[own],
            "any_topic": TOPICS[other if other != own else own - 1],
            "lots": f"{few} AND {many}",
            "lot": many if side else few,
            "prices": f"{cheap} AND {dear}",
            "price": dear if side else cheap,
        }
