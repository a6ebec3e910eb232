"""Changes of the market workload, in blocks: numbers are drawn and walked columnar, only the text is made line by line.

State per stock is its price and whether it is listed. A review's symbol follows from its id, so that any number of reviews
costs no memory. Offers, where there are any, are made by `offers.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from tidings.workloads.draws import FloatArray, IntArray, draw
from tidings.workloads.market.listing import Listing
from tidings.workloads.market.offers import OfferWalk
from tidings.workloads.market.turnover import StrArray, Turnover

BLOCK = 8_192
_STOCKS, _REVIEWS = 0.90, 0.98
"""Running shares of the tables among changes that are not about offers; the rest goes to analysts."""
_DELISTED, _UPSERTED, _GAPS = 0.005, 0.02, 0.01
_STEP, _PULL = 0.008, 0.01
"""Size of a price's step, and strength of the pull back to the stock's mean."""
_RERATED = 0.01
"""Share of the stocks whose risk changes in every block."""

_REVIEW_PATTERN = ("insert", "update", "insert", "update", "delete", "update", "insert", "update")
_REPORTS = (
    *("null", '"solid quarter, outlook raised"', '"margins under pressure"', '"hold until the next report"'),
    *('"new product line, strong demand"', '"debt too high"', '"cheap, and for a reason"', '"best of its class"'),
    *('"new management: wait and see…"', '"dividend cut likely"', '"takeover rumours"', '"steady"'),
)


class ChangeWalk:
    """Gives block after block of change lines, seq strictly ascending with a few gaps."""

    def __init__(self, listing: Listing, seed: int, offers: OfferWalk | None) -> None:
        """offers: None if there are none."""
        self._listing = listing
        self._offers = offers
        self._rng = np.random.default_rng([seed, 2])
        self._seq = 0
        self._log_price = listing.log_price.copy()
        self._listed = np.zeros(len(listing), np.bool_)
        self._stock_heads = [
            f'"symbol": "{symbol}", "sector": "{sector}", "per": '
            for symbol, sector in zip(listing.symbols, listing.sectors, strict=True)
        ]
        self._risks = [repr(risk) for risk in listing.risk.tolist()]
        for unrated in np.flatnonzero(self._rng.random(len(listing)) < 0.01).tolist():
            self._risks[unrated] = "null"
        symbol_of_review = draw(listing.popularity, self._rng.random(65_536)).tolist()
        self._review_heads = [f'"symbol": "{listing.symbols[stock]}", "rating": ' for stock in symbol_of_review]
        self._review_turnover = Turnover(_REVIEW_PATTERN)
        self._analyst_heads = [
            f'"id": {id}, "name": {_quoted(name)}, "firm": {_quoted(firm)}, "score": '
            for id, (name, firm) in enumerate(listing.analysts, 1)
        ]
        self._filling = self._fill()

    def next_block(self) -> list[bytes]:
        """The next lines: about `BLOCK` of them, never none."""
        for block in self._filling:
            return block
        is_offer = np.zeros(BLOCK, np.bool_) if self._offers is None else self._offers.places(BLOCK)
        # Offers draw from numbers of their own: without them the other lines are as they were.
        kind = np.full(BLOCK, np.nan)
        kind[~is_offer] = self._rng.random(BLOCK - int(is_offer.sum()))
        seq = self._next_seqs(BLOCK)
        lines: list[bytes] = [b""] * BLOCK
        if self._offers is not None:
            at = np.flatnonzero(is_offer)
            _put(lines, at, self._offers.live(seq[at]))
        at = np.flatnonzero(kind < _STOCKS)
        _put(lines, at, self._live_stocks(seq[at]))
        at = np.flatnonzero((kind >= _STOCKS) & (kind < _REVIEWS))
        _put(lines, at, self._live_reviews(seq[at]))
        at = np.flatnonzero(kind >= _REVIEWS)
        _put(lines, at, self._analysts(seq[at], self._rng.integers(len(self._analyst_heads), size=len(at)), "update"))
        return lines

    def _fill(self) -> Iterator[list[bytes]]:
        """Inserts of all rows at the start."""
        for stocks in _runs(len(self._listing)):
            inserted = np.full(len(stocks), "insert")
            yield self._stocks(self._next_seqs(len(stocks)), stocks, self._log_price[stocks], inserted)
            self._listed[stocks] = True
        for analysts in _runs(len(self._analyst_heads)):
            yield self._analysts(self._next_seqs(len(analysts)), analysts, "insert")
        for reviews in _runs(len(self._listing) // 2):
            ids = self._review_turnover.inserts(len(reviews))
            yield self._reviews(self._next_seqs(len(reviews)), ids, np.full(len(reviews), "insert"))
        if self._offers is not None:
            for offers in _runs(self._offers.filling):
                yield self._offers.inserts(self._next_seqs(len(offers)))

    def _next_seqs(self, count: int) -> IntArray:
        steps = np.ones(count, np.int64)
        has_gap = self._rng.random(count) < _GAPS
        steps[has_gap] += self._rng.integers(1, 10, size=int(has_gap.sum()))
        seqs = self._seq + np.cumsum(steps)
        self._seq = int(seqs[-1])
        return seqs

    def _live_stocks(self, seq: IntArray) -> list[bytes]:
        """Changes of stocks: prices walk; rarely a stock is deleted, and inserted again at its next change."""
        rng, count = self._rng, len(seq)
        wants_out = rng.random(count) < _DELISTED
        stock = draw(self._listing.popularity, rng.random(count))
        stock[wants_out] = rng.integers(len(self._listing), size=int(wants_out.sum()))
        order = np.argsort(stock, kind="stable")
        own = stock[order]
        is_first = np.diff(own, prepend=-1) != 0
        follows_out = ~is_first & np.roll(wants_out[order], 1)
        is_unlisted = is_first & ~self._listed[own]
        is_out = wants_out[order] & ~follows_out & ~is_unlisted
        is_back = is_unlisted | (~is_first & np.roll(is_out, 1))
        ops = np.where(rng.random(count) < _UPSERTED, "upsert", np.where(is_back, "insert", "update"))
        ops[is_out] = "delete"
        # Sums of the steps within each stock: the running sum of all, less its value before the stock's first step.
        starts = np.flatnonzero(is_first)
        lengths = np.diff(starts, append=count)
        steps = _STEP * rng.standard_t(4, size=count)
        walked = np.cumsum(steps)
        walked -= np.repeat((walked - steps)[starts], lengths)
        home = self._listing.log_price[own]
        log_price = home + (self._log_price[own] - home) * (1 - _PULL) ** np.repeat(lengths, lengths) + walked
        ends = starts + lengths - 1
        self._log_price[own[ends]] = log_price[ends]
        self._listed[own[ends]] = ~is_out[ends]
        self._rerate()
        back = np.empty(count, np.int64)
        back[order] = np.arange(count)
        return self._stocks(seq, stock, log_price[back], ops[back])

    def _rerate(self) -> None:
        rng = self._rng
        for stock in rng.integers(len(self._listing), size=max(1, int(_RERATED * len(self._listing)))).tolist():
            seen = self._listing.risk[stock] + 0.5 * rng.standard_normal()
            self._risks[stock] = repr(round(float(np.clip(seen, 0.1, 9.9)), 1))

    def _stocks(self, seq: IntArray, stock: IntArray, log_price: FloatArray, op: StrArray) -> list[bytes]:
        prices = np.exp(log_price)
        pers = (prices / self._listing.earnings[stock]).round(2)
        lines = []
        heads, risks, symbols = self._stock_heads, self._risks, self._listing.symbols
        for number, at, per, price, name in zip(
            seq.tolist(), stock.tolist(), pers.tolist(), prices.round(2).tolist(), op.tolist(), strict=True
        ):
            row = f'"symbol": "{symbols[at]}"'
            if name != "delete":
                # Only NaN differs from itself.
                row = f'{heads[at]}{per if per == per else "null"}, "risk": {risks[at]}, "price": {price}'
            lines.append(f'{{"seq": {number}, "table": "stocks", "op": "{name}", "row": {{{row}}}}}'.encode())
        return lines

    def _live_reviews(self, seq: IntArray) -> list[bytes]:
        return self._reviews(seq, *self._review_turnover.events(self._rng, len(seq)))

    def _reviews(self, seq: IntArray, ids: IntArray, op: StrArray) -> list[bytes]:
        ratings = (10 * self._rng.beta(3.0, 2.0, size=len(seq))).round(1).tolist()
        reports = self._rng.integers(len(_REPORTS), size=len(seq)).tolist()
        lines = []
        for number, id, rating, report, name in zip(
            seq.tolist(), ids.tolist(), ratings, reports, op.tolist(), strict=True
        ):
            rest = (
                "" if name == "delete" else f', {self._review_heads[id & 65_535]}{rating}, "report": {_REPORTS[report]}'
            )
            lines.append(
                f'{{"seq": {number}, "table": "reviews", "op": "{name}", "row": {{"id": {id}{rest}}}}}'.encode()
            )
        return lines

    def _analysts(self, seq: IntArray, analysts: IntArray, op: str) -> list[bytes]:
        scores = (100 * self._rng.beta(4.0, 3.0, size=len(seq))).round(1).tolist()
        heads = self._analyst_heads
        return [
            f'{{"seq": {number}, "table": "analysts", "op": "{op}", "row": {{{heads[at]}{score}}}}}'.encode()
            for number, at, score in zip(seq.tolist(), analysts.tolist(), scores, strict=True)
        ]


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _runs(count: int) -> Iterator[IntArray]:
    """0, 1, .. count - 1 in runs of at most BLOCK."""
    for start in range(0, count, BLOCK):
        yield np.arange(start, min(start + BLOCK, count))


def _put(lines: list[bytes], at: IntArray, made: list[bytes]) -> None:
    for place, line in zip(at.tolist(), made, strict=True):
        lines[place] = line
