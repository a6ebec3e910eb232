"""A partition is one: every place has one cell, points are spread evenly, and cuts never leave a cell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.kernels.arrays import INT64_MAX, INT64_MIN
from tidings.network.zones import Directory, Part, cut_of, partition

COORDINATES = st.one_of(st.integers(-4, 4), st.sampled_from([INT64_MIN, INT64_MIN + 1, INT64_MAX - 1, INT64_MAX]))


def cells_with(zone_map, places):
    """[places, cells]: whether a cell has a place."""
    return ((places[:, None] >= zone_map.lo) & (places[:, None] <= zone_map.hi)).all(axis=2)


@given(st.data(), st.integers(1, 3), st.integers(1, 20))
def test_every_place_has_one_cell(data, dims, zones):
    places = st.lists(st.lists(COORDINATES, min_size=dims, max_size=dims), max_size=30)
    points = np.array(data.draw(places), np.int64).reshape(-1, dims)
    zone_map, cell_of = partition(points, zones)
    assert len(zone_map.cell) == zones
    assert (cells_with(zone_map, points).sum(axis=1) == 1).all()
    assert cells_with(zone_map, points)[np.arange(len(points)), cell_of].all()
    others = np.array(data.draw(places), np.int64).reshape(-1, dims)
    assert (cells_with(zone_map, others).sum(axis=1) == 1).all()


@pytest.mark.parametrize("zones", [7, 64])
def test_zones_have_equally_many_points(zones):
    points = np.random.default_rng(0).normal(0, 1e6, (20_000, 4)).astype(np.int64)
    _, cell_of = partition(points, zones)
    sizes = np.bincount(cell_of, minlength=zones)
    assert sizes.min() > 0.9 * 20_000 / zones and sizes.max() < 1.1 * 20_000 / zones


@given(st.lists(st.tuples(COORDINATES, COORDINATES), min_size=1, max_size=9))
def test_a_cut_lies_within_the_cell(points):
    coords = np.array(points, np.int64)
    lo, hi = coords.min(axis=0), coords.max(axis=0)
    dim, cut = cut_of(coords, lo, hi)
    if (lo < hi).any():
        # Both parts have points, and neither of them all places.
        assert lo[dim] <= cut < hi[dim] and 0 < (coords[:, dim] <= cut).sum() < len(coords)


def test_brokers_know_what_they_had_in_each_version():
    zone_map, _ = partition(np.arange(100).reshape(-1, 1), 2)
    directory = Directory(zone_map)
    assert directory.cells_of(0, 0) == [0]
    low, high = directory.new_cell(), directory.new_cell()
    lo, hi = zone_map.lo[0], zone_map.hi[0]
    middle = np.array([20])
    directory.replace(0, [Part(low, lo, middle, 0), Part(high, middle + 1, hi, 1)])
    assert directory.cells_of(0, 1) == [low] and sorted(directory.cells_of(1, 1)) == sorted([1, high])
    assert directory.cells_of(0, 0) == [0] and directory.current.version == 1
