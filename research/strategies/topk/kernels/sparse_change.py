"""Changes in batches, as those of `RangeTopkIndex`, sent only to points that a kd-tree knows."""

from __future__ import annotations

from research.strategies.topk.kernels.plane_kdtree.layout import TreePointers, tree_pointers
from research.strategies.topk.kernels.range_topk.layout import (
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
    SET_COUNT,
    SIDES,
    U8,
    Int,
    K,
    OutputPointers,
    Pointers,
    pointers,
)
from research.strategies.topk.kernels.range_topk.sequence import (
    has_room,
    insert,
    is_taken,
    rekey,
    remove,
    seek,
)
from research.strategies.topk.kernels.range_topk.staircase import lows_around
from research.strategies.topk.kernels.sparse import send_stairs, sweep
from research.strategies.topk.kernels.sparse_layout import SNAPS
from tidings.kernels.intrinsics import pointer
from tidings.kernels.jit import kernel


@kernel
def send_change(
    s: Pointers,
    c: TreePointers,
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
    send_stairs(s, c, out, of, x, lefts, rights, entry, is_gone)
    return bool(not falls or sweep(s, c, out, of, x, y, tie, is_gone, lefts, rights, room))


@kernel
def change_one(
    s: Pointers,
    c: TreePointers,
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
        if not send_change(s, c, out, of, place, True, x, y_old, y, tie, False, entry, room):
            return NEEDS_OUTPUT
        if y != y_old:
            rekey(s, of, place, y_old, y, tie)
            s.entries[at + ENTRY_Y] = y
        return DONE
    if is_present and is_taken(s, of, seek(s, of, x, tie), x, tie):
        return BAD_TIE
    # An entry that moves is gone from where it was, and then appears where it is.
    if was_present:
        if not send_change(s, c, out, of, place, True, x_old, y_old, y_old, tie_old, True, entry, room):
            return NEEDS_OUTPUT
        remove(s, of, place)
        s.entries[at + OWNER] = 0
        s.head[PRESENT] -= 1
    if is_present:
        place = seek(s, of, x, tie)
        send_change(s, c, out, of, place, False, x, y, y, tie, False, entry, room)
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
    tree_head: I64,
    tree_sets: I64,
    tree_nodes: I64,
    tree_m: I64,
    tree_work: I64,
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
    box_starts[j]:box_starts[j + 1] of box_lo and box_hi, which have as much room as there is for sends. Only
    the points of the kd-tree count.
    """
    s = pointers(head, sets, entries, m, work)
    c = tree_pointers(tree_head, tree_sets, tree_nodes, tree_m, tree_work)
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
        sends, boxes, lookups, snaps, sides = head[SENDS], head[BOXES], head[LOOKUPS], head[SNAPS], head[SIDES]
        if boxes + 3 * head[K] > room:
            return NEEDS_OUTPUT
        status = change_one(s, c, out, of[i], changed[i], xs[i], ys[i], ties[i], is_present[i] != 0, room)
        if status != DONE:
            head[SENDS], head[BOXES], head[LOOKUPS], head[SNAPS], head[SIDES] = sends, boxes, lookups, snaps, sides
            return status
        send_starts[i + 1] = head[SENDS]
    return DONE
