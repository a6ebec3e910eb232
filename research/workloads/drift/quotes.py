"""The table of the drift workloads, random walks of prices, and change lines for given prices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from research.workloads.draws import BLOCK
from tidings.workloads.draws import FloatArray, IntArray

CATALOG_SQL = "CREATE TABLE quotes (symbol TEXT PRIMARY KEY, price DOUBLE, volume BIGINT, quoted_at TIMESTAMP);\n"

_CLOCK_START = np.datetime64("2026-01-05T09:30:00", "s")
_VOLUME_MAX = 100_000


def symbols(items: int) -> list[str]:
    return [f"S{item}" for item in range(items)]


def following(names: Sequence[str], rounds: Iterable[FloatArray], changes: int, seed: int) -> Iterator[bytes]:
    """Changes 1, 2, .. in which every item in turn takes its price from the rounds; the first round inserts.

    A change comes every second.
    """
    rng = np.random.default_rng([seed, 11])
    seq = 0
    for block in rounds:
        if seq >= changes:
            return
        prices = block.ravel()[: changes - seq].round(2)
        numbers = np.arange(seq + 1, seq + 1 + len(prices))
        columns = (numbers.tolist(), prices.tolist(), volumes(rng, len(prices)).tolist(), clock(numbers))
        for number, price, volume, time in zip(*columns, strict=True):
            op = "insert" if number <= len(names) else "update"
            yield change(number, op, row(names[(number - 1) % len(names)], price, volume, time))
        seq += len(prices)


def volumes(rng: np.random.Generator, count: int) -> IntArray:
    return rng.integers(1, _VOLUME_MAX + 1, size=count)


def clock(seconds: IntArray) -> list[str]:
    """Moments so many seconds after the clock was started, as text."""
    texts: list[str] = np.datetime_as_string(_CLOCK_START + seconds.astype("timedelta64[s]")).tolist()
    return texts


def change(seq: int, op: str, members: str) -> bytes:
    """A line; `members` are those of the row."""
    return f'{{"seq": {seq}, "table": "quotes", "op": "{op}", "row": {{{members}}}}}'.encode()


def row(symbol: str, price: float, volume: int, time: str) -> str:
    """A row's members in JSON; symbols need no escaping."""
    return f'"symbol": "{symbol}", "price": {price}, "volume": {volume}, "quoted_at": "{time}"'


@dataclass(frozen=True)
class Walk:
    """How a value moves: U_i = drift + U_(i-1) + N(0, sigma)."""

    start: float
    sigma: float
    drift: float = 0.0
    floor: float | None = None
    """The value is reflected here; None: it may go anywhere."""

    def first(self, items: int) -> FloatArray:
        """The round in which every item gets its first value."""
        return np.full((1, items), self.start)

    def rounds(self, rng: np.random.Generator, items: int) -> Iterator[FloatArray]:
        """Blocks without end, [rounds, items]: in every round each item makes a step, the first from `start`."""
        at = np.full(items, self.start)
        while True:
            steps = rng.normal(self.drift, self.sigma, size=(rounds_of_block(items), items))
            walked = at + np.cumsum(steps, axis=0)
            at = walked[-1]
            yield walked if self.floor is None else reflected(walked, self.floor)


def rounds_of_block(items: int) -> int:
    """Number of rounds of a block of about `BLOCK` values."""
    return max(1, BLOCK // items)


def reflected(values: FloatArray, floor: float) -> FloatArray:
    """A path reflected at the floor: below it every step has the opposite sign."""
    folded: FloatArray = floor + np.abs(values - floor)
    return folded
