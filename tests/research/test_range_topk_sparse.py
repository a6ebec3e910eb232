"""The range top-k index among points of a kd-tree, and in groups: all still hold the k best, and less is sent than to all.

Points that are few are listed, many are asked of the tree: both ways are taken, and tell the same.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plane_kdtree_reference import bounds
from range_topk_reference import (
    Box,
    Client,
    Numbers,
    Point,
    check_boxes,
    check_invariants,
    fill,
    is_in,
    k_best,
    sends_of,
)

from research.strategies.topk.kernels.plane_kdtree import PlaneKdTree
from research.strategies.topk.kernels.plane_kdtree.layout import INT64_MAX, INT64_MIN, LIST_LIMIT
from research.strategies.topk.kernels.range_topk import RangeTopkIndex, Sends
from research.strategies.topk.kernels.rectangle_cover import RectangleCover
from research.strategies.topk.sparse_index import SparseRangeTopkIndex

pytestmark = pytest.mark.extended


Send = tuple[int, bool, list[Box]]
EDGES = [INT64_MIN, INT64_MIN + 1, INT64_MIN + 2, -1, 0, INT64_MAX - 2, INT64_MAX - 1, INT64_MAX]


def reached(points: list[Point], boxes: list[Box]) -> list[Point]:
    return [point for point in points if any(is_in(point, box) for box in boxes)]


class World:
    """One set of entries, sent to all, to points of a tree, to the same points never listed, or only late, and in a cover."""

    def __init__(self, k: int, groups: int | None, points: list[Point], limit: int, rectangles: int = 3) -> None:
        self.cover, self.covered = RectangleCover(rectangles), SparseRangeTopkIndex(k, groups)
        self.covered.new_set()
        if points:
            self.cover.add(np.zeros(len(points)), *zip(*points, strict=True))
        self.k, self.groups = k, groups
        self.tree, self.far = PlaneKdTree(), PlaneKdTree()
        self.far.arrays.head[LIST_LIMIT] = limit
        self.sparse, self.asked = (SparseRangeTopkIndex(k, groups) for _ in range(2))
        self.dense = RangeTopkIndex(k, groups)
        (self.set,) = {index.new_set() for index in (self.sparse, self.asked, self.dense)}
        self.entries: dict[int, Numbers] = {}
        self.points: list[Point] = []
        self.clients: dict[Point, list[Client]] = {}
        """At each point one told as a point of the tree, one told as all are, and one told as in a cover."""
        for point in points:
            self.come(point, is_covered=True)

    def come(self, point: Point, *, is_covered: bool = False) -> None:
        for tree in (self.tree, self.far) if is_covered else (self.tree, self.far, self.cover):
            tree.add([self.set], [point[0]], [point[1]])
        self.points.append(point)
        if point not in self.clients:
            self.clients[point] = [Client(self.k, point) for _ in range(3)]
            for entry in k_best(self.entries, self.k, *point):
                for client in self.clients[point]:
                    client.get(entry, self.entries[entry])

    def go(self, point: Point) -> None:
        for tree in (self.tree, self.far, self.cover):
            tree.remove([self.set], [point[0]], [point[1]])
        self.points.remove(point)
        if point not in self.points:
            del self.clients[point]

    def change(self, entry: int, x: int, y: int, tie: int, is_present: bool) -> None:
        columns = ([self.set], [entry], [x], [y], [tie], [is_present])
        told = sends_of(self.sparse.change_among(self.tree, *columns), 0)
        assert told == sends_of(self.asked.change_among(self.far, *columns), 0)
        assert (self.sparse.lookups, self.sparse.snaps) == (self.asked.lookups, self.asked.snaps)
        all_told = sends_of(self.dense.change(*columns), 0)
        cover_told = sends_of(self.covered.change_among(self.cover, *columns), 0)
        x_before = self.entries.pop(entry, (x,))[0]
        if is_present:
            self.entries[entry] = (x, y, tie)
        self.check_told(told, all_told, x_before)
        if self.groups is None:
            assert self.deliveries(cover_told) == self.deliveries(told)
        assert sum(len(boxes) for *_, boxes in cover_told) <= sum(len(boxes) for *_, boxes in all_told)
        for which, sends in enumerate((told, all_told, cover_told)):
            for sent, is_gone, boxes in sends:
                for point in reached(list(self.clients), boxes):
                    self.clients[point][which].get(sent, None if is_gone else self.entries[sent])
        for point, clients in self.clients.items():
            for client in clients:
                assert client.ranked() == k_best(self.entries, self.k, *point)
                assert client.held == {held: self.entries[held] for held in client.held}

    def deliveries(self, told: list[Send]) -> list[tuple[int, bool, list[Point]]]:
        """Who gets what, without what nobody gets."""
        heard = [(sent, is_gone, reached(self.points, boxes)) for sent, is_gone, boxes in told]
        return [each for each in heard if each[2]]

    def check_told(self, told: list[Send], all_told: list[Send], x_before: int) -> None:
        dense = iter(all_told)
        for sent, is_gone, boxes in told:
            # The same sends in the same order, but for those that nobody would hear.
            wanted = next(other for other in dense if other[:2] == (sent, is_gone))[2]
            check_boxes(boxes, self.k if self.groups is None else self.groups)
            assert len(boxes) <= len(wanted)
            at = reached(self.points, wanted)
            if self.groups is None:
                assert reached(self.points, boxes) == at
            else:
                assert set(reached(self.points, boxes)) <= set(at)
            for box in boxes:
                assert box == bounds(reached(self.points, [box]))
        for sent, is_gone, boxes in told + all_told:
            x = x_before if is_gone else self.entries[sent][0]
            for _, lo_max, hi_min, _ in boxes:
                assert lo_max <= x <= hi_min


RANGES = st.tuples(st.integers(-1, 6), st.integers(-1, 6)).map(lambda ends: (min(ends), max(ends)))
CHANGES = st.tuples(st.integers(0, 8), st.integers(0, 5), st.integers(0, 5), st.sampled_from([True, True, True, False]))


@settings(max_examples=35, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.integers(1, 4),
    st.sampled_from([None, None, 1, 2, 3]),
    st.sampled_from([0, 5, 40]).flatmap(lambda size: st.lists(RANGES, min_size=size // 2, max_size=size)),
    st.sampled_from([-1, 0, 2, 6]),
    st.sampled_from([1, 3, 8]),
    st.lists(CHANGES, min_size=15, max_size=40),
    st.randoms(),
)
def test_all_hold_what_they_should_after_every_change(
    k: int, groups: int | None, points: list[Point], limit: int, rectangles: int, changes: list, choice: random.Random
) -> None:
    world = World(k, groups, points, limit, rectangles)
    for entry, x, y, is_present in changes:
        if entry in world.entries and choice.random() < 0.6:
            x = world.entries[entry][0]
        world.change(entry, x, y, entry * 7 % 11, is_present)
        if choice.random() < 0.2:
            world.come((choice.randint(-1, 2), choice.randint(2, 6)))
        elif world.points and choice.random() < 0.2:
            world.go(choice.choice(world.points))
    check_invariants(world.sparse)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.integers(1, 3),
    st.sampled_from([None, 1, 2]),
    st.lists(st.tuples(st.sampled_from(EDGES), st.sampled_from(EDGES)).filter(lambda p: p[0] <= p[1]), max_size=12),
    st.sampled_from([-1, 3]),
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from(EDGES[1:-1]), st.sampled_from(EDGES), st.booleans())),
)
def test_extreme_numbers(k: int, groups: int | None, points: list[Point], limit: int, changes: list) -> None:
    world = World(k, groups, points, limit)
    for entry, x, y, is_present in changes:
        world.change(entry, x, y, entry, is_present)
    check_invariants(world.sparse)


def boxes_reach(sends: Sends, los: np.ndarray, his: np.ndarray) -> np.ndarray:
    """For each send, which points are told, as an array of booleans."""
    inside = (
        (sends.lo_min[:, None] <= los)
        & (los <= sends.lo_max[:, None])
        & (sends.hi_min[:, None] <= his)
        & (his <= sends.hi_max[:, None])
    )
    # Boxes of a send are disjoint.
    counted = np.add.reduceat(inside.astype(np.int64), sends.box_starts[:-1], axis=0)
    assert counted.max(initial=0) <= 1
    return counted == 1


@pytest.mark.parametrize(
    ("k", "groups", "span"), [(1, None, 1 << 40), (10, None, 1 << 40), (7, 3, 1 << 40), (10, None, 60)]
)
def test_many_points(k: int, groups: int | None, span: int) -> None:
    """Points enough for a tree of several blocks, so that some are listed and some are not; span is that of x."""
    rng = np.random.default_rng(k + span)
    size, n, m = 400, 300, 3000
    x, y = rng.integers(1, span, size), rng.integers(0, 1 << 40, size)
    los, his = np.sort(rng.integers(0, span, (2, m)), axis=0)
    tree = PlaneKdTree()
    sparse, dense = SparseRangeTopkIndex(k, groups), RangeTopkIndex(k, groups)
    for index in (sparse, dense):
        fill(index, index.new_set(), np.arange(size), x, y, np.arange(size))
    tree.add(np.zeros(m), los, his)
    changed = rng.integers(0, size, n)
    keys = np.where(rng.random(n) < 0.3, rng.integers(0, 1 << 33, n), rng.integers(0, 1 << 40, n))
    columns = (np.zeros(n), changed, x[changed], keys, changed, rng.random(n) < 0.9)
    told, all_told = sparse.change_among(tree, *columns), dense.change(*columns)
    assert np.isin(np.diff(told.box_starts), range(1, (groups or k) + 1)).all()
    heard, wanted = boxes_reach(told, los, his), boxes_reach(all_told, los, his)
    assert heard.any(axis=1).all()
    assert len(told.box_lo) < len(all_told.box_lo)
    if groups is None:
        assert sparse.lookups <= dense.lookups
        is_heard = wanted.any(axis=1)
        assert (told.entry == all_told.entry[is_heard]).all()
        assert (heard == wanted[is_heard]).all()
        assert (np.diff(told.box_starts) <= np.diff(all_told.box_starts)[is_heard]).all()


def test_nobody_is_told_of_a_set_without_points() -> None:
    index, tree = SparseRangeTopkIndex(2), PlaneKdTree()
    one, other = index.new_set(), index.new_set()
    tree.add([other], [0], [9])
    columns = ([one, other, one, other], [0, 1, 0, 1], [5] * 4, [1, 1, 2, 2], [0] * 4, [True] * 4)
    sends = index.change_among(tree, *columns)
    assert sends.send_starts.tolist() == [0, 0, 1, 1, 2]
    assert sends.box_lo.tolist() == sends.box_hi.tolist() == [[0, 9], [0, 9]]
    assert index.lookups == 1


def test_neighbours_are_joined_unless_somebody_is_between() -> None:
    tree = PlaneKdTree()
    tree.add([0, 0], [1, 4], [6, 9])
    index = SparseRangeTopkIndex(2)
    index.new_set()
    # Two columns: lo in (2, 5] with hi below 8 and above, and lo up to 2 with hi below 8.
    fill(index, 0, [0, 1], [2, 8], [0, 0], [0, 1])
    change = ([0], [2], [5], [1], [2], [True])
    assert sends_of(index.change_among(tree, *change), 0) == [(2, False, [(1, 4, 6, 9)])]
    tree.add([0], [2], [9])
    assert sends_of(index.change_among(tree, *change), 0) == [(2, False, [(4, 4, 9, 9), (1, 1, 6, 6)])]
    tree.remove([0], [2], [9])
    assert sends_of(index.change_among(tree, *change), 0) == [(2, False, [(1, 4, 6, 9)])]


def test_groups_bound_the_boxes_of_a_send() -> None:
    size, k = 200, 12
    rng = np.random.default_rng(4)
    counts = []
    for groups in (None, 100, 12, 5, 1):
        index = RangeTopkIndex(k, groups)
        index.new_set()
        fill(index, 0, np.arange(size), np.arange(size), rng.permutation(size), np.arange(size))
        sends = index.change(np.zeros(99), np.arange(99), np.arange(99), np.full(99, size), np.arange(99), [True] * 99)
        counts.append(int(np.diff(sends.box_starts).max()))
    assert counts == [12, 12, 12, 5, 1]
    with pytest.raises(ValueError, match="groups are 0"):
        RangeTopkIndex(3, 0)


def test_lookups_and_snaps_are_counted() -> None:
    tree, index = PlaneKdTree(), SparseRangeTopkIndex(1)
    tree.add([0], [0], [9])
    index.new_set()
    index.change_among(tree, [0] * 3, [0, 1, 0], [5, 6, 5], [0, 1, 2], [0, 1, 0], [True] * 3)
    assert (index.lookups, index.snaps) == (1, 4)


def test_the_more_rectangles_a_cover_has_the_fewer_boxes_are_sent() -> None:
    """From those of dense to those of sparse; and all reach the same."""
    size, changes, k = 400, 600, 5
    rng = np.random.default_rng(2)
    numbers = [np.arange(size), rng.integers(0, 1 << 30, size), rng.integers(0, 1 << 30, size), np.arange(size)]
    changed, ys = rng.integers(0, size, changes), rng.integers(0, 1 << 30, changes)
    # Most are in clusters.
    centres = rng.integers(0, 1 << 30, 8)[rng.integers(0, 8, 2_000)]
    points = np.sort(np.stack([centres, centres]).T + rng.integers(0, 1 << 24, (2_000, 2)), axis=1)
    tree = PlaneKdTree()
    covers = [RectangleCover(count) for count in (1, 16, 256)]
    boxes, received = [], []
    for crowd in (*covers, tree):
        crowd.add(np.zeros(len(points)), points[:, 0], points[:, 1])
        index = SparseRangeTopkIndex(k)
        fill(index, index.new_set(), *numbers)
        sends = index.change_among(
            crowd, np.zeros(changes), changed, numbers[1][changed], ys, changed, np.ones(changes)
        )
        inside = ((points[:, None] >= sends.box_lo) & (points[:, None] <= sends.box_hi)).all(axis=2)
        boxes.append(len(sends.box_lo))
        received.append(int(inside.sum()))
    assert len(set(received)) == 1
    assert boxes == sorted(boxes, reverse=True) and boxes[0] > 2 * boxes[2] > 2 * boxes[3]
    assert 50 * covers[1].nbytes < tree.nbytes


def test_a_cover_forgets_those_who_are_gone() -> None:
    cover = RectangleCover(2)
    cover.add([3] * 4, [0, 1, 8, 9], [1, 2, 9, 9])
    dumped = cover.dump()
    assert dumped["rectangle"][:, :4].tolist() == [[0, 1, 1, 2], [8, 9, 9, 9]]
    cover.add([3, 0], [2, 5], [3, 5])
    assert cover.dump()["rectangle"][1].tolist() == [0, 2, 1, 3, 3] and len(cover) == 6
    cover.remove([3, 3], [8, 9], [9, 9])
    assert cover.dump()["set"].tolist() == [0, 3]
    loaded = RectangleCover(2)
    loaded.load(cover.dump())
    loaded.remove([3, 3, 3, 0], [0, 1, 2, 5], [1, 2, 3, 5])
    assert len(loaded) == 0 and len(loaded.dump()["set"]) == 0
    with pytest.raises(ValueError, match="negative"):
        cover.add([-1], [0], [0])
    with pytest.raises(ValueError, match="0 rectangles"):
        RectangleCover(0)
