"""Meshes against plain sets of items, whose combinations are found by trying all of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.kernels import meshes as module
from tidings.kernels.meshes import NONE, Changed, Meshes
from tidings.kernels.meshes_apply import END, GROUP, NEW, OLD
from tidings.kernels.meshes_arrays import ENTRIES, FILLED, FREE, ITEM_COUNT, LOW, TOP

PAIR = 2, [(0, 1)]
TWICE = 2, [(1, 0), (0, 1)]
CHAIN = 3, [(0, 1), (1, 2)]
STAR = 4, [(0, 1), (2, 1), (1, 3)]
CYCLE = 3, [(0, 1), (1, 2), (2, 0)]
Combination = tuple[int, ...]


class Item(NamedTuple):
    kind: int
    name: int
    ties: tuple[int, ...]
    """By edge; of a whole combination its items, by kind."""


class Plain:
    """Sets of items by name."""

    def __init__(self, kinds: int, edges: list[tuple[int, int]]) -> None:
        self.kinds, self.edges = kinds, edges
        self.items: dict[int, Item] = {}
        self.sets: dict[int, dict[int, int]] = {}

    def tied(self, number: int) -> set[Combination]:
        """Those of items that a set holds one by one."""
        held = self.sets[number].values()
        parts = [[item for item in held if self.items[item].kind == kind] for kind in range(self.kinds)]
        return {chosen for chosen in product(*parts) if self._are_tied(chosen)}

    def whole(self, items: Iterable[int]) -> list[Combination]:
        return [self.items[item].ties for item in items if self.items[item].kind == self.kinds]

    def combinations(self, number: int) -> Counter[Combination]:
        """All of a set; one that is there whole and in parts counts twice."""
        return Counter([*self.tied(number), *self.whole(self.sets[number].values())])

    def touched(self, number: int, items: set[int]) -> set[Combination]:
        """Those in which one of the items is."""
        return {chosen for chosen in self.tied(number) if set(chosen) & items} | set(self.whole(items))

    def _are_tied(self, chosen: Combination) -> bool:
        ties = [[self.items[chosen[kind]].ties[at] for kind in ends] for at, ends in enumerate(self.edges)]
        return all(one == other != NONE for one, other in ties)


@pytest.fixture(autouse=True, scope="module")
def changes_come_in_small_portions() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FOUND_MAX", 10)
        yield


class World:
    """Meshes, and plain sets beside them. Names are numbers from 0, ties from 100, both a range for each kind or edge."""

    def __init__(self, kinds: int, edges: list[tuple[int, int]], seed: int) -> None:
        self.random = random.Random(seed)
        self.meshes, self.plain = Meshes(kinds, edges), Plain(kinds, edges)
        self.kinds, self.edges = kinds, edges
        self.free: list[int] = []
        self.make(30)

    def make(self, count: int) -> None:
        """New items; the numbers of those forgotten are used again."""
        for _ in range(count):
            number = self.free.pop() if self.free else len(self.plain.items)
            kind = self.random.choice([*range(self.kinds), *range(self.kinds), self.kinds])
            name = 20 * kind + self.random.randrange(4)
            ties = tuple(
                self.random.choice([100 + 10 * at, 101 + 10 * at, NONE]) if kind in ends else NONE
                for at, ends in enumerate(self.edges)
            )
            if kind == self.kinds:
                by_kind = [[n for n, item in self.plain.items.items() if item.kind == k] for k in range(kind)]
                if not all(by_kind):
                    self.free.append(number)
                    continue
                ties = tuple(map(self.random.choice, by_kind))
            self.plain.items[number] = Item(kind, name, ties)
            self.meshes.put_items([number], kind, [name], [0], [ties])

    def open(self) -> None:
        number = self.random.randrange(20)
        if number not in self.plain.sets:
            self.meshes.open([number])
            self.plain.sets[number] = {}

    def some(self) -> list[int]:
        """Items, whose names are not all different."""
        return self.random.choices(list(self.plain.items), k=self.random.randrange(8))

    def fill(self) -> None:
        numbers = [number for number in self.plain.sets if self.random.random() < 0.5]
        parts = [self.some() for _ in numbers]
        starts = np.cumsum([0, *map(len, parts)])
        self.meshes.fill(numbers, starts, [item for part in parts for item in part])
        for number, part in zip(numbers, parts, strict=True):
            self.plain.sets[number] = {self.plain.items[item].name: item for item in part}

    def clear(self) -> None:
        numbers = [number for number in self.plain.sets if self.random.random() < 0.2]
        self.meshes.clear(numbers)
        for number in numbers:
            self.plain.sets[number] = {}

    def apply(self) -> None:
        groups: list[tuple[int, list[tuple[int, int]]]] = []
        for number in self.plain.sets:
            for _ in range(self.random.randrange(3)):
                said = [
                    (self.plain.items[item].name, self.random.choice([item, item, NONE])) for item in self.some() or [0]
                ]
                groups.append((number, [*said, (NONE, NONE)][: self.random.choice([1, 1, 9])]))
        expected = [self._change(number, said) for number, said in groups]
        starts = np.cumsum([0, *(len(said) for _, said in groups)])
        numbers = [number for number, said in groups for _ in said]
        names, items = ([pair[i] for _, said in groups for pair in said] for i in (0, 1))
        found = {}
        for changed in self.meshes.apply(starts, numbers, names, items):
            for group in changed.groups.tolist():
                old, new = (
                    {tuple(chosen) for chosen in changed.combinations[changed.found[start:stop]].tolist()}
                    for start, stop in pairwise(group[OLD:])
                )
                assert group[GROUP] not in found
                found[group[GROUP]] = old, new
        assert found == {at: sides for at, sides in enumerate(expected) if any(sides)}

    def _change(self, number: int, said: list[tuple[int, int]]) -> tuple[set[Combination], set[Combination]]:
        wanted: dict[int, int] = {}
        for name, item in said:
            if name != NONE and (item != NONE or name not in wanted):
                wanted[name] = item
        held = self.plain.sets[number]
        changing = {
            name: item
            for name, item in wanted.items()
            if held.get(name, NONE) != item or (item != NONE and self.plain.items[item].kind == self.kinds)
        }
        old = self.plain.touched(number, {held[name] for name in changing if name in held})
        for name, item in changing.items():
            held.pop(name, None)
            if item != NONE:
                held[name] = item
        return old, self.plain.touched(number, {item for item in changing.values() if item != NONE})

    def forget(self) -> None:
        used = np.array(list(self.plain.items))
        held = {item for one in self.plain.sets.values() for item in one.values()}
        held |= {
            part for item in held if self.plain.items[item].kind == self.kinds for part in self.plain.items[item].ties
        }
        loose = self.meshes.forget_loose(used).tolist()
        assert sorted(loose) == sorted(set(self.plain.items) - held)
        assert self.meshes.loose == 0
        for item in loose:
            del self.plain.items[item]
        top = max(self.plain.items, default=NONE) + 1
        self.free = [number for number in range(top) if number not in self.plain.items]
        self.make(30)


def check(world: World) -> None:
    numbers = list(world.plain.sets)
    starts, held = world.meshes.read(numbers)
    parts = [sorted(held[start:stop].tolist()) for start, stop in pairwise(starts.tolist())]
    assert parts == [sorted(world.plain.sets[number].values()) for number in numbers]
    assert len(world.meshes) == len(held)
    starts, found, combinations = world.meshes.combinations(numbers)
    for number, (start, stop) in zip(numbers, pairwise(starts.tolist()), strict=True):
        assert Counter(map(tuple, combinations[found[start:stop]].tolist())) == world.plain.combinations(number)
    assert len(set(map(tuple, combinations.tolist()))) == len(combinations)
    check_invariants(world)


def check_invariants(world: World) -> None:
    """Every word of memory is of a record or free, every record is in the table, counts are right."""
    meshes = world.meshes
    records = meshes._table[meshes._table != NONE] & LOW
    assert len(set(records.tolist())) == len(records) == meshes._head[FILLED]
    knots = {
        (number, world.plain.items[item].ties[edge])
        for number, held in world.plain.sets.items()
        for item in held.values()
        if world.plain.items[item].kind < world.kinds
        for edge, tie in enumerate(world.plain.items[item].ties)
        if tie != NONE
    }
    assert meshes._head[FILLED] == meshes._head[ENTRIES] + len(knots)
    words = meshes._plan.words
    kinds = [world.plain.items[item].kind for held in world.plain.sets.values() for item in held.values()]
    used = sum(int(words[kind]) for kind in kinds) + len(knots) * int(words[-1])
    for length in range(len(words)):
        record = meshes._head[FREE + length]
        while record != NONE:
            used += int(words[length])
            record = meshes._memory[record]
    assert used == meshes._head[TOP]
    counts = Counter(item for held in world.plain.sets.values() for item in held.values())
    for item in world.plain.items.values():
        counts.update(item.ties if item.kind == world.kinds else ())
    assert {item: int(meshes.items[item, ITEM_COUNT]) for item in world.plain.items} == {
        item: counts[item] for item in world.plain.items
    }
    assert meshes.loose == sum(not counts[item] for item in world.plain.items)


@pytest.mark.parametrize(("kinds", "edges"), [PAIR, TWICE, CHAIN, STAR, CYCLE])
@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_sets_hold_and_combine_what_plain_sets_do(kinds: int, edges: list[tuple[int, int]], seed: int) -> None:
    world = World(kinds, edges, seed)
    for _ in range(20):
        getattr(world, world.random.choice(["open", "open", "fill", "clear", "apply", "apply", "apply", "forget"]))()
        check(world)


def plain_difference(old: list[int], new: list[int], place: list[int], look: list[int]) -> list[tuple[int, int]]:
    """Of those with one place the last counts."""
    before, after = ({place[one]: one for one in ones} for ones in (old, new))
    gone, come = (Counter(look[one] for one in ones.values()) for ones in (before, after))
    gone, come = gone - come, come - gone
    pairs = []
    for at in sorted(before.keys() & after.keys()):
        if gone[look[before[at]]] > 0 and come[look[after[at]]] > 0:
            gone[look[before[at]]] -= 1
            come[look[after[at]]] -= 1
            pairs.append((before[at], after[at]))
    for ones, left, is_old in ((before, gone, True), (after, come, False)):
        for at in sorted(ones):
            if left[look[ones[at]]] > 0:
                left[look[ones[at]]] -= 1
                pairs.append((ones[at], NONE) if is_old else (NONE, ones[at]))
    return pairs


@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_differences_are_told_once_for_each_kind_and_batch(seed: int) -> None:
    choose = random.Random(seed)
    count = choose.choice([3, 12])
    place, look = ([choose.randrange(choose.choice([2, count])) for _ in range(count)] for _ in range(2))
    sides = [[[choose.randrange(count) for _ in range(choose.randrange(5))] for _ in range(2)] for _ in range(60)]
    sides = choose.choices(sides[: choose.choice([2, 60])], k=60)
    batch = sorted(choose.randrange(4) for _ in sides)
    ends = np.cumsum([0, *(len(part) for pair in sides for part in pair)])
    groups = np.zeros((len(sides), 4), np.int64)
    groups[:, GROUP], groups[:, OLD], groups[:, NEW], groups[:, END] = range(60), ends[:-1:2], ends[1::2], ends[2::2]
    found = np.array([one for pair in sides for part in pair for one in part], np.int32)
    told = Changed(groups, found, np.zeros((count, 2), np.int32)).differences(batch, place, look)
    pairs = list(zip(told.old.tolist(), told.new.tolist(), strict=True))
    kinds = [tuple(pairs[start:stop]) for start, stop in pairwise(told.starts.tolist())]
    expected = {at: tuple(plain_difference(*pair, place, look)) for at, pair in enumerate(sides)}
    assert {at: kinds[kind] for at, kind in zip(told.group.tolist(), told.kind.tolist(), strict=True)} == {
        at: difference for at, difference in expected.items() if difference
    }
    assert [told.batch[kind] for kind in told.kind] == [batch[at] for at in told.group]
    distinct = list(zip(told.batch.tolist(), kinds, strict=True))
    assert len(set(distinct)) == len(distinct)


def test_kinds_that_nothing_ties_to_the_others_are_refused() -> None:
    with pytest.raises(ValueError, match="without edges"):
        Meshes(3, [(0, 1)])


def test_memory_is_used_again() -> None:
    meshes = Meshes(2, [(0, 1)])
    numbers = np.arange(1000)
    meshes.open(numbers)
    meshes.put_items([0, 1], 0, [0, 1], [0, 1], [[4], [5]])
    meshes.put_items([2, 3], 1, [2, 3], [2, 3], [[4], [5]])
    meshes.fill(numbers, np.arange(0, 4001, 4), [0, 1, 2, 3] * 1000)
    size = meshes.nbytes
    assert size < 4000 * 80
    for _ in range(5):
        meshes.clear(numbers)
        assert len(meshes) == 0
        meshes.fill(numbers, np.arange(0, 4001, 4), [3, 1, 2, 0] * 1000)
        assert len(meshes) == 4000
    assert meshes.nbytes == size
