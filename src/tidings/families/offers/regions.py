"""Regions of offers: the points with lo <= its hi and hi >= its lo on each axis, for each box of a publication.

       hi |    :::::::::        points (lo, hi) that meet [a, b]
        a +----:::::::::---
          |        b      lo

Each set of axes that subscriptions compare is a space. It sees those boxes of a publication whose axes it has all; with classic
matching those that have all its axes.
"""

from __future__ import annotations

import numpy as np

from tidings.families.evaluator import Store
from tidings.families.offers.constraint import AXIS_WORDS, BOX_WORDS, HI, LO, unpack
from tidings.families.offers.kernels.packed import AT, AXES_HASH, OF, BoxBatch, find_constraints, read_batch
from tidings.families.optional import RegionSpace, SpacePoints
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.codes import CODE_MAX, CODE_MIN, Int64Array
from tidings.model.points import PointBatch
from tidings.model.region import Regions


def in_space(points: PointBatch, catalog: Catalog) -> list[SpacePoints]:
    """Subscriptions of one box each, by the axes that this compares."""
    table = catalog.table(Form.from_key(points.form).shape.tables[0])
    boxes = [unpack(details)[0] for details in points.details.to_pylist()]
    by_axes: dict[tuple[int, ...], list[int]] = {}
    for i, box in enumerate(boxes):
        by_axes.setdefault(box.axes, []).append(i)
    found = []
    for axes, own in by_axes.items():
        ends = [np.stack([boxes[i].lo, boxes[i].hi], axis=1).reshape(-1) for i in own]
        coords = np.array(ends, np.int64).reshape(len(own), 2 * len(axes))
        found.append(SpacePoints(RegionSpace("offers", table, axes), np.array(own, np.int64), coords))
    return found


def regions(space: RegionSpace, store: Store, versions: Int64Array) -> Regions:
    begins = np.empty(len(versions), np.int64)
    find_constraints(store.handles, store.number(space.table.name), versions, begins)
    batch = read_batch(store.rows.text, begins)
    owner, lo, hi = (np.concatenate(parts) for parts in zip(*_seen(space, batch), strict=True))
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], np.arange(len(versions) + 1)).astype(np.int64)
    return Regions(lo[order], hi[order], np.ones(len(order), np.uint8), starts)


def _seen(space: RegionSpace, batch: BoxBatch) -> list[tuple[Int64Array, Int64Array, Int64Array]]:
    """(publications, lower ends, upper ends) of the boxes that the space sees, as boxes of points."""
    found = [(np.empty(0, np.int64), *np.empty((2, 0, 2 * len(space.axes)), np.int64))]
    for kind in np.unique(batch.boxes[:, AXES_HASH]):
        first, *_ = numbers = np.flatnonzero(batch.boxes[:, AXES_HASH] == kind)
        alike, axes = batch.boxes[numbers], batch.axes(int(first))
        own, its = set(space.axes), set(axes)
        if not (own <= its if space.table.constraints.is_classic else own >= its):
            continue
        lo = np.full((len(alike), 2 * len(space.axes)), CODE_MIN, np.int64)
        hi = np.full_like(lo, CODE_MAX)
        for place, axis in enumerate(space.axes):
            if axis in its:
                at = alike[:, AT] + BOX_WORDS + AXIS_WORDS * axes.index(axis)
                hi[:, 2 * place], lo[:, 2 * place + 1] = batch.words[at + HI], batch.words[at + LO]
        found.append((alike[:, OF], lo, hi))
    return found
