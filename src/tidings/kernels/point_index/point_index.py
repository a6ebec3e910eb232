"""PointIndex: owns the arrays, lets them grow, and turns what callers have into what kernels take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidings.kernels.arguments import as_argument
from tidings.kernels.arrays import I32, I64, U8, grow
from tidings.kernels.point_index import point_build, point_change, point_layout, point_query
from tidings.kernels.point_index.point_layout import (
    BAD_SLOT,
    CHUNK,
    CLASS_SIZES,
    COUNT,
    DONE,
    FREE_LISTS,
    NEEDS_ROOM,
    NODE_TOP,
    PARENT,
    POINTS,
    POOL_FREE,
    POOL_TOP,
    PROGRESS,
    ROOM,
    ROOT,
    SPARE_NODES,
    SPARE_POINTS,
    TARGET,
    empty_arrays,
)

BULK_MIN = 64
"""Fewer new points than this are inserted one by one."""
DIMS_MAX = 48


class PointIndex:
    """Points in D-dimensional int64 space, each in a channel and known by a slot.

    Channels and slots are small non-negative integers chosen by the caller: memory grows with the highest. A slot names
    at most one point at a time. Any number of points may be equal, and coordinates may be INT64_MIN and INT64_MAX.

    The state is the flat arrays of `point_layout.Arrays`; after every call
    - each channel with points has a tree of height O(log n + D), each without has no node;
    - a node's COUNT is the number of points below it, and its bounds contain them and lie in its parent's bounds;
    - a leaf has 1 to LEAF_MAX points, or more if they are all equal;
    - slot_map leads from each slot held to its point and back;
    - every pool entry below the top is in exactly one block, of a leaf or of a free list.

    Not safe for use by several threads at a time.
    """

    def __init__(self, dims: int) -> None:
        if not 0 <= dims <= DIMS_MAX:
            raise ValueError(f"dims is {dims}, must be from 0 to {DIMS_MAX}")
        self.dims = dims
        self._arrays = empty_arrays(dims)
        self._head = self._arrays.head
        self._one_channel = np.zeros(1, np.int64)
        self._one_slot = np.zeros(1, np.int32)
        self._one_point = np.zeros((1, dims), np.int64)

    def __len__(self) -> int:
        return int(self._head[POINTS])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays held."""
        return sum(array.nbytes for array in self._arrays)

    def add(self, channel: int, slot: int, coords: Sequence[int] | I64) -> None:
        """Add one point."""
        if channel < 0 or slot < 0:
            raise ValueError(f"channel {channel} and slot {slot} must not be negative")
        if len(coords) != self.dims:
            raise ValueError(f"a point has {self.dims} coordinates, got {len(coords)}")
        if channel >= len(self._arrays.channels) or slot >= len(self._arrays.slot_map):
            self._cover(channel, slot)
        self._one_channel[0] = channel
        self._one_slot[0] = slot
        self._one_point[0] = coords
        self._insert(self._one_channel, self._one_slot, self._one_point)

    def add_many(self, channels: ArrayLike, slots: ArrayLike, coords: ArrayLike) -> None:
        """Add points with channels [n], slots [n] and coordinates [n, D]; all or, if an error is raised, none.

        Channels that grow by half or more are rebuilt, balanced; into the others, points are inserted one by one.
        """
        point_channels: I64 = as_argument(channels, np.int64)
        point_slots: I32 = as_argument(slots, np.int32)
        points: I64 = as_argument(coords, np.int64).reshape(len(point_slots), self.dims)
        if len(point_channels) != len(point_slots):
            raise ValueError(f"{len(point_channels)} channels for {len(point_slots)} slots")
        if not len(point_slots):
            return
        if point_channels.min() < 0 or point_slots.min() < 0:
            raise ValueError("channels and slots must not be negative")
        self._cover(int(point_channels.max()), int(point_slots.max()))
        misfit = point_layout.find_misfit(self._arrays.slot_map, point_slots, False)
        if misfit >= 0:
            raise ValueError(f"slot {point_slots[misfit]} is taken")
        if len(point_slots) < BULK_MIN:
            self._insert(point_channels, point_slots, points)
        else:
            self._add_bulk(point_channels, point_slots, points)

    def remove(self, slot: int) -> None:
        """Remove the point in a slot; KeyError if there is none."""
        if not 0 <= slot < len(self._arrays.slot_map):
            raise KeyError(f"slot {slot} holds no point")
        self._one_slot[0] = slot
        self._remove(self._one_slot)

    def remove_many(self, slots: ArrayLike) -> None:
        """Remove the points in the given slots [n], all different; KeyError, and nothing done, if one is empty."""
        gone: I32 = as_argument(slots, np.int32)
        misfit = point_layout.find_misfit(self._arrays.slot_map, gone, True)
        if misfit >= 0:
            raise KeyError(f"slot {gone[misfit]} holds no point")
        self._remove(gone)

    def stab(
        self, channels: ArrayLike, box_lo: ArrayLike, box_hi: ArrayLike, box_tags: ArrayLike, box_starts: ArrayLike
    ) -> tuple[I64, I32, U8]:
        """Points in unions of closed boxes.

        Query i asks for the points of channels[i] in any of the boxes box_starts[i]:box_starts[i + 1]; box_lo and
        box_hi are [b, D], and a box with lo > hi anywhere is empty. Unknown and negative channels have no points.
        Returns starts int64[q + 1], slots int32[m] and tags uint8[m]: the points of query i are
        slots[starts[i]:starts[i + 1]], each once, in no particular order, with the tags of all its boxes ORed.
        """
        query_channels, lo, hi, starts = self._queries(channels, box_lo, box_hi, box_starts)
        tags: U8 = as_argument(box_tags, np.uint8)
        if len(tags) != len(lo):
            raise ValueError(f"{len(tags)} tags for {len(lo)} boxes")
        a = self._arrays
        order = np.argsort(query_channels, kind="stable")
        sizes, found, found_tags = point_query.stab(
            a.channels, a.nodes, a.bounds, a.pool, a.pool_slot, order, query_channels, lo, hi, tags, starts
        )
        answer: tuple[I64, I32, U8] = point_query.reorder(order, sizes, found, found_tags)
        return answer

    def count(self, channels: ArrayLike, box_lo: ArrayLike, box_hi: ArrayLike, box_starts: ArrayLike) -> I64:
        """Numbers int64[q] of points that `stab` would report."""
        query_channels, lo, hi, starts = self._queries(channels, box_lo, box_hi, box_starts)
        a = self._arrays
        order = np.argsort(query_channels, kind="stable")
        found: I64 = point_query.count(a.channels, a.nodes, a.bounds, a.pool, order, query_channels, lo, hi, starts)
        return found

    def any(self, channels: ArrayLike, box_lo: ArrayLike, box_hi: ArrayLike) -> NDArray[np.bool_]:
        """Whether any point of channels[i] lies in the closed box from box_lo[i] to box_hi[i], as bool[q].

        The boxes are [q, D], one a query; one with lo > hi anywhere is empty. The search ends at the first point found.
        """
        return self.some(channels, box_lo, box_hi, 0)[0] > 0

    def some(self, channels: ArrayLike, box_lo: ArrayLike, box_hi: ArrayLike, most: int) -> tuple[I64, I32]:
        """Points of channels[i] in the closed box from box_lo[i] to box_hi[i], if they are not many.

        Returns counts int64[q] and slots int32[q, most]: the points of query i are slots[i, :counts[i]]; where there are
        more than `most`, the count is one more than that.
        """
        starts = np.arange(np.size(channels) + 1)
        query_channels, lo, hi, _ = self._queries(channels, box_lo, box_hi, starts)
        if len(lo) != len(query_channels):
            raise ValueError(f"{len(lo)} boxes for {len(query_channels)} queries")
        a = self._arrays
        found: tuple[I64, I32] = point_query.some_inside(
            a.channels, a.nodes, a.bounds, a.pool, a.pool_slot, query_channels, lo, hi, most
        )
        return found

    def points(self) -> tuple[I64, I32, I64]:
        """Channels int64[n], slots int32[n] and coordinates int64[n, D] of all points, by channels."""
        everything: tuple[I64, I32, I64] = point_build.dump(*self._arrays)
        return everything

    def _queries(
        self, channels: ArrayLike, box_lo: ArrayLike, box_hi: ArrayLike, box_starts: ArrayLike
    ) -> tuple[I64, I64, I64, I64]:
        query_channels: I64 = as_argument(channels, np.int64)
        starts: I64 = as_argument(box_starts, np.int64)
        lo: I64 = as_argument(box_lo, np.int64)
        hi: I64 = as_argument(box_hi, np.int64)
        if lo.ndim != 2 or lo.shape != hi.shape or lo.shape[1] != self.dims:
            raise ValueError(f"boxes must be of shape [b, {self.dims}], got {lo.shape} and {hi.shape}")
        if len(starts) != len(query_channels) + 1 or starts[0] < 0 or starts[-1] > len(lo):
            raise ValueError(f"box_starts does not lead {len(query_channels)} queries into {len(lo)} boxes")
        return query_channels, lo, hi, starts

    def _insert(self, channels: I64, slots: I32, coords: I64) -> None:
        at = 0
        while (status := point_change.insert_points(*self._arrays, channels, slots, coords, at)) != DONE:
            at = int(self._head[PROGRESS])
            if status == BAD_SLOT:
                raise ValueError(f"slot {slots[at]} is taken")
            self._oblige(status)

    def _remove(self, slots: I32) -> None:
        at = 0
        while (status := point_change.remove_points(*self._arrays, slots, at)) != DONE:
            at = int(self._head[PROGRESS])
            if status == BAD_SLOT:
                raise KeyError(f"slot {slots[at]} holds no point")
            self._oblige(status)

    def _oblige(self, status: int) -> None:
        """Do what an update kernel asked for."""
        if status == NEEDS_ROOM:
            self._make_room(SPARE_NODES, SPARE_POINTS + int(self._head[ROOM]))
            return
        target = int(self._head[TARGET])
        nothing = np.zeros(0, np.int64)
        self._rebuild(
            np.array([target]),
            self._arrays.nodes[target : target + 1, PARENT].astype(np.int64),
            np.zeros(2, np.int64),
            nothing,
            nothing.astype(np.int32),
            np.zeros((0, self.dims), np.int64),
        )

    def _add_bulk(self, channels: I64, slots: I32, coords: I64) -> None:
        order = np.argsort(channels, kind="stable")
        grouped, sizes = np.unique(channels[order], return_counts=True)
        roots = self._arrays.channels[grouped, ROOT].astype(np.int64)
        held = np.where(roots >= 0, self._arrays.nodes[roots, COUNT], 0) if len(self._arrays.nodes) else 0 * roots
        rebuilt = sizes * 2 >= held
        in_rebuilt = np.repeat(rebuilt, sizes)
        later = order[~in_rebuilt]
        bulk_starts = np.concatenate(([0], np.cumsum(sizes[rebuilt])))
        self._rebuild(roots[rebuilt], -1 - grouped[rebuilt], bulk_starts, order[in_rebuilt], slots, coords)
        self._insert(channels[later], slots[later], coords[later])

    def _rebuild(self, old_nodes: I64, links: I64, starts: I64, order: I64, slots: I32, coords: I64) -> None:
        """Build trees from the points below old nodes and new points; see `point_build.gather` and `point_build.build`."""
        tree_starts, all_slots, points = point_build.gather(*self._arrays, old_nodes, starts, order, slots, coords)
        rows, steps, cuts = point_build.plan_trees(points, tree_starts)
        made = np.empty(len(steps), np.int64)
        at = -1
        while (
            point_build.build(*self._arrays, old_nodes, links, rows, steps, cuts, all_slots, points, made, at) != DONE
        ):
            at = int(self._head[PROGRESS])
            missing = steps[at:]
            leaf_sizes = (missing[:, 1] - missing[:, 0])[missing[:, 2] < 0]
            self._make_room(len(missing), int(CLASS_SIZES[np.searchsorted(CLASS_SIZES, leaf_sizes)].sum()))

    def _cover(self, channel: int, slot: int) -> None:
        """Make the arrays long enough for a channel and a slot."""
        grow(self._arrays.channels, channel + 1, fill=(-1, 0))
        grow(self._arrays.slot_map, slot + 1, fill=(-1, 0))

    def _make_room(self, node_count: int, point_count: int) -> None:
        """Have so many nodes and pool entries beyond the present tops, by growing or by closing gaps in the pool."""
        a, head = self._arrays, self._head
        for array in (a.nodes, a.split, a.bounds):
            grow(array, int(head[NODE_TOP]) + node_count)
        points_needed = int(head[POOL_TOP]) + point_count
        if points_needed > len(a.pool_slot):
            if head[POOL_FREE] * 3 > points_needed:
                self._close_gaps(point_count)
            else:
                grow(a.pool_slot, points_needed)
                grow(a.pool, len(a.pool_slot) * self.dims + CHUNK)

    def _close_gaps(self, point_count: int) -> None:
        a, head = self._arrays, self._head
        size = int(head[POOL_TOP] - head[POOL_FREE]) + point_count
        size += max(64, size // 4)
        pool = np.zeros(size * self.dims + CHUNK, np.int64)
        pool_slot = np.zeros(size, np.int32)
        top = point_build.repack(a.nodes, int(head[NODE_TOP]), self.dims, a.pool, a.pool_slot, pool, pool_slot)
        self._arrays = a._replace(pool=pool, pool_slot=pool_slot)
        head[POOL_TOP] = top
        head[POOL_FREE] = 0
        head[FREE_LISTS:] = -1
