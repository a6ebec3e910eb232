"""Rows of the market workload that come and go: which id each event is about, without memory per row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tidings.workloads.draws import IntArray

StrArray = npt.NDArray[np.str_]

_OPS = ("insert", "update", "delete")
_UPSERTED = 0.1
"""Share of upserts among updates."""


class Turnover:
    """Ids from 1 on. Events follow a repeated pattern; the oldest row is deleted, so every update and delete finds its row.

    No beginning of the pattern may have more deletes than inserts, and the first rows are inserted before all events.
    """

    def __init__(self, pattern: tuple[str, ...]) -> None:
        self._pattern = np.array([_OPS.index(op) for op in pattern])
        self._events = 0
        self._first = 1
        self._next = 1

    def inserts(self, count: int) -> IntArray:
        """Ids of the first rows."""
        ids = self._next + np.arange(count)
        self._next += count
        return ids

    def events(self, rng: np.random.Generator, count: int) -> tuple[IntArray, StrArray]:
        """Ids and operations of the next events."""
        kind = self._pattern[(self._events + np.arange(count)) % len(self._pattern)]
        is_insert, is_delete = kind == _OPS.index("insert"), kind == _OPS.index("delete")
        inserts, deletes = np.cumsum(is_insert), np.cumsum(is_delete)
        # First and next id as they are before each event.
        first = self._first + deletes - is_delete
        following = self._next + inserts - is_insert
        any_id = first + (rng.random(count) * (following - first)).astype(np.int64)
        ids = np.where(is_insert, following, np.where(is_delete, first, any_id))
        ops = np.array([*_OPS, "upsert"])[kind]
        ops[(ops == "update") & (rng.random(count) < _UPSERTED)] = "upsert"
        self._events += count
        self._first += int(deletes[-1]) if count else 0
        self._next += int(inserts[-1]) if count else 0
        return ids, ops
