"""Subscriptions of the market workload to rows: mostly about popular stocks, with ranges around their values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tidings.workloads.draws import FloatArray, draw, zipf
from tidings.workloads.market.listing import FIRMS, SECTORS, Listing

_CHUNK = 1_024
_POPULAR = 0.25
"""Share of the queries about a popular stock; the others are about any stock."""
_PERCENTS = (1, 2, 3, 5, 10)

# (share, query). Shares need not sum to anything; names in braces are made in `_looks`.
_QUERIES: tuple[tuple[float, str], ...] = (
    # price alerts
    (14, "SELECT symbol, price FROM stocks WHERE symbol = '{symbol}' AND price >= {far_above}"),
    (9, "SELECT * FROM stocks WHERE symbol = '{symbol}' AND price <= {far_below}"),
    (7, "SELECT * FROM stocks WHERE symbol = '{symbol}' AND price BETWEEN {price}"),
    (8, "SELECT symbol, price FROM stocks WHERE symbol = '{symbol}' AND moved_percent(price) >= {percent}"),
    (4, "SELECT * FROM stocks WHERE symbol = '{symbol}' AND moved(price) >= {step}"),
    # watchlists
    (3, "SELECT symbol, price, per FROM stocks WHERE symbol IN ({symbols}) AND price BETWEEN {price}"),
    (3, "SELECT * FROM reviews WHERE symbol IN ({symbols}) AND rating >= {rating}"),
    # screens
    (14, "SELECT * FROM stocks WHERE sector = '{sector}' AND per BETWEEN {per} AND risk BETWEEN {risk}"),
    (
        24,
        "SELECT * FROM stocks WHERE sector = '{sector}' AND per BETWEEN {per}"
        " AND risk BETWEEN {risk} AND price BETWEEN {price}",
    ),
    (
        6,
        "SELECT symbol, sector, risk FROM stocks WHERE sector = '{sector}' AND per < {cheap} AND price BETWEEN {price}",
    ),
    (
        4,
        "SELECT symbol, per, price FROM stocks WHERE sector IN ('{sector}', '{any_sector}')"
        " AND per BETWEEN {per} AND price BETWEEN {price} AND risk <= {safe}",
    ),
    (4, "SELECT * FROM stocks WHERE per BETWEEN {per} AND risk BETWEEN {risk} AND price BETWEEN {price}"),
    # leaderboards
    (
        3,
        "SELECT symbol, per, price FROM stocks WHERE sector = '{sector}' AND risk BETWEEN {risk} ORDER BY per LIMIT 10",
    ),
    (2, "SELECT symbol, price FROM stocks WHERE risk BETWEEN {risk} ORDER BY price DESC LIMIT 5"),
    # well-reviewed stocks
    (
        3,
        "SELECT symbol, price, rating FROM stocks JOIN reviews USING (symbol)"
        " WHERE sector = '{sector}' AND per BETWEEN {per} AND rating >= {rating}",
    ),
    # reviews and their authors
    (6, "SELECT * FROM reviews WHERE symbol = '{symbol}' AND rating > {rating}"),
    (2, "SELECT id, rating, report FROM reviews WHERE symbol = '{symbol}' AND rating < {rating}"),
    (3, "SELECT name, score FROM analysts WHERE firm = '{firm}' AND score BETWEEN {score}"),
    (1, "SELECT * FROM analysts WHERE score >= {top_score}"),
)


def queries(listing: Listing, seed: int) -> Iterator[str]:
    """Endless SQL queries; the first n do not depend on n."""
    rng = np.random.default_rng([seed, 3])
    shares = np.cumsum([share for share, _ in _QUERIES])
    while True:
        kinds = draw(shares, rng.random(_CHUNK)).tolist()
        for kind, look in zip(kinds, _looks(listing, rng), strict=True):
            yield _QUERIES[kind][1].format_map(look)


def _looks(listing: Listing, rng: np.random.Generator) -> Iterator[dict[str, object]]:
    """Values for the names in a query's braces: a stock, and ranges of log-normal widths around its numbers."""
    stocks = draw(listing.popularity, rng.random((_CHUNK, 3)))
    is_any = rng.random(_CHUNK) >= _POPULAR
    stocks[is_any, 0] = rng.integers(len(listing), size=int(is_any.sum()))
    stock = stocks[:, 0]
    price = np.exp(listing.log_price[stock])
    per = price / listing.earnings[stock]
    per[np.isnan(per)] = 18.0
    columns = (
        stocks.tolist(),
        draw(np.cumsum(zipf(len(SECTORS), 1.0, 1.0)), rng.random(_CHUNK)).tolist(),
        _around(rng, price, 0.35 * price),
        _around(rng, price, 0.06 * price),
        _around(rng, per, 0.015 * per),
        _around(rng, listing.risk[stock], np.full(_CHUNK, 0.15)),
        (10 - 4 * rng.beta(1.2, 3.0, size=_CHUNK)).round(1).tolist(),
        _around(rng, 100 * rng.beta(4.0, 3.0, size=_CHUNK), np.full(_CHUNK, 2.0)),
        draw(np.cumsum(zipf(len(FIRMS), 1.0, 0.5)), rng.random(_CHUNK)).tolist(),
    )
    names = listing.symbols
    for own, any_sector, far, prices, pers, risks, rating, scores, firm in zip(*columns, strict=True):
        yield {
            "symbol": names[own[0]],
            "symbols": ", ".join(f"'{names[at]}'" for at in dict.fromkeys(own)),
            "sector": listing.sectors[own[0]],
            "any_sector": SECTORS[any_sector],
            "far_below": far[0],
            "far_above": far[1],
            "price": _ends(prices),
            "percent": _PERCENTS[int(10 * rating) % len(_PERCENTS)],
            "step": round(0.05 * prices[1], 2) + 0.01,
            "per": _ends(pers),
            "cheap": pers[0],
            "risk": _ends(risks),
            "safe": risks[0],
            "rating": rating,
            "score": _ends(scores),
            "top_score": round(90 + rating, 1),
            "firm": FIRMS[firm],
        }


def _around(rng: np.random.Generator, centre: FloatArray, width: FloatArray) -> list[tuple[float, float]]:
    """Ranges of about the width, each containing or nearly containing its centre."""
    widths = width * np.exp(0.5 * rng.standard_normal(len(centre)))
    middle = centre + 0.25 * widths * rng.standard_normal(len(centre))
    lo = np.maximum(middle - widths / 2, 0.0).round(2)
    return list(zip(lo.tolist(), np.maximum(middle + widths / 2, lo).round(2).tolist(), strict=True))


def _ends(ends: tuple[float, float]) -> str:
    return f"{ends[0]} AND {ends[1]}"
