"""Sorted lists in one pool against plain ones: puts and removals in any order, short lists and long ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sorted_lists_reference import Pair, check, check_invariants, gap

from research.strategies.join.kernels.sorted_lists import BLOCK, BLOCKS, SortedLists
from tidings.model.codes import CODE_MAX, CODE_MIN

pytestmark = pytest.mark.extended


EDGES = [CODE_MIN, CODE_MIN + 1, -1, 0, 1, CODE_MAX - 1, CODE_MAX]
CODES = st.one_of(st.sampled_from(EDGES), st.integers(-20, 20), st.integers(CODE_MIN, CODE_MAX))


class World:
    """Lists, and what they should hold."""

    def __init__(self, count: int) -> None:
        self.lists = SortedLists()
        self.pairs: list[set[Pair]] = [set() for _ in range(count)]
        self.unused = 0
        assert self.lists.new(count) == 0

    def change(self, steps: list[tuple[int, int, int, bool]]) -> None:
        """Make changes (number, entry, code, is present) in one batch, and check what is told of each."""
        which, entries, codes, present = (list(column) for column in zip(*steps, strict=True))
        told = self.lists.change(which, entries, codes, present)
        for i, (number, entry, code, is_present) in enumerate(steps):
            pairs = self.pairs[number]
            if is_present:
                assert (code, entry) not in pairs
            else:
                pairs.remove((code, entry))
            around = gap(list(pairs), code)
            assert told.has_twin[i] == (around is None)
            assert around is None or around == (told.lo_from[i], told.hi_to[i])
            if is_present:
                pairs.add((code, entry))

    def put(self, codes: list[tuple[int, int]]) -> list[tuple[int, int, int, bool]]:
        self.unused += len(codes)
        return [(number, self.unused - i, code, True) for i, (number, code) in enumerate(codes)]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_any_interleaving_agrees_with_sorted_lists(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 4), label="lists")
    world = World(count)
    for _ in range(data.draw(st.integers(1, 6), label="batches")):
        steps = world.put(data.draw(st.lists(st.tuples(st.integers(0, count - 1), CODES), min_size=1, max_size=30)))
        held = [(number, entry, code, False) for number in range(count) for code, entry in sorted(world.pairs[number])]
        gone = data.draw(st.lists(st.sampled_from(held), unique=True)) if held else []
        # Some entries go after those put in this batch, some before.
        early = data.draw(st.integers(0, len(gone)))
        world.change(gone[:early] + steps + gone[early:])
        check(world.lists, world.pairs, data.draw(st.lists(CODES, max_size=8), label="marks"))


@pytest.mark.parametrize("values", [1, 5, 10**6])
@pytest.mark.parametrize("order", ["random", "ascending", "descending"])
def test_long_lists_grow_and_shrink(values: int, order: str) -> None:
    rng = np.random.default_rng(values)
    n = 12 * BLOCK
    codes = rng.integers(0, values, n)
    if order != "random":
        codes = np.sort(codes)[:: 1 if order == "ascending" else -1]
    entries = rng.permutation(n)
    lists = SortedLists()
    lists.new(3)
    which = rng.choice(3, n, p=[0.9, 0.09, 0.01])
    expected: list[set[Pair]] = [set(), set(), set()]
    marks = rng.integers(-1, values + 1, 10).tolist()
    for is_present in (True, False):
        for part in np.array_split(np.arange(n) if is_present or order != "random" else rng.permutation(n), 7):
            lists.change(which[part], entries[part], codes[part], np.full(len(part), is_present))
            for i in part.tolist():
                pair = (int(codes[i]), int(entries[i]))
                (expected[which[i]].add if is_present else expected[which[i]].remove)(pair)
            check(lists, expected, marks)
        assert is_present == (lists._lists[0, BLOCKS] > 1)
    assert not any(expected)


def test_neighbours_across_blocks() -> None:
    """In a long list of every third code, each code between two others gets just these as neighbours."""
    n = 6 * BLOCK
    lists = SortedLists()
    lists.new(1)
    held = 3 * np.random.default_rng(4).permutation(n)
    lists.change(np.zeros(n), held, held, np.ones(n))
    new = 3 * np.arange(-1, n) + 1
    which, alternately = np.zeros(2 * (n + 1)), np.tile([True, False], n + 1)
    told = lists.change(which, np.repeat(new, 2), np.repeat(new, 2), alternately)
    assert not told.has_twin.any()
    # A removal is told the same of the entries that stay.
    assert told.lo_from.tolist() == np.repeat([CODE_MIN, *range(1, 3 * n, 3)], 2).tolist()
    assert told.hi_to.tolist() == np.repeat([*range(-1, 3 * n - 3, 3), CODE_MAX], 2).tolist()
    twins = lists.change(np.zeros(n), -1 - held, held, np.ones(n))
    assert twins.has_twin.all()


def test_room_of_removed_entries_is_used_again() -> None:
    rng = np.random.default_rng(5)
    lists = SortedLists()
    lists.new(500)
    n = 20_000
    codes, entries = rng.integers(0, 1000, n), np.arange(n)
    sizes = []
    for round_ in range(8):
        which = np.zeros(n, np.int64) if round_ % 2 else rng.integers(0, 500, n)
        lists.change(which, entries, codes, np.ones(n))
        sizes.append(lists.nbytes)
        again = rng.permutation(n)
        lists.change(which[again], entries[again], codes[again], np.zeros(n))
        check_invariants(lists)
    assert sizes[-1] <= 1.6 * sizes[1]


def test_new_lists_are_numbered_on() -> None:
    lists = SortedLists()
    assert [lists.new(2), lists.new(0), lists.new(100), len(lists)] == [0, 2, 2, 102]
    assert lists.sizes(np.arange(102)).sum() == 0
    starts, codes = lists.nearest([5, 6], [0, 1])
    assert (starts.tolist(), codes.tolist()) == ([0, 0, 0], [])


def test_misuse_is_refused() -> None:
    world = World(2)
    world.change([(0, 7, 5, True), (1, 8, 5, True)])
    with pytest.raises(ValueError, match="entry 7 at code 5 is in list 0 already"):
        world.lists.change([0], [7], [5], [True])
    with pytest.raises(KeyError, match="entry 7 at code 5 is not in list 1"):
        world.lists.change([1], [7], [5], [False])
    with pytest.raises(KeyError, match="entry 7 at code 6 is not in list 0"):
        world.lists.change([0], [7], [6], [False])
    with pytest.raises(IndexError, match="2 lists"):
        world.lists.gather([2])
    with pytest.raises(IndexError, match="2 lists"):
        world.lists.change([-1], [1], [1], [True])
    with pytest.raises(ValueError, match="as many"):
        world.lists.change([0, 1], [1], [1], [True])
    check(world.lists, world.pairs, [5])
