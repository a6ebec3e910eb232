"""Changes told in batches: after each batch all hold what they should, and nobody is sent more than it takes."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plane_kdtree_reference import bounds
from range_topk_reference import (
    Client,
    Numbers,
    Point,
    check_boxes,
    check_invariants,
    entries_of,
    fill,
    is_in,
    k_best,
    sends_of,
)

from research.strategies.topk.kernels.plane_kdtree import PlaneKdTree
from research.strategies.topk.kernels.range_topk.layout import INT64_MAX, INT64_MIN
from research.strategies.topk.net_index import NetRangeTopkIndex

pytestmark = pytest.mark.extended

SOME = [-1, 0, 1, 2, 3, 4, 5]
POINTS = [(lo, hi) for lo in [INT64_MIN, *SOME] for hi in [*SOME, INT64_MAX] if lo <= hi]
EDGES = [INT64_MIN, INT64_MIN + 1, INT64_MIN + 2, -1, 0, INT64_MAX - 2, INT64_MAX - 1, INT64_MAX]
EDGE_POINTS = [(lo, hi) for lo in EDGES for hi in EDGES if lo <= hi]

Change = tuple[int, int, int, int, bool]
"""Number of the set (of two), entry, x, y, is present."""


class World:
    """An index of two sets, what they should have, and clients at all points."""

    def __init__(self, k: int, points: list[Point], *, is_sparse: bool = False) -> None:
        self.k = k
        self.index = NetRangeTopkIndex(k)
        self.sets = [self.index.new_set() for _ in range(2)]
        self.tree: PlaneKdTree | None = None
        if is_sparse:
            self.tree = PlaneKdTree()
            for number in self.sets:
                self.tree.add([number] * len(points), *zip(*points, strict=True))
        self.entries: list[dict[int, Numbers]] = [{}, {}]
        self.clients = [[Client(k, point) for point in points] for _ in range(2)]
        # Scattered, so that the order of ties is not that of entries.
        self.ties = {entry: entry * 7 % 11 - 4 for entry in range(11)}

    def net(self, changes: list[Change]) -> None:
        """Apply changes in one batch, an entry leaving one set before it enters the other; then replay the sends."""
        old = [dict(entries) for entries in self.entries]
        columns = []
        for which, e, x, y, present in changes:
            if e in self.entries[1 - which]:
                columns.append((self.sets[1 - which], e, 0, 0, 0, False))
                del self.entries[1 - which][e]
            columns.append((self.sets[which], e, x, y, self.ties[e], present))
            self.entries[which].pop(e, None)
            if present:
                self.entries[which][e] = (x, y, self.ties[e])
        of, sends = self.index.net(*zip(*columns, strict=True), self.tree)
        assert sends.send_starts.tolist() == [0, len(of)]
        told: list[dict[Point, list[int]]] = [{client.point: [] for client in clients} for clients in self.clients]
        for number, (sent, is_gone, boxes) in zip(of.tolist(), sends_of(sends, 0), strict=True):
            which = self.sets.index(number)
            check_boxes(boxes, 6 * self.k + 2)
            x = old[which][sent][0] if is_gone else self.entries[which][sent][0]
            for client in self.clients[which]:
                if any(is_in(client.point, box) for box in boxes):
                    assert client.point[0] <= x <= client.point[1]
                    client.get(sent, None if is_gone else self.entries[which][sent])
                    told[which][client.point].append(sent)
            for box in boxes if self.tree is not None else []:
                assert box == bounds([client.point for client in self.clients[which] if is_in(client.point, box)])
        touched = {change[1] for change in changes}
        for which, clients in enumerate(self.clients):
            for client in clients:
                assert client.ranked() == k_best(self.entries[which], self.k, *client.point)
                assert client.held == {entry: self.entries[which][entry] for entry in client.held}
                assert sorted(told[which][client.point]) == self.needed(old[which], which, client.point, touched)

    def needed(self, old: dict[int, Numbers], which: int, point: Point, touched: set[int]) -> list[int]:
        """Of which entries a point must be told, once each."""
        new = self.entries[which]
        before, now = k_best(old, self.k, *point), k_best(new, self.k, *point)
        added = [e for e in now if e in touched or e not in before]
        # Those that it would not drop by itself, as fewer than k entries are now below their old keys.
        keys = [numbers[1:] for numbers in new.values() if point[0] <= numbers[0] <= point[1]]
        lost = [e for e in before if e in touched and e not in now]
        return sorted(added + [e for e in lost if sum(key < old[e][1:] for key in keys) < self.k])

    def check(self) -> None:
        for which, entries in enumerate(self.entries):
            assert entries_of(self.index, self.sets[which]) == entries
        assert not self.index._slots.any()


# Two draws, as draws take most of the time: (which set, is present, entry), (x, y). None: x or y stays as it is.
CHANGES = st.tuples(
    st.sampled_from([*product([0, 0, 0, 0, 1], [*[True] * 6, False], range(11))]),
    st.sampled_from([*product([None, None, None, *range(5)], [*range(30), None, None])]),
)
BATCHES = st.lists(CHANGES, min_size=1, max_size=14)


def complete(world: World, heights: int, drawn: list[Any]) -> list[Change]:
    """Drawn changes with all their numbers; y is below `heights`."""
    changes = []
    for (which, present, entry), (x, y) in drawn:
        old_x, old_y, _ = world.entries[which].get(entry, (entry % 5, entry, 0))
        changes.append((which, entry, old_x if x is None else x, (old_y if y is None else y) % heights, present))
    return changes


@settings(max_examples=40)
@given(
    st.integers(1, 4),
    st.sampled_from([2, 5, 30]),
    # Those who are there, if not all are told.
    st.one_of(st.none(), st.lists(st.sampled_from(POINTS), min_size=1, max_size=12, unique=True)),
    # Where the first entries are, if they are; seldom is there nothing yet.
    st.lists(st.sampled_from([None, *product(range(5), range(30))]), min_size=10, max_size=10),
    st.lists(st.tuples(st.sampled_from([False] * 4 + [True]), BATCHES), min_size=1, max_size=8),
)
def test_all_hold_what_they_should_after_every_batch(
    k: int, heights: int, points: list[Point] | None, first: list[Any], batches: list[tuple[bool, list[Any]]]
) -> None:
    world = World(k, points or POINTS, is_sparse=points is not None)
    there = [(0, entry, place[0], place[1] % heights, True) for entry, place in enumerate(first) if place]
    if there:
        world.net(there)
    for is_retied, drawn in batches:
        changes = complete(world, heights, drawn)
        if is_retied:
            # Those named have other ties, too: one has what was another's.
            named = sorted({change[1] for change in changes})
            world.ties |= dict(zip(named, [world.ties[entry] for entry in named[1:] + named[:1]], strict=True))
        world.net(changes)
        world.check()
        check_invariants(world.index)


EDGE_CHANGES = st.tuples(
    st.just(0),
    st.integers(0, 5),
    st.sampled_from(EDGES[1:-1]),
    st.sampled_from(EDGES),
    st.sampled_from([True, True, False]),
)


@settings(max_examples=40)
@given(
    st.integers(1, 3),
    st.booleans(),
    st.lists(st.lists(EDGE_CHANGES, min_size=1, max_size=8), min_size=1, max_size=4),
)
def test_extreme_numbers(k: int, is_sparse: bool, batches: list[list[Change]]) -> None:
    world = World(k, EDGE_POINTS, is_sparse=is_sparse)
    for entry, tie in enumerate([INT64_MAX, INT64_MIN, 0, INT64_MAX - 1, 5, INT64_MIN + 1]):
        world.ties[entry] = tie
    for batch in batches:
        world.net(batch)
    world.check()
    check_invariants(world.index)


@pytest.mark.parametrize(
    ("k", "size", "span", "batch"), [(10, 3000, 1 << 40, 300), (10, 2000, 40, 900), (3, 2000, 1, 90)]
)
def test_many_entries_and_random_points(k: int, size: int, span: int, batch: int) -> None:
    """Entries enough for several nodes, which come, move and go; span is how many different x there are."""
    rng = np.random.default_rng(k * size + span)
    index = NetRangeTopkIndex(k)
    one = index.new_set()
    x, y, tie = rng.integers(0, span, size), rng.integers(0, 1 << 30, size), rng.permutation(size) - 99
    held = rng.random(size) < 0.8
    part = np.flatnonzero(held)
    fill(index, one, part, x[part], y[part], tie[part])
    # So there is too little room for what is told at first.
    index._outputs.boxes_per_change = 0
    los, his = np.sort(rng.integers(0, span, (2, 100)), axis=0)
    clients = [Client(k, (int(lo), int(hi))) for lo, hi in zip(los, his, strict=True)]
    starts, found = index.best(np.full(len(los), one), los, his)
    for i, client in enumerate(clients):
        for e in found[starts[i] : starts[i + 1]].tolist():
            client.get(e, (int(x[e]), int(y[e]), int(tie[e])))
    for step in range(12):
        part = rng.integers(0, size, batch)
        kind = rng.integers(0, 4, batch)
        columns = [np.empty(batch, np.int64), np.empty(batch, np.int64), np.empty(batch, np.bool_)]
        for i, e in enumerate(part.tolist()):
            if kind[i] == 0:
                held[e] ^= True
            if kind[i] == 1:
                x[e] = rng.integers(0, span)
            # Sometimes all fall, and those that are not touched take their places.
            y[e] = rng.integers(1 << (29 if step % 3 else 0), 1 << 30)
            for column, value in zip(columns, (x[e], y[e], held[e]), strict=True):
                column[i] = value
        _, sends = index.net(np.full(batch, one), part, columns[0], columns[1], tie[part], columns[2])
        reached = (sends.box_lo[:, 0, None] <= los) & (los <= sends.box_hi[:, 0, None])
        reached &= (sends.box_lo[:, 1, None] <= his) & (his <= sends.box_hi[:, 1, None])
        send_of_box = np.repeat(np.arange(len(sends.entry)), np.diff(sends.box_starts))
        for box, point in zip(*np.nonzero(reached), strict=True):
            send = send_of_box[box]
            e = int(sends.entry[send])
            clients[point].get(e, None if sends.is_gone[send] else (int(x[e]), int(y[e]), int(tie[e])))
        starts, found = index.best(np.full(len(los), one), los, his)
        for i, client in enumerate(clients):
            assert client.ranked() == found[starts[i] : starts[i + 1]].tolist()
            assert all(client.held[e] == (x[e], y[e], tie[e]) for e in client.held)
    check_invariants(index)
    assert index.nbytes > 0


def test_a_batch_tells_less_than_its_changes_one_by_one() -> None:
    size, changes, k = 500, 2000, 5
    rng = np.random.default_rng(1)
    numbers = [np.arange(size), rng.integers(0, 1 << 30, size), rng.integers(0, 1 << 30, size), np.arange(size)]
    changed, ys = rng.integers(0, size, changes), rng.integers(0, 1 << 30, changes)
    both = [NetRangeTopkIndex(k), NetRangeTopkIndex(k)]
    for index in both:
        fill(index, index.new_set(), *numbers)
    columns = [np.zeros(changes), changed, numbers[1][changed], ys, changed, np.ones(changes)]
    _, net = both[0].net(*columns)
    online = both[1].change(*columns)
    assert entries_of(both[0], 0) == entries_of(both[1], 0)
    assert 3 * len(net.box_lo) < len(online.box_lo) and 2 * both[0].lookups < both[1].lookups


def test_a_batch_among_points_has_fewer_boxes_and_reaches_the_same() -> None:
    size, changes, k = 500, 2000, 5
    rng = np.random.default_rng(1)
    numbers = [np.arange(size), rng.integers(0, 1 << 30, size), rng.integers(0, 1 << 30, size), np.arange(size)]
    changed, ys = rng.integers(0, size, changes), rng.integers(0, 1 << 29, changes) + (1 << 29)
    points = np.sort(rng.integers(0, 1 << 30, (300, 2)), axis=1)
    tree = PlaneKdTree()
    tree.add(np.zeros(300), points[:, 0], points[:, 1])
    both = [NetRangeTopkIndex(k), NetRangeTopkIndex(k)]
    columns = [np.zeros(changes), changed, numbers[1][changed], ys, changed, np.ones(changes)]
    received, boxes = [], []
    for index, among in zip(both, (None, tree), strict=True):
        fill(index, index.new_set(), *numbers)
        _, sends = index.net(*columns, among)
        inside = ((points[:, None] >= sends.box_lo) & (points[:, None] <= sends.box_hi)).all(axis=2)
        told = np.logical_or.reduceat(inside, sends.box_starts[:-1], axis=1)
        received.append({(int(sends.entry[j]), int(i)) for i, j in zip(*np.nonzero(told), strict=True)})
        boxes.append(len(sends.box_lo))
    assert received[0] == received[1] and 3 * boxes[1] < boxes[0]
    assert 4 * both[1].lookups < 3 * both[0].lookups


def test_what_comes_to_nothing_is_told_to_those_who_hold_it() -> None:
    index = NetRangeTopkIndex(1)
    one, other = index.new_set(), index.new_set()
    fill(index, one, [0, 1], [1, 5], [3, 4], [0, 1])
    # It falls, rises, moves, leaves, and is back as it was; another comes and goes.
    changes = [(0, 1, 9, True), (0, 9, 3, True), (2, 2, 0, True), (0, 0, 0, False), (0, 1, 3, True), (2, 2, 0, False)]
    entry, x, y, present = zip(*changes, strict=True)
    of, sends = index.net([one] * len(changes), entry, x, y, entry, present)
    assert of.tolist() == [one]
    assert sends_of(sends, 0) == [(0, False, [(INT64_MIN, 1, 1, INT64_MAX)])]
    # From one set to the other, and back.
    of, sends = index.net([one, other, other, one], [1, 1, 1, 1], [0, 5, 0, 5], [4] * 4, [1] * 4, [0, 1, 0, 1])
    assert of.tolist() == [one]
    assert sends_of(sends, 0) == [(1, False, [(2, 5, 5, INT64_MAX)])]


def test_those_that_fall_are_told_of_from_the_highest_key_down() -> None:
    # If it were told of 1 first, a point that holds 0, with its old key, would drop 1 and never see it again.
    index = NetRangeTopkIndex(1)
    one = index.new_set()
    fill(index, one, [0, 1], [2, 2], [1, 2], [0, 1])
    _, sends = index.net([one, one], [1, 0], [2, 2], [3, 4], [1, 0], [True, True])
    everyone = [(INT64_MIN, 2, 2, INT64_MAX)]
    assert sends_of(sends, 0) == [(0, False, everyone), (1, False, everyone)]


def test_an_entry_that_moves_is_gone_where_it_is_seen_no_more() -> None:
    index = NetRangeTopkIndex(1)
    one = index.new_set()
    fill(index, one, [0, 1], [2, 9], [1, 5], [0, 1])
    _, sends = index.net([one], [0], [4], [1], [0], [True])
    assert sends_of(sends, 0) == [
        (0, True, [(INT64_MIN, 2, 2, 3)]),
        (0, False, [(INT64_MIN, 4, 4, INT64_MAX)]),
    ]
    _, sends = index.net([one], [0], [2], [1], [0], [True])
    assert sends_of(sends, 0) == [
        (0, True, [(3, 4, 4, INT64_MAX)]),
        (0, False, [(INT64_MIN, 2, 2, INT64_MAX)]),
        (1, False, [(3, 4, 9, INT64_MAX)]),
    ]


def test_entries_may_change_places() -> None:
    index = NetRangeTopkIndex(1)
    one = index.new_set()
    fill(index, one, [0, 1], [2, 2], [1, 5], [0, 1])
    index.net([one, one], [0, 1], [2, 2], [1, 5], [1, 0], [True, True])
    assert entries_of(index, one) == {1: (2, 5, 0), 0: (2, 1, 1)}
    check_invariants(index)


def test_what_is_wrong_is_refused_and_nothing_is_done() -> None:
    index = NetRangeTopkIndex(1)
    one, other = index.new_set(), index.new_set()
    fill(index, one, [0, 1], [2, 9], [1, 5], [0, 1])
    before = entries_of(index, one)
    for x in (INT64_MIN, INT64_MAX):
        with pytest.raises(ValueError, match="greatest integer"):
            index.net([one, one], [0, 5], [7, x], [0, 0], [0, 5], [True, True])
    with pytest.raises(ValueError, match="entry 3 are those of another in set 0"):
        index.net([one] * 3, [0, 1, 3], [3, 4, 4], [0, 0, 0], [0, 1, 1], [True] * 3)
    with pytest.raises(ValueError, match="entry 1 is not in set 1"):
        index.net([one, other], [0, 1], [3, 4], [0, 0], [0, 1], [True, False])
    with pytest.raises(ValueError, match="entry 5 is not in set 1"):
        index.net([one, other], [5, 5], [3, 4], [0, 0], [0, 1], [True, True])
    with pytest.raises(KeyError, match="no set 7"):
        index.net([one, 7], [0, 1], [3, 4], [0, 0], [0, 1], [True, True])
    with pytest.raises(ValueError, match="negative"):
        index.net([one], [-1], [5], [0], [7], [True])
    with pytest.raises(ValueError, match="as many"):
        index.net([one], [1, 2], [5], [0], [7], [True])
    assert entries_of(index, one) == before and not entries_of(index, other)
    assert index.net([], [], [], [], [], [])[1].send_starts.tolist() == [0, 0]
    assert index.net([one], [8], [0], [0], [0], [False])[1].send_starts.tolist() == [0, 0]
    check_invariants(index)
