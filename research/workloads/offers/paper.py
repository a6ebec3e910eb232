"""The four workloads of the paper on symmetric publish/subscribe, as numbers and in the file contract.

S subscriptions (`size`) are matched with P publications at a time (`per_match`), and values are drawn such that the expected
number of matches of such a batch is known:

| workload     | constraint                          | numbers                        | matches  |
|--------------|-------------------------------------|--------------------------------|----------|
| fixed        | x = R                               | R in 1 .. S*P/5                | 5        |
| proportional | x = R                               | R in 1 .. 100*P                | S/100    |
| conjunctions | x1 = R1 AND .. AND xn = Rn          | R in 0 .. 1, n by S*P          | 3.3..6.7 |
| geometric    | b = box(..), overlaps(b, box(..))   | boxes of area 5/(S*P) and of 0 | 5        |

The paper calls the third one "large intermediate results": half of the subscriptions meet any one of its equalities.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from research.workloads.draws import BLOCK, rows_for
from tidings.workloads.draws import FloatArray, IntArray
from tidings.workloads.publications import publish, withdraw
from tidings.workloads.subscribers import steady
from tidings.workloads.workload import WorkloadLines

Numbers = TypeVar("Numbers", IntArray, FloatArray)

TABLE = "offers"
MATCHES = 5
"""Expected number of matches of a batch of publications in all workloads but the proportional one."""
ROWS_MAX = 1_000
POINT_WIDTH = 1e-9
"""Width of the boxes that stand for points: "trivially small" in the paper."""
_DECIMALS = 12


@dataclass(frozen=True)
class PaperCase(ABC, Generic[Numbers]):
    """A workload for S subscriptions and P publications at a time: its numbers, and the SQL that says the same.

    Rows of numbers are constraints. The same seed gives the same numbers, and fewer publications are the first of more.
    """

    size: int
    """S, the number of subscriptions."""
    per_match: int
    """P, the number of publications that are matched at a time."""

    @property
    @abstractmethod
    def catalog_sql(self) -> str: ...

    @property
    @abstractmethod
    def expected_matches(self) -> float:
        """Of `per_match` publications with all subscriptions."""

    @abstractmethod
    def subscriptions(self, seed: int) -> Numbers:
        """Numbers of all subscriptions, [size, width]."""

    @abstractmethod
    def publications(self, seed: int, count: int) -> Numbers:
        """Numbers of the first publications, [count, width]."""

    @abstractmethod
    def subscription_where(self, row: list[Any]) -> str:
        """The condition of the subscription with these numbers."""

    @abstractmethod
    def publication_where(self, row: list[Any]) -> str:
        """The constraint of the publication with these numbers."""

    def queries(self, numbers: Numbers) -> Iterator[str]:
        """SQL of subscriptions."""
        for row in _rows(numbers):
            yield f"SELECT * FROM {TABLE} WHERE {self.subscription_where(row)}"

    def constraints(self, numbers: Numbers) -> Iterator[str]:
        """Texts of publications."""
        return map(self.publication_where, _rows(numbers))


@dataclass(frozen=True)
class Equalities(PaperCase[IntArray]):
    """`column = R` for every column, R uniform in `low` .. `high`. Numbers are [count, columns], the same on both sides."""

    columns: tuple[str, ...]
    low: int
    high: int

    @property
    def catalog_sql(self) -> str:
        return _catalog_sql(f"{column} BIGINT" for column in self.columns)

    @property
    def expected_matches(self) -> float:
        values = self.high - self.low + 1
        return float(self.size * self.per_match / values ** len(self.columns))

    def subscriptions(self, seed: int) -> IntArray:
        return self._draw(np.random.default_rng([seed, 1]), self.size)

    def publications(self, seed: int, count: int) -> IntArray:
        return self._draw(np.random.default_rng([seed, 2]), count)

    def subscription_where(self, row: list[Any]) -> str:
        return self._template % tuple(row)

    def publication_where(self, row: list[Any]) -> str:
        return self._template % tuple(row)

    @cached_property
    def _template(self) -> str:
        return " AND ".join(f"{column} = %d" for column in self.columns)

    def _draw(self, rng: np.random.Generator, count: int) -> IntArray:
        return rng.integers(self.low, self.high, size=(count, len(self.columns)), endpoint=True)


@dataclass(frozen=True)
class Boxes(PaperCase[FloatArray]):
    """Publications are squares within the unit square, and subscriptions overlap nearly a point of it.

    Numbers are [count, 4], the corners x1, y1, x2, y2 with x1 < x2 and y1 < y2, exactly as in the SQL.
    """

    width: float
    """Of publications."""

    @property
    def catalog_sql(self) -> str:
        return _catalog_sql(["b BOX"])

    @property
    def expected_matches(self) -> float:
        return self.size * self.per_match * self.width**2

    def subscriptions(self, seed: int) -> FloatArray:
        return _squares(np.random.default_rng([seed, 1]).random((self.size, 2)), POINT_WIDTH)

    def publications(self, seed: int, count: int) -> FloatArray:
        corner = np.random.default_rng([seed, 2]).random((count, 2)) * (1 - self.width)
        return _squares(corner, self.width)

    def subscription_where(self, row: list[Any]) -> str:
        return f"overlaps(b, {_box(row)})"

    def publication_where(self, row: list[Any]) -> str:
        return f"b = {_box(row)}"


def fixed(size: int, per_match: int = 1) -> Equalities:
    return Equalities(size, per_match, ("x",), 1, max(1, size * per_match // MATCHES))


def proportional(size: int, per_match: int = 1) -> Equalities:
    return Equalities(size, per_match, ("x",), 1, 100 * per_match)


def conjunctions(size: int, per_match: int = 1) -> Equalities:
    """As many equalities as bring the expected number of matches next to 5 but not below 1; at least one."""
    pairs = size * per_match
    lengths = [length for length in range(1, 64) if pairs >= 2**length] or [1]
    best = min(lengths, key=lambda length: abs(pairs / 2**length - MATCHES))
    return Equalities(size, per_match, tuple(f"x{i + 1}" for i in range(best)), 0, 1)


def geometric(size: int, per_match: int = 1) -> Boxes:
    return Boxes(size, per_match, min(1.0, (MATCHES / max(1, size * per_match)) ** 0.5))


class PaperGenerator(Protocol):
    def __call__(
        self, *, seed: int = 0, rows: int = 0, subscriptions: int = 100_000, changes: int = 100_000, per_match: int = 1
    ) -> WorkloadLines:
        """A workload in the file contract whose numbers are drawn for `per_match` publications at a time."""
        ...


def _workload(
    make: Callable[[int, int], PaperCase[Any]],
    *,
    seed: int = 0,
    rows: int = 0,
    subscriptions: int = 100_000,
    changes: int = 100_000,
    per_match: int = 1,
) -> WorkloadLines:
    """`rows` offers (default: 1,000 if there are enough changes); then the oldest is deleted and a new one inserted, in turn.

    All subscriptions exist from the start and are never dropped.
    """
    case = make(subscriptions, per_match)
    queries = case.queries(case.subscriptions(seed))
    lines = _changes(case, seed, rows or rows_for(changes, ROWS_MAX), changes)
    return WorkloadLines(case.catalog_sql, steady(queries, subscriptions), lines)


offers_fixed: PaperGenerator = partial(_workload, fixed)
offers_proportional: PaperGenerator = partial(_workload, proportional)
offers_conjunctions: PaperGenerator = partial(_workload, conjunctions)
offers_geometric: PaperGenerator = partial(_workload, geometric)


def _changes(case: PaperCase[Any], seed: int, rows: int, changes: int) -> Iterator[bytes]:
    published = min(rows, changes) + max(0, changes - rows) // 2
    constraints = case.constraints(case.publications(seed, published))
    first = following = 1
    for seq in range(1, changes + 1):
        if seq > rows and (seq - rows) % 2 == 1:
            yield withdraw(seq, TABLE, f"p{first}")
            first += 1
        else:
            yield publish(seq, TABLE, "insert", f"p{following}", next(constraints))
            following += 1


def _catalog_sql(columns: Iterator[str] | list[str]) -> str:
    return f"CREATE TABLE {TABLE} ({', '.join(columns)}) WITH (rows = 'constraints');\n"


def _rows(numbers: IntArray | FloatArray) -> Iterator[list[Any]]:
    for start in range(0, len(numbers), BLOCK):
        yield from numbers[start : start + BLOCK].tolist()


def _squares(corner: FloatArray, width: float) -> FloatArray:
    """Squares by their lower left corners. Rounded, so that decimals in SQL are exactly these numbers."""
    return np.concatenate([corner, corner + width], axis=1).round(_DECIMALS)


def _box(row: list[float]) -> str:
    # Never with an exponent, as repr would have it for numbers near 0.
    return "box({:.12f}, {:.12f}, {:.12f}, {:.12f})".format(*row)
