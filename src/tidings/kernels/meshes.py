"""Meshes: many sets of items of several kinds, kept up to date by deliveries; how their combinations change is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidings.kernels import meshes_apply, meshes_bulk, meshes_tell
from tidings.kernels.arguments import as_ints
from tidings.kernels.differences import BATCH, FIRST
from tidings.kernels.meshes_apply import GROUP
from tidings.kernels.meshes_arrays import (
    ENTRIES,
    FREE,
    I32,
    I64,
    ITEM_COUNT,
    ITEM_KIND,
    ITEM_LOOK,
    ITEM_NAME,
    ITEM_TIES,
    LOOSE,
    NONE,
)
from tidings.kernels.meshes_plan import plan_of

__all__ = ["NONE", "Changed", "Differences", "Meshes", "Numbers"]

Numbers = NDArray[np.signedinteger[Any]]

FOUND_MAX = 2**18
"""Combinations found before the next groups have to wait."""


class Changed(NamedTuple):
    """What deliveries have changed: rows of `groups` say which groups, and their old and new numbers in `found`.

    Combination j is of the items combinations[j], one a kind.
    """

    groups: I64
    found: I32
    combinations: I32

    def differences(self, batch: ArrayLike, place: ArrayLike, look: ArrayLike) -> Differences:
        """What can be seen of it, given the batches of all groups, and place and look of the combinations.

        Groups of a batch follow each other. Those of one look cannot be told from each other, one that has the place
        of another is a version of it. Both are numbers that are small, for memory grows with them.
        """
        batches = as_ints(batch)[self.groups[:, GROUP]]
        told, kinds, pairs = meshes_tell.tell(self.groups, batches, self.found, as_ints(place), as_ints(look))
        starts = np.append(kinds[:, FIRST], len(pairs))
        return Differences(
            self.groups[told[:, 0], GROUP], told[:, 1], kinds[:, BATCH], starts, pairs[:, 0], pairs[:, 1]
        )


class Differences(NamedTuple):
    """group[i] has a difference of kind[i].

    Kind j is of batch[j], and is the pairs (old[p], new[p]) with starts[j] <= p < starts[j + 1], where NONE is nothing:
    first combinations that look different now, then those that go, then those that come, each in the order of places.
    """

    group: I64
    kind: I64
    batch: I64
    starts: I64
    old: I32
    new: I32


class Meshes:
    """Sets that hold items. A combination is one item of every kind that a set holds, tied to each other at all edges.

    Sets, items and names are small non-negative integers chosen by the caller, which memory grows with. Items have a
    kind, a name, a look, and a tie at each edge of their kind, NONE for one that ties them to nothing. Items of one name
    are versions of one thing: a set holds at most one of them. Names and ties share their numbers, and each is of one
    kind or one edge. An item of the kind beyond the last is a whole combination, of the items given as its ties.

    Not safe for use by several threads at a time.
    """

    def __init__(self, kinds: int, edges: Sequence[tuple[int, int]]) -> None:
        self._plan = plan_of(kinds, edges)
        self._kinds, self._edges = kinds, len(edges)
        self._head = np.zeros(FREE + len(self._plan.words), np.int64)
        self._head[FREE:] = NONE
        self._firsts = np.empty(0, np.int32)
        self._memory = np.empty(0, np.int32)
        self._table = np.full(8, NONE, np.int64)
        self._mark = np.empty(0, np.int32)
        self.items: I32 = np.zeros((0, ITEM_TIES + max(kinds, len(edges))), np.int32)

    def __len__(self) -> int:
        """Number of items held, counted once for each set."""
        return int(self._head[ENTRIES])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        return sum(array.nbytes for array in (self._firsts, self._memory, self._table, self._mark, self.items))

    @property
    def loose(self) -> int:
        """Number of items that are in no set and no whole combination."""
        return int(self._head[LOOSE])

    def put_items(self, numbers: ArrayLike, kind: int, names: ArrayLike, looks: ArrayLike, ties: ArrayLike) -> None:
        """Set what new items of one kind are like; ties: [items, edges], or [items, kinds] of whole combinations."""
        which, named = as_ints(numbers), as_ints(names)
        self.items = _covering(self.items, which, 0)
        self._mark = _covering(self._mark, named, NONE)
        columns = np.asarray(ties).reshape(len(which), self._kinds if kind == self._kinds else self._edges)
        self.items[which, ITEM_NAME], self.items[which, ITEM_KIND], self.items[which, ITEM_LOOK] = named, kind, looks
        self.items[which, ITEM_COUNT] = 0
        self.items[which, ITEM_TIES : ITEM_TIES + columns.shape[1]] = columns
        self._head[LOOSE] += len(which)
        if kind == self._kinds:
            self._count(columns, 1)

    def names(self, numbers: Numbers) -> I32:
        """Names of items."""
        return self._of(numbers, ITEM_NAME)

    def kinds(self, numbers: Numbers) -> I32:
        """Kinds of items."""
        return self._of(numbers, ITEM_KIND)

    def looks(self, numbers: Numbers) -> I32:
        """Looks of items."""
        return self._of(numbers, ITEM_LOOK)

    def ties(self, numbers: Numbers) -> I32:
        """[items, edges]: ties of items that are no whole combinations."""
        return self._of(numbers, slice(ITEM_TIES, ITEM_TIES + self._edges))

    def parts(self, numbers: Numbers) -> I32:
        """[items, kinds]: the items of whole combinations."""
        return self._of(numbers, slice(ITEM_TIES, ITEM_TIES + self._kinds))

    def _of(self, numbers: Numbers, field: int | slice) -> I32:
        found: I32 = self.items[numbers, field]
        return found

    def relook(self, numbers: ArrayLike, looks: ArrayLike) -> None:
        """Give items other looks."""
        self.items[as_ints(numbers), ITEM_LOOK] = looks

    def forget_loose(self, numbers: I64) -> I64:
        """Of all items in use, lets go of those that are in no set and no whole combination; gives their numbers."""
        wholes = numbers[(self.kinds(numbers) == self._kinds) & (self.items[numbers, ITEM_COUNT] == 0)]
        self._count(self.parts(wholes), -1)
        self._head[LOOSE] = 0
        loose: I64 = numbers[self.items[numbers, ITEM_COUNT] == 0]
        return loose

    def _count(self, parts: I32, more: int) -> None:
        """Whole combinations come, or go."""
        which, counts = np.unique(parts, return_counts=True)
        was_loose = self.items[which, ITEM_COUNT] == 0
        self.items[which, ITEM_COUNT] += more * counts
        is_loose = self.items[which, ITEM_COUNT] == 0
        self._head[LOOSE] += int(is_loose.sum()) - int(was_loose.sum())

    def open(self, numbers: ArrayLike) -> None:
        """New sets, which hold nothing."""
        which = as_ints(numbers)
        self._firsts = _covering(self._firsts, which, NONE)

    def clear(self, numbers: ArrayLike) -> None:
        """Let sets hold nothing."""
        meshes_bulk.clear(self._head, self._firsts, self._memory, self._table, self.items, self._plan, as_ints(numbers))

    def fill(self, numbers: ArrayLike, starts: ArrayLike, items: ArrayLike) -> None:
        """Let set numbers[i] hold items[starts[i]:starts[i + 1]] instead of what it held; of one name the last counts."""
        which = as_ints(numbers)
        self.clear(which)
        self._memory, self._table = meshes_bulk.fill(
            self._head,
            self._firsts,
            self._memory,
            self._table,
            self.items,
            self._plan,
            which,
            as_ints(starts),
            as_ints(items),
        )

    def apply(self, starts: ArrayLike, numbers: ArrayLike, names: ArrayLike, items: ArrayLike) -> Iterator[Changed]:
        """Make deliveries in groups: group g is starts[g] .. starts[g + 1] - 1, all to one set, numbers[starts[g]].

        Each says that the set is to hold an item of a name, or none of it (NONE). In a group the last that names an item
        counts, whatever else is said of its name; what counts for combinations is before and after all of the group. The
        name NONE is one that nobody can hold. Changes are given in portions, of many groups each.
        """
        cuts, which, named, wanted = (as_ints(part) for part in (starts, numbers, names, items))
        group = 0
        while group < len(cuts) - 1:
            group, self._memory, self._table, groups, found, combinations = meshes_apply.apply(
                self._head,
                self._firsts,
                self._memory,
                self._table,
                self.items,
                self._plan,
                self._mark,
                cuts,
                which,
                named,
                wanted,
                group,
                FOUND_MAX,
            )
            yield Changed(groups, found, combinations)

    def combinations(self, numbers: ArrayLike) -> tuple[I64, I32, I32]:
        """(starts, found, combinations): set numbers[i] has combinations[found[starts[i]:starts[i + 1]]]."""
        starts, found, combinations = meshes_bulk.combine_all(
            self._firsts, self._memory, self._table, self.items, self._plan, as_ints(numbers)
        )
        return starts, found, combinations

    def read(self, numbers: ArrayLike) -> tuple[I64, I32]:
        """(starts, items): set numbers[i] holds items[starts[i]:starts[i + 1]]."""
        starts, items = meshes_bulk.read(self._firsts, self._memory, as_ints(numbers))
        return starts, items


def _covering(values: I32, places: ArrayLike, blank: int) -> I32:
    """The values in an array that has all these places."""
    top = int(np.max(places, initial=NONE)) + 1
    if top <= len(values):
        return values
    wider = np.full((max(top, len(values) * 3 // 2), *values.shape[1:]), blank, np.int32)
    wider[: len(values)] = values
    return wider
