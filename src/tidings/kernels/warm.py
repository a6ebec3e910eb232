"""Compile all kernels ahead of their first use, so that a caller can say what takes so long the first time.

Compiled kernels are kept on disk by numba (beside the sources, or below NUMBA_CACHE_DIR); later processes load them.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from tidings.families.topk.kernels import box_topk, plane_kdtree, range_topk, view_lists
from tidings.families.topk.kernels.box_topk import BoxTopkIndex
from tidings.families.topk.kernels.plane_kdtree import PlaneKdTree
from tidings.families.topk.kernels.plane_kdtree.tree import MANY
from tidings.families.topk.kernels.range_topk import NetRangeTopkIndex
from tidings.families.topk.kernels.view_lists import ViewLists
from tidings.kernels import (
    anchors_add,
    anchors_dump,
    anchors_items,
    anchors_move,
    anchors_remove,
    coverage,
    forest_any,
    forest_arrays,
    forest_build,
    forest_count,
    forest_insert,
    forest_plan,
    forest_query,
    forest_remove,
    forest_some,
    gaps_change,
    gaps_query,
    ladders_change,
    ladders_pack,
    ladders_read,
    meshes_apply,
    meshes_bulk,
    meshes_tell,
    rounds,
    stabs_build,
    stabs_change,
    succession,
)
from tidings.kernels.anchors import ABSOLUTE, NO_TIME, Anchors
from tidings.kernels.forest import PointForest
from tidings.kernels.forest_arrays import LEAF_MAX
from tidings.kernels.gaps import Gaps
from tidings.kernels.ladders import Ladders
from tidings.kernels.meshes import Meshes
from tidings.kernels.stabs import BULK_MIN, Stabs

ENTRY_KERNELS: tuple[Any, ...] = (
    anchors_add.add,
    anchors_dump.dump_members,
    anchors_dump.dump_runs,
    anchors_items.free_item,
    anchors_dump.load,
    anchors_items.new_items,
    anchors_move.move,
    anchors_remove.remove,
    box_topk.change.add,
    box_topk.change.change,
    box_topk.change.items_of,
    box_topk.change.remove,
    box_topk.change.retie,
    box_topk.query.best,
    coverage.covered,
    forest_any.any_inside,
    forest_arrays.find_misfit,
    forest_build.build,
    forest_build.dump,
    forest_build.gather,
    forest_build.repack,
    forest_count.count,
    forest_insert.insert_points,
    forest_plan.plan_trees,
    forest_query.reorder,
    forest_query.stab,
    forest_remove.remove_points,
    forest_some.some_inside,
    gaps_change.add,
    gaps_change.dump,
    gaps_change.fill,
    gaps_change.remove,
    gaps_query.meets,
    ladders_change.change,
    ladders_pack.pack,
    ladders_read.distinct,
    ladders_read.gather,
    ladders_read.nearest,
    meshes_apply.apply,
    meshes_bulk.clear,
    meshes_bulk.combine_all,
    meshes_bulk.fill,
    meshes_bulk.read,
    meshes_tell.tell,
    plane_kdtree.build.clear,
    plane_kdtree.build.dump,
    plane_kdtree.build.fill,
    plane_kdtree.build.group,
    plane_kdtree.change.add,
    plane_kdtree.change.remove,
    range_topk.change.best,
    range_topk.change.change,
    range_topk.change.retie,
    range_topk.net.gather,
    range_topk.net.keep,
    range_topk.net.send_batch,
    range_topk.net.send_met,
    range_topk.net.settle,
    rounds.rounds,
    stabs_build.fill,
    stabs_build.fill_stabbed,
    stabs_build.list_slots,
    stabs_build.rehash,
    stabs_build.stab_all,
    stabs_change.add,
    stabs_change.remove,
    succession.number_kinds,
    succession.succeed,
    view_lists.change.apply,
    view_lists.change.close_lists,
    view_lists.change.fill,
    view_lists.change.mark_held,
    view_lists.change.members,
    view_lists.change.open_lists,
    view_lists.change.read,
    view_lists.change.show_many,
)
"""Kernels called from Python; those they call are compiled with them. The ways we only compare with are left out."""


def warm() -> None:
    """Call every entry kernel once, on a little data; takes some minutes the first time, then next to nothing."""
    for part in _parts():
        part()


def warm_all_cores() -> None:
    """The same for the processes to come, in as many processes as there are cores."""
    with ProcessPoolExecutor() as pool:
        for done in [pool.submit(part) for part in _parts()]:
            done.result()


def _parts() -> tuple[Callable[[], object], ...]:
    # Those that take longest come first.
    return (_warm_range_topk, _warm_forest, _warm_anchors, _warm_box_topk, *_SHORT)


def _warm_steps() -> None:
    one = np.zeros(1, np.int64)
    succession.number_kinds(one, one, succession.succeed(one.copy(), one, one), 1)
    rounds.rounds(one, one.reshape(1, 1), 1)
    coverage.covered(np.arange(2), one, np.arange(2), one, one)


def _warm_forest() -> None:
    forest = PointForest(1)
    slots = np.arange(2 * LEAF_MAX)
    forest.add(0, 2 * LEAF_MAX, (0,))
    forest.add_many(slots % 2, slots, slots.reshape(-1, 1))
    forest.stab([0], [[0]], [[1]], [1], [0, 1])
    forest.count([0], [[0]], [[1]], [0, 1])
    forest.any([0], [[0]], [[1]])
    forest.some([0], [[0]], [[1]], 1)
    forest.points()
    forest._close_gaps(0)
    forest.remove_many(slots)


def _warm_anchors() -> None:
    anchors = Anchors(ABSOLUTE)
    audience = anchors.new_audience()
    (item,) = anchors.new_items([audience], [0.0], [NO_TIME]).tolist()
    anchors.add([audience], [1.0], [0])
    anchors.move([item], [2.0], [NO_TIME])
    Anchors(ABSOLUTE).load(anchors.dump())
    anchors.remove([audience], [1.0], [0])
    anchors.free_item(item)


def _warm_box_topk() -> None:
    index = BoxTopkIndex(1, 1)
    one = index.new_set()
    index.add([one], [[0, 1]])
    index.change([one], [0], [[0]], [0], [0], [True])
    index.best([one], [[0]], [[1]])
    index.retie([one], [0], [1])
    index.remove([one], [[0, 1]])


def _warm_plane_kdtree() -> PlaneKdTree:
    tree = PlaneKdTree()
    for _ in range(2):
        tree.add(np.zeros(MANY), np.arange(MANY), np.arange(MANY))
    tree.remove([0], [0], [0])
    PlaneKdTree().load(tree.dump())
    return tree


def _warm_range_topk() -> None:
    index = NetRangeTopkIndex(1)
    one = index.new_set()
    index.change([one], [0], [0], [0], [0], [True], among=_warm_plane_kdtree())
    index.best([one], [0], [0])
    # The second takes the place of the first.
    index.net([one, one], [0, 1], [0, 0], [0, 1], [0, 1], [True, True])
    index.net([one], [0], [0], [2], [0], [True])
    index.net([one], [1], [0], [0], [0], [False])
    index.retie([one], [0], [1])


def _warm_view_lists() -> None:
    lists = ViewLists(1)
    one = lists.open([True])
    lists.put_items([0], [0], [0], [0])
    lists.apply(one, [0], [False], [0], [0], [0])
    lists.fill(one, [0, 1], [0])
    lists.shown(one)
    lists.read(one)
    lists.members(one)
    lists.held()
    lists.close(one)


def _warm_ladders() -> None:
    ladders = Ladders()
    ladders.new(1)
    ladders.change([0], [0], [0], [True])
    ladders.gather([0])
    ladders.distinct([0])
    ladders.nearest([0], [0])


def _warm_meshes() -> None:
    meshes = Meshes(2, [(0, 1)])
    meshes.open([0])
    for kind in (0, 1):
        meshes.put_items([kind], kind, [kind], [kind], [[2]])
    meshes.fill([0], [0, 1], [0])
    for changed in meshes.apply([0, 1], [0], [1], [1]):
        changed.differences([0], [0], [0])
    meshes.combinations([0])
    meshes.read([0])


def _warm_intervals() -> None:
    many = np.arange(BULK_MIN)
    stabs, gaps = Stabs(), Gaps()
    for index in (stabs, gaps):
        index.add(many, many)
        index.add([0], [1])
        index.remove([0], [1])
    gaps.meets([0], [0], [0])


_SHORT = (_warm_view_lists, _warm_meshes, _warm_ladders, _warm_intervals, _warm_steps)


def is_compiled() -> bool:
    """True if every entry kernel is compiled, in this process or on disk from the present sources."""
    return all(kernel.signatures or _is_cached(kernel) for kernel in ENTRY_KERNELS)


def _is_cached(kernel: Any) -> bool:
    # Numba has no public way to ask; an index that cannot be read just means that warming up is announced in vain.
    index = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    try:
        return bool(index is not None and index._load_index())
    except Exception:
        return False
