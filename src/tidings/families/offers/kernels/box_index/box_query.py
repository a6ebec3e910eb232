"""Which boxes meet these? Buckets by hash; in them leaves, 64 members at a time, below nodes with dominated coordinates."""

from __future__ import annotations

import numpy as np

from tidings.families.offers.constraint import AXIS, AXIS_WORDS, BOX_AXES, BOX_EQUAL, BOX_WORDS
from tidings.families.offers.constraint import HI as PACKED_HI
from tidings.families.offers.constraint import LO as PACKED_LO
from tidings.families.offers.constraint import LO_START as PACKED_ENDS
from tidings.families.offers.kernels.box_index.box_layout import (
    BUCKET_COUNT,
    BUCKET_START,
    BUCKET_TREE,
    EQUAL,
    FAN,
    FAN_BITS,
    GROUP_COUNT,
    GROUP_START,
    HI_START,
    HI_STOP,
    LEAF,
    LO,
    LO_START,
    LO_STOP,
    NONE,
    NOT_HI,
    OWNER_BITS,
    TEXT_FIELDS,
    Entries,
    Queries,
    Segment,
    axis_at,
    entries_at,
    first_from,
    hash_of,
    segment_at,
    text_at,
)
from tidings.families.offers.kernels.packed import AT, TEXT
from tidings.kernels.arrays import I64, U8, Int
from tidings.kernels.intrinsics import lowest_bit, pointer, prefetch
from tidings.kernels.jit import kernel, uncounted
from tidings.kernels.rows.read import hash_bytes, same_bytes

_STACK = 16 * FAN
_AHEAD = 8
"""Slots of the table are asked for so many queries before they are looked at."""


@uncounted
def _is_below(a: U8, a_start: Int, a_stop: Int, b: U8, b_start: Int, b_stop: Int) -> bool:
    """Whether the lower end of a text interval is below the upper end of another; start NONE: there is no end."""
    if a_start < 0 or b_start < 0:
        return True
    size = min(a_stop - a_start, b_stop - b_start)
    for i in range(size):
        if a[a_start + i] != b[b_start + i]:
            return a[a_start + i] < b[b_start + i]
    return a_stop - a_start < b_stop - b_start


@uncounted
def _texts_meet(entries: Entries, axes: I64, queries: Queries, i: Int, entry: Int, axis: Int) -> bool:
    """Whether a query and an entry meet on a TEXT axis, where their codes do."""
    group = entries.group[entry]
    place = entries.places[group, axes[axis]]
    if place == NONE:
        return True
    at = axis_at(entries, entry, place)
    words, own = entries.words, TEXT_FIELDS * axis
    is_tied = words[at + LO] == queries.q[i, 2 * axis] or words[at + NOT_HI] == queries.q[i, 2 * axis + 1]
    if not is_tied:
        return True
    ends = text_at(entries, entry, entries.text_places[group, axes[axis]])
    return bool(
        _is_below(
            entries.text,
            words[ends + LO_START],
            words[ends + LO_STOP],
            queries.text,
            queries.ends[i, own + HI_START],
            queries.ends[i, own + HI_STOP],
        )
        and _is_below(
            queries.text,
            queries.ends[i, own + LO_START],
            queries.ends[i, own + LO_STOP],
            entries.text,
            words[ends + HI_START],
            words[ends + HI_STOP],
        )
    )


@uncounted
def _has_values(entries: Entries, axes: I64, hashed: I64, queries: Queries, i: Int, entry: Int) -> bool:
    """Whether an entry has the values of a query on the hashed axes."""
    group = entries.group[entry]
    for axis in hashed:
        at = axis_at(entries, entry, entries.places[group, axes[axis]])
        if entries.words[at + EQUAL] != queries.equal[i, axis]:
            return False
        text_place = entries.text_places[group, axes[axis]]
        if text_place != NONE:
            ends, own = text_at(entries, entry, text_place), TEXT_FIELDS * axis
            if not same_bytes(
                entries.text,
                entries.words[ends + LO_START],
                entries.words[ends + LO_STOP],
                queries.text,
                queries.ends[i, own + LO_START],
                queries.ends[i, own + LO_STOP],
            ):
                return False
    return True


@uncounted
def _find_bucket(entries: Entries, axes: I64, segment: Segment, queries: Queries, i: Int, hashed: Int) -> Int:
    """The bucket of a query's equality codes, or NONE."""
    last_slot = (len(segment.table) >> 1) - 1
    slot = hashed & last_slot
    while True:
        bucket = segment.table[2 * slot + 1] - 1
        if bucket < 0:
            return np.int64(NONE)
        if segment.table[2 * slot] == hashed:
            entry = segment.members[segment.buckets[bucket, BUCKET_START]] >> 32
            if _has_values(entries, axes, segment.hashed, queries, i, entry):
                return bucket
        slot = (slot + 1) & last_slot


@uncounted
def _scan(cells: I64, at: Int, stride: Int, n: Int, columns: I64, q: I64, i: Int) -> Int:
    """Bits of those of n <= 64 points, column by column from `at`, that the query dominates."""
    found = np.int64(-1) if n >= 64 else (np.int64(1) << n) - 1
    p = pointer(cells)
    for c in range(len(columns)):
        limit = q[i, columns[c]]
        base = at + c * stride
        bits = np.int64(0)
        for j in range(n):
            bits |= np.int64(p[base + j] <= limit) << j
        found &= bits
        if found == 0:
            break
    return found


@uncounted
def _report(
    entries: Entries,
    axes: I64,
    segment: Segment,
    queries: Queries,
    i: Int,
    first: Int,
    found: Int,
    has_dead: Int,
    hits: I64,
    n: Int,
) -> Int:
    """Writes the members from `first` on whose bits are set; the new number of hits, or NONE if there is no room."""
    while found:
        word = segment.members[first + lowest_bit(found)]
        found &= found - 1
        entry = word >> 32
        if has_dead and entries.alive[entry] == 0:
            continue
        is_met = True
        for axis in segment.texts:
            if not _texts_meet(entries, axes, queries, i, entry, axis):
                is_met = False
                break
        if is_met:
            if n >= hits.shape[0]:
                return np.int64(NONE)
            hits[n, 0], hits[n, 1], hits[n, 2] = i, word & OWNER_BITS, entry
            n += 1
    return n


@uncounted
def _visit(
    entries: Entries,
    axes: I64,
    segment: Segment,
    queries: Queries,
    i: Int,
    bucket: Int,
    has_dead: Int,
    stack: I64,
    hits: I64,
    n: Int,
) -> Int:
    """Reports the members of a bucket that a query meets."""
    start, count = segment.buckets[bucket, BUCKET_START], segment.buckets[bucket, BUCKET_COUNT]
    width, tree = len(segment.columns), segment.buckets[bucket, BUCKET_TREE]
    if tree == NONE:
        for first in range(start, start + count, LEAF):
            size = min(LEAF, start + count - first)
            found = _scan(segment.cells, first * width, size, size, segment.columns, queries.q, i)
            n = _report(entries, axes, segment, queries, i, first, found, has_dead, hits, n)
            if n == NONE:
                return n
        return n
    leaves = (count + LEAF - 1) // LEAF
    stack[0], stack[1] = segment.tree[tree] - 1, 0
    depth = 1
    while depth:
        depth -= 1
        level, block = stack[2 * depth], stack[2 * depth + 1]
        at = segment.tree[tree + 1 + level] + block * FAN * width
        there = min(FAN, ((leaves - 1) >> (FAN_BITS * level)) + 1 - block * FAN)
        met = _scan(segment.tree, at, FAN, there, segment.columns, queries.q, i)
        while met:
            node = block * FAN + lowest_bit(met)
            met &= met - 1
            if level:
                stack[2 * depth], stack[2 * depth + 1] = level - 1, node
                depth += 1
                continue
            first = start + LEAF * node
            size = min(LEAF, start + count - first)
            found = _scan(segment.cells, first * width, size, size, segment.columns, queries.q, i)
            n = _report(entries, axes, segment, queries, i, first, found, has_dead, hits, n)
            if n == NONE:
                return n
    return n


@kernel
def search_segment(
    handles: I64,
    axes: I64,
    segment_handles: I64,
    q: I64,
    equal: I64,
    ends: I64,
    text: U8,
    has_dead: Int,
    first: Int,
    hits: I64,
    n: Int,
) -> tuple[Int, Int]:
    """Writes (query, owner, entry) of every living member that a query meets, from query `first` on. axes: of the queries.

    (the query to go on from, hits so far); the former is the number of queries unless `hits` is full.
    """
    entries = entries_at(handles)
    segment, queries = segment_at(segment_handles), Queries(q, equal, ends, text)
    stack = np.empty(2 * _STACK, np.int64)
    last_slot = (len(segment.table) >> 1) - 1
    count = len(q)
    table = pointer(segment.table)
    ahead = np.empty(_AHEAD, np.int64)
    for i in range(first, min(first + _AHEAD, count)):
        ahead[i % _AHEAD] = hash_of(equal[i], segment.hashed)
        prefetch(table, 2 * (ahead[i % _AHEAD] & last_slot))
    for i in range(first, count):
        hashed = ahead[i % _AHEAD]
        if i + _AHEAD < count:
            ahead[i % _AHEAD] = hash_of(equal[i + _AHEAD], segment.hashed)
            prefetch(table, 2 * (ahead[i % _AHEAD] & last_slot))
        bucket = _find_bucket(entries, axes, segment, queries, i, hashed)
        if bucket != NONE:
            found = _visit(entries, axes, segment, queries, i, bucket, has_dead, stack, hits, n)
            if found == NONE:
                return i, n
            n = found
    return count, n


@kernel
def search_entries(
    handles: I64,
    axes: I64,
    fitting: I64,
    is_text: U8,
    start: Int,
    q: I64,
    ends: I64,
    text: U8,
    first: Int,
    hits: I64,
    n: Int,
) -> tuple[Int, Int]:
    """As `search_segment`, among the entries of the fitting groups from `start` on, each of which is compared."""
    entries, queries = entries_at(handles), Queries(q, q, ends, text)
    for i in range(first, len(q)):
        kept = n
        for group in fitting:
            last = entries.groups[group, GROUP_START] + entries.groups[group, GROUP_COUNT]
            for at in range(first_from(entries, group, start), last):
                entry = entries.lists[at]
                if entries.alive[entry] == 0 or not _is_met(entries, axes, is_text, queries, i, group, entry):
                    continue
                if n >= len(hits):
                    return i, kept
                hits[n, 0], hits[n, 1], hits[n, 2] = i, entries.owner[entry], entry
                n += 1
    return len(q), n


@uncounted
def _is_met(entries: Entries, axes: I64, is_text: U8, queries: Queries, i: Int, group: Int, entry: Int) -> bool:
    """Whether a query meets an entry on all axes that both have."""
    for axis in range(len(axes)):
        place = entries.places[group, axes[axis]]
        if place == NONE:
            continue
        at = axis_at(entries, entry, place)
        if entries.words[at + LO] > queries.q[i, 2 * axis] or entries.words[at + NOT_HI] > queries.q[i, 2 * axis + 1]:
            return False
        if is_text[axes[axis]] and not _texts_meet(entries, axes, queries, i, entry, axis):
            return False
    return True


@kernel
def fill_queries(text: U8, words: I64, boxes: I64, q: I64, codes: I64, ends: I64) -> bool:
    """Writes packed boxes of one kind as `Queries`; False if they are not all of one kind: two kinds have the same hash."""
    axes = codes.shape[1]
    head = boxes[0, AT]
    equal = words[head + BOX_EQUAL]
    for i in range(len(boxes)):
        box = boxes[i, AT]
        if words[box + BOX_AXES] != axes or words[box + BOX_EQUAL] != equal:
            return False
        for axis in range(axes):
            entry = box + BOX_WORDS + AXIS_WORDS * axis
            if words[entry + AXIS] != words[head + BOX_WORDS + AXIS_WORDS * axis + AXIS]:
                return False
            q[i, 2 * axis], q[i, 2 * axis + 1] = words[entry + PACKED_HI], ~words[entry + PACKED_LO]
            codes[i, axis] = words[entry + PACKED_LO]
            for field in range(TEXT_FIELDS):
                end = words[entry + PACKED_ENDS + field]
                ends[i, TEXT_FIELDS * axis + field] = end if end < 0 else end + boxes[i, TEXT]
            if (equal >> axis) & 1 and ends[i, TEXT_FIELDS * axis] >= 0:
                codes[i, axis] = hash_bytes(text, ends[i, TEXT_FIELDS * axis], ends[i, TEXT_FIELDS * axis + 1])
    return True
