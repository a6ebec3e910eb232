"""What `RangeTopkIndex` means: the k best of a range, recomputed; a client's rule; and a check of what the arrays promise."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from research.strategies.topk.kernels.range_topk import RangeTopkIndex, Sends
from research.strategies.topk.kernels.range_topk.layout import (
    BLOCK_MAX,
    BLOCK_WIDTH,
    CHILD,
    ENTRY,
    ENTRY_FIELDS,
    ENTRY_TIE,
    ENTRY_X,
    ENTRY_Y,
    FREE_BLOCKS,
    FREE_LISTS,
    LIST_WIDTH,
    LOW_TIE,
    NODE_MAX,
    OWNER,
    PRESENT,
    ROOT,
    ROOT_SHAPE,
    SET_COUNT,
    SHAPE,
    SIZE,
    TIE,
    X,
    Y,
)
from tidings.kernels.buddy import CLASSES
from tidings.kernels.extents import TOP

Numbers = tuple[int, int, int]
"""x, y and tie of an entry."""
Box = tuple[int, int, int, int]
"""lo_min, lo_max, hi_min, hi_max."""
Point = tuple[int, int]


def k_best(entries: dict[int, Numbers], k: int, lo: int, hi: int) -> list[int]:
    """The entries that a point holds, best first: the definition."""
    return sorted((e for e, (x, _, _) in entries.items() if lo <= x <= hi), key=lambda e: entries[e][1:])[:k]


class Client:
    """Somebody at a point, who knows only what is sent to it."""

    def __init__(self, k: int, point: Point) -> None:
        self.k = k
        self.point = point
        self.held: dict[int, Numbers] = {}

    def get(self, entry: int, numbers: Numbers | None) -> None:
        """Apply what is sent: an entry as it is now, or None if it is gone."""
        if numbers is None:
            self.held.pop(entry, None)
            return
        self.held[entry] = numbers
        if len(self.held) > self.k:
            del self.held[self.ranked()[-1]]

    def ranked(self) -> list[int]:
        return sorted(self.held, key=lambda entry: self.held[entry][1:])


def is_in(point: Point, box: Box) -> bool:
    return box[0] <= point[0] <= box[1] and box[2] <= point[1] <= box[3]


def sends_of(sends: Sends, i: int) -> list[tuple[int, bool, list[Box]]]:
    """The sends of a change."""
    columns = (sends.lo_min, sends.lo_max, sends.hi_min, sends.hi_max)
    found = []
    for j in range(sends.send_starts[i], sends.send_starts[i + 1]):
        part = slice(sends.box_starts[j], sends.box_starts[j + 1])
        boxes = list(zip(*(column[part].tolist() for column in columns), strict=True))
        found.append((int(sends.entry[j]), bool(sends.is_gone[j]), boxes))
    return found


def check_boxes(boxes: list[Box], k: int) -> None:
    """Between 1 and k boxes, none empty, all disjoint."""
    assert 0 < len(boxes) <= k
    for i, (lo_min, lo_max, hi_min, hi_max) in enumerate(boxes):
        assert lo_min <= lo_max and hi_min <= hi_max
        for other in boxes[:i]:
            assert lo_min > other[1] or lo_max < other[0] or hi_min > other[3] or hi_max < other[2]


class Checker:
    """Reads the arrays of a `RangeTopkIndex` and checks them; `spans` are the extents found, as (offset, words)."""

    def __init__(self, index: RangeTopkIndex) -> None:
        self.index = index
        self.a = index._arrays
        self.spans: list[tuple[int, int]] = []

    def extent(self, width: int, offset: int, shape: int) -> list[list[int]]:
        """The entries of an extent, each a list of its fields."""
        size, k = shape >> 8, shape & 255
        assert 0 < size <= 1 << k
        self.spans.append((offset, width << k))
        return self.a.m[offset : offset + (width << k)].reshape(width, 1 << k)[:, :size].T.tolist()

    def check_list(self, described: list[int], below: list[list[int]], tie_field: int) -> None:
        assert described[: TIE + 1] == below[0][: TIE + 1]
        assert (described[Y], described[LOW_TIE]) == min((row[Y], row[tie_field]) for row in below)

    def check_set(self, number: int) -> None:
        fields = self.a.sets[number].tolist()
        rows = []
        if fields[ROOT_SHAPE]:
            for node in self.extent(LIST_WIDTH, fields[ROOT], fields[ROOT_SHAPE]):
                blocks = self.extent(LIST_WIDTH, node[CHILD], node[SHAPE])
                assert len(blocks) <= NODE_MAX
                self.check_list(node, blocks, LOW_TIE)
                for block in blocks:
                    content = self.extent(BLOCK_WIDTH, block[CHILD], block[SHAPE])
                    assert len(content) <= BLOCK_MAX
                    self.check_list(block, content, TIE)
                    rows += content
        assert len(rows) == fields[SIZE]
        positions = [(row[X], row[TIE]) for row in rows]
        assert positions == sorted(set(positions))
        for row in rows:
            numbers = self.a.entries[row[ENTRY]].tolist()
            assert len(numbers) == ENTRY_FIELDS and numbers[OWNER] == number + 1
            assert [numbers[ENTRY_X], numbers[ENTRY_Y], numbers[ENTRY_TIE]] == [row[X], row[Y], row[TIE]]

    def check(self) -> None:
        """All sets; and every word of the memory is in just one extent, or free."""
        head = self.a.head
        for number in range(head[SET_COUNT]):
            self.check_set(number)
        assert head[PRESENT] == self.a.sets[: head[SET_COUNT], SIZE].sum() == (self.a.entries[:, OWNER] > 0).sum()
        for free, width in ((FREE_BLOCKS, BLOCK_WIDTH), (FREE_LISTS, LIST_WIDTH)):
            for k in range(CLASSES):
                offset = int(head[free + k])
                while offset >= 0:
                    self.spans.append((offset, width << k))
                    offset = int(self.a.m[offset])
        end = 0
        for offset, words in sorted(self.spans):
            assert offset == end
            end += words
        assert end == head[TOP]


def check_invariants(index: RangeTopkIndex) -> None:
    Checker(index).check()


def entries_of(index: RangeTopkIndex, number: int) -> dict[int, Numbers]:
    """The entries of a set."""
    rows = enumerate(index._arrays.entries.tolist())
    return {e: (row[ENTRY_X], row[ENTRY_Y], row[ENTRY_TIE]) for e, row in rows if row[OWNER] == number + 1}


def fill(index: RangeTopkIndex, number: int, entries: ArrayLike, xs: ArrayLike, ys: ArrayLike, ties: ArrayLike) -> None:
    """Gives a set entries; what there is to send is sent to nobody."""
    count = len(np.asarray(entries))
    index.change(np.full(count, number), entries, xs, ys, ties, np.ones(count, np.bool_))
