"""What is quoted in the mixed drift workload: items, how popular they are, and where their prices live."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidings.workloads.drift_quotes import symbols
from tidings.workloads.drift_walk import FloatArray
from tidings.workloads.market_listing import zipf


@dataclass(frozen=True)
class Items:
    """Item i is the i-th most popular. Every array has a value per item."""

    symbols: list[str]
    popularity: FloatArray
    """Running sum of the items' shares of attention."""
    log_price: FloatArray
    """Where a price lives: it walks around this."""

    @staticmethod
    def make(seed: int, count: int) -> Items:
        rng = np.random.default_rng([seed, 1])
        log_price = np.log(40.0) + rng.standard_normal(count)
        return Items(symbols(count), np.cumsum(zipf(count, 1.0, 2.0)), log_price)

    def __len__(self) -> int:
        return len(self.symbols)
