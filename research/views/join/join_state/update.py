"""How what a view holds changes: a row comes, goes, or takes the place of another with its key."""

from __future__ import annotations

import numpy as np

from research.views.join.join_state.layout import (
    BUCKET_FIRSTS,
    BUCKET_WORDS,
    ENTRIES,
    HOLDERS,
    KEY,
    LAST,
    LINK_LAST,
    LINK_NEXT,
    LINKS,
    LOW,
    NAME,
    NEXT,
    RELATION,
    ROW,
    UNUSED,
    VALUES,
    WORDS,
    find,
    has_room,
    locate,
    record_free,
    record_new,
    with_room,
)
from tidings.kernels.jit import kernel
from tidings.kernels.rows import I32, I64, NONE, Int


@kernel
def hold(
    head: I64,
    firsts: I32,
    memory: I32,
    table: I64,
    rows: I32,
    layout: I64,
    view: Int,
    entry: Int,
    key: Int,
    row: Int,
) -> None:
    """Lets a view hold a row instead of what it holds of the row's key, which `entry` is; either may be NONE. There is room."""
    old = NONE if entry == NONE else memory[entry + ROW]
    if old == row:
        return
    relation = rows[old if row == NONE else row, RELATION]
    if entry == NONE:
        entry, first = record_new(head, memory, table, relation, layout[relation, WORDS], view, key), firsts[view]
        memory[entry + NEXT], memory[entry + LAST] = first, NONE
        if first != NONE:
            memory[first + LAST] = entry
        firsts[view] = entry
        head[ENTRIES] += 1
    edges = (layout.shape[1] - LINKS) // 2
    bucket_kind = layout.shape[0] - 1
    for edge in range(edges):
        link = layout[relation, LINKS + edge]
        if link == NONE:
            continue
        before = NONE if old == NONE else rows[old, VALUES + edge]
        after = NONE if row == NONE else rows[row, VALUES + edge]
        if before == after:
            continue
        link += entry
        first_at = layout[relation, LINKS + edges + edge]
        if before != NONE:
            following, leading = memory[link + LINK_NEXT], memory[link + LINK_LAST]
            if following != NONE:
                memory[following + (link - entry) + LINK_LAST] = leading
            if leading != NONE:
                memory[leading + (link - entry) + LINK_NEXT] = following
            else:
                at = locate(memory, table, view, before)
                bucket = table[at] & LOW
                memory[bucket + first_at] = following
                if memory[bucket + BUCKET_FIRSTS] == NONE and memory[bucket + BUCKET_FIRSTS + 1] == NONE:
                    record_free(head, memory, table, bucket_kind, at)
        if after != NONE:
            bucket = find(memory, table, view, after)
            if bucket == NONE:
                bucket = record_new(head, memory, table, bucket_kind, BUCKET_WORDS, view, after)
                memory[bucket + BUCKET_FIRSTS] = memory[bucket + BUCKET_FIRSTS + 1] = NONE
            following = memory[bucket + first_at]
            memory[link + LINK_NEXT], memory[link + LINK_LAST] = following, NONE
            if following != NONE:
                memory[following + (link - entry) + LINK_LAST] = entry
            memory[bucket + first_at] = entry
    memory[entry + ROW] = row
    if row == NONE:
        following, leading = memory[entry + NEXT], memory[entry + LAST]
        if leading == NONE:
            firsts[view] = following
        else:
            memory[leading + NEXT] = following
        if following != NONE:
            memory[following + LAST] = leading
        head[ENTRIES] -= 1
        record_free(head, memory, table, relation, locate(memory, table, view, key))
    else:
        head[UNUSED] -= rows[row, HOLDERS] == 0
        rows[row, HOLDERS] += 1
    if old != NONE:
        rows[old, HOLDERS] -= 1
        head[UNUSED] += rows[old, HOLDERS] == 0


@kernel
def fill(
    head: I64, firsts: I32, memory: I32, table: I64, rows: I32, layout: I64, views: I64, starts: I64, held: I64
) -> tuple[I32, I64]:
    """Lets views[i] hold held[starts[i]:starts[i + 1]] and nothing else; gives memory and table.

    Of rows with one key the last counts.
    """
    for i in range(len(views)):
        view = views[i]
        while firsts[view] != NONE:
            entry = firsts[view]
            hold(head, firsts, memory, table, rows, layout, view, entry, memory[entry + NAME], NONE)
        for at in range(starts[i], starts[i + 1]):
            if not has_room(head, memory, table, layout, 1):
                memory, table = with_room(head, memory, table, layout, 1)
            key = rows[held[at], KEY]
            hold(head, firsts, memory, table, rows, layout, view, find(memory, table, view, key), key, held[at])
    return memory, table


@kernel
def read(firsts: I32, memory: I32, views: I64) -> tuple[I64, I32]:
    """(starts, rows): views[i] holds rows[starts[i]:starts[i + 1]]."""
    starts = np.zeros(len(views) + 1, np.int64)
    for i in range(len(views)):
        starts[i + 1], entry = starts[i], firsts[views[i]]
        while entry != NONE:
            starts[i + 1] += 1
            entry = memory[entry + NEXT]
    held = np.empty(starts[-1], np.int32)
    for i in range(len(views)):
        at, entry = starts[i], firsts[views[i]]
        while entry != NONE:
            held[at] = memory[entry + ROW]
            at, entry = at + 1, memory[entry + NEXT]
    return starts, held
