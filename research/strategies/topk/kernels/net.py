"""The net effect of a batch of changes: who must be sent what, whatever happened in between.

Let i have been held, before the batch, by the points in old(i), and be held now by those in new(i). Let now(i) be those
that would still hold i as it was before. Sent are, in this order:

  1. of entries gone from their x, that they are gone: old(i) where it is in now(i), but not in new(i)
  2. of entries that fell, the highest key first, what they are: new(i), and old(i) where it is in now(i)
  3. of all others that were touched and are there, what they are: new(i)
  4. of entries that were not touched: new(i) where it is not in old(i)

Why this is enough. Take a point, and what it shall hold. All sends of what it shall not hold come first, as in 2. the keys
of those are the higher ones; none of them adds an entry. Then all it holds is to be held, or is *behind*: with a key above
those of k entries of its range as they are now. As long as there are more than k, one is behind, so what is dropped is
behind or has a key above that of one that is, and so is still to be sent as it is now. And nobody is sent anything in vain:
those of 1. and 2. would keep the entry for good.

The entries of 4. are met by sweeps through all points that would still hold an entry, gone or fallen, as it was. Several of
a point's entries may be gone at once, so one met may be not just the last that the point holds but any: who really gets it
is found out at the end, once for all sweeps. Where it is known who is there, a sweep looks for those that these may cover.

A staircase is kept as its *profile*, so that those of two states can be compared: for each lo up to x, hi goes from x up to
a top, which does not grow as lo falls. From right to left each step has its least lo and its top:

    n, then lo of n steps, then top of n steps; room for k + 1 of each
"""

from __future__ import annotations

from typing import Any, NamedTuple

from research.strategies.topk.kernels.plane_kdtree.layout import LEFT_LO, LISTED, RIGHT_HI, TreePointers, tree_pointers
from research.strategies.topk.kernels.range_topk.layout import (
    BAD_ENTRY,
    BAD_SET,
    BAD_TIE,
    BAD_X,
    BOXES,
    DONE,
    EDGE,
    ENTRY_FIELDS,
    ENTRY_TIE,
    ENTRY_X,
    ENTRY_Y,
    I64,
    INT64_MAX,
    INT64_MIN,
    LEFT,
    LOW_TIE,
    LOW_X,
    NEEDS_OUTPUT,
    NEEDS_ROOM,
    OWNER,
    PRESENT,
    PROGRESS,
    RIGHT,
    SET_COUNT,
    TIE,
    U8,
    Int,
    K,
    OutputPointers,
    Pointers,
    X,
    Y,
    child_of,
    parts_of,
    pointers,
    root_of,
    side_of,
)
from research.strategies.topk.kernels.range_topk.sequence import has_room, insert, is_taken, rekey, remove, seek
from research.strategies.topk.kernels.range_topk.staircase import (
    enter_low,
    find_lowest,
    lows_around,
    next_on_stairs,
    put_box,
    send,
    send_stairs,
)
from research.strategies.topk.kernels.sparse import follow
from tidings.kernels.intrinsics import pointer
from tidings.kernels.jit import kernel

# A row of `touched` is an entry, its row of `entries` before the batch, and that after it. An entry that was in one set and
# is in another then has two rows: it leaves the one, and enters the other.
NUMBER, OLD, NEW, TOUCHED_FIELDS = 0, 1, 1 + ENTRY_FIELDS, 1 + 2 * ENTRY_FIELDS

NO_TOP = INT64_MIN
"""A top that is below all points."""
SEND_BOXES = 6
"""A send has at most so many times k + 1 boxes: those between the steps of three staircases, in two parts."""
SCRATCH = 3
"""Rows of profiles behind those kept: now(i), new(i), and one without steps."""
MET = -1
"""In `slots`: the entry has not been touched, but may take the place of another."""


class Batch(NamedTuple):
    """What is known of a batch, as pointers."""

    touched: Any
    slots: Any
    """[entries] number of the first row of `touched` plus 1, MET, or 0."""
    met: Any
    """Entries that have not been touched, but may have to be sent."""
    profiles: Any


def profile_words(k: int) -> int:
    """Words of a profile."""
    return 2 * k + 3


@kernel
def gather(
    head: I64,
    entries: I64,
    of: I64,
    changed: I64,
    xs: I64,
    ys: I64,
    ties: I64,
    is_present: U8,
    slots: I64,
    touched: I64,
) -> tuple[Int, Int]:
    """Writes what changes come to to `touched`, with room for twice as many rows; DONE or what is wrong, and how many rows.

    slots[entry], 0 before, is then the number of the entry's first row plus 1. Nothing is changed but these two.
    """
    n = 0
    for i in range(of.shape[0]):
        entry, status = changed[i], DONE
        if slots[entry] == 0:
            touched[n, NUMBER] = entry
            touched[n, OLD:NEW] = touched[n, NEW:] = entries[entry]
            n += 1
            slots[entry] = n
        r = slots[entry] - 1
        if not 0 <= of[i] < head[SET_COUNT]:
            status = BAD_SET
        elif touched[r, NEW + OWNER] > 0 and touched[r, NEW + OWNER] != of[i] + 1:
            status = BAD_ENTRY
        elif is_present[i] and not INT64_MIN < xs[i] < INT64_MAX:
            status = BAD_X
        if status != DONE:
            head[PROGRESS] = i
            return status, n
        touched[r, NEW + OWNER] = of[i] + 1 if is_present[i] else 0
        if is_present[i]:
            touched[r, NEW + ENTRY_X], touched[r, NEW + ENTRY_Y], touched[r, NEW + ENTRY_TIE] = xs[i], ys[i], ties[i]
    last = n
    for r in range(n):
        before, after = touched[r, OLD + OWNER], touched[r, NEW + OWNER]
        if before > 0 and after > 0 and before != after:
            touched[last] = touched[r]
            touched[last, OLD + OWNER] = touched[r, NEW + OWNER] = 0
            last += 1
    return DONE, last


@kernel
def settle(head: I64, sets: I64, entries: I64, m: I64, work: I64, touched: I64, state: Int) -> Int:
    """Makes entries what they are in one state, OLD or NEW, and sends nothing.

    Begins with what they are, so it goes on where it has stopped, or back. DONE, NEEDS_ROOM, or BAD_TIE of the row
    head[PROGRESS].
    """
    s = pointers(head, sets, entries, m, work)
    # Those that go make place first: another may come to just where one was.
    for r in range(touched.shape[0]):
        entry = touched[r, NUMBER]
        owner, x, tie = entries[entry, OWNER], entries[entry, ENTRY_X], entries[entry, ENTRY_TIE]
        y, y_old = touched[r, state + ENTRY_Y], entries[entry, ENTRY_Y]
        if owner == 0:
            continue
        of = owner - 1
        if (
            owner == touched[r, state + OWNER]
            and x == touched[r, state + ENTRY_X]
            and tie == touched[r, state + ENTRY_TIE]
        ):
            if y != y_old:
                rekey(s, of, seek(s, of, x, tie), y_old, y, tie)
                entries[entry, ENTRY_Y] = y
            continue
        if not has_room(s, of):
            return NEEDS_ROOM
        remove(s, of, seek(s, of, x, tie))
        entries[entry, OWNER] = 0
        head[PRESENT] -= 1
    for r in range(touched.shape[0]):
        entry, of = touched[r, NUMBER], touched[r, state + OWNER] - 1
        x, y, tie = touched[r, state + ENTRY_X], touched[r, state + ENTRY_Y], touched[r, state + ENTRY_TIE]
        if of < 0 or entries[entry, OWNER] > 0:
            continue
        behind = seek(s, of, x, tie)
        if is_taken(s, of, behind, x, tie):
            head[PROGRESS] = r
            return BAD_TIE
        if not has_room(s, of):
            return NEEDS_ROOM
        insert(s, of, behind, x, y, tie, entry)
        entries[entry, OWNER], entries[entry, ENTRY_X] = of + 1, x
        entries[entry, ENTRY_Y], entries[entry, ENTRY_TIE] = y, tie
        head[PRESENT] += 1
    return DONE


@kernel
def skip(s: Pointers, ys: Int, ties: Int, i: Int, end: Int, step: Int, y: Int, tie: Int) -> Int:
    """Goes from number i in steps of 1 or -1, up to a key below (y, tie); returns the number of that, or `end`."""
    while i != end:
        other = s.m[ys + i]
        if other <= y and (other < y or s.m[ties + i] < tie):
            break
        i += step
    return i


@kernel
def find_edges(s: Pointers, of: Int, side: Int, ni: Int, bi: Int, i: Int, y: Int, tie: Int) -> Int:
    """Like staircase.find_lows, but writes only LOW_X and EDGE of the low entries; returns how many."""
    at, stride = side_of(s, side)
    step = 2 * side - 1
    root, nodes, kr = root_of(s, of)
    node, blocks, kn = child_of(s, root, kr, ni)
    block, size, k = child_of(s, node, kn, bi)
    n = 0
    while True:
        while True:
            i = skip(s, block + (Y << k), block + (TIE << k), i, -1 if step < 0 else size, step, y, tie)
            if not 0 <= i < size:
                break
            n += 1
            x = s.m[block + (X << k) + i]
            s.work[at + LOW_X * stride + n], s.work[at + EDGE * stride + n] = x, x - step
            if n == s.head[K]:
                return n
            i += step
        bi = skip(s, node + (Y << kn), node + (LOW_TIE << kn), bi + step, -1 if step < 0 else blocks, step, y, tie)
        if not 0 <= bi < blocks:
            ni = skip(s, root + (Y << kr), root + (LOW_TIE << kr), ni + step, -1 if step < 0 else nodes, step, y, tie)
            if not 0 <= ni < nodes:
                return n
            node, blocks, kn = child_of(s, root, kr, ni)
            first, end = (blocks - 1, -1) if step < 0 else (0, blocks)
            bi = skip(s, node + (Y << kn), node + (LOW_TIE << kn), first, end, step, y, tie)
        block, size, k = child_of(s, node, kn, bi)
        i = size - 1 if step < 0 else 0


@kernel
def edges_around(s: Pointers, of: Int, x: Int, y: Int, tie: Int) -> Int:
    """Finds the low entries of a key at a position, without what a sweep needs; how many are on the left."""
    behind = seek(s, of, x, tie)
    ni, bi, i = parts_of(behind) if behind >= 0 else (0, 0, -1)
    lefts = 0
    for side in range(2):
        at, stride = side_of(s, side)
        s.work[at + LOW_X * stride] = x
        n = find_edges(s, of, side, ni, bi, i + side, y, tie) if root_of(s, of)[1] else 0
        for a in range(n + 1, s.head[K] + 1):
            s.work[at + EDGE * stride + a] = INT64_MIN if side == LEFT else INT64_MAX
        lefts = n if side == LEFT else lefts
    return lefts


@kernel
def write_profile(s: Pointers, t: Any, at: Int, x: Int, lefts: Int, before: Int) -> None:
    """Writes the profile of the staircase of an entry at x, given its low entries, to place `at` of t.

    It may be needed for all lo up to one that is greater than x: `before`.
    """
    left, stride = side_of(s, LEFT)
    right, _ = side_of(s, RIGHT)
    k = s.head[K]
    los, tops = at + 1, at + k + 2
    n = 0
    if before > x:
        t[los], t[tops] = x + 1, NO_TOP
        n = 1
    for a in range(min(lefts + 1, k)):
        lo = s.work[left + EDGE * stride + a + 1]
        if lo > s.work[left + LOW_X * stride + a]:
            continue
        top = s.work[right + EDGE * stride + k - a]
        if top < x:
            break
        if n == 0 or t[tops + n - 1] != top:
            t[tops + n] = top
            n += 1
        t[los + n - 1] = lo
    t[at] = n


@kernel
def step_at(t: Any, at: Int, c: Int, lo: Int) -> Int:
    """Number of the step that lo is in, c or a later one."""
    while c < t[at] and t[at + 1 + c] > lo:
        c += 1
    return c


@kernel
def top_of(t: Any, at: Int, k: Int, c: Int) -> Int:
    """Top of a step; NO_TOP behind the last."""
    return t[at + k + 2 + c] if c < t[at] else NO_TOP


@kernel
def lo_of(t: Any, at: Int, c: Int) -> Int:
    """Least lo of a step; that of the plane behind the last."""
    return t[at + 1 + c] if c < t[at] else INT64_MIN


@kernel
def combine(
    s: Pointers,
    out: OutputPointers,
    boxes: Int,
    t: Any,
    f: Int,
    g: Int,
    h: Int,
    is_union: bool,
    lo_max: Int,
    hi_min: Int,
    hi_max: Int,
) -> Int:
    """Writes boxes of the points below both profiles f and g, and not below h; for a union: below both, or below h.

    Of these the ones with lo up to lo_max, and hi from hi_min to hi_max; they are cut at all lo where a profile has a step.
    `boxes` are there already; returns how many there are then.
    """
    k = s.head[K]
    first = boxes
    cf = cg = ch = 0
    while True:
        cf, cg, ch = step_at(t, f, cf, lo_max), step_at(t, g, cg, lo_max), step_at(t, h, ch, lo_max)
        top, other = min(top_of(t, f, k, cf), top_of(t, g, k, cg)), top_of(t, h, k, ch)
        if is_union:
            top, other = max(top, other), NO_TOP
        if top < hi_min:
            return boxes
        lo_min = max(lo_of(t, f, cf), lo_of(t, g, cg), lo_of(t, h, ch))
        if other < top:
            bottom, end, last = max(hi_min, other + 1), min(top, hi_max), 2 * boxes - 2
            if boxes > first and out.lo[last] == lo_max + 1 and out.lo[last + 1] == bottom and out.hi[last + 1] == end:
                out.lo[last] = lo_min
            elif bottom <= end:
                put_box(out, boxes, lo_min, lo_max, bottom, end)
                boxes += 1
        if lo_min == INT64_MIN:
            return boxes
        lo_max = lo_min - 1


@kernel
def keep(head: I64, sets: I64, entries: I64, m: I64, work: I64, listed: I64, kept: I64) -> None:
    """Writes the profiles of entries, all present, to the rows of `kept`."""
    s = pointers(head, sets, entries, m, work)
    t = pointer(kept)
    for i in range(listed.shape[0]):
        at = listed[i] * ENTRY_FIELDS
        x = s.entries[at + ENTRY_X]
        lefts = edges_around(s, s.entries[at + OWNER] - 1, x, s.entries[at + ENTRY_Y], s.entries[at + ENTRY_TIE])
        write_profile(s, t, i * kept.shape[1], x, lefts, x)


@kernel
def sweep(
    s: Pointers,
    b: Batch,
    count: Int,
    old: Int,
    of: Int,
    x: Int,
    y: Int,
    tie: Int,
    is_gone: bool,
    lefts: Int,
    rights: Int,
    c: TreePointers,
    is_sparse: bool,
    x_min: Int,
    x_max: Int,
) -> tuple[Int, Int]:
    """Notes each entry from x_min to x_max met while a key grows to (y, tie), or beyond all; `old` is the profile that the
    entry at x had.

    Returns how many are noted, and how many low entries are left of x in the end.
    """
    if root_of(s, of)[1] == 0 or (is_sparse and not follow(s, c, of, x, lefts, rights, True, False)):
        return count, lefts
    find_lowest(s, LEFT, lefts)
    find_lowest(s, RIGHT, rights)
    while True:
        if is_sparse:
            x_min, x_max = max(x_min, c.head[LEFT_LO]), min(x_max, c.head[RIGHT_HI])
        side, p, place, x_met, entry = next_on_stairs(s, of, x, y, tie, is_gone, lefts, rights, x_min, x_max)
        if p < 0:
            return count, lefts
        lo, hi = min(x, x_met), max(x, x_met)
        if b.slots[entry] == 0 and top_of(b.profiles, old, s.head[K], step_at(b.profiles, old, 0, lo)) >= hi:
            b.slots[entry] = MET
            b.met[count] = entry
            count += 1
        lefts, rights = enter_low(s, of, side, p, lefts, rights, x_met, place)
        if is_sparse and not follow(s, c, of, x, lefts, rights, False, False):
            return count, lefts


@kernel
def send_touched(
    s: Pointers,
    out: OutputPointers,
    b: Batch,
    count: Int,
    r: Int,
    old: Int,
    scratch: Int,
    width: Int,
    is_gone: bool,
    c: TreePointers,
    is_sparse: bool,
    x_min: Int,
    x_max: Int,
) -> Int:
    """Sends row r of `touched` with the profile `old`: an entry that is gone from its x, or one that fell there.

    Those below the old profile cover nothing beyond x_min .. x_max. Returns how many entries are noted.
    """
    now, new, none = scratch, scratch + width, scratch + 2 * width
    was, then = r * TOUCHED_FIELDS + OLD, r * TOUCHED_FIELDS + NEW
    x, y, tie = b.touched[was + ENTRY_X], b.touched[was + ENTRY_Y], b.touched[was + ENTRY_TIE]
    x_new, y_new, tie_new = b.touched[then + ENTRY_X], b.touched[then + ENTRY_Y], b.touched[then + ENTRY_TIE]
    if is_gone and b.profiles[old] == 0:
        return count
    of = b.touched[was + OWNER] - 1
    lefts, rights = lows_around(s, of, seek(s, of, x, tie), 0, x, y, tie)
    write_profile(s, b.profiles, now, x, lefts, x)
    if x_min <= x_max:
        count, lefts = sweep(
            s, b, count, old, of, x, y_new, tie_new, is_gone, lefts, rights, c, is_sparse, x_min, x_max
        )
    boxes = s.head[BOXES]
    lo_max = hi_min = x
    if not is_gone:
        # After a sweep of all, the low entries are those of the new key, or so many that nobody holds the entry any more.
        if is_sparse:
            lefts = edges_around(s, of, x, y_new, tie_new)
        write_profile(s, b.profiles, new, x, lefts, x)
    else:
        b.profiles[new] = 0
        if b.touched[then + OWNER] > 0:
            write_profile(s, b.profiles, new, x_new, edges_around(s, of, x_new, y_new, tie_new), x)
        if x_new > x and b.profiles[new] > 0:
            boxes = combine(s, out, boxes, b.profiles, old, now, none, False, x, x, x_new - 1)
            hi_min = x_new
    boxes = combine(s, out, boxes, b.profiles, old, now, new, not is_gone, lo_max, hi_min, INT64_MAX)
    send(s, out, b.touched[r * TOUCHED_FIELDS + NUMBER], is_gone, boxes)
    return count


@kernel
def send_batch(
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
    is_sparse: bool,
    touched: I64,
    slots: I64,
    met: I64,
    kept: I64,
    limits: I64,
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
    """Sends the rows of `touched` in the given order, from place `at` on: so many gone, so many fallen, then others.

    The sets are in the new state; `kept` has the old profiles of those gone or fallen, and SCRATCH rows, and `limits` the least
    lo and the greatest hi of those below each; is_sparse: whether only those in the tree count. `met` has `count` entries.
    Returns DONE or, if row head[PROGRESS] is yet to be sent, NEEDS_OUTPUT; and the new count.
    """
    s = pointers(head, sets, entries, m, work)
    out = OutputPointers(pointer(sent), pointer(is_gone), pointer(box_starts), pointer(box_lo), pointer(box_hi))
    c = tree_pointers(tree_head, tree_sets, tree_nodes, tree_m, tree_work)
    # Sweeps do not keep the ranks of points, which a list has.
    c.head[LISTED] = -1
    b = Batch(pointer(touched), pointer(slots), pointer(met), pointer(kept))
    width = kept.shape[1]
    scratch = (gone + fallen) * width
    kept[gone + fallen + 2, 0] = 0
    for q in range(at, order.shape[0]):
        if head[BOXES] + SEND_BOXES * (head[K] + 1) > box_lo.shape[0]:
            head[PROGRESS] = q
            return NEEDS_OUTPUT, count
        if q < gone + fallen:
            x_min, x_max = limits[q]
            count = send_touched(
                s, out, b, count, order[q], q * width, scratch, width, q < gone, c, is_sparse, x_min, x_max
            )
        else:
            then = order[q] * TOUCHED_FIELDS + NEW
            x, y, tie = b.touched[then + ENTRY_X], b.touched[then + ENTRY_Y], b.touched[then + ENTRY_TIE]
            lefts = edges_around(s, b.touched[then + OWNER] - 1, x, y, tie)
            send_stairs(s, out, x, lefts, b.touched[order[q] * TOUCHED_FIELDS + NUMBER], False)
    return DONE, count


@kernel
def send_met(
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
    """Sends entries not touched, from place `at` on, to those who did not hold them; DONE, or NEEDS_OUTPUT as above.

    The sets are in the old state; `kept` has the new profiles, and a row more.
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
        write_profile(s, t, old, x, lefts, x)
        boxes = combine(s, out, head[BOXES], t, i * width, i * width, old, False, x, x, INT64_MAX)
        send(s, out, met[i], False, boxes)
    return DONE
