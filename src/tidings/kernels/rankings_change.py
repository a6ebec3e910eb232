"""Changes in batches: what each has to tell is found out first, then it is made.

A kernel that runs out of memory, or of room for what it tells, stops before the change that may need it, or takes back
what it has told of that one; and leaves word in `head`.
"""

from __future__ import annotations

from tidings.kernels import rankings_among, rankings_stairs, rankings_sweep
from tidings.kernels.arrays import pointer
from tidings.kernels.crowds_arrays import CrowdPointers, crowd_pointers
from tidings.kernels.jit import kernel
from tidings.kernels.rankings_arrays import (
    BAD_ENTRY,
    BAD_SET,
    BAD_TIE,
    BAD_X,
    BOXES,
    DONE,
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
    SET_FIELDS,
    SET_TOP,
    SIZE,
    SNAPS,
    TIE,
    U8,
    Int,
    K,
    Pointers,
    X,
    has_room,
    parts_of,
    pointers,
    root_of,
)
from tidings.kernels.rankings_blocks import block_at, rekey, seek
from tidings.kernels.rankings_insert import INSERT_BLOCKS, INSERT_LISTS, put, take
from tidings.kernels.rankings_stairs import OutputPointers

Crowd = CrowdPointers | None
"""Those who are to be told; None: whoever there may be. Compiled code knows which of the two it is for."""


@kernel
def is_taken(s: Pointers, of: Int, place: Int, x: Int, tie: Int) -> bool:
    """True if the entry at a place, if any, has just this position."""
    if place < 0:
        return False
    block, _, k = block_at(s, of, place)
    i = parts_of(place)[2]
    return bool(s.m[block + (X << k) + i] == x and s.m[block + (TIE << k) + i] == tie)


@kernel
def rise(
    s: Pointers, c: Crowd, out: OutputPointers, of: Int, place: Int, skip: Int, x: Int, y: Int, tie: Int, entry: Int
) -> None:
    """Tell what there is to tell when an entry gets a lower key, or keeps it: all points, or those of a crowd."""
    if c is None:
        rankings_stairs.rise(s, out, of, place, skip, x, y, tie, entry)
    else:
        rankings_among.rise(s, c, out, of, place, skip, x, y, tie, entry)


@kernel
def fall(
    s: Pointers,
    c: Crowd,
    out: OutputPointers,
    of: Int,
    place: Int,
    x: Int,
    y_old: Int,
    y: Int,
    tie: Int,
    is_gone: bool,
    entry: Int,
    room: Int,
) -> bool:
    """Tell what there is to tell when an entry gets a higher key, or vanishes; False if boxes may not suffice."""
    if c is None:
        return bool(rankings_sweep.fall(s, out, of, place, x, y_old, y, tie, is_gone, entry, room))
    return bool(rankings_among.fall(s, c, out, of, place, x, y_old, y, tie, is_gone, entry, room))


@kernel
def appear(
    s: Pointers, c: Crowd, out: OutputPointers, of: Int, entry: Int, place: Int, x: Int, y: Int, tie: Int
) -> None:
    """An entry of a set that was absent is there, behind a place."""
    rise(s, c, out, of, place, 0, x, y, tie, entry)
    put(s, of, place, x, y, tie, entry)
    s.entries[entry * ENTRY_FIELDS + OWNER] = of + 1
    s.head[PRESENT] += 1


@kernel
def vanish(s: Pointers, c: Crowd, out: OutputPointers, of: Int, entry: Int, place: Int, room: Int) -> bool:
    """An entry that was at a place is absent; False, and nothing done, if there may be too little room for boxes."""
    at = entry * ENTRY_FIELDS
    x, y, tie = s.entries[at + ENTRY_X], s.entries[at + ENTRY_Y], s.entries[at + ENTRY_TIE]
    if not fall(s, c, out, of, place, x, y, y, tie, True, entry, room):
        return False
    take(s, of, place)
    s.entries[at + OWNER] = 0
    s.head[PRESENT] -= 1
    return True


@kernel
def change_one(
    s: Pointers,
    c: Crowd,
    out: OutputPointers,
    of: Int,
    entry: Int,
    x: Int,
    y: Int,
    tie: Int,
    is_present: bool,
    room: Int,
) -> Int:
    """Make one change; DONE, BAD_TIE, or NEEDS_OUTPUT: then nothing has been done."""
    at = entry * ENTRY_FIELDS
    was_present = s.entries[at + OWNER] > 0
    x_old, y_old, tie_old = s.entries[at + ENTRY_X], s.entries[at + ENTRY_Y], s.entries[at + ENTRY_TIE]
    place = seek(s, of, x_old, tie_old) if was_present else -1
    if was_present and is_present and x == x_old and tie == tie_old:
        if y > y_old:
            if not fall(s, c, out, of, place, x, y_old, y, tie, False, entry, room):
                return NEEDS_OUTPUT
        else:
            rise(s, c, out, of, place, 1, x, y, tie, entry)
        if y != y_old:
            rekey(s, of, place, y_old, y, tie)
            s.entries[at + ENTRY_Y] = y
        return DONE
    behind = seek(s, of, x, tie) if is_present else -1
    if is_taken(s, of, behind, x, tie):
        return BAD_TIE
    if was_present:
        if not vanish(s, c, out, of, entry, place, room):
            return NEEDS_OUTPUT
        behind = seek(s, of, x, tie) if is_present else -1
    if is_present:
        appear(s, c, out, of, entry, behind, x, y, tie)
        s.entries[at + ENTRY_X], s.entries[at + ENTRY_Y], s.entries[at + ENTRY_TIE] = x, y, tie
    return DONE


@kernel
def fault_of(s: Pointers, of: Int, entry: Int, x: Int, is_present: bool) -> Int:
    """What is wrong with a change; DONE if nothing is."""
    if not 0 <= of < s.head[SET_TOP] or s.sets[of * SET_FIELDS + SIZE] < 0:
        return BAD_SET
    owner = s.entries[entry * ENTRY_FIELDS + OWNER]
    if owner > 0 and owner != of + 1:
        return BAD_ENTRY
    if is_present and not INT64_MIN < x < INT64_MAX:
        return BAD_X
    return DONE


@kernel
def change_all(
    s: Pointers,
    c: Crowd,
    out: OutputPointers,
    of: I64,
    changed: I64,
    xs: I64,
    ys: I64,
    ties: I64,
    is_present: U8,
    send_starts: I64,
    room: Int,
    at: Int,
) -> Int:
    """Make the changes from place `at` on; see `change`."""
    if at == 0:
        s.head[SENDS] = s.head[BOXES] = 0
    for i in range(at, of.shape[0]):
        s.head[PROGRESS] = i
        status = fault_of(s, of[i], changed[i], xs[i], is_present[i] != 0)
        if status != DONE:
            return status
        if not has_room(s, INSERT_BLOCKS, INSERT_LISTS + 4 * root_of(s, of[i])[1]):
            return NEEDS_ROOM
        sends, boxes, lookups, snaps = s.head[SENDS], s.head[BOXES], s.head[LOOKUPS], s.head[SNAPS]
        if boxes + 3 * s.head[K] > room:
            return NEEDS_OUTPUT
        status = change_one(s, c, out, of[i], changed[i], xs[i], ys[i], ties[i], is_present[i] != 0, room)
        if status != DONE:
            s.head[SENDS], s.head[BOXES], s.head[LOOKUPS], s.head[SNAPS] = sends, boxes, lookups, snaps
            return status
        send_starts[i + 1] = s.head[SENDS]
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
    """Make the changes from place `at` on; unless DONE, head[PROGRESS] is the one that it stopped at.

    The sends of change i are put to send_starts[i]:send_starts[i + 1] of sent and is_gone; the boxes of send j to
    box_starts[j]:box_starts[j + 1] of box_lo and box_hi, of which there must be as many as of sends.
    """
    s = pointers(head, sets, entries, m, work)
    out = OutputPointers(pointer(sent), pointer(is_gone), pointer(box_starts), pointer(box_lo), pointer(box_hi))
    return change_all(s, None, out, of, changed, xs, ys, ties, is_present, send_starts, box_lo.shape[0], at)


@kernel
def change_among(
    head: I64,
    sets: I64,
    entries: I64,
    m: I64,
    work: I64,
    crowd_head: I64,
    crowd_sets: I64,
    crowd_nodes: I64,
    crowd_m: I64,
    crowd_work: I64,
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
    """As `change`, for the points of crowds alone."""
    s = pointers(head, sets, entries, m, work)
    c = crowd_pointers(crowd_head, crowd_sets, crowd_nodes, crowd_m, crowd_work)
    out = OutputPointers(pointer(sent), pointer(is_gone), pointer(box_starts), pointer(box_lo), pointer(box_hi))
    return change_all(s, c, out, of, changed, xs, ys, ties, is_present, send_starts, box_lo.shape[0], at)
