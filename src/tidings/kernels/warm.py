"""Compile all kernels ahead of their first use, so that a caller can say what takes so long the first time.

Compiled kernels are kept on disk by numba (beside the sources, or below NUMBA_CACHE_DIR); later processes load them.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from tidings.kernels import (
    anchors_add,
    anchors_dump,
    anchors_items,
    anchors_move,
    anchors_remove,
    crowds_add,
    crowds_fill,
    crowds_query,
    crowds_remove,
    forest_any,
    forest_arrays,
    forest_build,
    forest_count,
    forest_insert,
    forest_plan,
    forest_query,
    forest_remove,
    forest_some,
    holdings_best,
    holdings_change,
    holdings_points,
    rankings_best,
    rankings_change,
    rankings_dump,
    rankings_net_gather,
    rankings_net_steps,
    rankings_net_tell,
    shortlists_apply,
    shortlists_bulk,
    shortlists_show,
    succession,
)
from tidings.kernels.anchors import ABSOLUTE, NO_TIME, Anchors
from tidings.kernels.crowds import MANY, Crowds
from tidings.kernels.forest import PointForest
from tidings.kernels.forest_arrays import LEAF_MAX
from tidings.kernels.holdings import Holdings
from tidings.kernels.rankings import Rankings
from tidings.kernels.rankings_net import NetRankings
from tidings.kernels.shortlists import Shortlists

ENTRY_KERNELS: tuple[Any, ...] = (
    anchors_add.add,
    anchors_dump.dump_members,
    anchors_dump.dump_runs,
    anchors_items.free_item,
    anchors_dump.load,
    anchors_items.new_items,
    anchors_move.move,
    anchors_remove.remove,
    crowds_add.add,
    crowds_fill.clear,
    crowds_fill.dump,
    crowds_fill.fill,
    crowds_fill.group,
    crowds_query.snap_boxes,
    crowds_remove.remove,
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
    holdings_best.best,
    holdings_change.change,
    holdings_points.add,
    holdings_points.items_of,
    holdings_points.remove,
    holdings_points.retie,
    rankings_best.best,
    rankings_change.change,
    rankings_change.change_among,
    rankings_dump.clear,
    rankings_dump.fill,
    rankings_dump.list_entries,
    rankings_dump.retie,
    rankings_net_gather.forget,
    rankings_net_gather.gather,
    rankings_net_gather.settle,
    rankings_net_steps.keep,
    rankings_net_tell.expose,
    rankings_net_tell.tell,
    shortlists_apply.apply,
    shortlists_bulk.close_lists,
    shortlists_bulk.fill,
    shortlists_bulk.mark_held,
    shortlists_bulk.members,
    shortlists_bulk.open_lists,
    shortlists_bulk.read,
    shortlists_show.show_many,
    succession.number_kinds,
    succession.succeed,
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
    return (_warm_rankings, _warm_forest, _warm_anchors, _warm_holdings, *_SHORT)


def _warm_steps() -> None:
    one = np.zeros(1, np.int64)
    succession.number_kinds(one, one, succession.succeed(one.copy(), one, one), 1)


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


def _warm_holdings() -> None:
    holdings = Holdings(1, 1)
    one = holdings.new_set()
    holdings.add([one], [[0, 1]])
    holdings.change([one], [0], [[0]], [0], [0], [True])
    holdings.best([one], [[0]], [[1]])
    holdings.retie([one], [0], [1])
    holdings.remove([one], [[0, 1]])


def _warm_crowds() -> Crowds:
    crowds = Crowds()
    for _ in range(2):
        crowds.add(np.zeros(MANY), np.arange(MANY), np.arange(MANY))
    crowds.remove([0], [0], [0])
    crowds.snap([0], [[0, 0]], [[1, 1]])
    Crowds().load(crowds.dump())
    crowds.clear(0)
    return crowds


def _warm_rankings() -> None:
    rankings = NetRankings(1)
    one = rankings.new_set()
    rankings.fill(one, [0], [0], [0], [0])
    rankings.change([one], [0], [0], [1], [0], [True])
    rankings.change([one], [0], [0], [0], [0], [True], among=_warm_crowds())
    rankings.best([one], [0], [0])
    # The second takes the place of the first.
    rankings.net([one, one], [0, 1], [0, 0], [0, 1], [0, 1], [True, True])
    rankings.net([one], [0], [0], [2], [0], [True])
    rankings.net([one], [1], [0], [0], [0], [False])
    rankings.retie([one], [0], [1])
    Rankings(1).load(rankings.dump())
    rankings.free_set(one)


def _warm_shortlists() -> None:
    lists = Shortlists(1)
    one = lists.open([True])
    lists.put_items([0], [0], [0], [0])
    lists.apply(one, [0], [False], [0], [0], [0])
    lists.fill(one, [0, 1], [0])
    lists.shown(one)
    lists.read(one)
    lists.members(one)
    lists.held()
    lists.close(one)


_SHORT = (_warm_shortlists, _warm_steps)


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
