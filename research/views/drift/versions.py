"""Rows as notified, each stored once for all views that hold it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.model.codes import Int64Array
from tidings.model.render import render_rows

NONE = -1
"""Means "no row" among numbers of versions."""


class Versions:
    """Rendered rows by number, each with its value and time, and the number of views that hold it.

    Equal rows have equal numbers.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.values: list[float] = []
        self.times: list[int] = []
        self._numbers: dict[tuple[str, float, int], int] = {}
        self._free: list[int] = []
        self._uses = np.zeros(16, np.int64)

    def number(
        self, names: Sequence[str], columns: Sequence[pa.Array], values: Sequence[float], times: Sequence[int]
    ) -> Int64Array:
        """Numbers of these rows, [rows]. New rows are held by no view yet."""
        texts = render_rows(names, columns, len(values))
        rows = zip(texts, values, times, strict=True)
        return np.fromiter((self._number(*row) for row in rows), np.int64, len(values))

    def hold(self, numbers: Int64Array, sign: int) -> None:
        """Adds (sign 1) or removes (-1) a holder of each of these rows; rows without holders are freed."""
        counts = np.bincount(numbers + 1, minlength=len(self._uses) + 1)[1:]
        self._uses += sign * counts
        if sign < 0:
            self.sweep(np.flatnonzero(counts))

    def sweep(self, numbers: Int64Array) -> None:
        """Frees those of the rows that no view holds."""
        known = numbers[numbers != NONE]
        for number in known[self._uses[known] == 0].tolist():
            if self._numbers.pop((self.texts[number], self.values[number], self.times[number]), None) is not None:
                self.texts[number] = ""
                self._free.append(number)

    def dump(self, numbers: Int64Array) -> dict[str, Any]:
        chosen = numbers.tolist()
        return {
            "texts": [self.texts[number] for number in chosen],
            "values": np.array([self.values[number] for number in chosen], np.float64),
            "times": np.array([self.times[number] for number in chosen], np.int64),
        }

    def load(self, state: dict[str, Any]) -> Int64Array:
        """Restores the rows of a dump. Returns their numbers, in order."""
        rows = zip(state["texts"], state["values"].tolist(), state["times"].tolist(), strict=True)
        return np.fromiter((self._number(*row) for row in rows), np.int64, len(state["texts"]))

    def _number(self, text: str, value: float, time: int) -> int:
        key = (text, value, time)
        known = self._numbers.get(key)
        if known is not None:
            return known
        if self._free:
            number = self._free.pop()
            self.texts[number], self.values[number], self.times[number] = key
        else:
            number = len(self.texts)
            self.texts.append(text)
            self.values.append(value)
            self.times.append(time)
            if number == len(self._uses):
                self._uses = np.concatenate([self._uses, np.zeros(number, np.int64)])
        self._numbers[key] = number
        return number
