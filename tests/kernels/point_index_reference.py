"""What PointIndex must answer, by plain search, and what must hold of its arrays after every call."""

from __future__ import annotations

import numpy as np

from tidings.kernels.point_index import PointIndex
from tidings.kernels.point_index.point_change import COLLAPSE_AT, height_limit
from tidings.kernels.point_index.point_layout import (
    CAPACITY,
    CLASS_SIZES,
    COUNT,
    DIM,
    FREE_LISTS,
    IS_FREE,
    IS_LEAF,
    LEAF_MAX,
    LEFT,
    NODE_FREE,
    NODE_TOP,
    OFFSET,
    PARENT,
    POOL_FREE,
    POOL_TOP,
    RIGHT,
    ROOT,
)

Point = tuple[int, ...]
Box = tuple[Point, Point, int]


class Reference:
    """The same interface as far as the tests need it, over a dict."""

    def __init__(self) -> None:
        self.points: dict[int, tuple[int, Point]] = {}

    def stab(self, channel: int, boxes: list[Box]) -> dict[int, int]:
        """Slots in the union of the boxes, with the tags of all boxes they are in."""
        found: dict[int, int] = {}
        for slot, (of, point) in self.points.items():
            for lo, hi, tag in boxes:
                if of == channel and all(a <= x <= b for a, x, b in zip(lo, point, hi, strict=True)):
                    found[slot] = found.get(slot, 0) | tag
        return found


def check_invariants(index: PointIndex) -> int:
    """Assert all that the class promises about its arrays; returns the greatest height of a tree."""
    a = index._arrays
    live: set[int] = set()
    blocks: list[tuple[int, int]] = []
    slots: dict[int, tuple[int, int]] = {}
    highest = 0

    def visit(node: int, parent: int, depth: int) -> np.ndarray:
        nonlocal highest
        highest = max(highest, depth)
        assert node not in live
        live.add(node)
        assert a.nodes[node, PARENT] == parent
        if a.nodes[node, LEFT] == IS_LEAF:
            offset, capacity, n = (int(a.nodes[node, field]) for field in (OFFSET, CAPACITY, COUNT))
            blocks.append((offset, capacity))
            assert capacity in CLASS_SIZES
            assert 1 <= n <= capacity
            begin = offset * index.dims
            points = a.pool[begin : begin + capacity * index.dims].reshape(index.dims, capacity)[:, :n].T
            assert n <= LEAF_MAX or (points == points[0]).all()
            for at in range(n):
                slots[int(a.pool_slot[offset + at])] = (node, at)
        else:
            left = visit(int(a.nodes[node, LEFT]), node, depth + 1)
            right = visit(int(a.nodes[node, RIGHT]), node, depth + 1)
            dim = a.nodes[node, DIM]
            assert (left[:, dim] <= a.split[node]).all()
            assert (right[:, dim] > a.split[node]).all()
            points = np.concatenate((left, right))
            assert len(points) > COLLAPSE_AT
        assert a.nodes[node, COUNT] == len(points)
        assert (a.bounds[node, 0] <= points).all()
        assert (a.bounds[node, 1] >= points).all()
        if parent >= 0:
            assert (a.bounds[node, 0] >= a.bounds[parent, 0]).all()
            assert (a.bounds[node, 1] <= a.bounds[parent, 1]).all()
        return points

    total = 0
    for channel, root in enumerate(a.channels[:, ROOT].tolist()):
        if root >= 0:
            before = highest
            highest = 0
            n = len(visit(root, -1 - channel, 0))
            assert highest <= height_limit(n, index.dims) + 1 or a.channels[channel, 1]
            highest = max(highest, before)
            total += n
    assert total == len(index) == len(slots)

    held = np.flatnonzero(a.slot_map[:, 0] >= 0)
    assert {int(slot): tuple(a.slot_map[slot].tolist()) for slot in held} == slots

    free = int(a.head[NODE_FREE])
    while free >= 0:
        assert free not in live
        assert a.nodes[free, LEFT] == IS_FREE
        live.add(free)
        free = int(a.nodes[free, PARENT])
    assert live == set(range(int(a.head[NODE_TOP])))

    in_use = sum(size for _, size in blocks)
    for k, size in enumerate(CLASS_SIZES.tolist()):
        free = int(a.head[FREE_LISTS + k])
        while free >= 0:
            blocks.append((free, size))
            free = int(a.pool_slot[free])
    end = 0
    for offset, size in sorted(blocks):
        assert offset == end
        end += size
    assert end == a.head[POOL_TOP]
    assert end - in_use == a.head[POOL_FREE]
    return highest
