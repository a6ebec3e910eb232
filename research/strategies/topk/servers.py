"""Servers of the strategies of top-k."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from research.servers.message import MessageBatch
from research.servers.protocols import ColumnarRows, Created, Server
from research.strategies.targets import IndexedTargets
from research.strategies.topk.kernels.box_topk import BoxTopkIndex
from research.strategies.topk.kernels.plane_kdtree import PlaneKdTree
from research.strategies.topk.kernels.range_topk import RangeTopkIndex, Sends
from research.strategies.topk.kernels.rectangle_cover import RectangleCover
from research.strategies.topk.ranked_rows import RankedRows, RowSends
from research.strategies.topk.reformulate import tags_of
from research.strategies.topk.region_servers import DenseServer, ranked_rows
from research.strategies.topk.sparse_index import SparseRangeTopkIndex
from tidings.families.spec import Form
from tidings.families.topk.subscription import DIMS, Space, space_of
from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges
from tidings.model.channel import channel_keys
from tidings.model.codes import CODE_MAX, CODE_MIN, codes_of
from tidings.model.points import PointBatch
from tidings.model.region import Regions


def server(form: Form, catalog: Catalog, kind: str, eps: float | None = None) -> Server:
    """eps: of `dense:EPS` and `sparse:EPS`, which makes tiles fewer, and some larger than necessary."""
    space = space_of(form, catalog)
    is_plane = len(space.ranges) < 2
    groups = None if eps is None else min(space.k, ceil(1 / eps))
    if kind == "sparse":
        return SparseServer(space, PlaneKdTree(), groups) if is_plane else SparseBoxServer(space, eps)
    if kind == "dense":
        rounded = RankedRows(space, RangeTopkIndex(space.k, groups)) if is_plane else ranked_rows(space, eps)
        return DenseServer(space, rounded)
    return UnicastServer(space) if kind == "unicast" else RelaxServer(space)


def sketch(form: Form, catalog: Catalog, rectangles: int) -> Server:
    """`sketch:RECTANGLES`: as `sparse`, with so many rectangles for all points; with several ranges it is `sparse`."""
    space = space_of(form, catalog)
    return SparseServer(space, RectangleCover(rectangles)) if len(space.ranges) < 2 else SparseBoxServer(space, None)


class SparseServer(DenseServer):
    """`sparse`: tiles are bounding boxes of the points in them; there are no empty tiles."""

    def __init__(self, space: Space, points: PlaneKdTree | RectangleCover, groups: int | None = None) -> None:
        self._index = _SparseIndex(space.k, points, groups)
        super().__init__(space, RankedRows(space, self._index))

    def create(self, points: PointBatch, tables: dict[str, ColumnarRows], *, wants_snapshots: bool) -> Created:
        created = super().create(points, tables, wants_snapshots=wants_snapshots)
        sets, coords = self.ranked.placed(points)
        self._index.points.add(sets, coords[:, 0], coords[:, 1])
        return created

    def drop(self, points: PointBatch) -> None:
        super().drop(points)
        sets, coords = self.ranked.placed(points)
        self._index.points.remove(sets, coords[:, 0], coords[:, 1])

    def dump(self) -> Any:
        points = self._index.points.dump()
        channel = self.ranked.channels(points.pop("set"))
        return {"dense": super().dump(), "channel": list(channel), "points": points}

    def load(self, state: Any) -> None:
        super().load(state["dense"])
        count = len(state["points"]["times"])
        sets = self.ranked.sets_of(channel_keys(state["channel"], count))
        self._index.points.load({"set": sets, **state["points"]})


class _SparseIndex(SparseRangeTopkIndex):
    """A range top-k index whose tiles are around `points`."""

    def __init__(self, k: int, points: PlaneKdTree | RectangleCover, groups: int | None) -> None:
        super().__init__(k, groups)
        self.points = points

    def change(
        self,
        sets: ArrayLike,
        entries: ArrayLike,
        xs: ArrayLike,
        ys: ArrayLike,
        ties: ArrayLike,
        is_present: ArrayLike,
    ) -> Sends:
        return self.change_among(self.points, sets, entries, xs, ys, ties, is_present)


class SparseBoxServer(DenseServer):
    """`sparse`, with several ranges."""

    def __init__(self, space: Space, eps: float | None) -> None:
        super().__init__(space, ranked_rows(space, eps, is_sparse=True))
        index = self.ranked.index
        assert isinstance(index, BoxTopkIndex)
        self._index = index

    def create(self, points: PointBatch, tables: dict[str, ColumnarRows], *, wants_snapshots: bool) -> Created:
        created = super().create(points, tables, wants_snapshots=wants_snapshots)
        self._index.add(*self.ranked.placed(points))
        return created

    def drop(self, points: PointBatch) -> None:
        super().drop(points)
        self._index.remove(*self.ranked.placed(points))

    def dump(self) -> Any:
        sets, coords, copies = self._index.points()
        channel = list(self.ranked.channels(sets))
        return {"dense": super().dump(), "channel": channel, "coords": coords, "copies": copies}

    def load(self, state: Any) -> None:
        super().load(state["dense"])
        copies = state["copies"]
        sets = self.ranked.sets_of(channel_keys(state["channel"], len(copies)))
        self._index.add(np.repeat(sets, copies), np.repeat(state["coords"], copies, axis=0))


class UnicastServer(DenseServer):
    """`unicast`: one message per send and affected subscription."""

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        self._targets = IndexedTargets(max(DIMS, 2 * len(space.ranges)))

    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        for messages in super().change(changes):
            addressed = self._targets.address(messages)
            if addressed is not None:
                yield addressed

    def create(self, points: PointBatch, tables: dict[str, ColumnarRows], *, wants_snapshots: bool) -> Created:
        self._targets.add(points)
        return super().create(points, tables, wants_snapshots=wants_snapshots)

    def drop(self, points: PointBatch) -> None:
        super().drop(points)
        self._targets.remove(points)

    def dump(self) -> Any:
        return {"dense": super().dump(), "targets": self._targets.dump(self.space.channel_types)}

    def load(self, state: Any) -> None:
        super().load(state["dense"])
        self._targets.load(state["targets"])


class RelaxServer(DenseServer):
    """`relax`: a row is sent to all ranges that contain it; views discard rows that they do not need."""

    def _regions(self, batch: RowSends) -> Regions:
        return _quadrants_of(self.space, self.ranked, batch)


def _quadrants_of(space: Space, ranked: RankedRows, batch: RowSends) -> Regions:
    """For each send the region of all ranges that contain its row."""
    sends = batch.sends
    width = max(DIMS, 2 * len(space.ranges))
    lo, hi = np.full((len(batch.row), width), CODE_MIN), np.full((len(batch.row), width), CODE_MAX)
    rows = ranked.log.take(batch.row)
    for c, column in enumerate(space.ranges):
        codes, _ = codes_of(column.type, rows.column(column.name))
        # A row that left may have another value by now; its tiles have the point that begins and ends at the old one.
        before = np.maximum.reduceat(sends.box_hi[:, 2 * c], sends.box_starts[:-1]) if len(codes) else codes
        lo[:, 2 * c + 1] = hi[:, 2 * c] = np.where(sends.is_gone, before, codes)
    return Regions(lo, hi, tags_of(batch), np.arange(len(batch.row) + 1))
