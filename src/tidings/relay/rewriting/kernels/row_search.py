"""Rewritings of many row queries: whose ranges contain each target's, what they cover, then the first k covers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.jit import kernel
from tidings.relay.rewriting.kernels.covers import DEPTH_MAX, first_covers, store_covers
from tidings.relay.rewriting.kernels.search import sorted_by_cost, union_of

U64 = np.uint64
ONE = np.uint64(1)
_LOWER, _UPPER, _PRESENT = 1, 2, 3
"""As in `tidings.relay.row_views.embedding.RowNeed`."""


@kernel(nogil=True, _nrt=False)
def _first_at_least(values: Any, begin: Any, end: Any, bound: Any) -> Any:
    """Where rising values reach the bound."""
    while begin < end:
        middle = (begin + end) // 2
        if values[middle] < bound:
            begin = middle + 1
        else:
            end = middle
    return begin


@kernel(nogil=True, _nrt=False)
def _contains(starts: Any, stops: Any, slots: Any, source: Any, target: Any) -> Any:
    for i in range(len(slots)):
        slot = slots[i]
        if starts[source, slot] > starts[target, slot] or stops[source, slot] < stops[target, slot]:
            return False
    return True


@kernel(nogil=True, _nrt=False)
def _is_same(starts: Any, stops: Any, slots: Any, source: Any, target: Any) -> Any:
    for i in range(len(slots)):
        slot = slots[i]
        if starts[source, slot] != starts[target, slot] or stops[source, slot] != stops[target, slot]:
            return False
    return True


@kernel(nogil=True, _nrt=False)
def _coverage(starts: Any, stops: Any, carries: Any, kinds: Any, slots: Any, source: Any, target: Any) -> Any:
    """kinds, slots: the target's needs; the first is to know the rows' ids."""
    covered = ONE
    for i in range(1, len(kinds)):
        kind, slot = kinds[i], slots[i]
        if (
            carries[source, slot]
            or (kind == _LOWER and starts[source, slot] == starts[target, slot])
            or (kind == _UPPER and stops[source, slot] == stops[target, slot])
            or (kind == _PRESENT and starts[source, slot] >= 0)
        ):
            covered |= ONE << U64(i)
    return covered


@kernel(nogil=True, _nrt=False)
def _sources_of(
    ranges: Any, leads: Any, groups: Any, number: Any, rank: Any, kinds: Any, slots: Any, table: Any, target: Any,
    ordered: Any, masked: Any, sources: Any, covered: Any,
) -> Any:  # fmt: skip
    """How many queries embed in the target (a place) and may feed it, and how many were left out as the target feeds them.

    masked: False if the target has too many needs for masks.
    """
    starts, stops, carries = ranges
    lead, lead_starts, lead_tops = leads
    first_group, first_member, first_slot, group_slots, group_of = groups
    own = number[target]
    count, dropped = 0, 0
    for group in range(first_group[table], first_group[table + 1]):
        compared = group_slots[first_slot[group] : first_slot[group + 1]]
        is_within = True
        for i in range(len(compared)):
            is_within &= starts[target, compared[i]] >= 0
        if not is_within:
            continue
        begin, end = first_member[group], first_member[group + 1]
        if len(compared) > 0:
            slot = lead[group]
            end = _first_at_least(lead_starts, begin, end, np.int64(starts[target, slot]) + 1)
            begin = _first_at_least(lead_tops, begin, end, np.int64(stops[target, slot]))
        for at in range(begin, end):
            if not _contains(starts, stops, compared, at, target) or at == target:
                continue
            source = number[at]
            if (
                ordered
                and group == group_of[own]
                and not (rank[source] > rank[own] or (rank[source] == rank[own] and source < own))
                and _is_same(starts, stops, compared, at, target)
            ):
                dropped += 1
                continue
            sources[count] = source
            if masked:
                covered[count] = _coverage(starts, stops, carries, kinds, slots, at, target)
            count += 1
    return count, dropped


@kernel(nogil=True)
def rewrite_rows(
    ranges: Any, leads: Any, groups: Any, number: Any, place: Any, rank: Any, full: Any, needs: Any, cost: Any,
    targets: Any, tables: Any, k: Any, ordered: Any, partial: Any, counts: Any, ends: Any, members: Any,
) -> Any:  # fmt: skip
    """As `tidings.relay.rewriting.kernels.search.rewrite`, for row queries. tables: of the targets."""
    first_need, kinds, slots = needs
    sources = np.empty(len(number), np.int64)
    covered = np.empty(len(number), U64)
    first = np.empty(65, np.int64)
    lists = np.empty(0, np.int64)
    found = np.empty((k, DEPTH_MAX), np.int64)
    sizes = np.empty(k, np.int64)
    embedded, dropped, made, end = 0, 0, np.int64(0), np.int64(0)
    for i in range(len(targets)):
        target = targets[i]
        counts[i] = 0
        begin, behind = first_need[target], first_need[target + 1]
        masked = full[target] != 0
        count, less = _sources_of(
            ranges, leads, groups, number, rank, kinds[begin:behind], slots[begin:behind], tables[i], place[target],
            ordered, masked, sources, covered,
        )  # fmt: skip
        embedded += count + less
        dropped += less
        if not masked or count == 0:
            continue
        sorted_by_cost(sources, covered, count, cost)
        if len(lists) < 64 * count:
            lists = np.empty(64 * count, np.int64)
        wanted = union_of(covered, count) if partial else full[target]
        covers = first_covers(covered, count, wanted, k, target, first, lists, found, sizes)
        counts[i] = covers
        made, end = store_covers(sources, found, sizes, covers, members, ends, made, end)
    return embedded, dropped
