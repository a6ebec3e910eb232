"""How one list of offers differs from another, as multisets of what is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable

NONE = -1

Change = tuple[int, int]
"""(item before, item after), NONE for none."""
Look = Callable[[int], Hashable]
"""What an item shows."""


def difference(before: dict[str, int], after: dict[str, int], look: Look) -> list[Change]:
    """Changes from one list of offers (id -> item) to another.

    An offer that stays and looks different is an update; what is left goes, or comes.
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
    changes += [(item, NONE) for item in _left(before.values(), gone, look)]
    changes += [(NONE, item) for item in _left(after.values(), come, look)]
    return changes


def _left(items: Iterable[int], left: Counter[Hashable], look: Look) -> list[int]:
    found = []
    for item in items:
        if left[look(item)] > 0:
            left[look(item)] -= 1
            found.append(item)
    return found
