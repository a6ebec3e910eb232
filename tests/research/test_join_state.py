"""Join state against plain sets of rows, whose combinations are found by trying all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise, product
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from research.views.join import join_state as module
from research.views.join.join_state import NONE, ChangedJoins, JoinState
from research.views.join.join_state.deltas import END, GROUP, NEW, OLD
from research.views.join.join_state.layout import ENTRIES, FILLED, FREE, HOLDERS, LOW, TOP, WORDS

pytestmark = pytest.mark.extended


PAIR = 2, [(0, 1)]
TWICE = 2, [(1, 0), (0, 1)]
CHAIN = 3, [(0, 1), (1, 2)]
STAR = 4, [(0, 1), (2, 1), (1, 3)]
CYCLE = 3, [(0, 1), (1, 2), (2, 0)]
Combination = tuple[int, ...]
STEPS = ["open", "fill", "clear", "apply", "apply", "apply", "forget"]


class Row(NamedTuple):
    relation: int
    key: int
    values: tuple[int, ...]
    """By edge; of a joined row its parts, by relation."""


class Plain:
    """Sets of rows by key."""

    def __init__(self, relations: int, edges: list[tuple[int, int]]) -> None:
        self.relations, self.edges = relations, edges
        self.rows: dict[int, Row] = {}
        self.views: dict[int, dict[int, int]] = {}

    def combined(self, number: int) -> set[Combination]:
        """Those of rows that a set holds one by one."""
        held = self.views[number].values()
        parts = [[row for row in held if self.rows[row].relation == relation] for relation in range(self.relations)]
        return {chosen for chosen in product(*parts) if self._are_joined(chosen)}

    def joined(self, rows: Iterable[int]) -> list[Combination]:
        return [self.rows[row].values for row in rows if self.rows[row].relation == self.relations]

    def combinations(self, number: int) -> Counter[Combination]:
        """All of a set; one that is there whole and in parts counts twice."""
        return Counter([*self.combined(number), *self.joined(self.views[number].values())])

    def touched(self, number: int, rows: set[int]) -> set[Combination]:
        """Those in which one of the rows is."""
        return {chosen for chosen in self.combined(number) if set(chosen) & rows} | set(self.joined(rows))

    def _are_joined(self, chosen: Combination) -> bool:
        values = [[self.rows[chosen[relation]].values[at] for relation in ends] for at, ends in enumerate(self.edges)]
        return all(one == other != NONE for one, other in values)


@pytest.fixture(autouse=True, scope="module")
def changes_come_in_small_portions() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FOUND_MAX", 10)
        yield


class World:
    """Join state, and plain sets beside it. Keys are numbers from 0, join values from 100."""

    def __init__(self, relations: int, edges: list[tuple[int, int]], random: Random) -> None:
        self.random = random
        self.state, self.plain = JoinState(relations, edges), Plain(relations, edges)
        self.relations, self.edges = relations, edges
        self.free: list[int] = []
        self.make(12)

    def make(self, count: int) -> None:
        """New rows; the numbers of those forgotten are used again."""
        for _ in range(count):
            number = self.free.pop() if self.free else len(self.plain.rows)
            relation = self.random.choice([*range(self.relations), *range(self.relations), self.relations])
            key = 20 * relation + self.random.randrange(4)
            values = tuple(
                self.random.choice([100 + 10 * at, 101 + 10 * at, NONE]) if relation in ends else NONE
                for at, ends in enumerate(self.edges)
            )
            if relation == self.relations:
                by_relation = [[n for n, row in self.plain.rows.items() if row.relation == k] for k in range(relation)]
                if not all(by_relation):
                    self.free.append(number)
                    continue
                values = tuple(map(self.random.choice, by_relation))
            self.plain.rows[number] = Row(relation, key, values)
            self.state.put_rows([number], relation, [key], [0], [values])

    def open(self) -> None:
        number = self.random.randrange(20)
        if number not in self.plain.views:
            self.state.open([number])
            self.plain.views[number] = {}

    def some(self) -> list[int]:
        """Items, whose keys are not all different."""
        return self.random.choices(list(self.plain.rows), k=self.random.randrange(8))

    def fill(self) -> None:
        numbers = [number for number in self.plain.views if self.random.random() < 0.5]
        parts = [self.some() for _ in numbers]
        starts = np.cumsum([0, *map(len, parts)])
        self.state.fill(numbers, starts, [row for part in parts for row in part])
        for number, part in zip(numbers, parts, strict=True):
            self.plain.views[number] = {self.plain.rows[row].key: row for row in part}

    def clear(self) -> None:
        numbers = [number for number in self.plain.views if self.random.random() < 0.2]
        self.state.clear(numbers)
        for number in numbers:
            self.plain.views[number] = {}

    def apply(self) -> None:
        groups: list[tuple[int, list[tuple[int, int]]]] = []
        for number in self.plain.views:
            for _ in range(self.random.randrange(3)):
                said = [
                    (self.plain.rows[row].key, self.random.choice([row, row, NONE]))
                    for row in self.some() or [min(self.plain.rows)]
                ]
                groups.append((number, [*said, (NONE, NONE)][: self.random.choice([1, 1, 9])]))
        expected = [self._change(number, said) for number, said in groups]
        starts = np.cumsum([0, *(len(said) for _, said in groups)])
        numbers = [number for number, said in groups for _ in said]
        keys, rows = ([pair[i] for _, said in groups for pair in said] for i in (0, 1))
        found = {}
        for changed in self.state.apply(starts, numbers, keys, rows):
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
        for key, row in said:
            if key != NONE and (row != NONE or key not in wanted):
                wanted[key] = row
        held = self.plain.views[number]
        changing = {
            key: row
            for key, row in wanted.items()
            if held.get(key, NONE) != row or (row != NONE and self.plain.rows[row].relation == self.relations)
        }
        old = self.plain.touched(number, {held[key] for key in changing if key in held})
        for key, row in changing.items():
            held.pop(key, None)
            if row != NONE:
                held[key] = row
        return old, self.plain.touched(number, {row for row in changing.values() if row != NONE})

    def forget(self) -> None:
        used = np.array(list(self.plain.rows))
        held = {row for one in self.plain.views.values() for row in one.values()}
        held |= {
            part
            for row in held
            if self.plain.rows[row].relation == self.relations
            for part in self.plain.rows[row].values
        }
        unused = self.state.forget_unused(used).tolist()
        assert sorted(unused) == sorted(set(self.plain.rows) - held)
        assert self.state.unused == 0
        for row in unused:
            del self.plain.rows[row]
        top = max(self.plain.rows, default=NONE) + 1
        self.free = [number for number in range(top) if number not in self.plain.rows]
        self.make(12)


def check(world: World) -> None:
    numbers = list(world.plain.views)
    starts, held = world.state.read(numbers)
    parts = [sorted(held[start:stop].tolist()) for start, stop in pairwise(starts.tolist())]
    assert parts == [sorted(world.plain.views[number].values()) for number in numbers]
    assert len(world.state) == len(held)
    starts, found, combinations = world.state.combinations(numbers)
    for number, (start, stop) in zip(numbers, pairwise(starts.tolist()), strict=True):
        assert Counter(map(tuple, combinations[found[start:stop]].tolist())) == world.plain.combinations(number)
    assert len(set(map(tuple, combinations.tolist()))) == len(combinations)
    check_invariants(world)


def check_invariants(world: World) -> None:
    """Every word of memory is of a record or free, every record is in the table, counts are right."""
    state = world.state
    records = state._table[state._table != NONE] & LOW
    assert len(set(records.tolist())) == len(records) == state._head[FILLED]
    buckets = {
        (number, world.plain.rows[row].values[edge])
        for number, held in world.plain.views.items()
        for row in held.values()
        if world.plain.rows[row].relation < world.relations
        for edge, value in enumerate(world.plain.rows[row].values)
        if value != NONE
    }
    assert state._head[FILLED] == state._head[ENTRIES] + len(buckets)
    words = state._plan.layout[:, WORDS]
    relations = [world.plain.rows[row].relation for held in world.plain.views.values() for row in held.values()]
    used = sum(int(words[relation]) for relation in relations) + len(buckets) * int(words[-1])
    for length in range(len(words)):
        record = state._head[FREE + length]
        while record != NONE:
            used += int(words[length])
            record = state._memory[record]
    assert used == state._head[TOP]
    counts = Counter(row for held in world.plain.views.values() for row in held.values())
    for row in world.plain.rows.values():
        counts.update(row.values if row.relation == world.relations else ())
    assert {row: int(state.rows[row, HOLDERS]) for row in world.plain.rows} == {
        row: counts[row] for row in world.plain.rows
    }
    assert state.unused == sum(not counts[row] for row in world.plain.rows)


@pytest.mark.parametrize(("relations", "edges"), [PAIR, TWICE, CHAIN, STAR, CYCLE])
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(random=st.randoms(use_true_random=False), steps=st.lists(st.sampled_from(STEPS), min_size=1, max_size=12))
def test_views_hold_and_combine_what_plain_sets_do(
    relations: int, edges: list[tuple[int, int]], random: Random, steps: list[str]
) -> None:
    world = World(relations, edges, random)
    for step in ["open", *steps]:
        getattr(world, step)()
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


COUNT = 6
CHOSEN = st.lists(st.integers(0, COUNT - 1), max_size=4)


@settings(max_examples=60)
@given(
    place=st.lists(st.integers(0, COUNT - 1), min_size=COUNT, max_size=COUNT),
    look=st.lists(st.integers(0, 3), min_size=COUNT, max_size=COUNT),
    told_of=st.lists(st.tuples(st.integers(0, 3), CHOSEN, CHOSEN), max_size=60),
)
def test_deltas_are_numbered_once_for_each_batch(
    place: list[int], look: list[int], told_of: list[tuple[int, list[int], list[int]]]
) -> None:
    # The same again, in the same batch.
    told_of = sorted([*told_of, *told_of[:20]], key=lambda one: one[0])
    sides, batch = [one[1:] for one in told_of], [one[0] for one in told_of]
    ends = np.cumsum([0, *(len(part) for pair in sides for part in pair)])
    groups = np.zeros((len(sides), 4), np.int64)
    groups[:, GROUP], groups[:, OLD], groups[:, NEW], groups[:, END] = (
        range(len(sides)),
        ends[:-1:2],
        ends[1::2],
        ends[2::2],
    )
    found = np.array([one for pair in sides for part in pair for one in part], np.int32)
    told = ChangedJoins(groups, found, np.zeros((COUNT, 2), np.int32)).deltas(batch, place, look)
    pairs = list(zip(told.old.tolist(), told.new.tolist(), strict=True))
    relations = [tuple(pairs[start:stop]) for start, stop in pairwise(told.starts.tolist())]
    expected = {at: tuple(plain_difference(*pair, place, look)) for at, pair in enumerate(sides)}
    assert {
        at: relations[relation] for at, relation in zip(told.group.tolist(), told.number.tolist(), strict=True)
    } == {at: difference for at, difference in expected.items() if difference}
    assert [told.batch[relation] for relation in told.number] == [batch[at] for at in told.group]
    distinct = list(zip(told.batch.tolist(), relations, strict=True))
    assert len(set(distinct)) == len(distinct)


def test_kinds_that_nothing_ties_to_the_others_are_refused() -> None:
    with pytest.raises(ValueError, match="without an edge"):
        JoinState(3, [(0, 1)])


def test_memory_is_used_again() -> None:
    state = JoinState(2, [(0, 1)])
    numbers = np.arange(1000)
    state.open(numbers)
    state.put_rows([0, 1], 0, [0, 1], [0, 1], [[4], [5]])
    state.put_rows([2, 3], 1, [2, 3], [2, 3], [[4], [5]])
    state.fill(numbers, np.arange(0, 4001, 4), [0, 1, 2, 3] * 1000)
    size = state.nbytes
    assert size < 4000 * 80
    for _ in range(5):
        state.clear(numbers)
        assert len(state) == 0
        state.fill(numbers, np.arange(0, 4001, 4), [3, 1, 2, 0] * 1000)
        assert len(state) == 4000
    assert state.nbytes == size
