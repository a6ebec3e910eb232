"""Rows that have gone from a join value: who had them as partners may still hold what those brought.

Where a value has few rows, as keys of other tables do, each that goes is noted, and so a row that goes later need be dropped
only by those who have, or have had, a partner for it. Where there are many, all that is noted is when the last one went.
"""

from __future__ import annotations

import numpy as np

from tidings.model.codes import BoolArray, Int64Array

FEW = 4
"""Rows of a value, gone ones included, that are looked at one by one."""
NEVER = -1


class Departures:
    """By number of the join value; clocks only ever go forward."""

    def __init__(self) -> None:
        self._unnoted = np.empty(0, np.int64)
        """When a row went last that was not noted."""
        self._noted: dict[int, list[tuple[int, Int64Array]]] = {}
        """(when, codes)"""

    def note(self, values: Int64Array, codes: Int64Array, is_few: BoolArray, clock: int) -> None:
        """Rows with these codes go from values that have few rows, or many."""
        top = int(values.max(initial=-1)) + 1
        if top > len(self._unnoted):
            grown = np.full(max(top, 2 * len(self._unnoted)), NEVER, np.int64)
            grown[: len(self._unnoted)] = self._unnoted
            self._unnoted = grown
        self._unnoted[values[~is_few]] = clock
        for at in np.flatnonzero(is_few).tolist():
            noted = self._noted.setdefault(int(values[at]), [])
            noted.append((clock, codes[at]))
            if len(noted) > FEW:
                # The oldest is forgotten: who came before it went is no longer known to have had few.
                self._unnoted[values[at]] = max(self._unnoted[values[at]], noted.pop(0)[0])

    def known_since(self, values: Int64Array) -> Int64Array:
        """After when all rows that went were noted."""
        known = np.full(len(values), NEVER, np.int64)
        inside = (values >= 0) & (values < len(self._unnoted))
        known[inside] = self._unnoted[values[inside]]
        return known

    def after(self, value: int, clock: int) -> list[Int64Array]:
        """Codes of the rows noted since, from a value."""
        return [codes for when, codes in self._noted.get(value, ()) if when > clock]
