"""Three customers of the market, for the demo: what they ask for, in words and in SQL, and why they are notified."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable
from itertools import zip_longest
from typing import Any, NamedTuple

Row = dict[str, Any]

_WATCHED = ("GOOG", "AAPL", "AMZN", "IBM")
_LOW, _HIGH = 14, 16
_VERSIONS_MAX = 20_000
"""Of each watched stock: more than the feed is ahead of the notifications."""


class Customer(NamedTuple):
    name: str
    wish: str
    sql: str


ADA = Customer(
    "Ada",
    f"GOOG, AAPL, AMZN or IBM while its P/E is between {_LOW} and {_HIGH}",
    f"SELECT * FROM stocks WHERE symbol IN ({', '.join(map(repr, _WATCHED))}) AND per BETWEEN {_LOW} AND {_HIGH}",
)
BEN = Customer(
    "Ben",
    "the three cheapest tech stocks that are not too risky",
    "SELECT symbol, per FROM stocks WHERE sector = 'tech' AND risk <= 6 ORDER BY per LIMIT 3",
)
CLEO = Customer(
    "Cleo",
    "GOOG when its price has moved by 2 percent since the last time",
    "SELECT symbol, price FROM stocks WHERE symbol = 'GOOG' AND moved_percent(price) >= 2",
)
CUSTOMERS = (ADA, BEN, CLEO)


class Reasons:
    """Puts notifications of the customers into words. Must see the changes that go in: a row that leaves Ada's range is told
    as it was, and the reason is what it has become.
    """

    def __init__(self) -> None:
        self._versions: dict[str, deque[Row | None]] = {symbol: deque(maxlen=_VERSIONS_MAX) for symbol in _WATCHED}
        self._words: dict[str, Callable[[list[Row]], list[str]]] = {"Ada": self._ada, "Ben": _ben, "Cleo": _cleo}

    def see(self, changes: Iterable[bytes]) -> None:
        """Takes change lines, in their order."""
        for line in changes:
            if (found := _STOCK.search(line)) is not None and (
                known := self._versions.get(found[1].decode())
            ) is not None:
                change = json.loads(line)
                known.append(None if change["op"] == "delete" else change["row"])

    def words(self, name: str, changes: list[Row]) -> list[str]:
        """What a customer is told, and why. changes: of one notification."""
        return self._words[name](changes)

    def _ada(self, changes: list[Row]) -> list[str]:
        found = []
        for change in changes:
            row = change["row"]
            if change["op"] == "insert":
                found.append(f"{row['symbol']} came into the range: P/E {row['per']}{self._outside(row, -1)}")
            elif change["op"] == "delete":
                found.append(f"{row['symbol']} left the range{self._outside(row, 1)}")
            else:
                old = change["old"]
                found.append(f"{row['symbol']} moved within the range: P/E {old['per']} -> {row['per']}")
        return found

    def _outside(self, row: Row, step: int) -> str:
        """What the row was before (step -1) or became (step 1), outside of the range: the reason why it came or left."""
        versions = list(self._versions[row["symbol"]])
        for at in range(len(versions) - 1, -1, -1):
            if versions[at] != row or not 0 <= at + step < len(versions):
                continue
            other = versions[at + step]
            if other is None or other["per"] is None:
                return ", just listed" if step < 0 else ": it is no longer listed"
            if not _LOW <= other["per"] <= _HIGH:
                sign = f"< {_LOW}" if other["per"] < _LOW else f"> {_HIGH}"
                return f", after {other['per']} {sign}" if step < 0 else f": P/E {other['per']} {sign}"
        return ""


_STOCK = re.compile(rb'"table": "stocks".*"symbol": "([^"]*)"')


def _ben(changes: list[Row]) -> list[str]:
    came: list[Row] = []
    went: list[Row] = []
    found = []
    for change in changes:
        row = change["row"]
        if change["op"] == "update":
            found.append(f"{row['symbol']} is still among the three: P/E {change['old']['per']} -> {row['per']}")
        else:
            (came if change["op"] == "insert" else went).append(row)
    for new, old in zip_longest(came, went):
        if old is None:
            found.append(f"{new['symbol']} came among the three: P/E {new['per']}")
        elif new is None:
            found.append(f"{old['symbol']} is no longer among the three; its P/E was {old['per']}")
        elif new["per"] < old["per"]:
            found.append(f"{new['symbol']} came among the three: P/E {new['per']} < {old['per']} of {old['symbol']}")
        else:
            # It did not get cheaper: the other one has become dearer or riskier, or is gone.
            found.append(f"{new['symbol']} moved up: P/E {new['per']}; {old['symbol']}, last at {old['per']}, fell out")
    return found


def _cleo(changes: list[Row]) -> list[str]:
    found = []
    for change in changes:
        price = change["row"]["price"]
        if change["op"] == "update":
            old = change["old"]["price"]
            found.append(f"GOOG moved by {100 * (price - old) / old:+.1f} %: {old} -> {price}")
        else:
            found.append(
                f"GOOG is {'listed at' if change['op'] == 'insert' else 'no longer listed; it was at'} {price}"
            )
    return found
