"""Items of the mixed drift workload, and its subscriptions: movement predicates on one item or on all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from research.workloads.drift.quotes import symbols
from tidings.workloads.draws import FloatArray, draw, zipf

_CHUNK = 1_024
_ROUND = 0.7
"""Share of the distances that are round numbers, which many subscriptions share."""
_PERCENTS = (0.5, 1, 2, 2.5, 5, 10, 20)
_RATIOS = (1.01, 1.05, 1.1, 1.25, 1.5, 2)
_CENT = 0.01

# (share, query). Shares need not sum to anything; names in braces are made in `_looks`.
_QUERIES: tuple[tuple[float, str], ...] = (
    # so many dollars
    (36, "SELECT * FROM quotes WHERE symbol = '{symbol}' AND moved(price) >= {distance}"),
    (10, "SELECT symbol, price FROM quotes WHERE symbol = '{symbol}' AND moved(price) >= {distance}"),
    (2, "SELECT volume, quoted_at FROM quotes WHERE moved(price) >= {distance} AND symbol = '{symbol}'"),
    # relative to what was told
    (16, "SELECT * FROM quotes WHERE symbol = '{symbol}' AND moved_percent(price) >= {percent}"),
    (4, "SELECT price, quoted_at FROM quotes WHERE symbol = '{symbol}' AND moved_percent(price) >= {percent}"),
    (8, "SELECT * FROM quotes WHERE symbol = '{symbol}' AND moved_ratio(price) >= {ratio}"),
    (2, "SELECT symbol, price FROM quotes WHERE symbol = '{symbol}' AND moved_ratio(price) >= {ratio}"),
    # from here on if it suits, from there on at all events
    (8, "SELECT * FROM quotes WHERE symbol = '{symbol}' AND moved(price) BETWEEN {distance} AND {double}"),
    (2, "SELECT symbol, price FROM quotes WHERE symbol = '{symbol}' AND moved(price) BETWEEN {distance} AND {double}"),
    # and a sign of life
    (
        4,
        "SELECT * FROM quotes WHERE symbol = '{symbol}'"
        " AND (moved(price) >= {distance} OR silent_for(quoted_at) >= INTERVAL '10 minutes')",
    ),
    # every item
    (0.4, "SELECT symbol, price FROM quotes WHERE moved_percent(price) >= {percent}"),
    (0.3, "SELECT * FROM quotes WHERE moved(price) >= {distance}"),
    (0.2, "SELECT * FROM quotes WHERE moved_ratio(price) >= {ratio}"),
    (0.1, "SELECT * FROM quotes WHERE moved(price) BETWEEN {distance} AND {double}"),
)


@dataclass(frozen=True)
class Items:
    """Item i is the i-th most popular. Every array has a value per item."""

    symbols: list[str]
    popularity: FloatArray
    """Running sum of the items' shares of attention."""
    log_price: FloatArray
    """Logarithm of the mean that the price walks around."""

    @staticmethod
    def make(seed: int, count: int) -> Items:
        rng = np.random.default_rng([seed, 1])
        log_price = np.log(40.0) + rng.standard_normal(count)
        return Items(symbols(count), np.cumsum(zipf(count, 1.0, 2.0)), log_price)

    def __len__(self) -> int:
        return len(self.symbols)


def queries(items: Items, seed: int) -> Iterator[str]:
    """Endless SQL queries; the first n do not depend on n."""
    rng = np.random.default_rng([seed, 3])
    shares = np.cumsum([share for share, _ in _QUERIES])
    while True:
        kinds = draw(shares, rng.random(_CHUNK)).tolist()
        for kind, look in zip(kinds, _looks(items, rng), strict=True):
            yield _QUERIES[kind][1].format_map(look)


def _looks(items: Items, rng: np.random.Generator) -> Iterator[dict[str, object]]:
    """Values for the names in a query's braces: an item, and a distance of log-normal size relative to the item's price."""
    item = draw(items.popularity, rng.random(_CHUNK))
    share = 0.03 * np.exp(0.8 * rng.standard_normal(_CHUNK))
    is_round = rng.random(_CHUNK) < _ROUND
    distance = np.exp(items.log_price[item]) * share
    distance = np.maximum(np.where(is_round, _one_digit(distance), distance), _CENT).round(2)
    columns = (
        item.tolist(),
        distance.tolist(),
        np.where(is_round, rng.choice(_PERCENTS, size=_CHUNK), np.maximum(100 * share, 0.01).round(2)).tolist(),
        np.where(is_round, rng.choice(_RATIOS, size=_CHUNK), (1.0005 + share).round(3)).tolist(),
    )
    for own, far, percent, ratio in zip(*columns, strict=True):
        yield {
            "symbol": items.symbols[own],
            "distance": f"{far:.12g}",
            "double": f"{2 * far:.12g}",
            "percent": f"{percent:.12g}",
            "ratio": f"{ratio:.12g}",
        }


def _one_digit(values: FloatArray) -> FloatArray:
    """Rounded to the first digit that is not zero."""
    unit: FloatArray = 10.0 ** np.floor(np.log10(values))
    return (values / unit).round() * unit
