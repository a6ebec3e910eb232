"""What it costs that publications are constraints instead of constants (sections 1.1 and 9), in three workloads.

Constants and ranges are published to the same kind of subscriptions; domains are so large that both match 5 of these:

    values      x = R                         published x = R, or a range of x
    ranges      x BETWEEN R AND R + width     the same
    several     three such ranges             published three values, or three ranges
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from research.bench.offers.cases import Case, Intervals, OffersData
from research.bench.offers.index import Loaded, Searched
from research.bench.offers.peers import find_postgres
from research.experiments.offers.sweeps import match_figures, search_figures
from research.experiments.paper import Config, Rows, Say
from research.workloads.offers.paper import MATCHES, Equalities

_WIDTH = 9
"""Of ranges: so much greater is the upper end."""
_SEARCHES = 1_000
WORKLOADS = {"values": (1, 0), "ranges": (1, _WIDTH), "several": (3, _WIDTH)}
"""Attributes, and width of subscriptions."""


@dataclass(frozen=True)
class _Ranged(OffersData):
    """Integer ranges on both sides."""

    attributes: int
    wanted: int
    """Width of subscriptions."""
    offered: int
    """Width of publications."""

    @property
    def domain(self) -> int:
        """Values of an attribute: two ranges meet with a probability of (1 + both widths) / values."""
        each: float = (self.size / MATCHES) ** (1 / self.attributes)
        return round((1 + self.wanted + self.offered) * each)

    @cached_property
    def subscriptions(self) -> Intervals:
        return self._drawn(1, self.size, self.wanted)

    def publications(self, count: int) -> Intervals:
        return self._drawn(2, count, self.offered)

    def _drawn(self, stream: int, count: int, width: int) -> Intervals:
        low = np.random.default_rng([self.seed, stream]).integers(0, self.domain, (count, self.attributes))
        return Intervals(low, low + width)


def run(config: Config, seed: int, say: Say) -> Rows:
    with ExitStack() as stack:
        postgres = find_postgres(stack, say)
        rows = []
        for name, (attributes, wanted) in WORKLOADS.items():
            row: dict[str, Any] = {"workload": name}
            for kind, offered in (("constants", 0), ("constraints", _WIDTH)):
                data = _data(name, config["subscriptions"], seed, attributes, wanted, offered)
                say(f"{name}, {kind}")
                loaded, searched = Loaded.of(data), Searched(data, _SEARCHES)
                row |= search_figures(loaded, searched, data, f"{kind}_")
                if postgres is not None:
                    with postgres.loaded(data, lambda _: None) as database:
                        row |= match_figures(database, loaded, searched, data, config["budget_s"], f"{kind}_")
            rows.append(row)
        return rows


def _data(name: str, size: int, seed: int, attributes: int, wanted: int, offered: int) -> _Ranged:
    columns = tuple(f"x{i + 1}" for i in range(attributes))
    case = Case(name, name, lambda size, per_match: Equalities(size, per_match, columns, 0, 0), size)
    return _Ranged(case, size, 1, seed, attributes, wanted, offered)
