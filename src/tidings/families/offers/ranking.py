"""Best offers first: what subscriptions with ORDER BY .. LIMIT hold, and how their first offers change.

An offer ranks by the best value of the ordering attribute that both constraints allow (`attained`), then by its id. A
subscription holds all offers that it matches in this order, as an offer that comes up when another goes must be found at once.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tidings.families.offers.constraint import Box
from tidings.families.offers.matching import attained

NONE = -1

Rank = tuple[int, str]
"""(attained code, negated where the highest is best; id)."""
Change = tuple[int, int]
"""(version before, version after), NONE for none."""


@dataclass
class Ranking:
    """The offers of one subscription, best first."""

    boxes: Sequence[Box]
    axis: int
    is_highest: bool
    limit: int
    is_classic: bool
    _order: list[tuple[Rank, int]] = field(default_factory=list)
    _ranks: dict[int, Rank] = field(default_factory=dict)
    """Version -> rank."""

    def first(self) -> dict[str, int]:
        """Id -> version of the offers that are shown, in order."""
        return {rank[1]: version for rank, version in self._order[: self.limit]}

    def put(self, version: int, id: str, publication: Sequence[Box]) -> None:
        """Takes a version of a row that the subscription matches."""
        best = attained(publication, self.boxes, self.axis, is_highest=self.is_highest, is_classic=self.is_classic)
        assert best is not None, "only matches are ranked"
        rank = (-best if self.is_highest else best, id)
        self._ranks[version] = rank
        insort(self._order, (rank, version))

    def drop(self, version: int) -> None:
        entry = (self._ranks.pop(version), version)
        del self._order[bisect_left(self._order, entry)]

    def __len__(self) -> int:
        return len(self._order)


def difference(before: dict[str, int], after: dict[str, int], look: Callable[[int], bytes]) -> list[Change]:
    """Changes from one list of offers (id -> version) to another, as multisets of what is shown.

    An offer that stays and looks different is an update; what is left goes, or comes. look: what a version shows.
    """
    had, has = (Counter(map(look, rows.values())) for rows in (before, after))
    gone, come = had - has, has - had
    changes: list[Change] = []
    for id, new in after.items():
        old = before.get(id, NONE)
        if old != NONE and gone[look(old)] > 0 and come[look(new)] > 0:
            gone[look(old)] -= 1
            come[look(new)] -= 1
            changes.append((old, new))
    changes += [(version, NONE) for version in _left(before.values(), gone, look)]
    changes += [(NONE, version) for version in _left(after.values(), come, look)]
    return changes


def _left(versions: Iterable[int], left: Counter[bytes], look: Callable[[int], bytes]) -> list[int]:
    found = []
    for version in versions:
        if left[look(version)] > 0:
            left[look(version)] -= 1
            found.append(version)
    return found
