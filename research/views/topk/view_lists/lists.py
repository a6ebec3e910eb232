"""The class that owns the arrays of view lists."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from research.views.topk.differences import BATCH, FIRST
from research.views.topk.view_lists import change
from research.views.topk.view_lists.layout import (
    HEAD_FIELDS,
    I32,
    I64,
    ITEM_FIELDS,
    LIST_COUNT,
    LIST_FIELDS,
    LIST_FREE,
    LIST_TOP,
    LOOK,
    NONE,
    RANK,
    TIE,
    TOP,
    WASTE,
    Flags,
)
from tidings.kernels.arguments import as_argument, as_ints


class Differences(NamedTuple):
    """What deliveries have changed in what groups show: group home[i] has a difference of kind[i].

    Kind j is of batch[j], and is the pairs (old[p], new[p]) with starts[j] <= p < starts[j + 1], where NONE is no item:
    first items that look different now, then those that go, then those that come.
    """

    home: I64
    kind: I64
    batch: I64
    starts: I64
    old: I32
    new: I32


class ViewLists:
    """Lists that hold the first k, or fewer, of the items they have been given, in the order of (rank, tie).

    Items are small non-negative integers chosen by the caller, which memory grows with, and have a rank, a tie and a look.
    Those with the same tie are versions of one thing: a list holds at most one of them. Those of one look cannot be told
    from each other; looks are numbers below the number of items. Lists come in groups, known by their first list: a group
    shows the first k items of all its lists, no two of which hold items of the same tie when it is asked what it shows.

    Not safe for use by several threads at a time.
    """

    def __init__(self, k: int) -> None:
        self.k = k
        self.items: I64 = np.zeros((0, ITEM_FIELDS), np.int64)
        """Rank, tie and look of each item."""
        self._head = np.zeros(HEAD_FIELDS, np.int64)
        self._head[LIST_FREE] = NONE
        self._lists = np.zeros((0, LIST_FIELDS), np.int32)
        self._memory = np.zeros(0, np.int32)
        self._balance = np.zeros(0, np.int32)

    def __len__(self) -> int:
        """Number of lists."""
        return int(self._head[LIST_COUNT])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        return sum(array.nbytes for array in (self.items, self._lists, self._memory, self._balance))

    @property
    def room(self) -> int:
        """Number of items there is room for in all lists, without growing any."""
        return int(self._head[TOP] - self._head[WASTE])

    def put_items(self, numbers: ArrayLike, ranks: ArrayLike, ties: ArrayLike, looks: ArrayLike) -> None:
        """Set what items are like that no list holds."""
        which = as_ints(numbers)
        top = int(which.max(initial=NONE)) + 1
        if top > len(self.items):
            grown = np.zeros((max(top, 2 * len(self.items)), ITEM_FIELDS), np.int64)
            grown[: len(self.items)] = self.items
            self.items, self._balance = grown, np.zeros(len(grown), np.int32)
        self.items[which, RANK], self.items[which, TIE], self.items[which, LOOK] = ranks, ties, looks

    def retie(self, numbers: ArrayLike, ties: ArrayLike) -> None:
        """Give items other ties. The order of items that lists hold must stay as it is."""
        self.items[as_ints(numbers), TIE] = ties

    def relook(self, numbers: ArrayLike, looks: ArrayLike) -> None:
        """Give items other looks."""
        self.items[as_ints(numbers), LOOK] = looks

    def open(self, is_first: ArrayLike) -> I64:
        """Numbers of new, empty lists; each that is not the first of a group is in the group of the one before it."""
        firsts = as_argument(is_first, np.bool_)
        if len(firsts) and not firsts[0]:
            raise ValueError("the first of several lists must be the first of a group")
        top = int(self._head[LIST_TOP]) + len(firsts)
        if top > len(self._lists):
            grown = np.zeros((max(top, len(self._lists) * 3 // 2), LIST_FIELDS), np.int32)
            grown[: len(self._lists)] = self._lists
            self._lists = grown
        numbers: I64 = change.open_lists(self._head, self._lists, firsts)
        return numbers

    def close(self, numbers: ArrayLike) -> None:
        """Forget lists, which are all lists of their groups; their numbers may be given to others."""
        change.close_lists(self._head, self._lists, as_ints(numbers))

    def fill(self, numbers: ArrayLike, starts: ArrayLike, items: ArrayLike) -> None:
        """Let list numbers[i] hold the first k of items[starts[i]:starts[i + 1]] instead of what it held."""
        self._memory = change.fill(
            self._head, self._lists, self._memory, self.items, self.k, as_ints(numbers), as_ints(starts), as_ints(items)
        )

    def apply(
        self,
        numbers: ArrayLike,
        send: ArrayLike,
        is_gone: ArrayLike,
        batch: ArrayLike,
        item: ArrayLike,
        tie: ArrayLike,
    ) -> Differences:
        """Make deliveries in order: to list numbers[i] that of send[i]. Sends have a batch, an item and its tie.

        A list that holds an item of the same tie overwrites it, or removes it if is_gone[i]; one that does not takes the
        item in, unless it is gone, and lets the last of more than k go. Deliveries of one batch follow each other; what
        counts is what a group shows before and after all of them. If all deliveries of a send are gone, it needs no item.
        """
        self._memory, told, kinds, pairs = change.apply(
            self._head,
            self._lists,
            self._memory,
            self.items,
            self._balance,
            self.k,
            as_ints(numbers),
            as_ints(send),
            as_argument(is_gone, np.bool_),
            as_ints(batch),
            as_ints(item),
            as_ints(tie),
        )
        starts = np.append(kinds[:, FIRST], len(pairs))
        return Differences(told[:, 0], told[:, 1], kinds[:, BATCH], starts, pairs[:, 0], pairs[:, 1])

    def shown(self, homes: ArrayLike) -> tuple[I64, I32]:
        """(starts, items): group homes[i] shows items[starts[i]:starts[i + 1]]."""
        starts, items = change.show_many(self._lists, self._memory, self.items, as_ints(homes), self.k)
        return starts, items

    def read(self, numbers: ArrayLike) -> tuple[I64, I32]:
        """(starts, items): list numbers[i] holds items[starts[i]:starts[i + 1]]."""
        starts, items = change.read(self._lists, self._memory, as_ints(numbers))
        return starts, items

    def members(self, homes: ArrayLike) -> tuple[I64, I64]:
        """(starts, numbers): group homes[i] is of the lists numbers[starts[i]:starts[i + 1]]."""
        starts, numbers = change.members(self._lists, as_ints(homes))
        return starts, numbers

    def held(self) -> Flags:
        """Which items some list holds."""
        is_held = np.zeros(len(self.items), np.bool_)
        change.mark_held(self._head, self._lists, self._memory, is_held)
        return is_held
