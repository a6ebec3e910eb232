"""Who must be told what after a batch of changes.

Let i have been held, before the batch, by the points in old(i), and be held now by those in new(i). Let now(i) be those
that would still hold i as it was before. Told are, in this order:

  1. of entries gone from their x, that they are: old(i) where it is in now(i), but not in new(i)
  2. of entries that fell, the highest key first, what they are: new(i), and old(i) where it is in now(i)
  3. of all others that were touched and are there, what they are: new(i)
  4. of entries that were not touched: new(i) where it is not in old(i)

Why this is enough. Take a point, and what it shall hold. All sends of what it shall not hold come first, as in 2. the keys
of those are the higher ones; none of them adds an entry. Then all it holds is to be held, or is *behind*: with a key above
those of k entries of its range as they are now. As long as there are more than k, one is behind, so what is dropped is
behind or has a key above that of one that is, and so is still to be told as it is now. And nobody is told in vain: those
of 1. and 2. would keep the entry for good.

The entries of 4. are found by sweeps (see rankings_net_meet).
"""

from __future__ import annotations

from tidings.kernels.arrays import pointer
from tidings.kernels.jit import kernel
from tidings.kernels.rankings_arrays import (
    BOXES,
    DONE,
    ENTRY_TIE,
    ENTRY_X,
    ENTRY_Y,
    I64,
    INT64_MAX,
    NEEDS_OUTPUT,
    OWNER,
    PROGRESS,
    U8,
    Int,
    K,
    Pointers,
    pointers,
)
from tidings.kernels.rankings_net_gather import NEW, NUMBER, OLD, TOUCHED_FIELDS
from tidings.kernels.rankings_net_lows import edges_around, lows_around
from tidings.kernels.rankings_net_meet import Batch, meet
from tidings.kernels.rankings_net_steps import SEND_BOXES, paint, write_steps
from tidings.kernels.rankings_stairs import OutputPointers, send, send_stairs

SCRATCH = 3
"""Rows of steps behind those kept: now(i), new(i), and no steps at all."""


@kernel
def tell_gone(
    s: Pointers, out: OutputPointers, b: Batch, count: Int, r: Int, old: Int, scratch: Int, width: Int
) -> Int:
    """Tell that an entry is gone from its x: row r of `touched`, with its old steps."""
    now, new, none = scratch, scratch + width, scratch + 2 * width
    was, then = r * TOUCHED_FIELDS + OLD, r * TOUCHED_FIELDS + NEW
    x, y, tie = b.touched[was + ENTRY_X], b.touched[was + ENTRY_Y], b.touched[was + ENTRY_TIE]
    if b.steps[old] == 0:
        return count
    of = b.touched[was + OWNER] - 1
    lefts, rights = lows_around(s, of, x, y, tie)
    write_steps(s, b.steps, now, x, lefts, x)
    count, _ = meet(s, b, count, old, of, x, y, tie, True, lefts, rights)
    boxes, x_new = s.head[BOXES], b.touched[then + ENTRY_X]
    b.steps[new] = 0
    if b.touched[then + OWNER] > 0:
        lefts = edges_around(s, of, x_new, b.touched[then + ENTRY_Y], b.touched[then + ENTRY_TIE])
        write_steps(s, b.steps, new, x_new, lefts, x)
    if x_new > x and b.steps[new] > 0:
        boxes = paint(s, out, boxes, b.steps, old, now, none, False, x, x, x_new - 1)
        boxes = paint(s, out, boxes, b.steps, old, now, new, False, x, x_new, INT64_MAX)
    else:
        boxes = paint(s, out, boxes, b.steps, old, now, new, False, x, x, INT64_MAX)
    send(s, out, b.touched[r * TOUCHED_FIELDS + NUMBER], True, boxes)
    return count


@kernel
def tell_fallen(
    s: Pointers, out: OutputPointers, b: Batch, count: Int, r: Int, old: Int, scratch: Int, width: Int
) -> Int:
    """Tell of an entry that has a higher key at the same x."""
    now, new = scratch, scratch + width
    was, then = r * TOUCHED_FIELDS + OLD, r * TOUCHED_FIELDS + NEW
    of, x = b.touched[was + OWNER] - 1, b.touched[was + ENTRY_X]
    lefts, rights = lows_around(s, of, x, b.touched[was + ENTRY_Y], b.touched[was + ENTRY_TIE])
    write_steps(s, b.steps, now, x, lefts, x)
    count, lefts = meet(
        s, b, count, old, of, x, b.touched[then + ENTRY_Y], b.touched[then + ENTRY_TIE], False, lefts, rights
    )
    # The low entries are now those of the new key, or so many that nobody holds the entry any more.
    write_steps(s, b.steps, new, x, lefts, x)
    boxes = paint(s, out, s.head[BOXES], b.steps, old, now, new, True, x, x, INT64_MAX)
    send(s, out, b.touched[r * TOUCHED_FIELDS + NUMBER], False, boxes)
    return count


@kernel
def tell_placed(s: Pointers, out: OutputPointers, b: Batch, r: Int) -> None:
    """Tell of an entry to all that hold it."""
    then = r * TOUCHED_FIELDS + NEW
    of, x = b.touched[then + OWNER] - 1, b.touched[then + ENTRY_X]
    lefts = edges_around(s, of, x, b.touched[then + ENTRY_Y], b.touched[then + ENTRY_TIE])
    send_stairs(s, out, x, lefts, b.touched[r * TOUCHED_FIELDS + NUMBER], False)


@kernel
def tell(
    head: I64,
    sets: I64,
    entries: I64,
    m: I64,
    work: I64,
    touched: I64,
    slots: I64,
    met: I64,
    kept: I64,
    order: I64,
    gone: Int,
    fallen: Int,
    sent: I64,
    is_gone: U8,
    box_starts: I64,
    box_lo: I64,
    box_hi: I64,
    at: Int,
    count: Int,
) -> tuple[Int, Int]:
    """Tell of the rows of `touched` in the given order, from place `at` on: so many gone, so many fallen, then others.

    The sets are in the new state; `kept` has the old steps of those gone or fallen, and SCRATCH rows. `met` has `count`
    entries. Returns DONE or, if head[PROGRESS] is yet to be told of, NEEDS_OUTPUT; and the new count.
    """
    s = pointers(head, sets, entries, m, work)
    out = OutputPointers(pointer(sent), pointer(is_gone), pointer(box_starts), pointer(box_lo), pointer(box_hi))
    b = Batch(pointer(touched), pointer(slots), pointer(met), pointer(kept))
    width = kept.shape[1]
    scratch = (gone + fallen) * width
    kept[gone + fallen + 2, 0] = 0
    for q in range(at, order.shape[0]):
        if head[BOXES] + SEND_BOXES * (head[K] + 1) > box_lo.shape[0]:
            head[PROGRESS] = q
            return NEEDS_OUTPUT, count
        if q < gone:
            count = tell_gone(s, out, b, count, order[q], q * width, scratch, width)
        elif q < gone + fallen:
            count = tell_fallen(s, out, b, count, order[q], q * width, scratch, width)
        else:
            tell_placed(s, out, b, order[q])
    return DONE, count


@kernel
def expose(
    head: I64,
    sets: I64,
    entries: I64,
    m: I64,
    work: I64,
    met: I64,
    kept: I64,
    sent: I64,
    is_gone: U8,
    box_starts: I64,
    box_lo: I64,
    box_hi: I64,
    at: Int,
) -> Int:
    """Tell of entries not touched, from place `at` on, to those who did not hold them; DONE, or NEEDS_OUTPUT as above.

    The sets are in the old state; `kept` has the new steps, and a row more.
    """
    s = pointers(head, sets, entries, m, work)
    out = OutputPointers(pointer(sent), pointer(is_gone), pointer(box_starts), pointer(box_lo), pointer(box_hi))
    t, width = pointer(kept), kept.shape[1]
    old = met.shape[0] * width
    for i in range(at, met.shape[0]):
        if head[BOXES] + SEND_BOXES * (head[K] + 1) > box_lo.shape[0]:
            head[PROGRESS] = i
            return NEEDS_OUTPUT
        of, x = entries[met[i], OWNER] - 1, entries[met[i], ENTRY_X]
        lefts = edges_around(s, of, x, entries[met[i], ENTRY_Y], entries[met[i], ENTRY_TIE])
        write_steps(s, t, old, x, lefts, x)
        boxes = paint(s, out, head[BOXES], t, i * width, i * width, old, False, x, x, INT64_MAX)
        send(s, out, met[i], False, boxes)
    return DONE
