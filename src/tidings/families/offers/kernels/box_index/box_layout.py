"""Where the boxes of an index lie in memory: entries as they came, and segments, which are searchable copies of some of them.

Two intervals meet iff each begins before the other ends. With c = (lo, ~hi) of a box and q = (hi, ~lo) of a query, on each of
the query's axes, that is c <= q in every coordinate (~x is -x - 1: it turns the order around). So a search is *dominance
reporting*: find the points c that a point q dominates. One-sided intervals have a coordinate that is always dominated, which is
left out.

    group     boxes with the same axes; entries of a group in the order they came
    entry     mask of axes with a single value | lo, ~hi, equality code of each axis | ends of texts on each TEXT axis
    segment   hash of equality codes -> bucket -> members in leaves of 64, column by column
              a bucket of several leaves has a tree: least coordinates of each leaf, of 16 leaves, of 16 * 16 ..
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.families.offers.kernels.packed import SEED
from tidings.kernels.arrays import I32, I64, U8, Int
from tidings.kernels.handles import array_at, half_table_at, table_at, text_array_at
from tidings.kernels.jit import kernel
from tidings.kernels.rows.read import mix

LEAF, FAN_BITS = 64, 4
FAN = 1 << FAN_BITS
"""Members of a leaf, and children of a node."""
CODE_MIN = -(2**63)
NONE = -1

# An entry's record: the mask of its axes that have a single value, then fields of each axis, then of each TEXT axis.
ENTRY_EQUAL, ENTRY_HEAD = range(2)
LO, NOT_HI, EQUAL, AXIS_FIELDS = range(4)
LO_START, LO_STOP, HI_START, HI_STOP, TEXT_FIELDS = range(5)

# Fields of a group: how many axes its entries have, how many of them are TEXT; where its list of entries begins, how many it
# has, and room for how many.
GROUP_AXES, GROUP_TEXTS, GROUP_START, GROUP_COUNT, GROUP_ROOM, GROUP_FIELDS = range(6)

# Fields of a bucket: its members, and where its tree is, NONE if it has one leaf.
BUCKET_START, BUCKET_COUNT, BUCKET_TREE, BUCKET_FIELDS = range(4)

OWNER_BITS = (1 << 32) - 1


class Entries(NamedTuple):
    """All boxes of an index in the order they came. Numbers are never used again until everything is packed anew."""

    owner: I64
    """[entries]"""
    group: I64
    """[entries]"""
    at: I64
    """[entries]: where the record is in `words`."""
    words: I64
    text: U8
    """Ends of text intervals."""
    alive: U8
    """[entries]"""
    groups: I64
    """[groups, GROUP_FIELDS]"""
    places: I32
    """[groups, axes]: place of an axis among those of the group, NONE if it has it not."""
    text_places: I32
    """[groups, axes]: place of a TEXT axis among those of the group."""
    lists: I64
    """Entries of groups, ascending; where each list is, `groups` says."""


class Segment(NamedTuple):
    """Some entries, searchable along the axes of one view."""

    hashed: I64
    """Axes of the view, by place, that buckets are found by: queries and members have a single value there."""
    columns: I64
    """[columns]: coordinate of the query that each column is compared with."""
    texts: I64
    """TEXT axes among the others, by place: where codes tie, texts decide."""
    table: I64
    """[2 * slots]: hash, and bucket + 1; 0 if the slot is free."""
    buckets: I64
    """[buckets, BUCKET_FIELDS]"""
    members: I64
    """[members]: entry << 32 | owner, bucket by bucket."""
    cells: I64
    """Coordinates: leaf i of a bucket begins at (start + LEAF * i) * columns, and has all its members column by column."""
    tree: I64
    """Trees: levels, then where each begins from the leaves up, then blocks of FAN nodes, column by column."""


class Queries(NamedTuple):
    """Boxes to search with, all of the same axes, which have a single value on the same ones of these."""

    q: I64
    """[queries, 2 * axes]: hi, ~lo of each axis."""
    equal: I64
    """[queries, axes]: equality codes, where there is a single value."""
    ends: I64
    """[queries, TEXT_FIELDS * axes]: ends of texts in `text`, -1 for none."""
    text: U8


@kernel
def entries_at(handles: I64) -> Entries:
    return Entries(
        array_at(handles, 0),
        array_at(handles, 1),
        array_at(handles, 2),
        array_at(handles, 3),
        text_array_at(handles, 4),
        text_array_at(handles, 5),
        table_at(handles, 6),
        half_table_at(handles, 7),
        half_table_at(handles, 8),
        array_at(handles, 9),
    )


@kernel
def segment_at(handles: I64) -> Segment:
    return Segment(
        array_at(handles, 0),
        array_at(handles, 1),
        array_at(handles, 2),
        array_at(handles, 3),
        table_at(handles, 4),
        array_at(handles, 5),
        array_at(handles, 6),
        array_at(handles, 7),
    )


@kernel
def axis_at(entries: Entries, entry: Int, place: Int) -> Int:
    """Where the fields of one of the entry's axes are."""
    return entries.at[entry] + ENTRY_HEAD + AXIS_FIELDS * place


@kernel
def text_at(entries: Entries, entry: Int, text_place: Int) -> Int:
    """Where the ends of one of the entry's TEXT axes are."""
    axes = entries.groups[entries.group[entry], GROUP_AXES]
    return entries.at[entry] + ENTRY_HEAD + AXIS_FIELDS * axes + TEXT_FIELDS * text_place


@kernel
def first_from(entries: Entries, group: Int, entry: Int) -> Int:
    """Where in a group's list the entries from this number on begin."""
    start = entries.groups[group, GROUP_START]
    stop = start + entries.groups[group, GROUP_COUNT]
    while start < stop:
        middle = (start + stop) >> 1
        if entries.lists[middle] < entry:
            start = middle + 1
        else:
            stop = middle
    return start


@kernel
def hash_of(codes: I64, hashed: I64) -> Int:
    """Hash of a query's equality codes on the hashed axes."""
    found = np.int64(SEED)
    for axis in hashed:
        found = mix(found, codes[axis])
    return found


@kernel
def levels_of(count: Int) -> Int:
    """Levels of the tree of a bucket with so many members."""
    nodes = (count + LEAF - 1) // LEAF
    levels = 1
    while nodes > FAN:
        nodes = (nodes + FAN - 1) // FAN
        levels += 1
    return levels
