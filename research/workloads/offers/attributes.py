"""The fifty attributes of the marketplace: names, types, and the values that each takes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass

Literal = Callable[[float], str]
"""share (0 to 1) -> the SQL literal of the value at that share of the way from the lowest to the highest value.

For text, whose order does not matter here, from the most popular word to the least popular one.
"""

_SYLLABLES = (
    "al",
    "bor",
    "cas",
    "den",
    "el",
    "fir",
    "gan",
    "hol",
    "is",
    "jor",
    "kel",
    "lum",
    "mar",
    "nor",
    "or",
    "pel",
)
_FIRST_DAY = dt.date(2026, 1, 1)
_DAYS = 365


@dataclass(frozen=True)
class Attribute:
    name: str
    type: str
    literal: Literal


def word(number: int) -> str:
    """Another word of three syllables for every number below 4,096."""
    count = len(_SYLLABLES)
    # Multiplying by an odd number visits every combination of syllables once, in no visible order.
    rest = number * 1_237 % count**3
    return "".join(_SYLLABLES[rest // count**place % count] for place in range(3))


def _text(name: str, words: int) -> Attribute:
    """A tenth of the draws has one of the first hundredth of the words."""
    return Attribute(name, "TEXT", lambda share: f"'{word(int(words * share**2))}'")


def _integer(name: str, low: int, high: int) -> Attribute:
    return Attribute(name, "BIGINT", lambda share: str(int(low * (high / low) ** share)))


def _double(name: str, low: float, high: float) -> Attribute:
    return Attribute(name, "DOUBLE", lambda share: f"{low * (high / low) ** share:.2f}")


def _date(name: str) -> Attribute:
    return Attribute(name, "DATE", lambda share: f"'{_FIRST_DAY + dt.timedelta(days=int(_DAYS * share))}'")


def _flag(name: str) -> Attribute:
    return Attribute(name, "BOOLEAN", lambda share: "TRUE" if share < 0.7 else "FALSE")


PRICE = _double("price", 0.5, 2_000.0)
ATTRIBUTES = (
    _text("topic", 400),
    PRICE,
    _integer("lot", 1, 100_000),
    _text("brand", 300),
    _date("available"),
    _text("city", 200),
    _double("rating", 1.0, 10.0),
    _flag("is_new"),
    _text("colour", 24),
    _text("material", 40),
    _integer("vintage", 1950, 2026),
    _double("weight", 0.01, 500.0),
    _date("delivery"),
    _text("origin", 60),
    _integer("stock", 1, 10_000),
    _flag("is_organic"),
    _double("discount", 1.0, 80.0),
    _text("grade", 12),
    _integer("pieces", 1, 1_000),
    _double("shipping", 0.5, 90.0),
    _text("carrier", 20),
    _integer("warranty_months", 6, 120),
    _double("distance", 0.1, 900.0),
    _flag("is_returnable"),
    _text("finish", 16),
    _date("made"),
    _integer("watts", 5, 5_000),
    _double("depth", 0.5, 300.0),
    _text("season", 8),
    _double("width", 0.5, 300.0),
    _integer("capacity", 1, 2_000),
    _flag("is_insured"),
    _double("height", 0.5, 300.0),
    _text("packaging", 14),
    _integer("pages", 8, 2_000),
    _date("inspected"),
    _text("edition", 30),
    _double("fee", 0.1, 50.0),
    _integer("voltage", 1, 400),
    _flag("is_local"),
    _text("currency", 20),
    _double("purity", 10.0, 99.99),
    _integer("seats", 1, 60),
    _date("harvested"),
    _text("licence", 18),
    _double("efficiency", 10.0, 99.0),
    _integer("range_km", 20, 1_200),
    _flag("is_certified"),
    _text("certificate", 25),
    _date("deadline"),
)
"""The most popular one first."""
