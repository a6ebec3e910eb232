"""Plane kd-trees against their definition: the points that were added and not removed, counted one by one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plane_kdtree_reference import NOTHING, Box, Checker, Point, bounds_of, check_invariants

from research.strategies.topk.kernels.plane_kdtree import PlaneKdTree
from research.strategies.topk.kernels.plane_kdtree.layout import BLOCK_MAX, INT64_MAX, INT64_MIN, tree_pointers
from research.strategies.topk.kernels.plane_kdtree.query import has_any, tighten
from research.strategies.topk.kernels.plane_kdtree.tree import MANY
from tidings.kernels.jit import kernel

pytestmark = pytest.mark.extended


EDGES = [INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX]
NUMBERS = np.random.default_rng(0).integers(0, 1 << 60, (3, 4000))
"""Always the same: tests draw which of them they take."""


@kernel
def ask(head, sets, nodes, m, work, of, boxes, found, is_any):
    """For each box [n, (lo_min, lo_max, hi_min, hi_max)]: the bounds of the points of a set in it, and if there are any."""
    c = tree_pointers(head, sets, nodes, m, work)
    for i in range(len(boxes)):
        lo_min, lo_max, hi_min, hi_max = boxes[i]
        found[i, 0], found[i, 1], found[i, 2], found[i, 3] = tighten(c, of, lo_min, lo_max, hi_min, hi_max)
        is_any[i] = has_any(c, of, lo_min, lo_max, hi_min, hi_max)


def bounds_in(tree: PlaneKdTree, number: int, boxes: np.ndarray) -> list[Box]:
    """The bounds of the points of a set in each box."""
    found, is_any = np.empty_like(boxes), np.empty(len(boxes), np.bool_)
    ask(*tree.arrays, number, boxes, found, is_any)
    assert (is_any == (found[:, 0] <= found[:, 1])).all()
    return [tuple(box) for box in found.tolist()]


class World:
    """Trees, and what they should have."""

    def __init__(self) -> None:
        self.tree = PlaneKdTree()
        self.points: dict[int, Counter[Point]] = {0: Counter(), 2: Counter(), 7: Counter()}

    def add(self, numbers: list[int], first: int, n: int, span: int) -> None:
        """Add points to some of the sets; there are few or many different coordinates, or extreme ones if span is 0."""
        of, *points = NUMBERS[:, first : first + n]
        of = np.array(numbers)[of % len(numbers)]
        lo, hi = (np.array(EDGES)[c % len(EDGES)] if span == 0 else c % (2 * span) - span for c in points)
        self.tree.add(of, lo, hi)
        for number, *point in zip(of.tolist(), lo.tolist(), hi.tolist(), strict=True):
            self.points[number][tuple(point)] += 1

    def remove(self, number: int, share: float, *, is_scattered: bool) -> None:
        """Remove some points of a set, here and there or all with a small lo."""
        held = sorted(self.points[number].elements())
        n = int(len(held) * share)
        gone = [held[i] for i in np.random.default_rng(0).permutation(len(held))[:n]] if is_scattered else held[:n]
        if gone:
            self.tree.remove([number] * n, *zip(*gone, strict=True))
        self.points[number] -= Counter(gone)

    def reload(self) -> None:
        loaded = PlaneKdTree()
        loaded.load(self.tree.dump())
        self.tree = loaded

    def check(self) -> None:
        assert check_invariants(self.tree) == {number: points for number, points in self.points.items() if points}
        assert len(self.tree) == sum(points.total() for points in self.points.values())
        for number, points in self.points.items():
            borders = [coordinate for point in list(points)[:20] for coordinate in point] + EDGES
            rng = np.random.default_rng(len(points))
            boxes = np.sort(rng.choice(np.array(borders), (20, 2, 2)), axis=2).reshape(20, 4)
            assert bounds_in(self.tree, number, boxes) == [bounds_of(points, tuple(box)) for box in boxes.tolist()]


ADDED = st.sampled_from([1, 3, 40, MANY - 1]) | st.integers(MANY, 700)
ACTIONS = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 3000), ADDED, st.sampled_from([0, 2, 30, 1 << 40])),
    st.tuples(st.just("remove"), st.sampled_from([0, 0, 2, 7]), st.sampled_from([0.1, 0.6, 1.0]), st.booleans()),
    st.just(("reload",)),
)


@settings(max_examples=20, deadline=None)
@given(st.sampled_from([[0], [0, 0, 0, 2, 7]]), st.lists(ACTIONS, min_size=2, max_size=12))
def test_trees_have_what_was_added_and_not_removed(numbers: list[int], actions: list) -> None:
    world = World()
    for action, *details in actions:
        if action == "add":
            world.add(numbers, *details)
        elif action == "remove":
            number, share, is_scattered = details
            world.remove(number, share, is_scattered=is_scattered)
        else:
            world.reload()
        world.check()
    assert len(world.tree) == sum(points.total() for points in world.points.values())


def test_points_come_in_order_and_the_tree_stays_low() -> None:
    tree = PlaneKdTree()
    size = 40 * BLOCK_MAX
    for los in np.array_split(np.arange(size), size // (MANY - 1) + 1):
        tree.add(np.zeros(len(los)), los, los // 3)
    checker = Checker(tree)
    assert checker.check() == {0: Counter((lo, lo // 3) for lo in range(size))}
    assert checker.depth <= 16
    for los in np.array_split(np.arange(size - 10), 50):
        tree.remove(np.zeros(len(los)), los, los // 3)
        check_invariants(tree)
    assert check_invariants(tree) == {0: Counter((lo, lo // 3) for lo in range(size - 10, size))}


def test_many_points_at_one_place_take_no_more_room_than_one() -> None:
    tree, single = PlaneKdTree(), PlaneKdTree()
    tree.add(np.zeros(100_000), np.full(100_000, 5), np.full(100_000, 6))
    single.add([0], [5], [6])
    for _ in range(10):
        tree.add([0], [5], [6])
    assert len(tree) == 100_010
    assert tree.nbytes < single.nbytes + 1000
    tree.remove(np.zeros(100_010), np.full(100_010, 5), np.full(100_010, 6))
    assert len(tree) == 0
    assert check_invariants(tree) == {}


def test_half_the_points_on_a_line_each_way() -> None:
    # Neither coordinate can be cut in the middle of such a line.
    tree = PlaneKdTree()
    size = 4 * BLOCK_MAX
    los = np.concatenate((np.full(size, INT64_MIN), np.arange(size)))
    his = np.concatenate((np.arange(size), np.full(size, INT64_MAX)))
    tree.add(np.zeros(2 * size), los, his)
    assert check_invariants(tree) == {0: Counter(zip(los.tolist(), his.tolist(), strict=True))}


def test_memory_is_small() -> None:
    rng = np.random.default_rng(1)
    tree = PlaneKdTree()
    tree.add(np.zeros(200_000), *rng.integers(0, 1 << 40, (2, 200_000)))
    assert tree.nbytes < 40 * 200_000


def test_what_is_not_there_cannot_be_removed() -> None:
    tree = PlaneKdTree()
    with pytest.raises(KeyError, match="set 3 has no point"):
        tree.remove([3], [0], [0])
    tree.add([0, 0, 1], [1, 2, 3], [1, 2, 3])
    with pytest.raises(KeyError, match=r"set 0 has no point \(3, 3\)"):
        tree.remove([0, 0, 1], [1, 3, 3], [1, 3, 3])
    assert check_invariants(tree) == {0: Counter([(2, 2)]), 1: Counter([(3, 3)])}
    with pytest.raises(ValueError, match="negative"):
        tree.add([-1], [0], [0])
    with pytest.raises(ValueError, match="as many"):
        tree.add([0], [0, 1], [0])
    with pytest.raises(ValueError, match="already"):
        tree.load(tree.dump())
    assert bounds_in(tree, 99, np.array([[0, 9, 0, 9]])) == [NOTHING]
