"""The range top-k index against its definition: after any change, whoever follows the sends holds the k best of its range."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
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

from research.strategies.topk.kernels.range_topk import RangeTopkIndex
from research.strategies.topk.kernels.range_topk.layout import BLOCK_MAX, INT64_MAX, INT64_MIN, NODE_MAX

pytestmark = pytest.mark.extended


SOME = [-1, 0, 1, 2, 3, 4, 5]
POINTS = [(lo, hi) for lo in [INT64_MIN, *SOME] for hi in [*SOME, INT64_MAX] if lo <= hi]
EDGES = [INT64_MIN, INT64_MIN + 1, INT64_MIN + 2, -1, 0, INT64_MAX - 2, INT64_MAX - 1, INT64_MAX]
EDGE_POINTS = [(lo, hi) for lo in EDGES for hi in EDGES if lo <= hi]

Change = tuple[int, int, int, int, bool]
"""Number of the set (of two), entry, x, y, is present."""


class World:
    """An index of two sets, what they should have, and clients at all points."""

    def __init__(self, k: int, points: list[Point]) -> None:
        self.k = k
        self.index = RangeTopkIndex(k)
        self.sets = [self.index.new_set() for _ in range(2)]
        self.entries: list[dict[int, Numbers]] = [{}, {}]
        self.clients = [[Client(k, point) for point in points] for _ in range(2)]
        # Scattered, so that the order of ties is not that of entries. An entry that comes back has its tie again.
        self.ties = {entry: entry * 7 % 11 - 4 for entry in range(20)}

    def change(self, changes: list[Change]) -> None:
        """Apply changes in one batch; then replay the sends one change after the other."""
        # Entries 0 to 9 of the first set, 10 to 19 of the second.
        numbered = [(which, entry + 10 * which, x, y, present) for which, entry, x, y, present in changes]
        columns = [(self.sets[which], e, x, y, self.ties[e], present) for which, e, x, y, present in numbered]
        sends = self.index.change(*zip(*columns, strict=True))
        for i, (which, e, x, y, present) in enumerate(numbered):
            mine = self.entries[which]
            holders = {client.point for client in self.clients[which] if e in k_best(mine, self.k, *client.point)}
            is_moved = present and e in mine and mine[e][0] != x
            mine.pop(e, None)
            if present:
                mine[e] = (x, y, self.ties[e])
            for sent, is_gone, boxes in sends_of(sends, i):
                check_boxes(boxes, self.k)
                assert (sent in mine) or is_gone
                for client in self.clients[which]:
                    if any(is_in(client.point, box) for box in boxes):
                        client.get(sent, None if is_gone else mine[sent])
                        held = k_best(mine, self.k, *client.point)
                        # None is told in vain, but by an entry that vanishes here and appears there.
                        assert is_moved or sent in held or (sent == e and client.point in holders)
            for client in self.clients[which]:
                assert client.ranked() == k_best(mine, self.k, *client.point)
                assert client.held == {entry: mine[entry] for entry in client.held}

    def check_best(self) -> None:
        for which, entries in enumerate(self.entries):
            los, his = zip(*(client.point for client in self.clients[which]), strict=True)
            starts, found = self.index.best([self.sets[which]] * len(los), los, his)
            for i, client in enumerate(self.clients[which]):
                assert found[starts[i] : starts[i + 1]].tolist() == k_best(entries, self.k, *client.point)
            assert entries_of(self.index, self.sets[which]) == entries

    def retie(self, shift: int) -> None:
        self.ties = {entry: 3 * tie + shift for entry, tie in self.ties.items()}
        for which, entries in enumerate(self.entries):
            self.index.retie([self.sets[which]] * len(entries), list(entries), [self.ties[e] for e in entries])
            for e, (x, y, _) in entries.items():
                entries[e] = (x, y, self.ties[e])
            for client in self.clients[which]:
                client.held = {e: entries[e] for e in client.held}


CHANGES = st.tuples(
    st.sampled_from([0, 0, 0, 1]),
    st.integers(0, 7),
    st.integers(0, 4),
    st.integers(0, 4),
    st.sampled_from([1, 1, 1, 0]),
)


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(1, 4), st.lists(st.lists(CHANGES, min_size=1, max_size=8), max_size=12), st.randoms())
def test_all_hold_what_they_should_after_every_change(
    k: int, batches: list[list[tuple[int, int, int, int, int]]], choice: random.Random
) -> None:
    world = World(k, POINTS)
    for batch in batches:
        changes: list[Change] = []
        for which, entry, x, y, present in batch:
            held = world.entries[which].get(entry + 10 * which)
            if held is not None and choice.random() < 0.6:
                # As often as not only y changes, or nothing that matters here.
                x = held[0]
                y = held[1] if choice.random() < 0.3 else y
            changes.append((which, entry, x, y, bool(present)))
        world.change(changes)
        world.check_best()
        check_invariants(world.index)
        if choice.random() < 0.1:
            world.retie(choice.randint(-5, 5))


EDGE_CHANGES = st.tuples(
    st.just(0),
    st.integers(0, 5),
    st.sampled_from(EDGES[1:-1]),
    st.sampled_from(EDGES),
    st.sampled_from([True, True, False]),
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(1, 3), st.lists(EDGE_CHANGES, min_size=1, max_size=25))
def test_extreme_numbers(k: int, changes: list[Change]) -> None:
    world = World(k, EDGE_POINTS)
    for entry, tie in enumerate([INT64_MAX, INT64_MIN, 0, INT64_MAX - 1, 5, INT64_MIN + 1]):
        world.ties[entry] = tie
    world.change(changes)
    world.check_best()
    check_invariants(world.index)


def test_the_greatest_key_of_all_is_a_key() -> None:
    index = RangeTopkIndex(1)
    one = index.new_set()
    index.change([one, one], [0, 1], [0, 0], [5, INT64_MAX], [0, INT64_MAX], [True, True])
    sends = index.change([one], [0], [0], [0], [0], [False])
    assert [(entry, is_gone) for entry, is_gone, _ in sends_of(sends, 0)] == [(0, True), (1, False)]
    starts, found = index.best([one], [0], [0])
    assert (starts.tolist(), found.tolist()) == ([0, 1], [1])


def held_by(x: np.ndarray, rank: np.ndarray, k: int, los: np.ndarray, his: np.ndarray) -> np.ndarray:
    """For each point the k best entries, -1 where there are fewer; rank is the place in key order, or too great."""
    order = np.argsort(rank)[: int((rank < len(rank)).sum())]
    inside = (los[:, None] <= x[order]) & (x[order] <= his[:, None])
    places = np.cumsum(inside, axis=1)
    answer = np.full((len(los), k), -1)
    for point, column in zip(*np.nonzero(inside & (places <= k)), strict=True):
        answer[point, places[point, column] - 1] = order[column]
    return answer


@pytest.mark.parametrize(("k", "size", "span"), [(10, 2000, 1 << 40), (10, 2000, 40), (1, 3000, 1 << 40), (3, 2000, 1)])
def test_many_entries_and_random_points(k: int, size: int, span: int) -> None:
    """Entries enough for several nodes, which come, move and go; span is how many different x there are."""
    rng = np.random.default_rng(k * size + span)
    index = RangeTopkIndex(k)
    one = index.new_set()
    x, y, tie = rng.integers(0, span, size), rng.integers(0, 1 << 30, size), rng.permutation(size) - 99
    held = np.zeros(size, bool)
    los, his = np.sort(rng.integers(0, span, (2, 60)), axis=0)
    clients = [Client(k, (int(lo), int(hi))) for lo, hi in zip(los, his, strict=True)]

    def apply(entries: np.ndarray) -> None:
        n = len(entries)
        sends = index.change(np.full(n, one), entries, x[entries], y[entries], tie[entries], held[entries])
        check_invariants(index)
        assert (np.diff(sends.box_starts) <= k).all() and (np.diff(sends.box_starts) > 0).all()
        reached = (
            (sends.lo_min[:, None] <= los)
            & (los <= sends.lo_max[:, None])
            & (sends.hi_min[:, None] <= his)
            & (his <= sends.hi_max[:, None])
        )
        send_of_box = np.repeat(np.arange(len(sends.entry)), np.diff(sends.box_starts))
        for box, point in zip(*np.nonzero(reached), strict=True):
            send = send_of_box[box]
            e = int(sends.entry[send])
            gone = bool(sends.is_gone[send])
            clients[point].get(e, None if gone else (int(x[e]), int(y[e]), int(tie[e])))
        rank = np.full(size, size)
        order = np.lexsort((tie, y))
        order = order[held[order]]
        rank[order] = np.arange(len(order))
        expected = held_by(x, rank, k, los, his)
        for client, row in zip(clients, expected.tolist(), strict=True):
            assert client.ranked() == [e for e in row if e >= 0]
        starts, found = index.best(np.full(len(los), one), los, his)
        for i, row in enumerate(expected.tolist()):
            assert found[starts[i] : starts[i + 1]].tolist() == [e for e in row if e >= 0]

    # Each entry at most once a batch, so that what is sent is what it is at the end of the batch.
    for part in np.array_split(rng.permutation(size), 4):
        held[part] = True
        apply(part)
    for step in range(30):
        part = rng.choice(size, 100, replace=False)
        kind = rng.integers(0, 4, 100)
        held[part[kind == 0]] ^= True
        x[part[kind == 1]] = rng.integers(0, span, (kind == 1).sum())
        y[part[kind >= 1]] = rng.integers(0, 1 << (30 if step % 2 else 3), (kind >= 1).sum())
        apply(part)
    for part in np.array_split(rng.permutation(size), 5):
        held[part] = False
        apply(part)
    assert len(index) == 0 and not entries_of(index, one)
    assert index.nbytes > 0


def test_sends_are_the_same_however_entries_came_to_be_there() -> None:
    rng = np.random.default_rng(5)
    size = 3 * BLOCK_MAX * NODE_MAX
    columns = [rng.integers(0, 1 << 40, size), rng.integers(0, 50, size), rng.permutation(size)]
    indexes = [RangeTopkIndex(4), RangeTopkIndex(4)]
    # In random order, and from left to right: blocks are cut elsewhere.
    for index, order in zip(indexes, (np.arange(size), np.argsort(columns[0])), strict=True):
        fill(index, index.new_set(), order, *(column[order] for column in columns))
    changed = rng.integers(0, size, 2000)
    new = [rng.integers(0, 1 << 40, 2000), rng.integers(0, 50, 2000), columns[2][changed], rng.random(2000) < 0.8]
    before = [index.lookups for index in indexes]
    one, other = (index.change(np.zeros(2000), changed, *new) for index in indexes)
    for mine, its in zip(one, other, strict=True):
        assert (mine == its).all()
    assert indexes[0].lookups - before[0] == indexes[1].lookups - before[1] > 0
    for index in indexes:
        check_invariants(index)


def test_many_entries_at_one_x_are_not_met_one_by_one() -> None:
    # All at x = 0 are as far out as the last low entry: nobody's range tells them apart, so none takes the place.
    index = RangeTopkIndex(1)
    one = index.new_set()
    size = 5000
    fill(index, one, np.arange(size), np.zeros(size), np.arange(size), np.arange(size))
    index.change([one], [size], [1], [size // 2], [size], [True])
    before = index.lookups
    sends = index.change([one], [size], [1], [2 * size], [size], [True])
    assert sends.entry.tolist() == [size] and index.lookups - before == 1
    index.change([one], [size], [-1], [size // 2], [size], [True])
    before = index.lookups
    sends = index.change([one], [size], [-1], [2 * size], [size], [True])
    assert sends.entry.tolist() == [size] and index.lookups - before == 1


def test_sets_are_apart() -> None:
    index = RangeTopkIndex(2)
    first, second = index.new_set(), index.new_set()
    fill(index, first, [0, 1], [1, 2], [1, 2], [0, 1])
    fill(index, second, [2, 3], [1, 2], [1, 2], [0, 1])
    check_invariants(index)
    assert len(index) == 4
    with pytest.raises(KeyError, match="no set 2"):
        index.change([2], [0], [0], [0], [0], [True])
    with pytest.raises(KeyError, match="no set -1"):
        index.best([-1], [0], [0])
    with pytest.raises(ValueError, match="in another"):
        index.change([first], [3], [0], [0], [0], [True])


def test_sends_stay_as_they_are_while_somebody_looks_at_them() -> None:
    index = RangeTopkIndex(1)
    one = index.new_set()
    told = [index.change([one], [entry], [entry], [-entry], [entry], [True]) for entry in range(6)]
    assert [sends.entry.tolist() for sends in told] == [[entry] for entry in range(6)]
    views = [sends.lo_max for sends in told]
    del told
    index.change([one] * 9, range(10, 19), range(9), range(9), range(10, 19), [True] * 9)
    assert [view.tolist() for view in views] == [[entry] for entry in range(6)]


def test_what_is_wrong_is_refused() -> None:
    index = RangeTopkIndex(1)
    one = index.new_set()
    with pytest.raises(ValueError, match="k is 0"):
        RangeTopkIndex(0)
    for x in (INT64_MIN, INT64_MAX):
        with pytest.raises(ValueError, match="greatest integer"):
            index.change([one], [0], [x], [0], [0], [True])
    index.change([one], [0], [5], [0], [7], [True])
    with pytest.raises(ValueError, match="those of another"):
        index.change([one], [1], [5], [0], [7], [True])
    with pytest.raises(ValueError, match="negative"):
        index.change([one], [-1], [5], [0], [7], [True])
    with pytest.raises(ValueError, match="as many"):
        index.change([one], [1, 2], [5], [0], [7], [True])
    with pytest.raises(KeyError, match="no entry 1"):
        index.retie([one], [1], [5])
    assert index.change([one], [1], [5], [0], [8], [False]).send_starts.tolist() == [0, 0]
    assert index.change([], [], [], [], [], []).send_starts.tolist() == [0]
    check_invariants(index)
