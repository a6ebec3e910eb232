"""What `PlaneKdTree` means: points counted one by one; and a check of all that the arrays promise."""

from __future__ import annotations

from collections import Counter

from research.strategies.topk.kernels.plane_kdtree import PlaneKdTree
from research.strategies.topk.kernels.plane_kdtree.layout import (
    BLOCK_MAX,
    CELL_FIELDS,
    CELL_MAX,
    CELL_SIZE,
    CELL_WORDS,
    CHILD,
    CLASS_BITS,
    CLASSES,
    COUNT,
    CUT,
    FREE_BLOCKS,
    FREE_NODES,
    FREE_ROOTS,
    I64,
    INT64_MAX,
    INT64_MIN,
    NODE_TOP,
    POINTS,
    RECORD,
    SIZE,
    TOP,
)

Point = tuple[int, int]
Box = tuple[int, int, int, int]
"""lo_min, lo_max, hi_min, hi_max."""
NOTHING = (INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN)


def bounds(points: list[Point]) -> Box:
    """The least box that has all points; turned round if there are none."""
    los, his = [lo for lo, _ in points], [hi for _, hi in points]
    return (min(los), max(los), min(his), max(his)) if points else NOTHING


def bounds_of(points: Counter[Point], box: Box) -> Box:
    """The bounds of the points in a box: the definition."""
    return bounds([point for point in points if box[0] <= point[0] <= box[1] and box[2] <= point[1] <= box[3]])


class Checker:
    """Reads the arrays of `PlaneKdTree` and checks them; `blocks` and `records` are the parts of memory found."""

    def __init__(self, tree: PlaneKdTree) -> None:
        self.a = tree.arrays
        self.blocks: list[tuple[int, int]] = []
        self.records: list[tuple[int, int]] = []
        self.depth = 0

    def cells(self, child: int, size: int) -> list[list[tuple[int, int, int]]]:
        """The points of a block, cell by cell, each with its times."""
        offset, k = child >> CLASS_BITS, child & ((1 << CLASS_BITS) - 1)
        room = 1 << k
        if room <= CELL_MAX:
            self.blocks.append((offset, 3 * room))
            assert 0 < size <= room
            fields = self.a.m[offset : offset + 3 * room].reshape(3, room)[:, :size]
            return [list(map(tuple, fields.T.tolist()))]
        count = room // CELL_MAX
        self.blocks.append((offset, 3 * room + CELL_FIELDS * count))
        heads = self.a.m[offset : offset + CELL_FIELDS * count].reshape(CELL_FIELDS, count).T.tolist()
        start = offset + CELL_FIELDS * count
        cells = []
        for i, head in enumerate(heads):
            n = head[CELL_SIZE]
            at, times_at = start + CELL_WORDS * i, start + CELL_WORDS * count + CELL_MAX * i
            columns = (self.a.m[first : first + n].tolist() for first in (at, at + CELL_MAX, times_at))
            cells.append(list(zip(*columns, strict=True)))
            assert tuple(head[:CELL_SIZE]) == bounds([point[:2] for point in cells[-1]])
        return cells

    def points_below(self, at: int, depth: int = 0) -> Counter[Point]:
        record = self.a.nodes[at : at + RECORD].tolist()
        self.depth = max(self.depth, depth)
        if record[CHILD] < 0:
            one = ~record[CHILD]
            self.records.append((one, 2 * RECORD))
            below = [self.points_below(child, depth + 1) for child in (one, one + RECORD)]
            cut, which = self.a.nodes[one + CUT], self.a.nodes[one + RECORD + CUT]
            assert max(point[which] for point in below[0]) <= cut < min(point[which] for point in below[1])
            assert not set(below[0]) & set(below[1])
            points = below[0] + below[1]
        else:
            listed = [point for cell in self.cells(record[CHILD], record[SIZE]) for point in cell]
            assert len(listed) <= BLOCK_MAX
            points = Counter({(lo, hi): times for lo, hi, times in listed})
            assert len(points) == len(listed) and min(points.values()) > 0
        assert tuple(record[:CHILD]) == bounds(list(points))
        assert (record[SIZE], record[COUNT]) == (len(points), points.total())
        return points

    def check(self) -> dict[int, Counter[Point]]:
        """All sets; and every word of the memories is in just one part, or free."""
        found = {}
        for number, root in enumerate(self.a.sets.tolist()):
            if root >= 0:
                self.records.append((root, RECORD))
                found[number] = self.points_below(root)
        head = self.a.head
        assert head[POINTS] == sum(points.total() for points in found.values())
        for k in range(CLASSES):
            words = (3 << k) + (CELL_FIELDS * (1 << k) // CELL_MAX if 1 << k > CELL_MAX else 0)
            self.follow(int(head[FREE_BLOCKS + k]), words, self.a.m, self.blocks)
        for free, words in ((FREE_NODES, 2 * RECORD), (FREE_ROOTS, RECORD)):
            self.follow(int(head[free]), words, self.a.nodes, self.records)
        for parts, top in ((self.blocks, head[TOP]), (self.records, head[NODE_TOP])):
            end = 0
            for offset, words in sorted(parts):
                assert offset == end
                end += words
            assert end == top
        return found

    @staticmethod
    def follow(first: int, words: int, memory: I64, parts: list[tuple[int, int]]) -> None:
        while first >= 0:
            parts.append((first, words))
            first = int(memory[first])


def check_invariants(tree: PlaneKdTree) -> dict[int, Counter[Point]]:
    """The points of each set that has any."""
    return Checker(tree).check()
