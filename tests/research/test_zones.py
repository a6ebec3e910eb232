"""Zones: every point has exactly one, and a message reaches the zone of every point in its region."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from research.stages.sharding import CHANNEL, ZonedSpace
from research.stages.zones import SPLIT_POINTS_MIN, ZoneMap
from tidings.model.blob import pack, unpack
from tidings.model.codes import CODE_MAX, CODE_MIN
from tidings.model.message import MessageBatch
from tidings.model.points import PointBatch
from tidings.model.region import Regions

SPACE = ZonedSpace(("x", "y"), (("c", pa.string()),))

coordinate = st.sampled_from([CODE_MIN, CODE_MIN + 1, -3, 0, 1, 2, 3, CODE_MAX - 1, CODE_MAX])
pairs = st.tuples(coordinate, coordinate)
channels = st.sampled_from(["a", "b", "c", None])
points_of_channels = st.lists(st.tuples(channels, pairs), min_size=1, max_size=40)
boxes = st.lists(st.tuples(pairs, pairs), max_size=3)


def batch_of(rows, form="f"):
    count = len(rows)
    return PointBatch(
        form,
        np.zeros(count, np.int8),
        np.zeros(count, np.int64),
        np.arange(count),
        pa.array([str(i) for i in range(count)], pa.string()),
        (pa.array([channel for channel, _ in rows], pa.string()),),
        np.array([coords for _, coords in rows], np.int64).reshape(count, 2),
        np.ones(count, np.bool_),
        pa.array([b""] * count, pa.binary()),
    )


def messages_of(rows, form="f"):
    ends = [end for _, boxes in rows for end in boxes]
    regions = Regions(
        np.array([lo for lo, _ in ends], np.int64).reshape(-1, 2),
        np.array([hi for _, hi in ends], np.int64).reshape(-1, 2),
        np.ones(len(ends), np.uint8),
        np.cumsum([0, *(len(boxes) for _, boxes in rows)]),
    )
    channel = (pa.array([channel for channel, _ in rows], pa.string()),)
    payload = pa.RecordBatch.from_pydict({"n": pa.array(range(len(rows)), pa.int64())})
    return MessageBatch(form, np.arange(len(rows)), channel, regions, payload)


@settings(max_examples=40)
@given(
    points_of_channels,
    st.lists(st.tuples(st.sampled_from("abcd"), boxes), min_size=1, max_size=5),
    st.integers(1, 7),
    points_of_channels,
)
def test_messages_meet_the_points_in_their_regions(built_for, messages, zones, others):
    zone_map = ZoneMap.build([batch_of(built_for)], zones, lambda form: SPACE, split_points_min=2)
    routed = dict(zone_map.route(messages_of(messages)))
    rows = [*built_for, *others]
    zone_of = zone_map.locate(batch_of(rows)).tolist()
    regions = messages_of(messages).regions
    for (channel, coords), zone in zip(rows, zone_of, strict=True):
        assert 0 <= zone < zones
        for at, (message_channel, _) in enumerate(messages):
            if message_channel == channel and regions.contains(at, coords):
                assert routed[zone][at], f"message {at} misses zone {zone}"


@given(points_of_channels, st.integers(1, 7))
def test_a_point_lies_in_exactly_one_cell(rows, zones):
    zone_map = ZoneMap.build([batch_of(rows)], zones, lambda form: SPACE, split_points_min=2)
    cells = zone_map.state()["cells"]["f"]
    hashes = zone_map.locate(batch_of(rows))
    assert len(set(cells[2].tolist())) == len(cells[2]), "a zone owns two cells"
    corners = [(lo, hi) for lo, hi in zip(cells[0].tolist(), cells[1].tolist(), strict=True)]
    for a in range(len(corners)):
        for b in range(a):
            ends = zip(*corners[a], *corners[b], strict=True)
            assert any(hi_a < lo_b or hi_b < lo_a for lo_a, hi_a, lo_b, hi_b in ends), "cells overlap"
    assert len(hashes) == len(rows)


@pytest.mark.parametrize("zones", [2, 3, 8])
@pytest.mark.parametrize("kind", ["many channels", "one channel"])
def test_zones_are_balanced(zones, kind):
    rng = np.random.default_rng(7)
    name = (lambda: f"c{rng.integers(500)}") if kind == "many channels" else (lambda: "c")
    rows = [(name(), tuple(rng.integers(-1000, 1000, 2).tolist())) for _ in range(4_000)]
    counts = np.bincount(
        ZoneMap.build([batch_of(rows)], zones, lambda form: SPACE).locate(batch_of(rows)), minlength=zones
    )
    assert counts.min() > 0
    assert counts.max() <= 2.5 * len(rows) / zones


def test_equal_points_cannot_be_parted():
    rows = [("a", (1, 2))] * 600
    zone_map = ZoneMap.build([batch_of(rows)], 4, lambda form: SPACE)
    assert len(set(zone_map.locate(batch_of(rows)).tolist())) == 1


def test_small_and_unknown_forms_stay_whole():
    rows = [("a", (i, i)) for i in range(SPLIT_POINTS_MIN - 1)]
    zone_map = ZoneMap.build([batch_of(rows)], 4, lambda form: SPACE)
    (home,) = set(zone_map.locate(batch_of(rows)).tolist())
    everything = [((CODE_MIN, CODE_MIN), (CODE_MAX, CODE_MAX))]
    assert [zone for zone, _ in zone_map.route(messages_of([("a", everything)]))] == [home]
    unknown = zone_map.locate(batch_of(rows, "another"))
    routed = zone_map.route(messages_of([("b", everything)], "another"))
    assert [zone for zone, _ in routed] == [int(unknown[0])]


def test_a_map_survives_its_state():
    rows = [(channel, (i, -i)) for i in range(200) for channel in "abc"]
    zone_map = ZoneMap.build([batch_of(rows)], 5, lambda form: SPACE)
    copy = ZoneMap.from_state(unpack(pack(zone_map.state())))
    assert copy.locate(batch_of(rows)).tolist() == zone_map.locate(batch_of(rows)).tolist()
    assert copy.zones == 5


def test_a_narrow_message_does_not_go_everywhere():
    rows = [("a", (i, i)) for i in range(1_000)]
    zone_map = ZoneMap.build([batch_of(rows)], 8, lambda form: SPACE)
    routed = zone_map.route(messages_of([("a", [((5, 5), (6, 6))])]))
    assert [mask.tolist() for _, mask in routed] == [[True]]


def test_zones_are_cut_along_zone_axes_alone():
    space = ZonedSpace(("x", "y"), (("c", pa.string()),), frozenset({"y", CHANNEL}))
    assert space.zone_axes == ("x",)
    rows = [(f"c{i}", (i % 10, i)) for i in range(1_000)]
    cells = ZoneMap.build([batch_of(rows)], 4, lambda form: space).state()["cells"]["f"]
    assert len(cells[2]) == 4
    assert (cells[0][:, [0, 2]] == CODE_MIN).all() and (cells[1][:, [0, 2]] == CODE_MAX).all()


@settings(max_examples=40)
@given(
    st.lists(pairs, min_size=1, max_size=40),
    st.lists(st.lists(st.tuples(coordinate, coordinate), max_size=3), min_size=1, max_size=5),
    st.integers(1, 7),
)
def test_messages_along_some_axes_reach_every_form_that_has_them(points, messages, zones):
    """Forms have `y` as their second axis, or as their first; messages name it alone."""
    spaces = {"f": ZonedSpace(("x", "y")), "g": ZonedSpace(("y", "z"))}
    batches = [replace(batch_of([("a", at) for at in points], form), channel=()) for form in spaces]
    zone_map = ZoneMap.build(batches, zones, spaces.__getitem__, split_points_min=2)
    ends = np.array([end for boxes in messages for end in boxes], np.int64).reshape(-1, 2)
    starts = np.cumsum([0, *map(len, messages)])
    regions = Regions(ends[:, :1], ends[:, 1:], np.ones(len(ends), np.uint8), starts)
    sent = replace(messages_of([("a", [])] * len(messages)), channel=(), regions=regions, to=("f", "g"), axes=("y",))
    routed = dict(zone_map.route(sent))
    for batch in batches:
        space = spaces[batch.form]
        projected = sent.project(batch.form, space, sent.payload)
        assert projected.regions.dims == space.dims
        for coords, zone in zip(points, zone_map.locate(batch).tolist(), strict=True):
            for at in range(len(messages)):
                is_in = bool(regions.contains(at, [coords[space.axes.index("y")]]))
                assert bool(projected.regions.contains(at, coords)) == is_in
                assert not is_in or routed[zone][at]


def test_a_space_without_an_axis_cannot_hear_of_it():
    sent = replace(messages_of([("a", [])]), to=("f",), axes=("x", "w"))
    with pytest.raises(ValueError, match="without w"):
        sent.project("f", SPACE, sent.payload)


RANGES = ZonedSpace(("lo t.a", "hi t.a", "lo t.b", "hi t.b"))


def ranges_of(rows):
    coords = np.array(rows, np.int64).reshape(len(rows), 4)
    return replace(batch_of([("a", (0, 0))] * len(rows)), channel=(), coords=coords)


def rows_of(values, axes=RANGES.axes):
    """Messages about rows with these values: to everyone with lo <= value <= hi, along some of the axes."""
    open_lo, open_hi = np.full((2, len(values), len(axes)), [[[CODE_MIN]], [[CODE_MAX]]])
    places = [RANGES.axes.index(axis) for axis in axes]
    for i, place in enumerate(places):
        (open_hi if place % 2 == 0 else open_lo)[:, i] = [row[place // 2] for row in values]
    regions = Regions(open_lo, open_hi, np.ones(len(values), np.uint8), np.arange(len(values) + 1))
    return replace(messages_of([("a", [])] * len(values)), channel=(), regions=regions, to=("f",), axes=axes)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(pairs, pairs).map(lambda two: (*two[0], *two[1])), min_size=1, max_size=60),
    st.lists(pairs, min_size=1, max_size=6),
    st.integers(1, 5),
    st.sampled_from([RANGES.axes, RANGES.axes[:2], ()]),
)
def test_ranges_are_met_and_lie_in_one_zone(rows, values, zones, axes):
    zone_map = ZoneMap.build([ranges_of(rows)], zones, lambda form: RANGES, split_points_min=2)
    lo, hi, owner, _ = zone_map.state()["cells"]["f"]
    sent = rows_of(values, axes)
    routed, regions = dict(zone_map.route(sent)), RANGES.read(sent.regions, axes)
    for coords, zone in zip(rows, zone_map.locate(ranges_of(rows)).tolist(), strict=True):
        inside = ((lo[:, 1:] <= coords) & (hi[:, 1:] >= coords)).all(axis=1)
        assert owner[inside].tolist() == [zone], "a point lies in exactly one cell"
        for at in range(len(values)):
            assert not regions.contains(at, coords) or routed[zone][at]


def test_equalities_are_apart_from_what_is_open():
    """Most points are open along most axes; a message goes to one zone beside that of the wide ones."""
    equal = [(i, i, CODE_MIN, CODE_MAX) for i in range(1_000)]
    others = [(CODE_MIN, CODE_MAX, i, i) for i in range(1_000)]
    wide = [(CODE_MIN, CODE_MAX, CODE_MIN, i) for i in range(100)]
    points = ranges_of([*equal, *others, *wide])
    zone_map = ZoneMap.build([points], 4, lambda form: RANGES)
    counts = np.bincount(zone_map.locate(points), minlength=4)
    assert counts.max() <= 2 * len(points) / 4
    rng = np.random.default_rng(3)
    sent = rows_of(rng.integers(0, 1_000, (500, 2)).tolist())
    copies = sum(int(mask.sum()) for _, mask in zone_map.route(sent)) / 500
    assert copies < 3
