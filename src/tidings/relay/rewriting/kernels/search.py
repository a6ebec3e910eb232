"""Rewritings of many targets: who embeds in each, then the first k covers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.jit import kernel
from tidings.relay.rewriting.kernels.covers import DEPTH_MAX, first_covers, store_covers
from tidings.relay.rewriting.kernels.embedding import ONE, U64, WORDS, coverage, images


@kernel(nogil=True, _nrt=False)
def _precedes(rank: Any, one: Any, other: Any) -> Any:
    """Of patterns that embed in each other, those that carry more feed the others; then the earlier ones the later."""
    return rank[one] > rank[other] or (rank[one] == rank[other] and one < other)


@kernel(nogil=True, _nrt=False)
def _set_alike(nodes: Any, target: Any, alike: Any, clear: Any) -> None:
    first_node, label = nodes[0], nodes[1]
    start = first_node[target]
    for node in range(start, first_node[target + 1]):
        if clear:
            alike[label[node]] = 0
        else:
            alike[label[node]] |= ONE << U64(node - start)


@kernel(nogil=True, _nrt=False)
def _embeds(nodes: Any, masks: Any, source: Any, target: Any, alike: Any, found: Any) -> Any:
    """As `images`, for a pair whose target has no masks of labels yet; those of `alike` are kept by the caller."""
    _set_alike(nodes, target, alike, False)
    result = images(nodes, masks, source, target, alike, found)
    _set_alike(nodes, target, alike, True)
    return result


@kernel(nogil=True, _nrt=False)
def _admits(
    nodes: Any,
    masks: Any,
    words: Any,
    rank: Any,
    source: Any,
    target: Any,
    alike: Any,
    other: Any,
    found: Any,
    spare: Any,
    ordered: Any,
) -> Any:
    """1 if the source embeds in the target, and may feed it; -1 if it embeds, but the target is to feed it instead."""
    for word in range(WORDS):
        if words[source, word] & ~words[target, word]:
            return 0
    if source == target or not images(nodes, masks, source, target, alike, found):
        return 0
    if ordered and not _precedes(rank, source, target):
        same = True
        for word in range(WORDS):
            same &= words[source, word] == words[target, word]
        # Patterns that embed in each other have the same labels and pairs.
        if same and _embeds(nodes, masks, target, source, other, spare):
            return -1
    return 1


@kernel(nogil=True, _nrt=False)
def sources_of(
    nodes: Any, masks: Any, bits: Any, words: Any, rank: Any, alive: Any, filed: Any, wanted: Any,
    target: Any, alike: Any, other: Any, found: Any, spare: Any, ordered: Any, sources: Any, covered: Any,
) -> Any:  # fmt: skip
    """How many patterns embed in the target and may feed it, and how many were left out as the target is to feed them.

    filed: patterns in the order of the feature they are filed under, and where each feature's begin; those behind the last
    filed one are new. wanted: the target's features. sources, covered: room for as many as there are patterns.
    ordered: False for a target that came last, and feeds nobody yet.
    """
    first_filed, members = filed
    _set_alike(nodes, target, alike, False)
    count, dropped = 0, 0
    for i in range(len(wanted) + 1):
        if i < len(wanted):
            if wanted[i] < 0 or _stands_before(wanted, i):
                continue
            begin, end = first_filed[wanted[i]], first_filed[wanted[i] + 1]
        else:
            begin, end = len(members), len(rank)
        for at in range(begin, end):
            source = np.int64(members[at]) if at < len(members) else np.int64(at)
            if not alive[source]:
                continue
            admitted = _admits(nodes, masks, words, rank, source, target, alike, other, found, spare, ordered)
            if admitted == 1:
                sources[count] = source
                covered[count] = coverage(nodes, bits, source, target, found)
                count += 1
            elif admitted == -1:
                dropped += 1
    _set_alike(nodes, target, alike, True)
    return count, dropped


@kernel(nogil=True, _nrt=False)
def _stands_before(values: Any, place: Any) -> Any:
    for i in range(place):
        if values[i] == values[place]:
            return True
    return False


@kernel(nogil=True)
def sorted_by_cost(sources: Any, covered: Any, count: Any, cost: Any) -> None:
    """Puts sources into the order of their costs, then of their numbers."""
    keys = np.empty(count, np.float64)
    for i in range(count):
        keys[i] = cost[sources[i]]
    order = np.argsort(keys, kind="mergesort")
    moved = sources[:count][order]
    masks = covered[:count][order]
    sources[:count] = moved
    covered[:count] = masks


@kernel(nogil=True, _nrt=False)
def union_of(covered: Any, count: Any) -> Any:
    known = U64(0)
    for i in range(count):
        known |= covered[i]
    return known


@kernel(nogil=True)
def rewrite(
    nodes: Any, masks: Any, bits: Any, words: Any, rank: Any, full: Any, alive: Any, filed: Any, feature: Any, cost: Any,
    targets: Any, k: Any, labels: Any, ordered: Any, partial: Any, counts: Any, ends: Any, members: Any,
) -> Any:  # fmt: skip
    """Rewritings of some targets: counts[i] of targets[i]; the sources of the j-th of all are members[ends[j - 1]:ends[j]].

    full: per pattern the mask of its needs; 0 where one word is too small for them, such patterns get no rewritings here.
    partial: all that the sources know together is to be covered, not all needs.
    Returns how many embeddings there are, and how many were left out to keep sources and targets without cycles.
    """
    first_feature, codes = feature
    patterns = len(rank)
    sources = np.empty(patterns, np.int64)
    covered = np.empty(patterns, U64)
    first = np.empty(65, np.int64)
    lists = np.empty(0, np.int64)
    found = np.empty((k, DEPTH_MAX), np.int64)
    sizes = np.empty(k, np.int64)
    images_found = np.empty(64, U64)
    spare = np.empty(64, U64)
    alike = np.zeros(labels, U64)
    other = np.zeros(labels, U64)
    embedded, dropped, made, end = 0, 0, np.int64(0), np.int64(0)
    for i in range(len(targets)):
        target = targets[i]
        counts[i] = 0
        wanted = codes[first_feature[target] : first_feature[target + 1]]
        count, less = sources_of(
            nodes, masks, bits, words, rank, alive, filed, wanted, target, alike, other, images_found, spare, ordered,
            sources, covered,
        )  # fmt: skip
        embedded += count + less
        dropped += less
        if full[target] == 0 or count == 0:
            continue
        sorted_by_cost(sources, covered, count, cost)
        if len(lists) < 64 * count:
            lists = np.empty(64 * count, np.int64)
        wanted_bits = union_of(covered, count) if partial else full[target]
        covers = first_covers(covered, count, wanted_bits, k, target, first, lists, found, sizes)
        counts[i] = covers
        made, end = store_covers(sources, found, sizes, covers, members, ends, made, end)
    return embedded, dropped


@kernel(nogil=True)
def targets_of(
    nodes: Any, masks: Any, bits: Any, words: Any, full: Any, alive: Any, source: Any, labels: Any, targets: Any
) -> Any:
    """How many patterns the source alone is enough for, of those that do not embed in it; as many as `targets` has room for."""
    found = np.empty(64, U64)
    alike = np.zeros(labels, U64)
    count = 0
    for target in range(len(alive)):
        if count == len(targets) or target == source or not alive[target] or full[target] == 0:
            continue
        for word in range(WORDS):
            if words[source, word] & ~words[target, word]:
                break
        else:
            if not _embeds(nodes, masks, source, target, alike, found):
                continue
            if coverage(nodes, bits, source, target, found) != full[target]:
                continue
            if not _embeds(nodes, masks, target, source, alike, found):
                targets[count] = target
                count += 1
    return count
