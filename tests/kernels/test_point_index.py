"""PointIndex against plain search: any interleaving of updates and queries, then the shapes that break kd-trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from point_index_reference import Box, Point, Reference, check_invariants

from tidings.kernels.arrays import INT64_MAX, INT64_MIN
from tidings.kernels.point_index import PointIndex
from tidings.kernels.point_index.point_layout import LEAF_MAX

CHANNELS = 2
# Few values, so that ties and equal points abound.
COORDINATES = st.sampled_from([INT64_MIN, INT64_MIN + 1, -2, -1, 0, 1, 2, 7, INT64_MAX - 1, INT64_MAX])


# Mostly proper and wide sides: boxes drawn corner by corner would nearly all be empty.
PROPER = st.tuples(COORDINATES, COORDINATES).map(lambda ends: (min(ends), max(ends)))
OPEN = st.sampled_from([(INT64_MIN, INT64_MAX), (INT64_MIN, 0), (0, INT64_MAX)])
SIDES = st.one_of(PROPER, OPEN, PROPER, OPEN, PROPER, OPEN, st.tuples(COORDINATES, COORDINATES))
QUERY_CHANNELS = st.sampled_from([*range(CHANNELS)] * 3 + [-1, CHANNELS, CHANNELS + 1000])


def queries(dims: int) -> st.SearchStrategy[list[tuple[int, list[Box]]]]:
    box = st.tuples(st.tuples(*[SIDES] * dims), st.integers(0, 255))
    proper = box.map(lambda drawn: (tuple(lo for lo, _ in drawn[0]), tuple(hi for _, hi in drawn[0]), drawn[1]))
    return st.lists(st.tuples(QUERY_CHANNELS, st.lists(proper, max_size=4)), min_size=1, max_size=6)


def compare(index: PointIndex, reference: Reference, asked: list[tuple[int, list[Box]]]) -> None:
    dims = index.dims
    flat = [box for _, listed in asked for box in listed]
    channels = [channel for channel, _ in asked]
    lo = np.array([box[0] for box in flat], np.int64).reshape(len(flat), dims)
    hi = np.array([box[1] for box in flat], np.int64).reshape(len(flat), dims)
    tags = np.array([box[2] for box in flat], np.int64)
    box_starts = np.concatenate(([0], np.cumsum([len(listed) for _, listed in asked]))).astype(np.int64)

    starts, slots, found_tags = index.stab(channels, lo, hi, tags, box_starts)
    counts = index.count(channels, lo, hi, box_starts)
    assert (starts.dtype, slots.dtype, found_tags.dtype) == (np.int64, np.int32, np.uint8)
    assert starts[0] == 0
    assert starts[-1] == len(slots) == len(found_tags)
    for i, (channel, listed) in enumerate(asked):
        part = slice(starts[i], starts[i + 1])
        expected = reference.stab(channel, listed)
        assert starts[i + 1] - starts[i] == len(expected) == counts[i]
        assert dict(zip(slots[part].tolist(), found_tags[part].tolist(), strict=True)) == expected

    single = [(channel, box) for channel, listed in asked for box in listed]
    found = index.any([channel for channel, _ in single], lo, hi)
    assert found.dtype == np.bool_
    assert found.tolist() == [bool(reference.stab(channel, [box])) for channel, box in single]
    for most in (1, 3, 100):
        sizes, some = index.some([channel for channel, _ in single], lo, hi, most)
        for (channel, box), size, slots in zip(single, sizes.tolist(), some.tolist(), strict=True):
            expected = set(reference.stab(channel, [box]))
            assert size == min(len(expected), most + 1)
            assert set(slots[:size]) == expected if size <= most else set(slots) < expected


def draw_bytes(data: st.DataObject, rows: int, columns: int) -> np.ndarray:
    """Small numbers [rows, columns] by one draw, as one for each would take too long. They shrink to zeros."""
    size = rows * columns
    return np.frombuffer(data.draw(st.binary(min_size=size, max_size=size)), np.uint8).reshape(rows, columns)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_interleaving_agrees_with_plain_search(data: st.DataObject) -> None:
    dims = data.draw(st.sampled_from([0, 1, 2, 4]), label="dims")
    index = PointIndex(dims)
    reference = Reference()
    unused = 0
    for _ in range(data.draw(st.integers(1, 8), label="steps")):
        action = data.draw(st.sampled_from(["add", "add_many", "grow", "remove", "remove_many", "thin"]))
        if action == "add":
            for _ in range(data.draw(st.integers(1, 5))):
                channel, point = data.draw(st.integers(0, CHANNELS - 1)), data.draw(st.tuples(*[COORDINATES] * dims))
                index.add(channel, unused, point)
                reference.points[unused] = (channel, point)
                unused += 1
        elif action in ("add_many", "grow"):
            n = data.draw(st.integers(0, 10) if action == "add_many" else st.integers(50, 400), label="n")
            values = np.array(data.draw(st.lists(COORDINATES, min_size=1, max_size=20), label="values"), np.int64)
            drawn = draw_bytes(data, n, 2 + dims)
            channels = drawn[:, 0].astype(np.int64) % CHANNELS
            slots = unused + np.argsort(drawn[:, 1], kind="stable")
            coords = values[drawn[:, 2:] % len(values)]
            if data.draw(st.booleans(), label="one by one"):
                for channel, slot, point in zip(channels.tolist(), slots.tolist(), coords, strict=True):
                    index.add(channel, slot, point)
            else:
                index.add_many(channels, slots, coords)
            for channel, slot, point in zip(channels.tolist(), slots.tolist(), coords.tolist(), strict=True):
                reference.points[slot] = (channel, tuple(point))
            unused += n
        elif reference.points:
            held = sorted(reference.points)
            gone = np.array(held[:1])
            if action != "remove":
                share = data.draw(st.sampled_from([0.1, 0.5, 0.95, 1.0]), label="share")
                order = np.argsort(draw_bytes(data, len(held), 1)[:, 0], kind="stable")
                gone = np.array(held)[order][: max(1, int(share * len(held)))]
            if action == "remove_many":
                index.remove_many(gone)
            for slot in map(int, gone):
                if action != "remove_many":
                    index.remove(slot)
                del reference.points[slot]
        check_invariants(index)
        compare(index, reference, data.draw(queries(dims)))
    channels, slots, coords = index.points()
    dumped = zip(channels.tolist(), slots.tolist(), coords.tolist(), strict=True)
    assert {slot: (channel, tuple(point)) for channel, slot, point in dumped} == reference.points


@pytest.mark.parametrize("dims", [1, 2, 4])
@pytest.mark.parametrize("values", [4, 30, 10**6])
def test_churn(dims: int, values: int) -> None:
    """Rounds of additions and removals, these in random order or a region at a time, so that leaves get empty."""
    rng = np.random.default_rng(dims)
    index = PointIndex(dims)
    reference = Reference()
    for round_ in range(9):
        n = 500
        channels, coords = rng.integers(0, 3, n), rng.integers(0, values, (n, dims))
        slots = np.setdiff1d(np.arange(4000), list(reference.points))[:n]
        index.add_many(channels, slots, coords)
        for channel, slot, point in zip(channels.tolist(), slots.tolist(), coords.tolist(), strict=True):
            reference.points[slot] = (channel, tuple(point))
        by_region = sorted(reference.points, key=lambda slot: reference.points[slot][1][0])
        gone = [rng.permutation(by_region), np.array(by_region)][round_ % 2][: n if round_ > 5 else n // 2]
        for part in np.array_split(gone, 5):
            index.remove_many(part)
            for slot in part.tolist():
                del reference.points[slot]
            check_invariants(index)
        ends = np.sort(rng.integers(-1, values + 1, (12, 2, dims)), axis=1).tolist()
        boxes: list[Box] = [(tuple(lo), tuple(hi), 1 << i % 8) for i, (lo, hi) in enumerate(ends)]
        compare(index, reference, [(i % 4, boxes[i : i + 1 + i % 3]) for i in range(10)])


def test_a_full_leaf_whose_points_became_equal_by_removal() -> None:
    index = PointIndex(2)
    index.add_many(np.zeros(LEAF_MAX), np.arange(LEAF_MAX), [[9, 9]] + [[5, 5]] * (LEAF_MAX - 1))
    index.remove(0)
    for slot in range(LEAF_MAX, 3 * LEAF_MAX):
        index.add(0, slot, (5, 5))
    index.add(0, 0, (9, 5))
    check_invariants(index)
    assert index.count([0, 0], [[5, 5], [6, 5]], [[5, 5], [9, 9]], [0, 1, 2]).tolist() == [3 * LEAF_MAX - 1, 1]


@pytest.mark.parametrize("one_by_one", [True, False])
@pytest.mark.parametrize("sign", [1, -1])
def test_sorted_input_gives_logarithmic_height(one_by_one: bool, sign: int) -> None:
    n = 20_000
    index = PointIndex(2)
    coords = sign * np.stack((np.arange(n), np.arange(n) // 3), axis=1)
    if one_by_one:
        index._cover(0, n)
        index._insert(np.zeros(n, np.int64), np.arange(n, dtype=np.int32), coords)
    else:
        index.add_many(np.zeros(n, np.int64), np.arange(n), coords)
    height = check_invariants(index)
    assert height <= (2.5 * np.log2(n) + 12 if one_by_one else np.log2(n / LEAF_MAX) + 2)


def test_points_that_differ_from_the_crowd_in_one_dimension_each() -> None:
    """Every cut takes a single point off: the height must not pass the bound in the number of dimensions."""
    dims = 16
    index = PointIndex(dims)
    coords = np.zeros((1000, dims), np.int64)
    coords[np.arange(2 * dims), np.arange(2 * dims) % dims] = np.repeat([1, -1], dims)
    for slot in range(len(coords)):
        index.add(0, slot, coords[slot])
    check_invariants(index)
    bulk = PointIndex(dims)
    bulk.add_many(np.zeros(1000, np.int64), np.arange(1000), coords)
    check_invariants(bulk)
    for built in (index, bulk):
        starts, slots, _ = built.stab([0], np.ones((1, dims)) * -1, np.zeros((1, dims)), [1], [0, 1])
        assert sorted(slots.tolist()) == list(range(dims, 1000))
        assert starts.tolist() == [0, 1000 - dims]


def test_a_million_equal_points() -> None:
    n = 1_000_000
    index = PointIndex(4)
    index.add_many(np.zeros(n, np.int32), np.arange(n), np.full((n, 4), 7))
    index.add(0, n, (7, 7, 7, 8))
    index.add(0, n + 1, (7, 7, 6, 7))
    index.add(0, n + 2, (7, 7, 7, 7))
    everywhere: Any = ([[INT64_MIN] * 4], [[INT64_MAX] * 4])
    exactly: Any = ([[7] * 4], [[7] * 4])
    assert index.count([0], *everywhere, [0, 1]).tolist() == [n + 3]
    assert index.count([0], *exactly, [0, 1]).tolist() == [n + 1]
    assert len(index.stab([0], *exactly, [1], [0, 1])[1]) == n + 1
    assert index.stab([0], [[6] * 4], [[6, 7, 7, 8]], [1], [0, 1])[1].tolist() == []
    assert index.any([0, 0, 1], [[7] * 4, [6] * 4, [7] * 4], [[7] * 4, [6, 7, 7, 8], [7] * 4]).tolist() == [
        True,
        False,
        False,
    ]
    held = index.nbytes
    index.remove_many(np.random.default_rng(1).permutation(n + 3)[: n - 100])
    check_invariants(index)
    assert len(index) == 103
    index.add_many(np.arange(n) % 1000, np.arange(n + 3, 2 * n + 3), np.arange(4 * n).reshape(n, 4))
    assert len(index) == n + 103
    assert index.nbytes < 1.6 * held


def test_room_of_removed_points_is_used_again() -> None:
    rng = np.random.default_rng(3)
    n = 20_000
    index = PointIndex(4)
    sizes = []
    for round_ in range(6):
        # Tiny channels and large ones in turn: blocks of one kind are useless to the other until gaps are closed.
        channels = rng.permutation(n) if round_ % 2 else np.zeros(n, np.int64)
        index.add_many(channels, np.arange(n), rng.integers(0, 1000, (n, 4)))
        sizes.append(index.nbytes)
        index.remove_many(rng.permutation(n))
        assert len(index) == 0
    check_invariants(index)
    assert sizes[-1] <= sizes[1] * 1.3


def test_memory_of_tiny_channels_and_of_large_ones() -> None:
    n = 100_000
    tiny = PointIndex(4)
    tiny.add_many(np.arange(n), np.arange(n), np.arange(4 * n).reshape(n, 4))
    assert tiny.nbytes / n < 160
    large = PointIndex(4)
    rng = np.random.default_rng(2)
    large.add_many(np.arange(n) % 10, np.arange(n), rng.integers(0, 10**9, (n, 4)))
    assert large.nbytes / n < 90


def test_a_query_of_many_boxes() -> None:
    rng = np.random.default_rng(8)
    index, reference = PointIndex(1), Reference()
    values: list[Point] = [(int(x),) for x in rng.integers(0, 1500, 300)]
    index.add_many(np.zeros(300), np.arange(300), np.array(values))
    reference.points = {slot: (0, point) for slot, point in enumerate(values)}
    many: list[Box] = [((x,), (x + x % 7 - 1,), x % 256) for x in range(0, 1500, 2)]
    compare(index, reference, [(0, many), (0, many[:1]), (0, [])])


def test_any_of_many_boxes_in_a_large_forest() -> None:
    """Boxes around a point and boxes just beside all points, against counting."""
    rng = np.random.default_rng(9)
    index = PointIndex(4)
    coords = rng.integers(0, 1000, (20_000, 4))
    index.add_many(np.arange(20_000) % 3, np.arange(20_000), coords)
    index.remove_many(np.arange(0, 20_000, 5))
    middles = np.concatenate((coords[:500], rng.integers(-50, 1050, (1500, 4))))
    lo, hi = middles - rng.integers(0, 60, middles.shape), middles + rng.integers(0, 60, middles.shape)
    channels = rng.integers(0, 3, len(middles))
    counts = index.count(channels, lo, hi, np.arange(len(middles) + 1))
    assert 100 < (counts > 0).sum() < 1900
    assert index.any(channels, lo, hi).tolist() == (counts > 0).tolist()


def test_misuse_is_refused_and_changes_nothing() -> None:
    index = PointIndex(2)
    index.add_many(np.zeros(100), np.arange(100), np.zeros((100, 2)))
    with pytest.raises(ValueError, match="slot 3 is taken"):
        index.add(0, 3, (1, 1))
    with pytest.raises(ValueError, match="slot 99 is taken"):
        index.add_many([0, 0], [100, 99], [[1, 1], [1, 1]])
    with pytest.raises(ValueError, match="slot 100 is taken"):
        index.add_many([0, 0], [100, 100], [[1, 1], [1, 1]])
    with pytest.raises(ValueError, match="negative"):
        index.add(-1, 200, (1, 1))
    with pytest.raises(ValueError, match="2 coordinates"):
        index.add(0, 200, (1,))
    with pytest.raises(KeyError, match="slot 100 "):
        index.remove(100)
    with pytest.raises(KeyError, match="slot 5000 "):
        index.remove(5000)
    with pytest.raises(KeyError, match="slot 7 "):
        index.remove_many([7, 8, 7])
    with pytest.raises(ValueError, match="box"):
        index.stab([0], [[0]], [[0]], [1], [0, 1])
    with pytest.raises(ValueError, match="box_starts"):
        index.count([0], [[0, 0]], [[0, 0]], [0, 2])
    with pytest.raises(ValueError, match="box"):
        index.any([0, 0], [[0, 0]], [[0, 0]])
    with pytest.raises(ValueError, match="2 boxes for 1 queries"):
        index.any([0], [[0, 0], [0, 0]], [[0, 0], [0, 0]])
    with pytest.raises(ValueError, match="dims"):
        PointIndex(-1)
    check_invariants(index)
    assert len(index) == 100
