"""Compile all kernels ahead of their first use, so that a caller can say what takes so long the first time.

Compiled kernels are kept on disk by numba (beside the sources, or below NUMBA_CACHE_DIR); later processes load them.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from tidings.families.drift.kernels import deliveries
from tidings.families.drift.kernels.threshold_index import ABSOLUTE, NO_TIME, ThresholdIndex
from tidings.families.drift.kernels.threshold_index import change as threshold_change
from tidings.families.drift.kernels.threshold_index import dump as threshold_dump
from tidings.families.drift.kernels.threshold_index import move as threshold_move
from tidings.kernels import (
    coverage,
    crowds_add,
    crowds_fill,
    crowds_query,
    crowds_remove,
    gaps_change,
    gaps_query,
    holdings_best,
    holdings_change,
    holdings_points,
    ladders_change,
    ladders_pack,
    ladders_read,
    meshes_apply,
    meshes_bulk,
    meshes_tell,
    rankings_best,
    rankings_change,
    rankings_dump,
    rankings_net_gather,
    rankings_net_steps,
    rankings_net_tell,
    rounds,
    shortlists_apply,
    shortlists_bulk,
    shortlists_show,
    stabs_build,
    stabs_change,
)
from tidings.kernels.crowds import MANY, Crowds
from tidings.kernels.gaps import Gaps
from tidings.kernels.holdings import Holdings
from tidings.kernels.ladders import Ladders
from tidings.kernels.meshes import Meshes
from tidings.kernels.point_index import PointIndex
from tidings.kernels.point_index import build as point_build
from tidings.kernels.point_index import change as point_change
from tidings.kernels.point_index import layout as point_layout
from tidings.kernels.point_index import query as point_query
from tidings.kernels.point_index.layout import LEAF_MAX
from tidings.kernels.rankings import Rankings
from tidings.kernels.rankings_net import NetRankings
from tidings.kernels.shortlists import Shortlists
from tidings.kernels.stabs import BULK_MIN, Stabs

ENTRY_KERNELS: tuple[Any, ...] = (
    threshold_change.add,
    threshold_dump.dump_members,
    threshold_dump.dump_runs,
    threshold_change.free_item,
    threshold_dump.load,
    threshold_change.new_items,
    threshold_move.move,
    threshold_change.remove,
    coverage.covered,
    crowds_add.add,
    crowds_fill.clear,
    crowds_fill.dump,
    crowds_fill.fill,
    crowds_fill.group,
    crowds_query.snap_boxes,
    crowds_remove.remove,
    point_layout.find_misfit,
    point_build.build,
    point_build.dump,
    point_build.gather,
    point_build.repack,
    point_query.count,
    point_change.insert_points,
    point_build.plan_trees,
    point_query.reorder,
    point_query.stab,
    point_change.remove_points,
    point_query.some_inside,
    gaps_change.add,
    gaps_change.dump,
    gaps_change.fill,
    gaps_change.remove,
    gaps_query.meets,
    holdings_best.best,
    holdings_change.change,
    holdings_points.add,
    holdings_points.items_of,
    holdings_points.remove,
    holdings_points.retie,
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
    rounds.rounds,
    shortlists_apply.apply,
    shortlists_bulk.close_lists,
    shortlists_bulk.fill,
    shortlists_bulk.mark_held,
    shortlists_bulk.members,
    shortlists_bulk.open_lists,
    shortlists_bulk.read,
    shortlists_show.show_many,
    stabs_build.fill,
    stabs_build.fill_stabbed,
    stabs_build.list_slots,
    stabs_build.rehash,
    stabs_build.stab_all,
    stabs_change.add,
    stabs_change.remove,
    deliveries.number_replacements,
    deliveries.replace_held,
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
    return (_warm_rankings, _warm_points, _warm_threshold_index, _warm_holdings, *_SHORT)


def _warm_steps() -> None:
    one = np.zeros(1, np.int64)
    deliveries.number_replacements(one, one, deliveries.replace_held(one.copy(), one, one), 1)
    rounds.rounds(one, one.reshape(1, 1), 1)
    coverage.covered(np.arange(2), one, np.arange(2), one, one)


def _warm_points() -> None:
    forest = PointIndex(1)
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


def _warm_threshold_index() -> None:
    index = ThresholdIndex(ABSOLUTE)
    audience = index.new_audience()
    (item,) = index.new_items([audience], [0.0], [NO_TIME]).tolist()
    index.add([audience], [1.0], [0])
    index.move([item], [2.0], [NO_TIME])
    ThresholdIndex(ABSOLUTE).load(index.dump())
    index.remove([audience], [1.0], [0])
    index.free_item(item)


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


_SHORT = (_warm_shortlists, _warm_meshes, _warm_ladders, _warm_intervals, _warm_steps)


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
