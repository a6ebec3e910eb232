"""The cases of the drift bench, after the paper's: timelines whose members all subscribe before the measured moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from research.bench.drift.data import Timeline
from research.workloads.drift.all import drift_all
from research.workloads.drift.radii import drift_radii
from research.workloads.drift.same import SameCase, drift_same

ITEMS = 1_000
_PRELUDE = 10_000
"""Moves during which members subscribe, for cases where they must not all start from the same value."""


@dataclass(frozen=True)
class Case:
    label: str
    make: Callable[[int, int, int], Timeline]
    """(members, moves after all have subscribed, seed) -> timeline"""


def _radii(size: int, moves: int, seed: int) -> Timeline:
    return Timeline.of(drift_radii(seed=seed, rows=1, subscriptions=size, changes=1 + moves))


def _same(size: int, moves: int, seed: int) -> Timeline:
    case = SameCase(bootstrap_subscriptions=1.0, bootstrap_changes=_PRELUDE / (_PRELUDE + moves))
    return Timeline.of(drift_same(seed=seed, rows=1, subscriptions=size, changes=_PRELUDE + moves, case=case))


def _all(size: int, moves: int, seed: int) -> Timeline:
    return Timeline.of(drift_all(seed=seed, rows=1, subscriptions=size, changes=_PRELUDE + moves)).early(_PRELUDE)


def _items(size: int, moves: int, seed: int) -> Timeline:
    return Timeline.of(drift_radii(seed=seed, rows=ITEMS, subscriptions=size, changes=ITEMS + moves))


CASES: Mapping[str, Case] = {
    "radii": Case("different radii", _radii),
    "same": Case("same radius", _same),
    "all": Case("all radii", _all),
    "items": Case(f"different radii, {ITEMS:,} items", _items),
}
