"""Random moves through every level of the drift index, compared with plain recomputation, member by member.

Values and reaches are small multiples of a quarter, so that thresholds are often met exactly; members come and go
between the moves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tidings.bench.drift_members import Members, box_moves
from tidings.bench.drift_timeline import FloatArray
from tidings.families.drift.kernels.threshold_index import (
    ABSOLUTE,
    CHOOSE,
    NO_TIME,
    PERCENT,
    RATIO,
    ThresholdIndex,
    Touched,
)
from tidings.families.drift.movement import interval_around
from tidings.model.codes import BoolArray
from tidings.sql.shape import MovementKind

_MEMBERS = 200
_MOVES_AT_A_TIME = 250
_NEWCOMERS = 8
"""So many members come, and at most so many go, between two batches of moves."""

_KINDS: Mapping[MovementKind, int] = {"moved": ABSOLUTE, "moved_percent": PERCENT, "moved_ratio": RATIO}


@dataclass(frozen=True)
class Level:
    """What reaches there are: so many, `step` apart, above `base`."""

    label: str
    kind: MovementKind
    reaches: int
    step: float
    base: float = 0.0

    def draw(self, rng: np.random.Generator, count: int) -> FloatArray:
        return np.asarray(self.base + self.step * rng.integers(1, self.reaches + 1, size=count), np.float64)


LEVELS: Mapping[str, Level] = {
    "radii": Level("different radii", "moved", 4_000, 1 / 64),
    "same": Level("same radius", "moved", 1, 10.0),
    "all": Level("all radii", "moved", 40, 0.5),
    "percent": Level("all percentages", "moved_percent", 40, 0.5),
    "ratio": Level("all ratios", "moved_ratio", 40, 1 / 64, base=1.0),
}


def differences(level: Level, moves: int, seed: int) -> tuple[int, int]:
    """(decisions that differ from the definition, members told) over so many moves of one value."""
    rng = np.random.default_rng([seed, moves])
    run = _Run(level, rng)
    wrong = told = 0
    for start in range(0, moves, _MOVES_AT_A_TIME):
        values = run.walk(min(_MOVES_AT_A_TIME, moves - start))
        expected = run.expected(values)
        found = run.found(values)
        wrong += int((expected != found).sum())
        told += int(expected.sum())
        run.churn()
    return wrong, told


class _Run:
    """The index, and beside it every member with the value it was last told."""

    def __init__(self, level: Level, rng: np.random.Generator) -> None:
        self._level = level
        self._rng = rng
        self._value = 100.0
        self._anchors = ThresholdIndex(_KINDS[level.kind])
        self._audience = self._anchors.new_audience()
        self._item = int(self._anchors.new_items([self._audience], [self._value], [NO_TIME])[0])
        self._reach, self._told = np.empty(0), np.empty(0)
        self._label = np.empty(0, np.int64)
        self._add(_MEMBERS)

    def walk(self, count: int) -> FloatArray:
        """Steps of all sizes, also none; always above zero, where ratios are defined."""
        scale = self._rng.choice([0.25, 1.0, 4.0, 16.0])
        steps = np.round(self._rng.normal(0, scale, size=count) * 4) / 4
        values: FloatArray = 0.25 + np.abs(self._value + np.cumsum(steps) - 0.25)
        self._value = float(values[-1])
        return values

    def expected(self, values: FloatArray) -> BoolArray:
        """[moves, members] who is told, by the definition."""
        is_told = np.empty((len(values), len(self._reach)), np.bool_)
        low, high = self._thresholds(self._told, self._reach)
        for row, value in zip(is_told, values.tolist(), strict=True):
            np.logical_or(value >= high, value <= low, out=row)
            at = np.flatnonzero(row)
            if len(at):
                self._told[at] = value
                low[at], high[at] = self._thresholds(self._told[at], self._reach[at])
        return is_told

    def _thresholds(self, told: FloatArray, reach: FloatArray) -> tuple[FloatArray, FloatArray]:
        # The definition is written for numbers; the same expressions hold for arrays of them.
        low, high = interval_around(self._level.kind, told, reach)  # type: ignore[arg-type]
        return np.asarray(low), np.asarray(high)

    def found(self, values: FloatArray) -> BoolArray:
        """[moves, members] who is told, by the index."""
        items = np.full(len(values), self._item)
        touched = self._anchors.move(items, values, np.full(len(values), NO_TIME))
        return _matrix(Members(np.zeros(len(self._reach), np.int64), self._reach, self._label), touched)

    def churn(self) -> None:
        leaving = self._rng.choice(
            len(self._reach), size=min(_NEWCOMERS, len(self._reach) - _MEMBERS // 2), replace=False
        )
        audience = np.full(len(leaving), self._audience)
        self._anchors.remove(audience, self._reach[leaving], self._label[leaving])
        self._reach, self._told = np.delete(self._reach, leaving), np.delete(self._told, leaving)
        self._label = np.delete(self._label, leaving)
        self._add(_NEWCOMERS)

    def _add(self, count: int) -> None:
        reach = self._level.draw(self._rng, count)
        label = self._anchors.add(np.full(count, self._audience), reach, np.full(count, CHOOSE))
        self._reach = np.append(self._reach, reach)
        self._label = np.append(self._label, label)
        self._told = np.append(self._told, np.full(count, self._value))


def _matrix(members: Members, touched: Touched) -> BoolArray:
    """Boxes as a table: [moves, members] who is in one."""
    moves = box_moves(touched)
    start, stop = members.ranges(np.zeros(len(moves), np.int64), touched)
    steps = np.zeros((len(touched.starts) - 1, len(members.order) + 1), np.int64)
    np.add.at(steps, (moves, start), 1)
    np.add.at(steps, (moves, stop), -1)
    is_in = np.empty((len(steps), len(members.order)), np.bool_)
    is_in[:, members.order] = np.cumsum(steps, axis=1)[:, :-1] > 0
    return is_in
