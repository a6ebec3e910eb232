"""Compile all kernels ahead of their first use, so that a caller can say what takes so long the first time.

Compiled kernels are kept on disk by numba (beside the sources, or below NUMBA_CACHE_DIR); later processes load them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels import (
    anchors_add,
    anchors_dump,
    anchors_items,
    anchors_move,
    anchors_remove,
    forest_arrays,
    forest_build,
    forest_count,
    forest_insert,
    forest_plan,
    forest_query,
    forest_remove,
    rankings_best,
    rankings_change,
    rankings_dump,
    succession,
)
from tidings.kernels.anchors import ABSOLUTE, NO_TIME, Anchors
from tidings.kernels.forest import PointForest
from tidings.kernels.forest_arrays import LEAF_MAX
from tidings.kernels.rankings import Rankings

ENTRY_KERNELS: tuple[Any, ...] = (
    anchors_add.add,
    anchors_dump.dump_members,
    anchors_dump.dump_runs,
    anchors_items.free_item,
    anchors_dump.load,
    anchors_items.new_items,
    anchors_move.move,
    anchors_remove.remove,
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
    rankings_best.best,
    rankings_change.change,
    rankings_dump.clear,
    rankings_dump.fill,
    rankings_dump.list_entries,
    rankings_dump.retie,
    succession.number_kinds,
    succession.succeed,
)
"""Kernels called from Python; those they call are compiled with them. The ways we only compare with are left out."""


def warm() -> None:
    """Call every entry kernel once, on a little data; takes a minute or two the first time, then next to nothing."""
    _warm_forest()
    _warm_anchors()
    _warm_rankings()
    one = np.zeros(1, np.int64)
    succession.number_kinds(one, one, succession.succeed(one.copy(), one, one), 1)


def _warm_forest() -> None:
    forest = PointForest(1)
    slots = np.arange(2 * LEAF_MAX)
    forest.add(0, 2 * LEAF_MAX, (0,))
    forest.add_many(slots % 2, slots, slots.reshape(-1, 1))
    forest.stab([0], [[0]], [[1]], [1], [0, 1])
    forest.count([0], [[0]], [[1]], [0, 1])
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


def _warm_rankings() -> None:
    rankings = Rankings(1)
    one = rankings.new_set()
    rankings.fill(one, [0], [0], [0], [0])
    rankings.change([one], [0], [0], [1], [0], [True])
    rankings.best([one], [0], [0])
    rankings.retie([one], [0], [1])
    Rankings(1).load(rankings.dump())
    rankings.free_set(one)


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
