"""Changes in batches: what each has to send is found out first, then it is made. And the best entries of ranges.

A kernel that runs out of memory, or of room for what it sends, stops before the change that may need it, or takes back
what it has sent for that one; and leaves word in `head`.
"""

from __future__ import annotations

import numpy as np

from research.strategies.topk.kernels.range_topk import staircase
from research.strategies.topk.kernels.range_topk.layout import (
    BAD_ENTRY,
    BAD_SET,
    BAD_TIE,
    BAD_X,
    BOXES,
    DONE,
    ENTRY,
    ENTRY_FIELDS,
    ENTRY_TIE,
    ENTRY_X,
    ENTRY_Y,
    I64,
    INT64_MAX,
    INT64_MIN,
    LOOKUPS,
    NEEDS_OUTPUT,
    NEEDS_ROOM,
    OWNER,
    PRESENT,
    PROGRESS,
    SENDS,
    SET_COUNT,
    SIDES,
    TIE,
    U8,
    Int,
    K,
    OutputPointers,
    Pointers,
    block_at,
    parts_of,
    pointers,
    root_of,
)
from research.strategies.topk.kernels.range_topk.sequence import (
    describe_block,
    has_room,
    insert,
    is_taken,
    least_between,
    rekey,
    remove,
    resolve,
    seek,
)
from research.strategies.topk.kernels.range_topk.staircase import lows_around
from tidings.kernels.intrinsics import pointer
from tidings.kernels.jit import kernel

# Fields of a gap between best entries: from a place up to another, and its lowest entry.
START, END, GAP_Y, GAP_TIE, GAP_PLACE, GAP_FIELDS = range(6)


@kernel
def send_change(
    s: Pointers,
    out: OutputPointers,
    of: Int,
    place: Int,
    was_there: bool,
    x: Int,
    y_old: Int,
    y: Int,
    tie: Int,
    is_gone: bool,
    entry: Int,
    room: Int,
) -> bool:
    """Sends what there is to send when the key of an entry becomes (y, tie); False if boxes may not suffice.

    The entry is at a place and had the key (y_old, tie), or was absent and is to be inserted behind it. All points get
    it that hold it now or held it before. If its key grows or it is gone, others take its place (`sweep`).
    """
    falls = is_gone or (was_there and y > y_old)
    lefts, rights = lows_around(s, of, place, 1 if was_there else 0, x, y_old if falls else y, tie)
    staircase.send_stairs(s, out, x, lefts, entry, is_gone)
    return bool(not falls or staircase.sweep(s, out, of, x, y, tie, is_gone, lefts, rights, room))


@kernel
def change_one(
    s: Pointers,
    out: OutputPointers,
    of: Int,
    entry: Int,
    x: Int,
    y: Int,
    tie: Int,
    is_present: bool,
    room: Int,
) -> Int:
    """Makes one change; DONE, BAD_TIE, or NEEDS_OUTPUT: then nothing has been done but sending."""
    at = entry * ENTRY_FIELDS
    was_present = s.entries[at + OWNER] > 0
    x_old, y_old, tie_old = s.entries[at + ENTRY_X], s.entries[at + ENTRY_Y], s.entries[at + ENTRY_TIE]
    place = seek(s, of, x_old, tie_old) if was_present else -1
    if was_present and is_present and x == x_old and tie == tie_old:
        if not send_change(s, out, of, place, True, x, y_old, y, tie, False, entry, room):
            return NEEDS_OUTPUT
        if y != y_old:
            rekey(s, of, place, y_old, y, tie)
            s.entries[at + ENTRY_Y] = y
        return DONE
    if is_present and is_taken(s, of, seek(s, of, x, tie), x, tie):
        return BAD_TIE
    # An entry that moves is gone from where it was, and then appears where it is.
    if was_present:
        if not send_change(s, out, of, place, True, x_old, y_old, y_old, tie_old, True, entry, room):
            return NEEDS_OUTPUT
        remove(s, of, place)
        s.entries[at + OWNER] = 0
        s.head[PRESENT] -= 1
    if is_present:
        place = seek(s, of, x, tie)
        send_change(s, out, of, place, False, x, y, y, tie, False, entry, room)
        insert(s, of, place, x, y, tie, entry)
        s.entries[at + OWNER] = of + 1
        s.entries[at + ENTRY_X], s.entries[at + ENTRY_Y], s.entries[at + ENTRY_TIE] = x, y, tie
        s.head[PRESENT] += 1
    return DONE


@kernel
def change(
    head: I64,
    sets: I64,
    entries: I64,
    m: I64,
    work: I64,
    of: I64,
    changed: I64,
    xs: I64,
    ys: I64,
    ties: I64,
    is_present: U8,
    send_starts: I64,
    sent: I64,
    is_gone: U8,
    box_starts: I64,
    box_lo: I64,
    box_hi: I64,
    at: Int,
) -> Int:
    """Makes the changes from place `at` on; unless DONE, go on with head[PROGRESS] when what is reported is seen to.

    The sends of change i are put to send_starts[i]:send_starts[i + 1] of sent and is_gone; the boxes of send j to
    box_starts[j]:box_starts[j + 1] of box_lo and box_hi, which have as much room as there is for sends.
    """
    s = pointers(head, sets, entries, m, work)
    out = OutputPointers(pointer(sent), pointer(is_gone), pointer(box_starts), pointer(box_lo), pointer(box_hi))
    room = box_lo.shape[0]
    if at == 0:
        head[SENDS] = head[BOXES] = 0
    for i in range(at, of.shape[0]):
        head[PROGRESS] = i
        if not 0 <= of[i] < head[SET_COUNT]:
            return BAD_SET
        owner = entries[changed[i], OWNER]
        if owner > 0 and owner != of[i] + 1:
            return BAD_ENTRY
        if is_present[i] and not INT64_MIN < xs[i] < INT64_MAX:
            return BAD_X
        if not has_room(s, of[i]):
            return NEEDS_ROOM
        sends, boxes, lookups, sides = head[SENDS], head[BOXES], head[LOOKUPS], head[SIDES]
        if boxes + 3 * head[K] > room:
            return NEEDS_OUTPUT
        status = change_one(s, out, of[i], changed[i], xs[i], ys[i], ties[i], is_present[i] != 0, room)
        if status != DONE:
            head[SENDS], head[BOXES], head[LOOKUPS], head[SIDES] = sends, boxes, lookups, sides
            return status
        send_starts[i + 1] = head[SENDS]
    return DONE


@kernel
def add_gap(s: Pointers, gaps: I64, n: Int, root: Int, kr: Int, start: Int, end: Int) -> Int:
    """Writes a gap behind n others, if it has entries; returns how many there are then."""
    if start >= end:
        return n
    y, tie, least = least_between(s, root, kr, start, end)
    if least < 0:
        return n
    gaps[n, START], gaps[n, END] = start, end
    gaps[n, GAP_Y], gaps[n, GAP_TIE], gaps[n, GAP_PLACE] = y, tie, least
    return n + 1


@kernel
def best_of(s: Pointers, gaps: I64, of: Int, lo: Int, hi: Int, found: I64, at: Int) -> Int:
    """Writes the best entries of a range, lowest key first, from place `at` on; returns where they end.

    First the lowest of the range, then again and again the lowest of the gaps that are left beside those.
    """
    root, nodes, kr = root_of(s, of)
    if nodes == 0 or lo > hi:
        return at
    # NOWHERE is -1: behind that is the place of the first entry.
    start = 0 if lo == INT64_MIN else seek(s, of, lo - 1, INT64_MAX) + 1
    n = add_gap(s, gaps, 0, root, kr, start, seek(s, of, hi, INT64_MAX) + 1)
    last = at + s.head[K]
    while n and at < last:
        g = 0
        for other in range(1, n):
            if gaps[other, GAP_Y] < gaps[g, GAP_Y] or (
                gaps[other, GAP_Y] == gaps[g, GAP_Y] and gaps[other, GAP_TIE] < gaps[g, GAP_TIE]
            ):
                g = other
        start, end = gaps[g, START], gaps[g, END]
        place = resolve(s, root, kr, gaps[g, GAP_PLACE], gaps[g, GAP_Y], gaps[g, GAP_TIE])
        block, _, k = block_at(s, of, place)
        found[at] = s.m[block + (ENTRY << k) + parts_of(place)[2]]
        at += 1
        n -= 1
        gaps[g] = gaps[n]
        if at < last:
            n = add_gap(s, gaps, n, root, kr, start, place)
            n = add_gap(s, gaps, n, root, kr, place + 1, end)
    return at


@kernel
def best(
    head: I64, sets: I64, entries: I64, m: I64, work: I64, of: I64, los: I64, his: I64, starts: I64, found: I64
) -> Int:
    """The best entries of each range, at starts[i]:starts[i + 1] of `found`, that has room for k each; DONE or BAD_SET."""
    s = pointers(head, sets, entries, m, work)
    gaps = np.empty((head[K] + 2, GAP_FIELDS), np.int64)
    at = 0
    for i in range(of.shape[0]):
        if not 0 <= of[i] < head[SET_COUNT]:
            head[PROGRESS] = i
            return BAD_SET
        at = best_of(s, gaps, of[i], los[i], his[i], found, at)
        starts[i + 1] = at
    return DONE


@kernel
def retie(head: I64, sets: I64, entries: I64, m: I64, work: I64, of: I64, changed: I64, ties: I64) -> Int:
    """Gives entries other ties, which leave all in the same order; DONE, or BAD_ENTRY: then nothing is done."""
    s = pointers(head, sets, entries, m, work)
    for i in range(changed.shape[0]):
        if entries[changed[i], OWNER] != of[i] + 1:
            head[PROGRESS] = i
            return BAD_ENTRY
    # All are looked up by the old ties before any has a new one.
    places = np.empty(changed.shape[0], np.int64)
    for i in range(changed.shape[0]):
        places[i] = seek(s, of[i], entries[changed[i], ENTRY_X], entries[changed[i], ENTRY_TIE])
    for i in range(changed.shape[0]):
        block, _, k = block_at(s, of[i], places[i])
        m[block + (TIE << k) + parts_of(places[i])[2]] = ties[i]
        entries[changed[i], ENTRY_TIE] = ties[i]
    for i in range(changed.shape[0]):
        ni, bi, _ = parts_of(places[i])
        describe_block(s, of[i], ni, bi)
    return DONE
