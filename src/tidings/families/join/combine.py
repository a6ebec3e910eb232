"""All joined rows that given rows are part of, by following the junctions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tidings.families.join.junction import Junction
from tidings.families.join.relation import NONE
from tidings.families.join.skylines import expand
from tidings.model.codes import BoolArray, Int64Array


class Combined:
    """Joined rows: `owner` is the place of the row each grew from, `entries[side]` its row of every side so far."""

    def __init__(self, owner: Int64Array, entries: dict[int, Int64Array]) -> None:
        self.owner, self.entries = owner, entries

    def __len__(self) -> int:
        return len(self.owner)

    def take(self, at: Int64Array | BoolArray) -> Combined:
        return Combined(self.owner[at], {side: some[at] for side, some in self.entries.items()})


def combine(
    junctions: Mapping[tuple[int, int], Junction],
    number: int,
    entries: Int64Array,
    allowed: Sequence[BoolArray] | None = None,
) -> Combined:
    """Joined rows of these rows of side `number`; `allowed`: by side, which entries may be part of them."""
    found = Combined(np.arange(len(entries)), {number: entries})
    sides = {side for pair in junctions for side in pair}
    while len(found.entries) < len(sides):
        side, pairs = _next(junctions, found)
        known = pairs[0].other(side)
        values = pairs[0].end(known).value_of(found.entries[known])
        distinct, of = np.unique(values, return_inverse=True)
        place, partner = expand(pairs[0].end(side).entries_at(distinct), of)
        found = found.take(place)
        found.entries[side] = partner
        fits = np.ones(len(found), np.bool_) if allowed is None else allowed[side][partner]
        for junction in pairs[1:]:
            other = junction.other(side)
            value = junction.end(side).value_of(partner)
            fits &= (value != NONE) & (value == junction.end(other).value_of(found.entries[other]))
        found = found.take(fits)
    return found


def _next(junctions: Mapping[tuple[int, int], Junction], found: Combined) -> tuple[int, list[Junction]]:
    """A side that is joined to those there are, and its junctions with them."""
    for pair in junctions:
        for side, other in (pair, pair[::-1]):
            if side not in found.entries and other in found.entries:
                own = [j for sides, j in junctions.items() if side in sides and j.other(side) in found.entries]
                return side, own
    raise AssertionError("the tables of a join are connected")
