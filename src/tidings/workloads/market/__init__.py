"""The market workload: stocks with changing prices, reviews, offers of goods, and subscriptions to all of them.

Popularity of sectors and symbols is skewed; prices are log-normal and walk; PER and risk depend on the sector; constants of
subscriptions follow the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING

from tidings.workloads.subscribers import coming_and_going, create, drop, steady
from tidings.workloads.workload import WorkloadLines

if TYPE_CHECKING:
    from tidings.workloads.market.changes import ChangeWalk
    from tidings.workloads.market.listing import Listing

CATALOG_SQL = """\
CREATE TABLE stocks (symbol TEXT PRIMARY KEY, sector TEXT, per DOUBLE, risk DOUBLE, price DOUBLE);
CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol TEXT, rating DOUBLE, report TEXT);
CREATE TABLE analysts (id BIGINT PRIMARY KEY, name TEXT, firm TEXT, score DOUBLE);
CREATE TABLE market (topic TEXT, lot BIGINT, price DOUBLE) WITH (rows = 'constraints');
"""

_SYMBOLS_MAX = 5_000
_SYMBOLS_PER_OFFER = 5
_CREATED_LATER = 5
"""One of this many subscriptions is created after the start."""
_DROPPED = 10
"""One of this many subscriptions is dropped."""


class Churn(StrEnum):
    """How subscriptions come and go."""

    none = "none"
    blocks = "blocks"
    """A fifth of the subscriptions is created later and a tenth is dropped, many at a time."""
    single = "single"
    """A tenth of the subscriptions is created later and a tenth dropped, each at its own seq after the tables are filled."""


def market(
    *,
    seed: int = 0,
    rows: int = 0,
    subscriptions: int = 100_000,
    changes: int = 100_000,
    churn: Churn = Churn.blocks,
    is_select_only: bool = False,
) -> WorkloadLines:
    """The whole workload: `rows` stocks, subscriptions that come and go, changes from the first insert on.

    With `is_select_only` none of the subscriptions is a join, a leaderboard or an alert on movement, and there are no offers.
    """
    symbols = rows or max(20, min(_SYMBOLS_MAX, changes // 20))
    feed = MarketFeed(seed, symbols, has_offers=not is_select_only)
    queries = filter(_is_select, feed.queries()) if is_select_only else feed.queries()
    if churn is Churn.none:
        lines = steady(queries, subscriptions)
    elif churn is Churn.single:
        lines = coming_and_going(queries, subscriptions, range(feed.filling, changes), seed)
    else:
        lines = _in_blocks(queries, subscriptions, changes)
    return WorkloadLines(CATALOG_SQL, lines, feed.stream(changes))


class MarketFeed:
    """An endless market: the same seed gives the same lines, however they are asked for."""

    catalog_sql = CATALOG_SQL

    def __init__(self, seed: int = 0, symbols: int = _SYMBOLS_MAX, *, has_offers: bool = True) -> None:
        from tidings.workloads.market.changes import ChangeWalk
        from tidings.workloads.market.listing import Listing
        from tidings.workloads.market.offers import OfferWalk

        self._seed = seed
        self._listing: Listing = Listing.make(seed, symbols)
        self._offers = max(4, symbols // _SYMBOLS_PER_OFFER) if has_offers else 0
        offers = OfferWalk(seed, self._offers) if has_offers else None
        self._walk: ChangeWalk = ChangeWalk(self._listing, seed, offers)
        self._ready: list[bytes] = []
        self._given = 0

    @property
    def filling(self) -> int:
        """Number of the first changes, which fill the tables."""
        stocks = len(self._listing)
        return stocks + len(self._listing.analysts) + stocks // 2 + self._offers

    def queries(self) -> Iterator[str]:
        """SQL of subscriptions, without end."""
        from tidings.workloads.market.offers import with_offers
        from tidings.workloads.market.queries import queries

        found = queries(self._listing, self._seed)
        return with_offers(found, self._seed) if self._offers else found

    def subscriptions(self, n: int) -> Iterator[bytes]:
        """Lines of `n` subscriptions that exist from the start."""
        return steady(self.queries(), n)

    def changes(self, n: int) -> list[bytes]:
        """The next `n` changes: first every table is filled, then it lives."""
        while len(self._ready) - self._given < n:
            self._ready = self._ready[self._given :] + self._walk.next_block()
            self._given = 0
        self._given += n
        return self._ready[self._given - n : self._given]

    def stream(self, n: int) -> Iterator[bytes]:
        """The next `n` changes one by one, made in small blocks."""
        for start in range(0, n, 1_000):
            yield from self.changes(min(1_000, n - start))


def _is_select(sql: str) -> bool:
    return not any(word in sql for word in (" JOIN ", " ORDER BY ", " moved"))


def _in_blocks(queries: Iterator[str], subscriptions: int, changes: int) -> Iterator[bytes]:
    """Lines in order of `after`: most subscriptions exist from the start, some are created later, some dropped.

    Of every `_DROPPED` subscriptions one is dropped, earlier ones sooner. Many events share one seq.
    """
    moments = max(100, changes // 1_000)
    early = subscriptions - subscriptions // _CREATED_LATER

    def moment(share: float) -> int:
        return int(share * moments) * changes // moments

    drops = subscriptions // _DROPPED
    dropped = 0
    for number, sql in zip(range(1, subscriptions + 1), queries, strict=False):
        after = 0 if number <= early else moment((number - early) / (subscriptions - early))
        while dropped < drops and moment((dropped + 1) / drops) < after:
            dropped += 1
            yield drop(_leaver(dropped), moment(dropped / drops))
        yield create(number, sql, after)
    while dropped < drops:
        dropped += 1
        yield drop(_leaver(dropped), moment(dropped / drops))


def _leaver(block: int) -> int:
    """Which of a block of `_DROPPED` subscriptions is dropped: pseudo-random, but the same every time."""
    return (block - 1) * _DROPPED + 1 + (block * 7919) % _DROPPED
