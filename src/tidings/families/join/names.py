"""Numbers for keys, and for the values that rows are joined by."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tidings.kernels.meshes import NONE, Numbers
from tidings.model.channel import ChannelKey
from tidings.model.codes import Int64Array


class Names:
    """Small numbers of values that come in groups; equal values of different groups have different numbers."""

    def __init__(self, groups: int) -> None:
        self._numbers: list[dict[ChannelKey, int]] = [{} for _ in range(groups)]
        self._values: list[ChannelKey | None] = []
        self._groups: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._values) - len(self._free)

    def known(self, group: int, values: Iterable[ChannelKey]) -> list[int]:
        """Numbers of values; NONE for those that have none."""
        numbers = self._numbers[group]
        return [numbers.get(value, NONE) for value in values]

    def take(self, group: int, values: Iterable[ChannelKey | None]) -> list[int]:
        """Numbers of values, new ones for those that have none; NONE for None."""
        numbers = self._numbers[group]
        found = []
        for value in values:
            if value is None:
                found.append(NONE)
                continue
            number = numbers.get(value)
            if number is None:
                number = numbers[value] = self._new(group, value)
            found.append(number)
        return found

    def values(self, numbers: Numbers) -> list[ChannelKey | None]:
        """Values of numbers; None for NONE."""
        values = self._values
        return [None if number == NONE else values[number] for number in numbers.tolist()]

    def ranks(self, numbers: Numbers) -> Int64Array:
        """Small numbers in the order of the values, all of one group."""
        distinct, which = np.unique(numbers, return_inverse=True)
        values: list[Any] = self.values(distinct)
        ranks = np.empty(len(distinct), np.int64)
        ranks[sorted(range(len(values)), key=values.__getitem__)] = np.arange(len(values))
        ranked: Int64Array = ranks[which]
        return ranked

    def keep(self, used: Numbers) -> None:
        """Forgets all values but those of these numbers."""
        is_used = np.zeros(len(self._values), np.bool_)
        is_used[used] = True
        for number in np.flatnonzero(~is_used).tolist():
            value = self._values[number]
            if value is not None:
                del self._numbers[self._groups[number]][value]
                self._values[number] = None
                self._free.append(number)

    def _new(self, group: int, value: ChannelKey) -> int:
        if self._free:
            number = self._free.pop()
            self._values[number], self._groups[number] = value, group
            return number
        self._values.append(value)
        self._groups.append(group)
        return len(self._values) - 1
