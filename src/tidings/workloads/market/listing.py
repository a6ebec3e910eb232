"""Rows at the start of the market workload: symbols with sectors, popularity and mean prices; analysts and their firms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidings.workloads.draws import FloatArray, draw, zipf

SECTORS = (
    *("tech", "health", "finance", "retail", "energy", "industry", "telecom", "media"),
    *("food", "transport", "utilities", "materials", "leisure", "property", "defence", "mining"),
)
FIRMS = ("Northgate", "Halyard & Co", "Brücke", "Silverfern", "Okafor Partners", "Lindqvist", "Meridian", "Tanaka Kai")
_WELL_KNOWN = ("GOOG", "AAPL", "MSFT", "AMZN", "TSLA", "IBM", "ORCL", "SAP")
_ANALYST_FIRST_NAMES = ("Ada", "Bo", "Chidi", "Dana", "Eun", "Farah", "Gita", "Hugo", "Inés", "Jun", "Kofi", "Lena")
_ANALYST_LAST_NAMES = ("Abe", "Brandt", "Costa", "Diallo", "Ek", "Fischer", "García", "Haddad", "Ito", "Jensen")


@dataclass(frozen=True)
class Listing:
    """Stock i is the i-th most popular. Every array has a value per stock."""

    symbols: list[str]
    sectors: list[str]
    popularity: FloatArray
    """Running sum of the stocks' shares of attention."""
    log_price: FloatArray
    """Logarithm of the mean that the price walks around."""
    earnings: FloatArray
    """Per share; NaN for a company that makes a loss, which has no PER."""
    risk: FloatArray
    analysts: list[tuple[str, str]]
    """Name and firm."""

    @staticmethod
    def make(seed: int, symbols: int) -> Listing:
        rng = np.random.default_rng([seed, 1])
        sector = draw(np.cumsum(zipf(len(SECTORS), 1.0, 1.0)), rng.random(symbols))
        # A sector's place on the scales of PER and risk: growth is dear, heavy industry cheap, and dear is risky.
        growth = rng.permuted(np.linspace(-1.0, 1.0, len(SECTORS)))
        own_growth = growth[sector] + 0.35 * rng.standard_normal(symbols)
        per = np.exp(np.log(18.0) + 0.6 * own_growth)
        risk = np.clip(4.5 + 1.8 * own_growth + 0.8 * rng.standard_normal(symbols), 0.1, 9.9)
        log_price = np.log(60.0) + 1.0 * rng.standard_normal(symbols)
        earnings = np.where(rng.random(symbols) < 0.03, np.nan, np.exp(log_price) / per)
        return Listing(
            _tickers(symbols),
            [SECTORS[i] for i in sector.tolist()],
            np.cumsum(zipf(symbols, 1.0, 15.0)),
            log_price,
            earnings,
            risk.round(1),
            _analysts(rng, max(10, symbols // 20)),
        )

    def __len__(self) -> int:
        return len(self.symbols)


def _tickers(count: int) -> list[str]:
    """Distinct symbols of four letters, or more if these are used up; the first ones are well known."""
    letters = 4
    while 26**letters < 2 * count:
        letters += 1
    known = list(_WELL_KNOWN[:count])
    taken = set(known)
    tickers = known
    number = 0
    while len(tickers) < count:
        number += 1
        # Multiplying by a number prime to 26 visits every combination of letters once, in no visible order.
        rest = number * 1_000_003 % 26**letters
        ticker = "".join(chr(ord("A") + rest // 26**place % 26) for place in range(letters))
        if ticker not in taken:
            tickers.append(ticker)
    return tickers


def _analysts(rng: np.random.Generator, count: int) -> list[tuple[str, str]]:
    first = rng.integers(len(_ANALYST_FIRST_NAMES), size=count).tolist()
    last = rng.integers(len(_ANALYST_LAST_NAMES), size=count).tolist()
    firm = draw(np.cumsum(zipf(len(FIRMS), 1.0, 0.5)), rng.random(count)).tolist()
    return [
        (f"{_ANALYST_FIRST_NAMES[a]} {_ANALYST_LAST_NAMES[b]}", FIRMS[c])
        for a, b, c in zip(first, last, firm, strict=True)
    ]
