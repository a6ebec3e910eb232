"""The class that owns the arrays of a box top-k index."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from research.strategies.topk.kernels.box_topk import change, query
from research.strategies.topk.kernels.box_topk.change import BAD_ENTRY, DONE
from research.strategies.topk.kernels.box_topk.layout import (
    COUNT,
    I64,
    NOBODY,
    ROOT,
    SET,
    Tree,
    entry_tree,
    point_tree,
)
from research.strategies.topk.kernels.range_topk.output import Sends
from tidings.kernels.arguments import as_argument, as_ints, check_lengths
from tidings.kernels.arrays import grow

DIMS_MAX = 8
K_MAX = 1 << 16


class BoxTopkIndex:
    """Sets of entries with numbers x_1 .. x_d, y and tie each, and points that hold the k best entries of a box.

    Entries are ranked by (y, tie), lowest first; the ties of a set are all different. A point [lo_1, hi_1 .. lo_d, hi_d]
    holds the k best of the entries of its set with lo_i <= x_i <= hi_i for all i, or all if there are fewer. Who gets an
    entry that is sent overwrites it if it is held, and removes it if it is gone; one that is not held is added, unless it
    is gone, and then the last of more than k is dropped. So all points hold what they should after each change.

    Sends are exact: they reach those who hold the entry or held it, and no others, in disjoint boxes with the columns of
    points. They depend on the entries alone, as of a `RangeTopkIndex`; or if `is_sparse`, boxes are drawn around the points
    there are, joined where no other point is in between, and left out where there is none.

    With eps, boxes are fewer and larger: whoever gets an entry has fewer than (1 + eps) k in front of it. It is in the box
    of all of them, so that does no harm.

    Entries are small non-negative integers chosen by the caller, which memory grows with; one is in one set at a time.
    Not safe for use by several threads at a time.
    """

    def __init__(self, k: int, dims: int, eps: float = 0.0, *, is_sparse: bool = False) -> None:
        if not 0 < k <= K_MAX:
            raise ValueError(f"k is {k}, must be from 1 to {K_MAX}")
        if not 0 < dims <= DIMS_MAX:
            raise ValueError(f"{dims} dimensions, must be from 1 to {DIMS_MAX}")
        self.k = k
        self.dims = dims
        self.is_sparse = is_sparse
        self._entries = entry_tree(dims)
        self._points = point_tree(dims)
        self._known = np.zeros((0, dims + 3), np.int64)
        self._slack = int(eps * k)
        self._sets = 0

    def __len__(self) -> int:
        """Number of entries present in all sets."""
        return _count(self._entries)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        return sum(array.nbytes for array in (*self._entries, *self._points, self._known))

    def new_set(self) -> int:
        """Number of a new set, without entries and points."""
        self._sets += 1
        return self._sets - 1

    def change(
        self,
        sets: ArrayLike,
        entries: ArrayLike,
        xs: ArrayLike,
        ys: ArrayLike,
        ties: ArrayLike,
        is_present: ArrayLike,
        *,
        is_told: bool = True,
    ) -> Sends:
        """Gives entries new numbers, xs [n, dims], or makes them absent, one after the other; returns who must be sent what.

        An entry whose numbers stay the same is sent to those who hold it. If something is wrong with a change, an error
        is raised, with the changes before that made.
        """
        of, changed, numbers = self._sets_of(sets), as_ints(entries), (as_ints(ys), as_ints(ties))
        wide, present = self._rows(xs, self.dims), as_argument(is_present, np.bool_).reshape(-1)
        check_lengths(of, changed, wide, *numbers, present)
        self._cover(changed)
        send_starts = np.zeros(len(of) + 1, np.int64)
        status, at, self._entries, out = change.change(
            self.k,
            self._slack,
            self.is_sparse,
            is_told,
            self._entries,
            self._points,
            self._known,
            of,
            changed,
            wide,
            *numbers,
            present.view(np.uint8),
            send_starts,
        )
        if status == BAD_ENTRY:
            raise ValueError(f"entry {changed[at]} is not in set {of[at]}, but in {self._known[changed[at], SET] - 1}")
        if status != DONE:
            raise ValueError(f"all numbers of entry {changed[at]} are those of another in set {of[at]}")
        sends, boxes = out.ends.tolist()
        return Sends(
            send_starts,
            out.sent[:sends],
            out.is_gone[:sends].view(np.bool_),
            out.box_starts[: sends + 1],
            out.box_lo[:boxes],
            out.box_hi[:boxes],
        )

    def load(self, *columns: ArrayLike) -> Sends:
        """As `change`, but there are no sends."""
        return self.change(*columns, is_told=False)

    def best(self, sets: ArrayLike, los: ArrayLike, his: ArrayLike) -> tuple[I64, I64]:
        """The best entries of boxes [n, dims]: those of box i are entries[starts[i]:starts[i + 1]], lowest key first."""
        of, first, last = self._sets_of(sets), self._rows(los, self.dims), self._rows(his, self.dims)
        check_lengths(of, first, last)
        boxes = np.stack([first, last], axis=2).reshape(len(of), 2 * self.dims)
        starts = np.zeros(len(of) + 1, np.int64)
        return starts, query.best(self.k, self._entries, of, boxes, starts)

    def add(self, sets: ArrayLike, points: ArrayLike) -> None:
        """Adds points [n, 2 * dims]; one that is there already counts once more."""
        of, boxes = self._sets_of(sets), self._rows(points, 2 * self.dims)
        check_lengths(of, boxes)
        self._points = change.add(self._points, of, boxes)

    def remove(self, sets: ArrayLike, points: ArrayLike) -> None:
        """Removes points, once each; if one is not there, an error is raised, with those before removed."""
        of, boxes = self._sets_of(sets), self._rows(points, 2 * self.dims)
        check_lengths(of, boxes)
        done = change.remove(self._points, of, boxes)
        if done < len(of):
            raise KeyError(f"set {of[done]} has no point {boxes[done].tolist()}")

    def points(self) -> tuple[I64, I64, I64]:
        """All different points: sets, points [n, 2 * dims], and how often each was added."""
        items = change.items_of(self._points, False)
        return items[:, SET], items[:, 1 : 1 + 2 * self.dims], items[:, -1]

    def retie(self, sets: ArrayLike, entries: ArrayLike, ties: ArrayLike) -> None:
        """Gives entries other ties; these must leave the entries of each set in the same order."""
        of, changed, new = self._sets_of(sets), as_ints(entries), as_ints(ties)
        check_lengths(of, changed, new)
        self._cover(changed)
        wrong = np.flatnonzero(self._known[changed, SET] != of + 1)
        if len(wrong):
            raise KeyError(f"set {of[wrong[0]]} has no entry {changed[wrong[0]]}")
        self._entries = change.retie(self._entries, self._known, changed, new)

    def _sets_of(self, sets: ArrayLike) -> I64:
        of = as_ints(sets)
        if len(of) and not 0 <= of.min() <= of.max() < self._sets:
            raise KeyError(f"there is no set {of.min() if of.min() < 0 else of.max()}")
        return of

    def _rows(self, values: ArrayLike, width: int) -> I64:
        rows: I64 = as_argument(values, np.int64).reshape(-1, width)
        return rows

    def _cover(self, entries: I64) -> None:
        """Makes room for these entries."""
        if len(entries):
            if entries.min() < 0:
                raise ValueError(f"entry {entries.min()} must not be negative")
            grow(self._known, int(entries.max()) + 1)


def _count(tree: Tree) -> int:
    return 0 if tree.head[ROOT] == NOBODY else int(tree.links[tree.head[ROOT], COUNT])
