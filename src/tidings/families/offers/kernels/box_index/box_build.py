"""How a segment is made: entries are put into buckets by their equality codes, and the members of large buckets in kd order.

Positions are ordered so that every aligned run of 64, of 16 * 64, .. members is what a kd-tree would put together; the tree is
then only the least coordinates of these runs. Ranges are cut at the median of one column after the other.
"""

from __future__ import annotations

import numpy as np

from tidings.families.offers.kernels.box_index.box_layout import (
    BUCKET_COUNT,
    BUCKET_START,
    BUCKET_TREE,
    CODE_MIN,
    ENTRY_EQUAL,
    EQUAL,
    FAN,
    GROUP_COUNT,
    GROUP_START,
    LEAF,
    LO,
    LO_START,
    LO_STOP,
    NONE,
    NOT_HI,
    Entries,
    axis_at,
    entries_at,
    first_from,
    levels_of,
    text_at,
)
from tidings.families.offers.kernels.packed import SEED
from tidings.kernels.arrays import I64, Int
from tidings.kernels.jit import kernel
from tidings.kernels.rows.read import mix, same_bytes

_STACK = 128


@kernel
def choose_entries(
    handles: I64, fitting: I64, axes: I64, first: Int, stop: Int, wanted: Int, ids: I64, masks: I64
) -> Int:
    """Living entries from `first` to `stop` of the fitting groups; how many.

    masks: for each the axes among `wanted` on which it has a single value, by place in the view.
    """
    entries = entries_at(handles)
    n = np.int64(0)
    for group in fitting:
        last = entries.groups[group, GROUP_START] + entries.groups[group, GROUP_COUNT]
        for at in range(first_from(entries, group, first), last):
            entry = entries.lists[at]
            if entry >= stop:
                break
            if entries.alive[entry] == 0:
                continue
            equal = entries.words[entries.at[entry] + ENTRY_EQUAL]
            mask = np.int64(0)
            for axis in range(len(axes)):
                place = entries.places[group, axes[axis]]
                if place != NONE and (wanted >> axis) & 1 and (equal >> place) & 1:
                    mask |= np.int64(1) << axis
            ids[n], masks[n] = entry, mask
            n += 1
    return n


@kernel
def count_waiting(handles: I64, fitting: I64, first: Int) -> Int:
    """Entries of the fitting groups from `first` on, dead ones included."""
    entries = entries_at(handles)
    n = np.int64(0)
    for group in fitting:
        last = entries.groups[group, GROUP_START] + entries.groups[group, GROUP_COUNT]
        n += last - first_from(entries, group, first)
    return n


@kernel
def read_entries(handles: I64, ids: I64, axes: I64, hashed: I64, hashes: I64, columns: I64) -> None:
    """Hashes of the entries' equality codes, and their coordinates, columns [2 * axes, entries], on all axes of the view."""
    entries = entries_at(handles)
    for i in range(len(ids)):
        entry = ids[i]
        group = entries.group[entry]
        found = np.int64(SEED)
        for axis in hashed:
            found = mix(found, entries.words[axis_at(entries, entry, entries.places[group, axes[axis]]) + EQUAL])
        hashes[i] = found
        for axis in range(len(axes)):
            place = entries.places[group, axes[axis]]
            if place == NONE:
                columns[2 * axis, i], columns[2 * axis + 1, i] = CODE_MIN, CODE_MIN
            else:
                at = axis_at(entries, entry, place)
                columns[2 * axis, i], columns[2 * axis + 1, i] = entries.words[at + LO], entries.words[at + NOT_HI]


@kernel
def _has_same_values(entries: Entries, a: Int, b: Int, axes: I64, hashed: I64) -> bool:
    """Whether two entries have the same values on the hashed axes."""
    words = entries.words
    for place in hashed:
        axis = axes[place]
        a_at = axis_at(entries, a, entries.places[entries.group[a], axis])
        b_at = axis_at(entries, b, entries.places[entries.group[b], axis])
        if words[a_at + EQUAL] != words[b_at + EQUAL]:
            return False
        a_text = entries.text_places[entries.group[a], axis]
        if a_text != NONE:
            x = text_at(entries, a, a_text)
            y = text_at(entries, b, entries.text_places[entries.group[b], axis])
            if not same_bytes(
                entries.text,
                words[x + LO_START],
                words[x + LO_STOP],
                entries.text,
                words[y + LO_START],
                words[y + LO_STOP],
            ):
                return False
    return True


@kernel
def cut_buckets(handles: I64, ids: I64, order: I64, hashes: I64, axes: I64, hashed: I64, bounds: I64) -> Int:
    """Cuts `order`, which sorts the entries by hash, into runs of the same values; bounds [n, 2] gets (start, stop) of each.

    Entries whose hashes are equal although their values are not are moved apart.
    """
    entries = entries_at(handles)
    n = np.int64(0)
    start = np.int64(0)
    while start < len(order):
        first = order[start]
        end = start + 1
        while end < len(order) and hashes[order[end]] == hashes[first]:
            end += 1
        stop = start + 1
        for i in range(start + 1, end):
            if _has_same_values(entries, ids[first], ids[order[i]], axes, hashed):
                order[i], order[stop] = order[stop], order[i]
                stop += 1
        bounds[n, 0], bounds[n, 1] = start, stop
        n += 1
        start = stop
    return n


@kernel
def _select(values: I64, order: I64, start: Int, stop: Int, middle: Int) -> None:
    """Rearranges order[start:stop] so that values before `middle` are at most, and those from it on at least, the one there."""
    lo, hi = start, stop - 1
    while lo < hi:
        a, b, c = values[order[lo]], values[order[(lo + hi) >> 1]], values[order[hi]]
        pivot = max(min(a, b), min(max(a, b), c))
        less, i, more = lo, lo, hi
        while i <= more:
            value = values[order[i]]
            if value < pivot:
                order[less], order[i] = order[i], order[less]
                less += 1
                i += 1
            elif value > pivot:
                order[more], order[i] = order[i], order[more]
                more -= 1
            else:
                i += 1
        if middle < less:
            hi = less - 1
        elif middle > more:
            lo = more + 1
        else:
            return


@kernel
def _varies(values: I64, order: I64, start: Int, stop: Int) -> bool:
    first = values[order[start]]
    for i in range(start + 1, stop):
        if values[order[i]] != first:
            return True
    return False


@kernel
def sort_kd(columns: I64, used: I64, order: I64, start: Int, stop: Int) -> None:
    """Puts order[start:stop] into kd order along the used columns."""
    stack = np.empty((_STACK, 3), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2] = start, stop, 0
    depth = 1
    while depth:
        depth -= 1
        first, last, turn = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        count = last - first
        if count <= LEAF:
            continue
        unit = LEAF
        while unit * FAN < count:
            unit *= FAN
        parts = (count + unit - 1) // unit
        middle = first + unit * (parts >> 1)
        for step in range(len(used)):
            column = (turn + step) % len(used)
            if _varies(columns[used[column]], order, first, last):
                _select(columns[used[column]], order, first, last, middle)
                turn = column + 1
                break
        stack[depth, 0], stack[depth, 1], stack[depth, 2] = first, middle, turn
        stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2] = middle, last, turn
        depth += 2


@kernel
def tree_words(count: Int, columns: Int) -> Int:
    """Words of the tree of a bucket with so many members; 0 if it has one leaf."""
    if count <= LEAF or columns == 0:
        return 0
    nodes = (count + LEAF - 1) // LEAF
    words = 1
    while True:
        blocks = (nodes + FAN - 1) // FAN
        words += 1 + blocks * FAN * columns
        if nodes <= FAN:
            return words
        nodes = blocks


@kernel
def _build_tree(cells: I64, start: Int, count: Int, columns: Int, tree: I64, at: Int) -> Int:
    """Writes the tree of a bucket to tree[at:]; where it ends."""
    levels = levels_of(count)
    tree[at] = levels
    place = at + 1 + levels
    nodes = (count + LEAF - 1) // LEAF
    for level in range(levels):
        tree[at + 1 + level] = place
        below = tree[at + level] if level else np.int64(0)
        for node in range(nodes):
            into = place + (node // FAN) * FAN * columns + node % FAN
            for c in range(columns):
                if level == 0:
                    size = min(LEAF, count - LEAF * node)
                    source = (start + LEAF * node) * columns + c * size
                else:
                    size = FAN
                    source = below + node * FAN * columns + c * FAN
                least = cells[source] if level == 0 else tree[source]
                for i in range(1, size):
                    value = cells[source + i] if level == 0 else tree[source + i]
                    if value < least:
                        least = value
                tree[into + c * FAN] = least
        blocks = (nodes + FAN - 1) // FAN
        # The least of a block must not be that of a node which is not there.
        for node in range(nodes, blocks * FAN):
            into = place + (node // FAN) * FAN * columns + node % FAN
            for c in range(columns):
                tree[into + c * FAN] = np.int64(2**63 - 1)
        place += blocks * FAN * columns
        nodes = blocks
    return place


@kernel
def fill_segment(
    handles: I64,
    ids: I64,
    order: I64,
    hashes: I64,
    bounds: I64,
    columns: I64,
    used: I64,
    table: I64,
    buckets: I64,
    members: I64,
    cells: I64,
    tree: I64,
) -> None:
    """Writes all of a segment. bounds: (start, stop) of each bucket in `order`; used: the columns that are kept."""
    entries = entries_at(handles)
    last_slot = (len(table) >> 1) - 1
    width = len(used)
    tree_at = np.int64(0)
    for bucket in range(len(bounds)):
        start, stop = bounds[bucket, 0], bounds[bucket, 1]
        count = stop - start
        if count > LEAF and width:
            sort_kd(columns, used, order, start, stop)
        for i in range(start, stop):
            entry = ids[order[i]]
            members[i] = entry << 32 | entries.owner[entry]
        for leaf in range((count + LEAF - 1) // LEAF):
            first = start + LEAF * leaf
            size = min(LEAF, stop - first)
            for c in range(width):
                at = first * width + c * size
                for i in range(size):
                    cells[at + i] = columns[used[c], order[first + i]]
        buckets[bucket, BUCKET_START], buckets[bucket, BUCKET_COUNT] = start, count
        buckets[bucket, BUCKET_TREE] = NONE
        if count > LEAF and width:
            buckets[bucket, BUCKET_TREE] = tree_at
            tree_at = _build_tree(cells, start, count, width, tree, tree_at)
        hashed = hashes[order[start]]
        slot = hashed & last_slot
        while table[2 * slot + 1]:
            slot = (slot + 1) & last_slot
        table[2 * slot], table[2 * slot + 1] = hashed, bucket + 1
