"""ViewLists against plain lists: what they hold, what groups show, and how it differs after each batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from random_picks import some_of, turned
from research.views.topk.differences import find_kind
from research.views.topk.view_lists import NONE, Differences, ViewLists

pytestmark = pytest.mark.extended


Pair = tuple[int, int]
Told = dict[tuple[int, int], list[Pair]]
"""(batch, home) -> difference."""


class Plain:
    """The rule in plain words, on lists of items; an item is (rank, tie, look)."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.items: dict[int, tuple[int, int, int]] = {}
        self.lists: dict[int, list[int]] = {}
        self.groups: dict[int, list[int]] = {}

    def home(self, number: int) -> int:
        return next(home for home, members in self.groups.items() if number in members)

    def first(self, items: Iterable[int]) -> list[int]:
        return sorted(items, key=self.items.__getitem__)[: self.k]

    def shown(self, home: int) -> list[int]:
        return self.first(item for number in self.groups[home] for item in self.lists[number])

    def deliver(self, number: int, item: int, tie: int, *, is_gone: bool) -> None:
        held = [other for other in self.lists[number] if self.items[other][1] != tie]
        self.lists[number] = held if is_gone else self.first([*held, item])

    def difference(self, old: list[int], new: list[int]) -> list[Pair]:
        look = {item: self.items[item][2] for item in (*old, *new)}
        gone, come = Counter(look[item] for item in old), Counter(look[item] for item in new)
        gone, come = gone - come, come - gone
        by_tie = {self.items[item][1]: item for item in old}
        pairs = []
        for item in new:
            before = by_tie.get(self.items[item][1], NONE)
            if before != NONE and gone[look[before]] > 0 and come[look[item]] > 0:
                gone[look[before]] -= 1
                come[look[item]] -= 1
                pairs.append((before, item))
        for items, left, is_old in ((old, gone, True), (new, come, False)):
            for item in items:
                if left[look[item]] > 0:
                    left[look[item]] -= 1
                    pairs.append((item, NONE) if is_old else (NONE, item))
        return pairs


def told_of(found: Differences) -> Told:
    """The differences by batch and home; no kind comes twice in a batch, nor does a home."""
    kinds = [
        list(zip(found.old[start:stop].tolist(), found.new[start:stop].tolist(), strict=True))
        for start, stop in zip(found.starts[:-1], found.starts[1:], strict=True)
    ]
    distinct = {(batch, *kind) for batch, kind in zip(found.batch.tolist(), kinds, strict=True)}
    assert len(distinct) == len(kinds)
    told = {
        (int(found.batch[kind]), home): kinds[kind]
        for home, kind in zip(found.home.tolist(), found.kind.tolist(), strict=True)
    }
    assert len(told) == len(found.home)
    return told


class World:
    """ViewLists, and plain ones beside them to which the same is done."""

    def __init__(self, k: int, random: Random, *, ties: int = 8) -> None:
        self.random = random
        self.lists, self.plain = ViewLists(k), Plain(k)
        self.ties = {thing: 10 * thing for thing in range(ties)}
        self.thing_of: dict[int, int] = {}
        self.batch = self.most_lists = 0

    def open(self, groups: int) -> None:
        sizes = [self.random.choice([1, 1, 3]) for _ in range(groups)]
        numbers = iter(self.lists.open([i == 0 for size in sizes for i in range(size)]).tolist())
        for size in sizes:
            members = [next(numbers) for _ in range(size)]
            self.plain.groups[members[0]] = members
            self.plain.lists.update((number, []) for number in members)
        # Numbers of closed lists are used again.
        self.most_lists = max(self.most_lists, len(self.plain.lists))
        assert max(self.plain.lists) < self.most_lists

    def close(self) -> None:
        home = self.random.choice(list(self.plain.groups))
        members = self.plain.groups.pop(home)
        self.lists.close(turned(self.random, members))
        for number in members:
            del self.plain.lists[number]

    def new_item(self, thing: int) -> int:
        """A version of a thing, of a number that no list holds."""
        held = self.held()
        item = next(number for number in range(10_000) if number not in held and number not in self.thing_of)
        numbers = self.random.randrange(-2, 3), self.ties[thing], self.random.randrange(min(4, item + 1))
        self.plain.items[item] = numbers
        self.thing_of[item] = thing
        self.lists.put_items([item], *([number] for number in numbers))
        return item

    def held(self) -> set[int]:
        return {item for items in self.plain.lists.values() for item in items}

    def may_hold(self, thing: int) -> list[int]:
        """Lists that a thing may be in: one of each group."""
        return [members[thing % len(members)] for members in self.plain.groups.values()]

    def deliver(self, batches: int) -> None:
        sends: list[tuple[int, int, int]] = []
        deliveries: list[tuple[int, int, bool]] = []
        for _ in range(batches):
            self.batch += self.random.randrange(1, 3)
            for _ in range(self.random.randrange(1, 4)):
                thing = self.random.choice(list(self.ties))
                known = [item for item, other in self.thing_of.items() if other == thing]
                item = self.random.choice([NONE] * (2 * len(known) + 1) + known)
                item = self.new_item(thing) if item == NONE else item
                goes = self.random.randrange(10) >= 7
                deliveries += [(number, len(sends), goes) for number in some_of(self.random, self.may_hold(thing))]
                sends.append((self.batch, NONE if goes else item, self.ties[thing]))
        expected = self.expect(sends, deliveries)
        numbers, send, is_gone = zip(*deliveries, strict=True) if deliveries else ((), (), ())
        assert told_of(self.lists.apply(numbers, send, is_gone, *zip(*sends, strict=True))) == expected

    def expect(self, sends: list[tuple[int, int, int]], deliveries: list[tuple[int, int, bool]]) -> Told:
        told: Told = {}
        for batch in dict.fromkeys(sends[send][0] for _, send, _ in deliveries):
            before = {home: self.plain.shown(home) for home in self.plain.groups}
            for number, send, goes in deliveries:
                if sends[send][0] == batch:
                    self.plain.deliver(number, *sends[send][1:], is_gone=goes)
            for home, old in before.items():
                pairs = self.plain.difference(old, self.plain.shown(home))
                if pairs:
                    told[batch, home] = pairs
        return told

    def fill(self) -> None:
        """Some groups start anew."""
        homes = some_of(self.random, list(self.plain.groups))
        starts, numbers = self.lists.members(homes)
        assert numbers.tolist() == [number for home in homes for number in self.plain.groups[home]]
        assert np.diff(starts).tolist() == [len(self.plain.groups[home]) for home in homes]
        parts = []
        for home in homes:
            members = self.plain.groups[home]
            things = some_of(self.random, list(self.ties))
            for at, number in enumerate(members):
                items = [self.new_item(thing) for thing in things if thing % len(members) == at]
                self.plain.lists[number] = self.plain.first(items)
                parts.append(turned(self.random, items + items[:1]))
        self.lists.fill(numbers, np.cumsum([0, *map(len, parts)]), [item for part in parts for item in part])

    def rename(self) -> None:
        """Other ties in the same order, other looks in the same classes."""
        factor, shift = self.random.randrange(1, 4), self.random.randrange(-50, 50)
        self.ties = {thing: factor * tie + shift for thing, tie in self.ties.items()}
        looks = self.random.sample(range(4), 4) if len(self.lists.items) >= 4 else [*range(4)]
        for item, (rank, _, look) in self.plain.items.items():
            self.plain.items[item] = (rank, self.ties[self.thing_of[item]], looks[look])
        items = list(self.plain.items)
        self.lists.retie(items, [self.plain.items[item][1] for item in items])
        self.lists.relook(items, [self.plain.items[item][2] for item in items])

    def forget(self) -> None:
        """Numbers of items that no list holds are given to others."""
        held = self.held()
        assert set(np.flatnonzero(self.lists.held()).tolist()) == held
        for item in [item for item in self.thing_of if item not in held]:
            del self.thing_of[item], self.plain.items[item]


def check(world: World) -> None:
    """Lists hold, and groups show, what they should."""
    lists, plain = world.lists, world.plain
    numbers, homes = list(plain.lists), list(plain.groups)
    assert len(lists) == len(numbers)
    starts, items = lists.read(numbers)
    assert [items[a:b].tolist() for a, b in pairwise(starts)] == list(plain.lists.values())
    starts, items = lists.shown(homes)
    assert [items[a:b].tolist() for a, b in pairwise(starts)] == [plain.shown(home) for home in homes]
    assert lists.room >= len(items)


EVENTS = ["open", "close", "deliver", "deliver", "deliver", "fill", "rename", "forget"]


@settings(max_examples=40)
@given(st.sampled_from([1, 2, 3, 5, 20]), st.randoms(use_true_random=False, note_method_calls=True))
def test_any_course_of_events_is_that_of_plain_lists(k: int, random: Random) -> None:
    world = World(k, random)
    world.open(random.randrange(1, 4))
    for _ in range(random.randint(1, 25)):
        event = random.choice(EVENTS)
        if event in ("open", "deliver"):
            getattr(world, event)(random.randrange(1, 4))
        elif event != "close" or world.plain.groups:
            getattr(world, event)()
        check(world)


@pytest.mark.parametrize("k", [10, 300])
def test_lists_outgrow_their_room_again_and_again(k: int) -> None:
    world = World(k, Random(1), ties=60)
    world.open(25)
    for _ in range(12):
        world.deliver(20)
        check(world)
        world.close()
        world.open(1)
        world.forget()


def test_each_kind_of_difference_of_a_batch_comes_once_however_many_there_are() -> None:
    lists = ViewLists(1)
    numbers = lists.open([True] * 900)
    # One of three hundred items in each list, and one that stands before all of them.
    items = np.arange(301)
    lists.put_items(items, [*range(1, 301), 0], items, items)
    lists.fill(numbers, np.arange(901), items[np.arange(900) % 300])
    found = lists.apply(numbers, np.zeros(900), np.zeros(900), [7], [300], [300])
    assert told_of(found) == {(7, number): [(i % 300, NONE), (NONE, 300)] for i, number in enumerate(numbers.tolist())}
    assert len(found.batch) == 300


def test_differences_of_one_hash_are_told_apart() -> None:
    pairs = np.array([(1, 2), (1, 3), (1, 2), (1, 4)], np.int32)
    kinds = np.array([(0, 5, start, start + 1) for start in range(4)], np.int64)
    table = np.full(8, NONE, np.int32)
    table[5:7] = [0, 1]
    found = [find_kind(table, kinds, pairs, 0, start, start + 1, 5) for start in range(4)]
    assert found == [5, 6, 5, 7]
    # Of kinds that do not count any more the table says nothing.
    assert find_kind(table, kinds, pairs, 1, 2, 3, 5) == 5


def test_what_looks_the_same_is_not_told_and_of_equals_the_first_one_goes() -> None:
    lists = ViewLists(3)
    (number,) = lists.open([True]).tolist()
    # Items 0, 1 and 2 look like 9, 5 and 9; item 3 is item 1 again, item 4 is item 2 with another look.
    lists.put_items(
        range(10), [1, 2, 3, 2, 3, 0, 0, 0, 0, 0], [0, 1, 2, 1, 2, 5, 6, 7, 8, 9], [9, 5, 9, 5, 5, 0, 0, 0, 0, 0]
    )
    lists.fill([number], [0, 3], [0, 1, 2])
    assert told_of(lists.apply([number], [0], [False], [1], [3], [1])) == {}
    assert told_of(lists.apply([number], [0], [True], [2], [NONE], [2])) == {(2, number): [(0, NONE)]}
    assert told_of(lists.apply([number], [0], [False], [3], [4], [2])) == {(3, number): [(NONE, 3)]}


def test_of_deliveries_of_one_batch_only_the_outcome_counts() -> None:
    lists = ViewLists(2)
    (number,) = lists.open([True]).tolist()
    lists.put_items([0, 1], [1, 2], [0, 1], [0, 1])
    sends = [1, 1, 1, 2], [0, NONE, 1, NONE], [0, 0, 1, 1]
    found = lists.apply([number] * 4, [0, 1, 2, 3], [False, True, False, True], *sends)
    assert told_of(found) == {(1, number): [(NONE, 1)], (2, number): [(1, NONE)]}


def test_a_group_begins_with_its_first_list() -> None:
    with pytest.raises(ValueError, match="first of a group"):
        ViewLists(1).open([False, True])
