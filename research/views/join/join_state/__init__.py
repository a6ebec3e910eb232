"""Join state: the rows that each of many views holds of several relations, and how their join changes with deliveries.

The state of a symmetric hash join (Wilschut and Apers, 1991) over any number of relations, once per view: rows by key, and
by join value at each edge. Views share the rows; equal changes of several views are numbered once.

`layout.py`: records and their hash table · `update.py`: a view gets and loses rows · `combine.py`: the joined rows of a view ·
`deltas.py`: what deliveries change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from research.views.join.join_state.combine import combine_all
from research.views.join.join_state.deltas import BATCH, FIRST, GROUP, apply, deltas
from research.views.join.join_state.layout import (
    ENTRIES,
    FREE,
    HOLDERS,
    KEY,
    LOOK,
    RELATION,
    UNUSED,
    VALUES,
    plan_of,
)
from research.views.join.join_state.update import fill, read
from tidings.kernels.arguments import as_ints
from tidings.kernels.arrays import covering
from tidings.kernels.rows import I32, I64, NONE

__all__ = ["NONE", "ChangedJoins", "JoinDeltas", "JoinState", "Numbers"]

Numbers = NDArray[np.signedinteger[Any]]

FOUND_MAX = 2**18
"""Combinations found before the next groups have to wait."""


class ChangedJoins(NamedTuple):
    """What deliveries have changed: rows of `groups` say which groups, and their old and new numbers in `found`.

    Combination j is of the rows combinations[j], one a relation.
    """

    groups: I64
    found: I32
    combinations: I32

    def deltas(self, batch: ArrayLike, place: ArrayLike, look: ArrayLike) -> JoinDeltas:
        """What subscribers see of it, given the batches of all groups, and place and look of the combinations.

        Groups of a batch follow each other. Combinations of one look cannot be told from each other; one that has the place of
        another is a version of it. Both are small numbers, for memory grows with them.
        """
        batches = as_ints(batch)[self.groups[:, GROUP]]
        told, found, pairs = deltas(self.groups, batches, self.found, as_ints(place), as_ints(look))
        starts = np.append(found[:, FIRST], len(pairs))
        return JoinDeltas(self.groups[told[:, 0], GROUP], told[:, 1], found[:, BATCH], starts, pairs[:, 0], pairs[:, 1])


class JoinDeltas(NamedTuple):
    """group[i] has delta number[i].

    Delta j is of batch[j], and is the pairs (old[p], new[p]) with starts[j] <= p < starts[j + 1], where NONE is nothing:
    first combinations that look different now, then those that go, then those that come, each in the order of places.
    """

    group: I64
    number: I64
    batch: I64
    starts: I64
    old: I32
    new: I32


class JoinState:
    """Views that hold rows. A combination is one row of every relation that a view holds, with equal join values at all edges.

    Views, rows, keys and join values are small non-negative integers chosen by the caller, which memory grows with. A row
    has a relation, a key, a look, and a join value at each edge of its relation, NONE for one that joins with nothing. Rows
    of one key are versions of one row: a view holds at most one of them. Keys and join values share their numbers, and each
    is of one relation or one edge. A row of the relation after the last is a joined row: its values are the rows it
    consists of.

    Not safe for use by several threads at a time.
    """

    def __init__(self, relations: int, edges: Sequence[tuple[int, int]]) -> None:
        self._plan = plan_of(relations, edges)
        self._relations, self._edges = relations, len(edges)
        self._head = np.zeros(FREE + len(self._plan.layout), np.int64)
        self._head[FREE:] = NONE
        self._firsts = np.empty(0, np.int32)
        self._memory = np.empty(0, np.int32)
        self._table = np.full(8, NONE, np.int64)
        self._mark = np.empty(0, np.int32)
        self.rows: I32 = np.zeros((0, VALUES + max(relations, len(edges))), np.int32)

    def __len__(self) -> int:
        """Number of rows held, counted once for each view."""
        return int(self._head[ENTRIES])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        return sum(array.nbytes for array in (self._firsts, self._memory, self._table, self._mark, self.rows))

    @property
    def unused(self) -> int:
        """Number of rows that are in no view and no joined row."""
        return int(self._head[UNUSED])

    def put_rows(self, numbers: ArrayLike, relation: int, keys: ArrayLike, looks: ArrayLike, values: ArrayLike) -> None:
        """New rows of one relation; values: [rows, edges], or of joined rows their parts, [rows, relations]."""
        which, named = as_ints(numbers), as_ints(keys)
        self.rows = covering(self.rows, which, 0)
        self._mark = covering(self._mark, named, NONE)
        columns = np.asarray(values).reshape(
            len(which), self._relations if relation == self._relations else self._edges
        )
        self.rows[which, KEY], self.rows[which, RELATION], self.rows[which, LOOK] = named, relation, looks
        self.rows[which, HOLDERS] = 0
        self.rows[which, VALUES : VALUES + columns.shape[1]] = columns
        self._head[UNUSED] += len(which)
        if relation == self._relations:
            self._count_parts(columns, 1)

    def keys(self, numbers: Numbers) -> I32:
        """Keys of rows."""
        return self._of(numbers, KEY)

    def relations(self, numbers: Numbers) -> I32:
        """Relations of rows."""
        return self._of(numbers, RELATION)

    def looks(self, numbers: Numbers) -> I32:
        """Looks of rows."""
        return self._of(numbers, LOOK)

    def values(self, numbers: Numbers) -> I32:
        """[rows, edges]: join values of rows that are not joined rows."""
        return self._of(numbers, slice(VALUES, VALUES + self._edges))

    def parts(self, numbers: Numbers) -> I32:
        """[rows, relations]: the rows that joined rows consist of."""
        return self._of(numbers, slice(VALUES, VALUES + self._relations))

    def _of(self, numbers: Numbers, field: int | slice) -> I32:
        found: I32 = self.rows[numbers, field]
        return found

    def set_looks(self, numbers: ArrayLike, looks: ArrayLike) -> None:
        """Gives rows other looks."""
        self.rows[as_ints(numbers), LOOK] = looks

    def forget_unused(self, numbers: I64) -> I64:
        """Of all rows there are, lets go of those that are in no view and no joined row; gives their numbers."""
        joined = numbers[(self.relations(numbers) == self._relations) & (self.rows[numbers, HOLDERS] == 0)]
        self._count_parts(self.parts(joined), -1)
        self._head[UNUSED] = 0
        unused: I64 = numbers[self.rows[numbers, HOLDERS] == 0]
        return unused

    def _count_parts(self, parts: I32, more: int) -> None:
        """Joined rows come, or go: they are holders of their parts."""
        which, counts = np.unique(parts, return_counts=True)
        was_unused = self.rows[which, HOLDERS] == 0
        self.rows[which, HOLDERS] += more * counts
        is_unused = self.rows[which, HOLDERS] == 0
        self._head[UNUSED] += int(is_unused.sum()) - int(was_unused.sum())

    def open(self, views: ArrayLike) -> None:
        """New views, which hold nothing."""
        self._firsts = covering(self._firsts, as_ints(views), NONE)

    def fill(self, views: ArrayLike, starts: ArrayLike, rows: ArrayLike) -> None:
        """Lets views[i] hold rows[starts[i]:starts[i + 1]] instead of what it held; of rows with one key the last counts."""
        self._memory, self._table = fill(*self._arrays(), as_ints(views), as_ints(starts), as_ints(rows))

    def clear(self, views: ArrayLike) -> None:
        """Lets views hold nothing."""
        which = as_ints(views)
        self.fill(which, np.zeros(len(which) + 1, np.int64), [])

    def apply(self, starts: ArrayLike, views: ArrayLike, keys: ArrayLike, rows: ArrayLike) -> Iterator[ChangedJoins]:
        """Makes deliveries in groups: group g is starts[g] .. starts[g + 1] - 1, all to one view, views[starts[g]].

        Each says that the view is to hold a row of a key, or none of it (NONE). In a group the last that names a row counts,
        whatever else is said of its key; what counts for combinations is before and after all of the group. The key NONE is one
        that nobody can hold. Changes are given in portions, of many groups each.
        """
        cuts, which, named, wanted = (as_ints(part) for part in (starts, views, keys, rows))
        steps, checks = self._plan.steps, self._plan.checks
        group = 0
        while group < len(cuts) - 1:
            group, self._memory, self._table, groups, found, combinations = apply(
                *self._arrays(), steps, checks, self._mark, cuts, which, named, wanted, group, FOUND_MAX
            )
            yield ChangedJoins(groups, found, combinations)

    def combinations(self, views: ArrayLike) -> tuple[I64, I32, I32]:
        """(starts, found, combinations): views[i] has combinations[found[starts[i]:starts[i + 1]]]."""
        _, *arrays = self._arrays()
        starts, found, combinations = combine_all(*arrays, self._plan.steps, self._plan.checks, as_ints(views))
        return starts, found, combinations

    def read(self, views: ArrayLike) -> tuple[I64, I32]:
        """(starts, rows): views[i] holds rows[starts[i]:starts[i + 1]]."""
        starts, rows = read(self._firsts, self._memory, as_ints(views))
        return starts, rows

    def _arrays(self) -> tuple[I64, I32, I32, I64, I32, I64]:
        return self._head, self._firsts, self._memory, self._table, self.rows, self._plan.layout
