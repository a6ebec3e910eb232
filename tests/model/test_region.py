"""Regions are unions of closed boxes; taking and joining them leaves each one what it was."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.codes import CODE_MAX, CODE_MIN
from tidings.model.region import Regions

coordinate = st.sampled_from([CODE_MIN, -1, 0, 1, 2, CODE_MAX])
box = st.tuples(st.tuples(coordinate, coordinate), st.tuples(coordinate, coordinate), st.sampled_from([1, 2, 4]))
region_lists = st.lists(st.lists(box, max_size=3), max_size=5)
points = st.tuples(coordinate, coordinate)


def regions_of(lists):
    boxes = [box for boxes in lists for box in boxes]
    starts = np.cumsum([0, *(len(boxes) for boxes in lists)])
    lo = np.array([lo for lo, _, _ in boxes], np.int64).reshape(-1, 2)
    hi = np.array([hi for _, hi, _ in boxes], np.int64).reshape(-1, 2)
    return Regions(lo, hi, np.array([tag for _, _, tag in boxes], np.uint8), starts)


def tags_of(boxes, point):
    tags = 0
    for lo, hi, tag in boxes:
        if all(a <= x <= b for a, x, b in zip(lo, point, hi, strict=True)):
            tags |= tag
    return tags


@given(region_lists, points)
def test_a_point_has_the_tags_of_all_boxes_around_it(lists, point):
    regions = regions_of(lists)
    assert len(regions) == len(lists)
    assert [regions.contains(i, point) for i in range(len(lists))] == [tags_of(boxes, point) for boxes in lists]


@given(region_lists, points, st.data())
def test_take_picks_whole_regions_in_any_order(lists, point, data):
    at = data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=6)) if lists else []
    taken = regions_of(lists).take(np.array(at, np.int64))
    assert [taken.contains(i, point) for i in range(len(at))] == [tags_of(lists[i], point) for i in at]


@given(st.lists(region_lists, min_size=1, max_size=4), points)
def test_concat_keeps_every_region(parts, point):
    joined = Regions.concat([regions_of(lists) for lists in parts])
    every = [boxes for lists in parts for boxes in lists]
    assert [joined.contains(i, point) for i in range(len(joined))] == [tags_of(boxes, point) for boxes in every]
