"""ThresholdIndex against its definition: any interleaving of changes and moves, then many runs, parts and members."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from threshold_index_reference import Box, Reference, are_disjoint, check_invariants, holds

from research.strategies.drift.kernels.threshold_index import (
    ABSOLUTE,
    CHOOSE,
    LABEL_MAX,
    LABEL_MIN,
    NO_TIME,
    PERCENT,
    RATIO,
    ThresholdIndex,
    Touched,
)
from research.strategies.drift.kernels.threshold_index.layout import BLOCK_MAX, NODE_MAX, REACHES_MAX
from tidings.kernels.arrays import INT64_MAX

pytestmark = pytest.mark.extended


# Few values, with ties at thresholds and roundings that matter.
PLAIN = [float(v) for v in range(-3, 8)]
VALUES = st.sampled_from(
    [*PLAIN, *PLAIN, 0.1, 0.3, 0.1 + 0.2, 1.1, -0.0, 99.0, 100.0, 101.0, 1e300, -1e300, 5e-324, 1e-310, math.inf]
)
REACHES = [0.1, 0.2, 1.0, 1.0, 2.0, 2.0, 3.0, 5.0, 30.0, 100.0, 150.0, 5e-324, 1e-320, 1e300]
RATIOS = [math.nextafter(1.0, 2.0), 1.1, 1.5, 2.0, 2.0, 3.0, 3.0, 10.0, 1e10, 1e300]
TIMES = st.sampled_from([NO_TIME, NO_TIME + 1, -5, 0, 1, 2, 3, 4, 5, 8, 13, INT64_MAX - 1, INT64_MAX])


def boxes_of(touched: Touched, i: int) -> list[Box]:
    part = slice(touched.starts[i], touched.starts[i + 1])
    return list(zip(*(column[part].tolist() for column in touched[1:]), strict=True))


class Pair:
    """The structure and the reference, changed alike."""

    def __init__(self, kind: int, patience: int | None) -> None:
        self.index = ThresholdIndex(kind, patience)
        self.reference = Reference(kind, patience)

    def new_audience(self) -> None:
        self.reference.members[self.index.new_audience()] = Counter()

    def new_items(self, audiences: list[int], values: list[float], times: list[int]) -> None:
        for made, audience, d, t in zip(
            self.index.new_items(audiences, values, times).tolist(), audiences, values, times, strict=True
        ):
            self.reference.new_item(made, audience, d, t)

    def free_item(self, item: int) -> None:
        self.index.free_item(item)
        self.reference.free_item(item)

    def add(self, audience: int, reaches: list[float], labels: list[int]) -> None:
        used = self.index.add([audience] * len(reaches), reaches, labels).tolist()
        for reach, label in zip(reaches, used, strict=True):
            self.reference.add(audience, (reach, label))

    def given_label(self, audience: int, reach: float) -> int:
        """The highest label of a reach if its members have the present anchors, else a higher one."""
        labels = [label for used, label in self.reference.members[audience] if used == reach]
        if not labels:
            return 7
        key = reach, max(labels)
        current = all(
            math.isnan(self.reference.value[item][0]) or self.reference.anchors[item][key] == self.reference.value[item]
            for item in self.reference.followers(audience)
        )
        # A label may have been used by a member that is gone; steps of 2 lead beyond any that were chosen in between.
        return key[1] if current and self.highest(audience, reach) == key[1] else self.highest(audience, reach) + 2

    def highest(self, audience: int, reach: float) -> int:
        state = self.index.dump()
        start, end = state["member_starts"][audience : audience + 2]
        at = start + state["member_reach"][start:end].tolist().index(reach)
        return int(state["member_fields"][at, 2])

    def remove(self, audience: int, key: tuple[float, int]) -> None:
        self.index.remove([audience], [key[0]], [key[1]])
        self.reference.remove(audience, key)

    def move(self, items: list[int], values: list[float], times: list[int]) -> None:
        touched = self.index.move(items, values, times)
        assert touched.starts[0] == 0
        assert touched.starts[-1] == len(touched.reach_lo) == len(touched.label_hi)
        for i, (item, d, t) in enumerate(zip(items, values, times, strict=True)):
            was_void = math.isnan(self.reference.value[item][0])
            expected = self.reference.move(item, d, t)
            boxes = boxes_of(touched, i)
            keys = self.reference.members[self.reference.audience[item]]
            assert {key for key in keys if any(holds(box, key) for box in boxes)} == expected
            assert are_disjoint(boxes)
            assert boxes == sorted(boxes)
            if was_void or math.isnan(d):
                assert boxes == ([(-math.inf, math.inf, LABEL_MIN, LABEL_MAX)] if expected else [])
            else:
                assert len(boxes) == self.reference.fewest_boxes(item, expected)

    def compare(self) -> None:
        check_invariants(self.index)
        for item, (d, t) in self.reference.value.items():
            np.testing.assert_equal(self.index.value(item), (d, t))
            for key in self.reference.members[self.reference.audience[item]]:
                assert self.index.anchor(item, *key) == self.reference.anchors[item].get(key)
        for audience, members in self.reference.members.items():
            assert self.index.member_count(audience) == members.total()

    def reload(self) -> None:
        fresh = ThresholdIndex(self.index.kind, self.index.patience)
        fresh.load(self.index.dump())
        self.index = fresh


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_any_interleaving_agrees_with_the_definition(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([ABSOLUTE, PERCENT, RATIO]), label="kind")
    patience = data.draw(st.sampled_from([None, 1, 3, INT64_MAX]), label="patience")
    # A few of all reaches and values at a time, so that they meet often.
    known = RATIOS if kind == RATIO else REACHES
    reaches = st.sampled_from(data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=6), label="reaches"))
    present = st.sampled_from(data.draw(st.lists(VALUES, min_size=2, max_size=9), label="values"))
    values = st.one_of(*[present] * 12, st.just(math.nan))
    pair = Pair(kind, patience)
    reference = pair.reference
    for _ in range(2):
        pair.new_audience()
    # Audience 0 has one item, so that labels are chosen; audience 1 is shared.
    pair.new_items([0], [data.draw(present)], [data.draw(TIMES)])
    actions = ["add", "add", "add", "give", "give", "move", "move", "move", "move", "remove", "item", "free", "reload"]
    for action in data.draw(st.lists(st.sampled_from(actions), min_size=10, max_size=60), label="actions"):
        audience = data.draw(st.sampled_from([0, 1]))
        if action == "add":
            drawn = data.draw(st.lists(reaches, min_size=1, max_size=4))
            pair.add(0, drawn, [CHOOSE] * len(drawn))
        elif action == "give":
            reach = data.draw(reaches)
            pair.add(audience, [reach], [pair.given_label(audience, reach)])
        elif action == "item":
            count = data.draw(st.integers(1, 3))
            pair.new_items(
                [1] * count, [data.draw(values) for _ in range(count)], [data.draw(TIMES) for _ in range(count)]
            )
        elif action == "free" and len(reference.value) > 1:
            pair.free_item(data.draw(st.sampled_from(sorted(reference.followers(1)))))
        elif action == "remove" and reference.members[audience]:
            pair.remove(audience, data.draw(st.sampled_from(sorted(reference.members[audience]))))
        elif action == "reload":
            pair.reload()
        elif action == "move":
            moves = data.draw(st.lists(st.tuples(st.sampled_from(sorted(reference.value)), values, TIMES), max_size=4))
            pair.move([move[0] for move in moves], [move[1] for move in moves], [move[2] for move in moves])
        pair.compare()
    assert pair.index.member_count(0) == sum(reference.members[0].values())


@pytest.mark.parametrize("walks", [5, pytest.param(25, marks=pytest.mark.extended)])
@pytest.mark.parametrize("kind", [ABSOLUTE, PERCENT, RATIO])
@pytest.mark.parametrize("patience", [None, 12])
def test_small_walks_agree_with_the_definition(kind: int, patience: int | None, walks: int) -> None:
    """Values that wander by about the reaches, so that there are always parts, which are split, joined and emptied."""
    rng = random.Random(8)
    for _ in range(walks):
        pair = Pair(kind, patience)
        pair.new_audience()
        pair.new_audience()
        known = {ABSOLUTE: [1, 2, 3, 4, 6, 9], PERCENT: [2, 5, 10, 30, 120], RATIO: [1.02, 1.05, 1.1, 1.3, 2]}[kind]
        value, time = 50.0, 0
        pair.new_items([0, 1, 1], [value, value, value + 1], [time] * 3)
        for _ in range(80):
            time += rng.randrange(3)
            action = rng.random()
            audience = rng.randrange(2)
            if action < 0.45:
                item = rng.randrange(3)
                value = max(1.0, pair.index.value(item)[0] + rng.choice([-4, -2, -1, -1, 1, 1, 2, 4]))
                pair.move([item], [value], [time])
            elif action < 0.8:
                reach = float(rng.choice(known))
                pair.add(audience, [reach], [pair.given_label(1, reach) if audience else CHOOSE])
            elif action < 0.98 and pair.reference.members[audience]:
                pair.remove(audience, rng.choice(sorted(pair.reference.members[audience])))
            else:
                pair.reload()
            pair.compare()
        assert pair.index.member_count(0) == sum(pair.reference.members[0].values())


class Table:
    """The members of one item as columns, for many members and moves; ABSOLUTE, with times."""

    def __init__(self, patience: int | None = None) -> None:
        self.index = ThresholdIndex(ABSOLUTE, patience)
        self.patience = patience
        self.audience = self.index.new_audience()
        self.item = int(self.index.new_items([self.audience], [0.0], [0])[0])
        self.d, self.t = 0.0, 0
        self.reach, self.label = np.zeros(0), np.zeros(0, np.int64)
        self.c, self.t0 = np.zeros(0), np.zeros(0, np.int64)

    def add(self, reaches: Any) -> None:
        reaches = np.asarray(reaches, np.float64)
        n = len(reaches)
        labels = self.index.add([self.audience] * n, reaches, [CHOOSE] * n)
        self.reach, self.label = np.append(self.reach, reaches), np.append(self.label, labels)
        self.c, self.t0 = np.append(self.c, np.full(n, self.d)), np.append(self.t0, np.full(n, self.t))

    def remove(self, places: Any) -> None:
        places = np.asarray(places)
        self.index.remove([self.audience] * len(places), self.reach[places], self.label[places])
        for name in ("reach", "label", "c", "t0"):
            setattr(self, name, np.delete(getattr(self, name), places))

    def move(self, values: Any, times: Any) -> int:
        """Move, compare and return the highest number of boxes of a move."""
        touched = self.index.move([self.item] * len(values), values, times)
        for i, (d, t) in enumerate(zip(values, times, strict=True)):
            hit = (d >= self.c + self.reach) | (d <= self.c - self.reach)
            if self.patience is not None:
                hit |= t - self.t0 >= self.patience
            told = np.zeros(len(hit), np.int64)
            for lo, hi, l1, l2 in boxes_of(touched, i):
                told += (self.reach >= lo) & (self.reach <= hi) & (self.label >= l1) & (self.label <= l2)
            np.testing.assert_array_equal(told, hit)
            self.c[hit], self.t0[hit] = d, t
            self.d, self.t = float(d), int(t)
        return int(np.diff(touched.starts).max(initial=0))


def walk(rng: np.random.Generator, n: int, sigma: float, start: float, limit: float = math.inf) -> Any:
    """A random walk, reflected at +-limit."""
    values = start + np.cumsum(rng.normal(0.0, sigma, n))
    if limit < math.inf:
        values = np.abs((values - limit) % (4 * limit) - 2 * limit) - limit
    return np.round(values)


@pytest.mark.parametrize("patience", [None, 700])
def test_many_reaches(patience: int | None) -> None:
    rng = np.random.default_rng(5)
    table = Table(patience)
    table.add(rng.integers(1, 200_000, 1500))
    for turn in range(25):
        count = 100
        values = walk(rng, count, 1000.0 if turn % 5 else 60_000.0, table.d)
        table.move(values, table.t + np.cumsum(rng.integers(0, 9, count)))
        table.add(rng.integers(1, 200_000, 60))
        table.remove(rng.choice(len(table.reach), 50, replace=False))
        check_invariants(table.index)
    while len(table.reach):
        table.remove(rng.choice(len(table.reach), min(len(table.reach), 150), replace=False))
        table.move(walk(rng, 3, 5000.0, table.d), [table.t] * 3)
        check_invariants(table.index)
    assert table.index.member_count(table.audience) == 0
    assert len(table.index.runs(table.item).value) == 0


def test_many_parts_of_few_reaches() -> None:
    rng = np.random.default_rng(6)
    table = Table()
    reaches = [50_000.0, 90_000.0, 100_000.0]
    members = 3 * BLOCK_MAX * NODE_MAX
    for value in walk(rng, members, 20_000.0, 0.0, 24_000.0):
        table.move([value], [0])
        table.add(rng.choice(reaches, 1))
    assert len(table.index.runs(table.item).value) > 2 * BLOCK_MAX * NODE_MAX, "nodes have been split"
    check_invariants(table.index)
    table.remove(rng.choice(members, members // 4, replace=False))
    check_invariants(table.index)
    most = 0
    for _ in range(40):
        most = max(most, table.move(walk(rng, 30, 3000.0, table.d), [0] * 30))
        check_invariants(table.index)
        table.add(rng.choice(reaches, 5))
        table.remove(rng.choice(len(table.reach), 5, replace=False))
    # Labels stand in the order of anchors, so what is touched of a reach is two ranges, but for the odd one.
    assert most <= 5 * len(reaches)


def test_many_members_of_an_audience_with_many_items() -> None:
    rng = np.random.default_rng(7)
    index = ThresholdIndex(PERCENT)
    audience = index.new_audience()
    items = index.new_items([audience] * 40, rng.uniform(50, 150, 40), [NO_TIME] * 40)
    reaches = rng.permutation(np.arange(1, 3 * REACHES_MAX)) / 16
    index.add([audience] * len(reaches), reaches, [0] * len(reaches))
    values = np.array([index.value(item)[0] for item in items.tolist()])
    expected = np.tile(values[:, None], (1, len(reaches)))
    for turn in range(30):
        values = values * np.exp(rng.normal(0, 0.05, 40))
        touched = index.move(items, values, [NO_TIME] * 40)
        step = np.abs(expected) * reaches / 100
        hit = (values[:, None] >= expected + step) | (values[:, None] <= expected - step)
        for i in range(40):
            told = np.zeros(len(reaches), np.int64)
            for lo, hi, _, _ in boxes_of(touched, i):
                told += (reaches >= lo) & (reaches <= hi)
            np.testing.assert_array_equal(told, hit[i])
        expected = np.where(hit, values[:, None], expected)
        if turn % 10 == 0:
            check_invariants(index)
    gone = rng.permutation(len(reaches))
    index.remove([audience] * len(gone), reaches[gone], [0] * len(gone))
    check_invariants(index)
    assert all(len(index.runs(item).value) == 0 for item in items.tolist())


def test_a_new_anchor_gets_a_label_behind_the_next_lower_one() -> None:
    index = ThresholdIndex(ABSOLUTE)
    audience = index.new_audience()
    (item,) = index.new_items([audience], [50.0], [NO_TIME]).tolist()
    labels = {}
    for value in (50.0, 60.0, 55.0, 52.0, 70.0, 40.0, 65.0, 55.0):
        index.move([item], [value], [NO_TIME])
        label = int(index.add([audience], [1000.0], [CHOOSE])[0])
        assert labels.setdefault(value, label) == label, "equal anchors share a label"
    assert sorted(labels, key=lambda value: labels[value]) == [50.0, 52.0, 55.0, 60.0, 65.0, 70.0, 40.0]
    assert labels[55.0] == (labels[50.0] + labels[60.0]) // 2
    for i in range(40):
        index.move([item], [61.0 - i / 64], [NO_TIME])
        index.add([audience], [1000.0], [CHOOSE])
    check_invariants(index)
    assert len(index.runs(item).label_lo) == 47, "no room for some, which go to the end"


def test_what_is_loaded_goes_on_as_before() -> None:
    rng = np.random.default_rng(9)
    index = ThresholdIndex(PERCENT, patience=400)
    audiences = [index.new_audience() for _ in range(3)]
    items = index.new_items(audiences, [100.0] * 3, [0] * 3)
    twin = index
    for turn in range(60):
        if turn == 30:
            twin = ThresholdIndex(PERCENT, patience=400)
            twin.load(index.dump())
        values, times = rng.uniform(60, 140, 3), [turn * 20] * 3
        reaches = rng.choice([10.0, 50.0, 60.0, 70.0], 5)
        for pair in zip(*((one.move(items, values, times)) for one in {index, twin}), strict=True):
            np.testing.assert_array_equal(pair[0], pair[-1])
        labels = [one.add([audiences[turn % 3]] * 5, reaches, [CHOOSE] * 5) for one in {index, twin}]
        np.testing.assert_array_equal(labels[0], labels[-1])
    for one in (index, twin):
        one.free_item(1)
        one.free_item(0)
        assert one.new_items(audiences[:3], [1.0] * 3, [0] * 3).tolist() == [0, 1, 3]
        check_invariants(one)
    for name, column in index.dump().items():
        np.testing.assert_array_equal(column, twin.dump()[name])


def test_wrong_arguments_are_refused_and_change_nothing() -> None:
    index = ThresholdIndex(RATIO, patience=5)
    audience, shared = index.new_audience(), index.new_audience()
    (item,) = index.new_items([audience], [1.0], [0]).tolist()
    index.new_items([shared, shared], [1.0, math.nan], [0, 0])
    index.add([audience, shared], [2.0, 2.0], [3, 3])
    index.move([item], [1.5], [1])
    before = index.dump()
    for reach, label in ((1.0, 4), (math.inf, 4), (math.nan, 4), (2.0, 2), (2.0, 3)):
        with pytest.raises(ValueError, match="reach"):
            index.add([audience], [reach], [label])
    with pytest.raises(ValueError, match="exactly one item"):
        index.add([shared], [2.0], [CHOOSE])
    for key in ((3.0, 3), (2.0, 4), (2.0, 2)):
        with pytest.raises(KeyError):
            index.remove([audience], [key[0]], [key[1]])
    for call in (
        lambda: index.add([7], [2.0], [4]),
        lambda: index.move([99], [1.0], [0]),
        lambda: index.free_item(-1),
        lambda: index.anchor(item, 5.0, 0),
    ):
        with pytest.raises(KeyError):
            call()
    with pytest.raises(ValueError, match="entries"):
        index.move([item], [1.0, 2.0], [0])
    with pytest.raises(ValueError, match="already"):
        index.load(before)
    for name, column in index.dump().items():
        np.testing.assert_array_equal(column, before[name])
    with pytest.raises(ValueError, match="patience"):
        ThresholdIndex(ABSOLUTE, 0)
    with pytest.raises(ValueError, match="kind"):
        ThresholdIndex(3)
    check_invariants(index)


def test_a_one_member_item_is_small() -> None:
    index = ThresholdIndex(ABSOLUTE)
    audiences = [index.new_audience() for _ in range(2000)]
    index.new_items(audiences, np.zeros(2000), np.zeros(2000))
    index.add(audiences, np.arange(1.0, 2001.0), [CHOOSE] * 2000)
    assert index.nbytes < 2000 * 600


def test_labels_do_not_run_out_while_members_come_and_anchors_meet() -> None:
    index = ThresholdIndex(ABSOLUTE)
    audience = index.new_audience()
    (item,) = index.new_items([audience], [0.0], [NO_TIME]).tolist()
    # All meet at every second move; then one comes somewhere else, and needs a label of its own.
    values = np.tile([2.0, 2.4, -2.0, -2.4], 10_000)
    labels = []
    for value in values.tolist():
        index.move([item], [value], [NO_TIME])
        labels.extend(index.add([audience], [1.0], [CHOOSE]).tolist())
    assert index.member_count(audience) == len(values)
    assert max(labels) < LABEL_MAX // 100_000
