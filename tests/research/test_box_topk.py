"""BoxTopkIndex against their definition: after any change, whoever follows the sends holds the k best of its box."""

from __future__ import annotations

from itertools import chain, product
from typing import Any

import numpy as np
import pytest
from box_topk_reference import Numbers, Point, check_invariants, is_inside, k_best
from hypothesis import given, settings
from hypothesis import strategies as st

from research.strategies.topk.kernels.box_topk import DIMS_MAX, BoxTopkIndex
from research.strategies.topk.kernels.box_topk.layout import INT64_MAX, INT64_MIN

pytestmark = pytest.mark.extended

ENDS = [(lo, hi) for lo in [INT64_MIN, 0, 1, 2, 3] for hi in [0, 1, 2, 3, INT64_MAX]]
"""Some of them empty."""
EDGES = [INT64_MIN, INT64_MIN + 1, -1, 0, INT64_MAX - 1, INT64_MAX]


class World:
    """BoxTopkIndex of two sets, what they should have, and what those at the points hold, who know only what they are sent."""

    def __init__(self, k: int, dims: int, eps: float = 0.0, *, is_sparse: bool = True) -> None:
        self.k, self.dims, self.eps, self.is_sparse = k, dims, eps, is_sparse
        self.index = BoxTopkIndex(k, dims, eps, is_sparse=is_sparse)
        self.entries: dict[int, dict[int, Numbers]] = {self.index.new_set(): {} for _ in range(2)}
        self.points: dict[int, list[Point]] = {0: [], 1: []}
        self.held: dict[tuple[int, Point], dict[int, Numbers]] = {}

    def add(self, of: int, points: list[Point]) -> None:
        sets = [of] * len(points)
        self.index.add(sets, points)
        starts, found = self.index.best(sets, [point[::2] for point in points], [point[1::2] for point in points])
        for i, point in enumerate(points):
            best = found[starts[i] : starts[i + 1]].tolist()
            assert best == k_best(self.entries[of], self.k, point)
            self.points[of].append(point)
            self.held[of, point] = {entry: self.entries[of][entry] for entry in best}

    def remove(self, of: int, points: list[Point]) -> None:
        self.index.remove([of] * len(points), points)
        for point in points:
            self.points[of].remove(point)
            if point not in self.points[of]:
                del self.held[of, point]

    def change(self, changes: list[tuple[int, int, Numbers, bool]], *, is_each_checked: bool = True) -> None:
        """Apply changes (set, entry, numbers, is present) in one batch; then replay the sends one after the other."""
        sets, entries, numbers, present = zip(*changes, strict=True)
        xs, ys, ties = [n[:-2] for n in numbers], [n[-2] for n in numbers], [n[-1] for n in numbers]
        sends = self.index.change(sets, entries, xs, ys, ties, present)
        assert (np.diff(sends.box_starts) > 0).all()
        for i, (of, entry, new, is_there) in enumerate(changes):
            mine, old = self.entries[of], self.entries[of].pop(entry, None)
            if is_there:
                mine[entry] = new
            has_moved = is_there and old is not None and old[: self.dims] != new[: self.dims]
            before = {point: set(held) for (set_of, point), held in self.held.items() if set_of == of}
            told: dict[Point, list[int]] = {point: [] for point in before}
            for j in range(sends.send_starts[i], sends.send_starts[i + 1]):
                sent = int(sends.entry[j])
                for point in self.send(of, sent, old if sends.is_gone[j] else None, sends, j):
                    told[point].append(sent)
            if is_each_checked or i == len(changes) - 1:
                self.check_held(of)
            if self.eps == 0 and not has_moved:
                for point, entries in told.items():
                    after = set(self.held[of, point])
                    assert sorted(entries) == sorted((after - before[point]) | ({entry} & (before[point] | after)))

    def check_held(self, of: int) -> None:
        entries = self.entries[of]
        for (set_of, point), held in self.held.items():
            if set_of == of:
                assert held == {e: entries[e] for e in k_best(entries, self.k, point)}

    def send(self, of: int, entry: int, gone: Numbers | None, sends, j: int) -> list[Point]:
        """Everybody at the boxes gets an entry; who they are."""
        part = slice(sends.box_starts[j], sends.box_starts[j + 1])
        boxes = list(zip(sends.box_lo[part].tolist(), sends.box_hi[part].tolist(), strict=True))
        reached = []
        for point in set(self.points[of]):
            own = sum(all(a <= c <= b for a, c, b in zip(lo, point, hi, strict=True)) for lo, hi in boxes)
            assert own < 2 or self.eps
            if own:
                reached.append(point)
                held = self.held[of, point]
                if gone is not None:
                    assert is_inside(gone, point)
                    held.pop(entry, None)
                    continue
                held[entry] = self.entries[of][entry]
                assert is_inside(held[entry], point)
                if len(held) > self.k:
                    del held[max(held, key=lambda e: held[e][-2:])]
        if self.is_sparse:
            for lo, hi in boxes:
                within = [p for p in reached if all(a <= c <= b for a, c, b in zip(lo, p, hi, strict=True))]
                assert [min(column) for column in zip(*within, strict=True)] == lo
                assert [max(column) for column in zip(*within, strict=True)] == hi
        return reached

    def retie(self, shift: int) -> None:
        """All ties change, and with them what is held; only some sets have entries."""
        for of, entries in self.entries.items():
            ties = [3 * numbers[-1] + shift for numbers in entries.values()]
            self.index.retie([of] * len(entries), list(entries), ties)
            for entry, tie in zip(list(entries), ties, strict=True):
                entries[entry] = (*entries[entry][:-1], tie)
        for (of, _), held in self.held.items():
            held.update({entry: self.entries[of][entry] for entry in held})


def check(world: World) -> None:
    check_invariants(world.index, world.entries, world.points)


# Two draws, as draws take most of the time: (set, is present, entry), (xs, y). Of the xs the first `dims` count.
# Where xs or y is None it stays as it is: as often as not only y changes, or nothing that matters here.
CHANGES = st.tuples(
    st.sampled_from([*product([0, 0, 0, 1], [True, True, True, False], range(10))]),
    st.sampled_from([*product([*[None] * 150, *product(range(5), repeat=3)], [*range(4), None])]),
)
# As (lo, hi) in each of three dimensions; again the first `dims` count.
POINTS = st.sampled_from([tuple(chain(*ends)) for ends in product(ENDS, repeat=3)])
# Points are added to a set, or those whose bits are set are removed from it, or all ties change.
ACTIONS = st.one_of(
    st.tuples(st.just("add"), st.just(0), st.lists(POINTS, min_size=1, max_size=12)),
    st.tuples(st.just("add"), st.just(1), st.lists(POINTS, min_size=1, max_size=12)),
    st.tuples(st.just("remove"), st.sampled_from([0, 0, 1]), st.integers(0, 2**16 - 1)),
    st.tuples(st.just("retie"), st.integers(-5, 5), st.none()),
)
STEPS = st.tuples(st.lists(CHANGES, min_size=1, max_size=8), ACTIONS)


WAYS = [(0.0, False), (0.0, True), (0.5, True), (1.0, False), (1.0, True)]
"""eps, and whether sends are to those who are there alone."""


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 4), st.integers(1, 3), st.sampled_from(WAYS), st.lists(STEPS, min_size=1, max_size=10))
def test_all_hold_what_they_should_after_every_change(
    k: int, dims: int, way: tuple[float, bool], steps: list[Any]
) -> None:
    world = World(k, dims, way[0], is_sparse=way[1])
    world.add(0, [(INT64_MIN, INT64_MAX) * dims, (0, 2) * dims, (2, INT64_MAX) * dims])
    # Scattered, so that the order of ties is not that of entries. An entry that comes back has its tie again.
    shift, factor = 0, 1
    for drawn, (action, number, detail) in steps:
        batch = []
        known = {(of, e): numbers for of, entries in world.entries.items() for e, numbers in entries.items()}
        for (of, is_there, entry), (xs, y) in drawn:
            entry += 10 * of
            *old_xs, old_y, _ = known.get((of, entry), (0,) * (dims + 2))
            tie = factor * (entry * 7 % 23) + shift
            known[of, entry] = (*(xs or old_xs)[:dims], old_y if y is None else y, tie)
            batch.append((of, entry, known[of, entry], is_there))
        world.change(batch)
        if action == "add":
            world.add(number, [point[: 2 * dims] for point in detail])
        elif action == "remove":
            points = world.points[number]
            world.remove(number, [point for i, point in enumerate(points) if detail >> i % 16 & 1])
        else:
            world.retie(number)
            factor, shift = 3 * factor, 3 * shift + number
        check(world)


EDGE_POINTS = st.sampled_from([*product(EDGES, repeat=4)])
# Entry, its numbers but for the tie; None if it goes.
EDGE_CHANGES = st.tuples(st.integers(0, 5), st.sampled_from([*product(EDGES, repeat=3), *[None] * 50]))


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 3),
    st.booleans(),
    st.lists(EDGE_POINTS, min_size=10, max_size=30),
    st.lists(st.lists(EDGE_CHANGES, min_size=1, max_size=6), min_size=1, max_size=12),
)
def test_extreme_numbers(
    k: int, is_sparse: bool, points: list[Point], batches: list[list[tuple[int, Numbers | None]]]
) -> None:
    world = World(k, 2, is_sparse=is_sparse)
    world.add(0, [*points, (INT64_MIN, INT64_MAX) * 2])
    ties = [INT64_MAX, INT64_MIN, 0, INT64_MAX - 1, 5, INT64_MIN + 1]
    for batch in batches:
        world.change([(0, entry, (*(xy or (0, 0, 0)), ties[entry]), xy is not None) for entry, xy in batch])
        check(world)


@pytest.mark.parametrize(("dims", "span"), [(2, 1 << 40), (2, 12), (3, 1 << 40), (1, 300)])
def test_many_entries_and_points(dims: int, span: int) -> None:
    """Enough for deep trees, with entries and points that come, move and go, in order and out of it."""
    rng = np.random.default_rng(dims * span)
    world = World(5, dims)

    def numbers(entry: int, drift: int) -> Numbers:
        return (*rng.integers(0, span, dims).tolist(), int(rng.integers(0, span)) + drift, entry)

    world.change([(0, e, numbers(e, 0), True) for e in range(600)], is_each_checked=False)
    ends = np.sort(rng.integers(0, span, (120, dims, 2)), axis=2).reshape(120, -1)
    world.add(0, list(map(tuple, ends[np.lexsort(ends.T)].tolist())))
    for step in range(4):
        some = rng.choice(900, 60, replace=False).tolist()
        batch = [(0, e, numbers(e, step * span // 4), bool(rng.integers(4))) for e in some]
        world.change(batch, is_each_checked=False)
    check(world)
    world.remove(0, world.points[0][40:])
    world.change([(0, e, (0,) * (dims + 2), False) for e in range(3, 900)], is_each_checked=False)
    check(world)


def test_entries_that_differ_by_tie_only() -> None:
    world = World(3, 2)
    world.add(0, [(0, 1, 0, 1), (1, 1, 1, 1), (2, 3, 2, 3)])
    world.change([(0, e, (1, 1, 5, e * 37 % 200), True) for e in range(200)], is_each_checked=False)
    check(world)
    world.change([(0, e, (1, 1, 5, e * 37 % 200), False) for e in range(0, 200, 2)])
    check(world)


def test_points_in_order_make_no_high_tree() -> None:
    index = BoxTopkIndex(1, 2)
    of = index.new_set()
    points = [(i, 10**6, i, 10**6) for i in range(5000)]
    for start in range(0, 5000, 50):
        index.add([of] * 50, points[start : start + 50])
    check_invariants(index, {of: {}}, {of: points})
    assert height(index) < 20


def height(index: BoxTopkIndex) -> int:
    tree = index._points
    level, count = [int(tree.head[0])], 0
    while level:
        level = [child for node in level if tree.links[node, 1] >= 0 for child in tree.links[node, 1:3].tolist()]
        count += 1
    return count


def test_points_that_cannot_be_cut_evenly() -> None:
    """All but one coordinate of every point are the same."""
    world = World(2, 2)
    world.change([(0, e, (e, -e, e % 7, e), True) for e in range(50)])
    points = []
    for c, i in product(range(4), range(60)):
        ends = [-100, 100, -100, 100]
        ends[c] += i * (1 if c % 2 == 0 else -1)
        points.append(tuple(ends))
    for i in range(0, len(points), 8):
        world.add(0, points[i : i + 8])
    world.change([(0, e, (-e, e, 3, e), True) for e in range(0, 50, 3)])
    check(world)


def told(dims: int, size: int, eps: float, *, is_sparse: bool) -> tuple[int, int, int]:
    """(boxes, bytes of their ends, deliveries) of the same changes, of 150 entries, for `size` points."""
    rng = np.random.default_rng(4)
    index = BoxTopkIndex(3, dims, eps, is_sparse=is_sparse)
    of, n, changes = index.new_set(), 150, 60
    xs, ys = rng.integers(0, 1000, (n, dims)), rng.permutation(n)
    sends = index.load([of] * n, np.arange(n), xs, ys, np.arange(n), [True] * n)
    assert len(sends.entry) == 0 and len(index) == n
    points = np.sort(np.random.default_rng(5).integers(0, 1000, (size, dims, 2)), axis=2).reshape(size, -1)
    index.add([of] * size, points)
    changed = rng.integers(0, n, changes)
    sends = index.change([of] * changes, changed, xs[changed], rng.integers(0, n, changes), changed, [True] * changes)
    inside = ((points[:, None] >= sends.box_lo) & (points[:, None] <= sends.box_hi)).all(axis=2)
    deliveries = np.logical_or.reduceat(inside, sends.box_starts[:-1], axis=1).sum() if len(sends.entry) else 0
    return len(sends.box_lo), sends.box_lo.nbytes + sends.box_hi.nbytes, int(deliveries)


def test_boxes_are_fewer_for_those_who_are_there_and_reach_the_same() -> None:
    """Dense does not depend on who is there, sparse comes closer to it the more they are; eps gives up exactness for less."""
    dense, crowded = told(2, 30, 0.0, is_sparse=False), told(2, 3_000, 0.0, is_sparse=False)
    assert dense[:2] == crowded[:2]
    sparse, more = told(2, 30, 0.0, is_sparse=True), told(2, 3_000, 0.0, is_sparse=True)
    assert sparse[2] == dense[2] and more[2] == crowded[2]
    assert 20 * sparse[0] < 4 * more[0] < dense[0]
    rounded, rounded_dense = told(2, 3_000, 1.0, is_sparse=True), told(2, 3_000, 1.0, is_sparse=False)
    assert rounded[0] < more[0] and 2 * rounded_dense[0] < dense[0]
    assert more[2] < rounded[2] < 3 * more[2] and crowded[2] < rounded_dense[2]


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="k is 0"):
        BoxTopkIndex(0, 2)
    with pytest.raises(ValueError, match=f"{DIMS_MAX + 1} dimensions"):
        BoxTopkIndex(1, DIMS_MAX + 1)
    index = BoxTopkIndex(1, 2)
    one, other = index.new_set(), index.new_set()
    with pytest.raises(KeyError, match="no set 2"):
        index.add([2], [[0, 0, 0, 0]])
    index.change([one], [0], [[1, 2]], [3], [4], [True])
    with pytest.raises(ValueError, match="not in set 1, but in 0"):
        index.change([other], [0], [[1, 2]], [3], [4], [True])
    with pytest.raises(ValueError, match="of entry 1 are those of another"):
        index.change([one], [1], [[1, 2]], [3], [4], [True])
    with pytest.raises(ValueError, match="must not be negative"):
        index.change([one], [-1], [[1, 2]], [3], [4], [True])
    with pytest.raises(ValueError, match="must be as many"):
        index.change([one], [1], [[1, 2], [3, 4]], [3], [4], [True])
    with pytest.raises(KeyError, match="no entry 0"):
        index.retie([other], [0], [1])
    with pytest.raises(KeyError, match="no point"):
        index.remove([one], [[0, 0, 0, 0]])
    assert len(index) == 1
    assert index.nbytes > 0
