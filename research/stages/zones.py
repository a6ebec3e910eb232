"""Zones: a kd partition of each form's space into parts with about equal numbers of points, each with one owner.

The channel is a dimension of its own (by a hash), and is cut first: a message has one channel, so that a cut between channels
sends no message twice. A message goes to every zone that its region meets; a point lies in exactly one zone.

Spaces of several ranges without a channel have many axes, along most of which most points are open. They are cut where it saves
most messages (`cuts.py`), into more cells than there are zones; a zone owns several cells.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from research.servers.message import MessageBatch
from research.servers.space import ServedSpace, places
from research.stages.cuts import cut_ranges, paired_axes
from tidings.kernels.arguments import as_argument, as_ints
from tidings.model.channel import group_channels
from tidings.model.codes import CODE_MAX, CODE_MIN, BoolArray, Int64Array
from tidings.model.points import PointBatch

SPLIT_POINTS_MIN = 256
"""Forms with fewer points stay whole: cutting them would only multiply messages."""


@dataclass(frozen=True)
class _Cells:
    """Cells of one form. lo, hi: [cells, 1 + axes], closed ends, hash of the channel first; zone: [cells], owner."""

    lo: Int64Array
    hi: Int64Array
    zone: Int64Array
    axes: tuple[str, ...]


class ZoneMap:
    """Which zone owns which part of every form's space. Total: any point of any form has a zone."""

    def __init__(self, zones: int) -> None:
        self.zones = zones
        self._cells: dict[str, _Cells] = {}

    @staticmethod
    def build(
        points: Iterable[PointBatch],
        zones: int,
        space_of: Callable[[str], ServedSpace],
        *,
        split_points_min: int = SPLIT_POINTS_MIN,
    ) -> ZoneMap:
        """A map balanced for these points. `space_of` gives the space of a form."""
        zone_map = ZoneMap(zones)
        for batch in points:
            zone_map._cells[batch.form] = _partition(batch, zones, split_points_min, space_of(batch.form))
        return zone_map

    def locate(self, points: PointBatch) -> Int64Array:
        """The zone of every point."""
        cells = self._cells.get(points.form)
        if cells is None or len(cells.zone) == 1:
            return np.full(len(points), self._first_zone(points.form), np.int64)
        full = np.column_stack([_channel_hashes(points.channel, len(points)), points.coords])
        zone = np.empty(len(points), np.int64)
        for lo, hi, owner in zip(cells.lo, cells.hi, cells.zone.tolist(), strict=True):
            zone[((full >= lo) & (full <= hi)).all(axis=1)] = owner
        return zone

    def route(self, messages: MessageBatch) -> list[tuple[int, BoolArray]]:
        """(zone, which messages go there) for every zone that some message meets, whichever of its forms is there.

        A region is open along the axes that it does not name.
        """
        met = np.zeros((self.zones, len(messages)), np.bool_)
        for form in messages.to or (messages.form,):
            cells = self._cells.get(form)
            if cells is None or len(cells.zone) == 1:
                met[self._first_zone(form)] = True
            else:
                self._mark(cells, messages, met)
        return [(zone, met[zone]) for zone in np.flatnonzero(met.any(axis=1)).tolist()]

    def _mark(self, cells: _Cells, messages: MessageBatch, met: BoolArray) -> None:
        """Marks the zones of one form that messages meet."""
        # Compiled code takes a while to load, and those who only locate points do not need it.
        from research.stages.meeting import mark_meetings

        at = 1 + places(cells.axes, messages.axes if messages.to else cells.axes)
        lo, hi = cells.lo[:, at], cells.hi[:, at]
        is_bound = (lo != CODE_MIN) | (hi != CODE_MAX)
        first = np.zeros(len(cells.zone) + 1, np.int64)
        np.cumsum(is_bound.sum(axis=1), out=first[1:])
        bounds = np.column_stack([cells.lo[:, 0], cells.hi[:, 0], cells.zone])
        regions = messages.regions
        ends = (as_argument(regions.lo, np.int64), as_argument(regions.hi, np.int64), as_ints(regions.starts))
        hashes = _channel_hashes(messages.channel, len(messages))
        axis = np.nonzero(is_bound)[1].astype(np.int64)
        mark_meetings(*ends, hashes, bounds, first, axis, lo[is_bound], hi[is_bound], met)

    def state(self) -> dict[str, Any]:
        cells = {form: [c.lo, c.hi, c.zone, c.axes] for form, c in self._cells.items()}
        return {"zones": self.zones, "cells": cells}

    @staticmethod
    def from_state(state: dict[str, Any]) -> ZoneMap:
        zone_map = ZoneMap(state["zones"])
        zone_map._cells = {
            form: _Cells(lo, hi, zone, tuple(axes)) for form, (lo, hi, zone, axes) in state["cells"].items()
        }
        return zone_map

    def _first_zone(self, form: str) -> int:
        return _first_zone(form, self.zones)


def _first_zone(form: str, zones: int) -> int:
    """The zone, by a hash of the form, that owns the whole space if it is not cut, else its first cell."""
    return zlib.crc32(form.encode()) % zones


def _partition(points: PointBatch, zones: int, split_points_min: int, space: ServedSpace) -> _Cells:
    first = _first_zone(points.form, zones)
    lo = np.full(1 + space.dims, CODE_MIN, np.int64)
    hi = np.full_like(lo, CODE_MAX)
    if zones == 1 or len(points) < split_points_min:
        return _Cells(lo[None], hi[None], np.array([first], np.int64), space.axes)
    full = np.column_stack([_channel_hashes(points.channel, len(points)), points.coords])
    ranges = paired_axes(space)
    if len(ranges) > 1 and not space.channel:
        cells_lo, cells_hi, owner = cut_ranges(full, ranges, zones)
        return _Cells(cells_lo, cells_hi, (owner + first) % zones, space.axes)
    cells = [(lo, hi, full)]
    # Cells of equal points cannot be cut.
    final: list[tuple[Int64Array, Int64Array, Int64Array]] = []
    while cells and len(cells) + len(final) < zones:
        heaviest = cells.pop(max(range(len(cells)), key=lambda i: len(cells[i][2])))
        halves = _split(*heaviest, space.may_cut)
        if halves is None:
            final.append(heaviest)
        else:
            cells.extend(halves)
    cells.extend(final)
    owners = (np.arange(len(cells)) + first) % zones
    return _Cells(np.array([cell[0] for cell in cells]), np.array([cell[1] for cell in cells]), owners, space.axes)


def _split(
    lo: Int64Array, hi: Int64Array, points: Int64Array, may_cut: BoolArray
) -> list[tuple[Int64Array, Int64Array, Int64Array]] | None:
    """Two halves, cut at the median: of the channel if there are several channels, else of the widest dimension that may be
    cut. None if there is no such dimension.
    """
    spread = points.max(axis=0).astype(np.float64) - points.min(axis=0).astype(np.float64)
    by_width = 1 + np.argsort(-spread[1:], kind="stable")
    for dim in [0, *by_width.tolist()]:
        if spread[dim] == 0 or not may_cut[dim]:
            continue
        ordered = np.sort(points[:, dim])
        cut = ordered[(len(ordered) - 1) // 2]
        if cut == ordered[-1]:
            cut = ordered[np.searchsorted(ordered, cut) - 1]
        left_hi, right_lo = hi.copy(), lo.copy()
        left_hi[dim], right_lo[dim] = cut, cut + 1
        is_left = points[:, dim] <= cut
        return [(lo, left_hi, points[is_left]), (right_lo, hi, points[~is_left])]
    return None


def _channel_hashes(columns: Sequence[pa.Array], length: int) -> Int64Array:
    group, keys = group_channels(list(columns), length)
    hashes = np.array([zlib.crc32(repr(key).encode()) for key in keys], np.int64)
    return hashes[group] if length else np.empty(0, np.int64)
