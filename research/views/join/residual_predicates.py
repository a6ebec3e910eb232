"""Residual predicates: those that a point does not express exactly (text, IN), tested on the rows that arrive at a view."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from research.strategies.join.payload import ALL_SIDES
from research.strategies.join.space import Space
from research.views.join.side_rows import SideRows
from tidings.families.join.subscription import Predicate
from tidings.model.codes import BoolArray, Int64Array

_NOTHING = 0
"""Number that means: no residual predicates."""


class ResidualPredicates:
    """The residual predicates of subscriptions, by slot and side. Equal ones have one number and are tested once per row."""

    def __init__(self, space: Space, sides: Sequence[SideRows]) -> None:
        self._sides = sides
        self._first = np.cumsum([0, *(len(side.columns) for side in space.sides)]).tolist()
        self._decoder = msgspec.msgpack.Decoder(list[Predicate | None])
        self._number = np.zeros((0, len(sides)), np.int32)
        """[slots, sides]: number of the subscription's predicates on the side."""
        self._numbers: dict[bytes, int] = {}
        self._predicates: dict[int, list[Predicate | None]] = {}
        self._users: Counter[int] = Counter()
        self._last = _NOTHING

    def create(self, slots: Int64Array, details: pa.Array) -> None:
        top = int(slots.max(initial=-1)) + 1
        if top > len(self._number):
            wider = np.zeros((max(top, len(self._number) * 3 // 2), len(self._sides)), np.int32)
            wider[: len(self._number)] = self._number
            self._number = wider
        for slot, note in zip(slots.tolist(), details.to_pylist(), strict=True):
            if note:
                predicates = self._decoder.decode(note)
                for side, (start, stop) in enumerate(zip(self._first[:-1], self._first[1:], strict=True)):
                    self._number[slot, side] = self._use(predicates[start:stop])

    def drop(self, slots: Int64Array) -> None:
        if not self._predicates:
            return
        numbers, counts = np.unique(self._number[slots], return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            if number != _NOTHING:
                self._users[number] -= count
                if not self._users[number]:
                    del self._users[number]
                    del self._numbers[msgspec.msgpack.encode(self._predicates.pop(number))]
        self._number[slots] = _NOTHING

    def passing(self, slots: Int64Array, rows: pa.RecordBatch, side: Int64Array, at: Int64Array) -> BoolArray:
        """Whether row at[i] of a payload satisfies the residual predicates of slots[i] on the row's side, [slots]."""
        passing = np.ones(len(slots), np.bool_)
        if not self._predicates:
            return passing
        own = side[at]
        for number, reader in enumerate(self._sides):
            is_looked_at = ((own == number) | (own == ALL_SIDES)) & (self._number[slots, number] != _NOTHING)
            chosen = np.flatnonzero(is_looked_at)
            if not len(chosen):
                continue
            predicates = self._number[slots[chosen], number].astype(np.int64)
            distinct, which = np.unique(predicates * len(side) + at[chosen], return_inverse=True)
            places, row = np.unique(distinct % len(side), return_inverse=True)
            values = reader.values(rows, places)
            verdicts = [
                _satisfy(self._predicates[which_ones], [column[i] for column in values])
                for which_ones, i in zip((distinct // len(side)).tolist(), row.tolist(), strict=True)
            ]
            passing[chosen] &= np.array(verdicts, np.bool_)[which]
        return passing

    def _use(self, predicates: list[Predicate | None]) -> int:
        if not any(predicates):
            return _NOTHING
        key = msgspec.msgpack.encode(predicates)
        number = self._numbers.get(key)
        if number is None:
            self._last += 1
            number = self._numbers[key] = self._last
            self._predicates[number] = predicates
        self._users[number] += 1
        return number


def _satisfy(predicates: Sequence[Predicate | None], values: Sequence[Any]) -> bool:
    return all(
        predicate is None or _satisfies(predicate, value) for predicate, value in zip(predicates, values, strict=True)
    )


def _satisfies(predicate: Predicate, value: Any) -> bool:
    if value is None:
        return False
    if predicate.values is not None:
        return value in predicate.values
    if predicate.lo is not None and (value < predicate.lo or (value == predicate.lo and not predicate.lo_closed)):
        return False
    return not (
        predicate.hi is not None and (value > predicate.hi or (value == predicate.hi and not predicate.hi_closed))
    )
