"""Stocks joined with reviews: stocks with a price-earnings ratio in a range, reviews with a rating in another.

The experiment of the paper on real data, which had seven months of 100 stocks, 460 ratings, and 2,300 made from these. The
companies here are made up, and so are their reviews; their ratios follow real prices as those of `topk-stocks` do, twice a day.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np

from research.workloads.draws import BLOCK, TruncatedNormal, rows_for
from research.workloads.drift.quotes import symbols
from research.workloads.join.binary import BinaryCase, BinaryScene, first_in_first_out
from research.workloads.join.draws import DECIMALS, DOMAIN, below, generator, zipf_counts
from research.workloads.join.tables import repeated
from research.workloads.prices import SYMBOLS, history
from research.workloads.topk.scene import Block
from research.workloads.topk.stocks import StockCase
from tidings.workloads.draws import FloatArray, IntArray
from tidings.workloads.market.listing import SECTORS
from tidings.workloads.subscribers import steady
from tidings.workloads.workload import WorkloadLines

CATALOG_SQL = """\
CREATE TABLE stocks (symbol TEXT PRIMARY KEY, sector TEXT, per DOUBLE, risk DOUBLE, price DOUBLE);
CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol TEXT, rating DOUBLE, report TEXT);
"""

STOCKS, REVIEWS_PER_STOCK = 100, 23
REVIEWED = 0.7
"""Share of the stocks that have reviews."""
RATINGS = TruncatedNormal(mean=6.5, sd=1.6, low=1.0, high=10.0)
_RATING_DECIMALS = 4
"""Hardly two are the same, as in the paper."""
_REPLACED = 0.01
"""Share of the reviews that are replaced twice a day."""
_REPORT_BYTES = 100
_PER, _PER_SPAN = 18.0, 2.4
"""Ratio at the middle of the domain, and the width of the domain in logarithms of the ratio."""


@dataclass(frozen=True)
class JoinStocksCase:
    """What can be varied in an experiment."""

    stocks: int = STOCKS
    r_size: int = 16_000

    @property
    def reviews(self) -> int:
        return self.stocks * REVIEWS_PER_STOCK

    def scene(self, *, seed: int, subscriptions: int, changes: int) -> BinaryScene:
        """As in the paper: R has the latest ratios of all stocks, S the reviews, both mapped to the common domain."""
        changed, is_insert = first_in_first_out(self.r_size, changes)
        stock, ratio = _first(self.quotes(seed), self.r_size + int(is_insert.sum()))
        reviewed, rating = self.draw_reviews(seed, self.reviews)
        return BinaryScene(
            BinaryCase().draw_ranges(seed, subscriptions),
            reviewed,
            ((rating - RATINGS.low) / (RATINGS.high - RATINGS.low) * DOMAIN).round(DECIMALS),
            stock,
            (DOMAIN * (0.5 + np.log(ratio / _PER) / _PER_SPAN)).clip(0.0, DOMAIN).round(DECIMALS),
            self.r_size,
            changed,
            is_insert,
            BinaryCase().payload,
        )

    def quotes(self, seed: int) -> Iterator[Block]:
        """Endless blocks of (stock, its ratio). Every block has all stocks, the first one in order."""
        # Missing prices are reported at once, not only after the first rows.
        history(SYMBOLS[0])
        case = StockCase()
        _, ratio = case.start(seed, self.stocks)
        yield np.arange(self.stocks), ratio
        yield from case.blocks(seed, ratio)

    def draw_reviews(self, seed: int, number: int) -> tuple[IntArray, FloatArray]:
        """Stock and rating of every review; of those after the first, as many for a stock on average as at the start."""
        shares = zipf_counts(self.reviews, max(1, round(self.stocks * REVIEWED)), BinaryCase().zipf_exponent)
        stock = generator([seed, 7], 0).permutation(np.repeat(np.arange(len(shares)), shares))
        later = stock[below(generator([seed, 7], 1), len(stock), max(0, number - len(stock)))]
        rating = RATINGS.draw(generator([seed, 7], 2), number).round(_RATING_DECIMALS)
        return np.concatenate([stock, later])[:number], rating


def join_stocks(*, seed: int = 0, rows: int = 0, subscriptions: int = 100_000, changes: int = 100_000) -> WorkloadLines:
    """`rows` stocks (default: 100 if there are enough changes), and 23 reviews for each."""
    # Most of the first changes insert reviews.
    case = JoinStocksCase(rows or rows_for(changes // 5, STOCKS))
    return WorkloadLines(
        CATALOG_SQL,
        steady(_queries(seed, subscriptions), subscriptions),
        _numbered(_rows(case, seed, changes), changes),
    )


def _queries(seed: int, number: int) -> Iterator[str]:
    ranges = BinaryCase().draw_ranges(seed, number) / DOMAIN
    ratios = (_PER * np.exp(_PER_SPAN * (ranges[:, :2] - 0.5))).round(DECIMALS)
    ratings = (RATINGS.low + (RATINGS.high - RATINGS.low) * ranges[:, 2:]).round(DECIMALS)
    for start in range(0, number, BLOCK):
        part = slice(start, start + BLOCK)
        for (per_low, per_high), (low, high) in zip(ratios[part].tolist(), ratings[part].tolist(), strict=True):
            yield (
                "SELECT * FROM stocks JOIN reviews USING (symbol) "
                f"WHERE stocks.per BETWEEN {per_low} AND {per_high} AND reviews.rating BETWEEN {low} AND {high}"
            )


def _rows(case: JoinStocksCase, seed: int, changes: int) -> Iterator[str]:
    """Change records without seqs: stocks, reviews, then the changes of one half day after the other."""
    names = symbols(case.stocks)
    rng = generator([seed, 8], 0)
    earnings = rng.lognormal(1.0, 0.8, case.stocks)
    risk = rng.uniform(0.1, 9.9, case.stocks).round(1).tolist()

    def stocks(op: str, block: Block) -> Iterator[str]:
        stock, ratio = block
        prices = (ratio * earnings[stock]).round(DECIMALS)
        for at, per, price in zip(stock.tolist(), ratio.tolist(), prices.tolist(), strict=True):
            row = f'"symbol": "{names[at]}", "sector": "{SECTORS[at % len(SECTORS)]}", "per": {per}, "risk": {risk[at]}'
            yield f'"table": "stocks", "op": "{op}", "row": {{{row}, "price": {price}}}'

    reviewed, ratings = case.draw_reviews(seed, case.reviews + changes)

    def review(number: int) -> str:
        report = repeated(f"{names[reviewed[number]]} in review {number}. ", _REPORT_BYTES)
        row = (
            f'"id": {number}, "symbol": "{names[reviewed[number]]}", "rating": {ratings[number]}, "report": "{report}"'
        )
        return f'"table": "reviews", "op": "insert", "row": {{{row}}}'

    quotes = case.quotes(seed)
    yield from stocks("insert", next(quotes))
    for number in range(case.reviews):
        yield review(number)
    replaced = count()
    for block in quotes:
        yield from stocks("update", block)
        for _ in range(max(1, round(case.reviews * _REPLACED))):
            oldest = next(replaced)
            yield review(case.reviews + oldest)
            yield f'"table": "reviews", "op": "delete", "row": {{"id": {oldest}}}'


def _numbered(rows: Iterator[str], changes: int) -> Iterator[bytes]:
    for seq, row in zip(range(1, changes + 1), rows, strict=False):
        yield f'{{"seq": {seq}, {row}}}'.encode()


def _first(blocks: Iterator[Block], number: int) -> Block:
    """The first so many quotes."""
    stocks, ratios, found = [], [], 0
    for stock, ratio in blocks:
        stocks.append(stock)
        ratios.append(ratio)
        found += len(stock)
        if found >= number:
            break
    return np.concatenate(stocks)[:number], np.concatenate(ratios)[:number]
