"""The auctions workload: people sell and bid, auctions open and close, and others follow what they may want.

All three tables change, mostly together: a bid raises the price of its auction, closing an auction deletes its bids, and
deleting a person closes their auctions. Popularity of auctions is skewed, up to a bound. Subscriptions are selections, IN
lists, joins of two and three tables, and top-k.
"""

from __future__ import annotations

from itertools import islice

from tidings.workloads.auctions.changes import House
from tidings.workloads.auctions.queries import queries
from tidings.workloads.auctions.start import Start
from tidings.workloads.subscribers import coming_and_going, steady
from tidings.workloads.workload import WorkloadLines

__all__ = ["CATALOG_SQL", "auctions"]

CATALOG_SQL = """\
CREATE TABLE people (id BIGINT PRIMARY KEY, name TEXT, city TEXT, state TEXT, rating DOUBLE);
CREATE TABLE auctions (id BIGINT PRIMARY KEY, seller BIGINT, item TEXT, category TEXT,\
 price DOUBLE, reserve DOUBLE, ends TIMESTAMP);
CREATE TABLE bids (id BIGINT PRIMARY KEY, auction BIGINT, bidder BIGINT, amount DOUBLE);
"""

_ROWS_MIN, _ROWS_MAX = 40, 40_000


def auctions(
    *, seed: int = 0, rows: int = 0, subscriptions: int = 20_000, changes: int = 20_000, has_churn: bool = True
) -> WorkloadLines:
    """The whole workload: `rows` bids, half as many auctions and a quarter as many people at the start.

    With churn a tenth of the subscriptions is created later and a tenth is dropped, each after a change of its own.
    """
    start = Start.make(seed, rows or max(_ROWS_MIN, min(_ROWS_MAX, changes // 5)))
    asked = queries(start, seed)
    if has_churn:
        lines = coming_and_going(asked, subscriptions, range(start.filling, changes), seed)
    else:
        lines = steady(asked, subscriptions)
    return WorkloadLines(CATALOG_SQL, lines, islice(House(start, seed).changes(), changes))
