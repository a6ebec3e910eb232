"""What a batch of changes comes to: entries before it and after it, whatever happened in between; and how to get there.

A row of `touched` is an entry, its row of `entries` before the batch, and that after it. An entry that was in one set and
is in another then has two rows: it leaves the one, and enters the other.
"""

from __future__ import annotations

from tidings.kernels.jit import kernel
from tidings.kernels.rankings_arrays import (
    BAD_ENTRY,
    BAD_SET,
    BAD_TIE,
    BAD_X,
    DONE,
    ENTRY_FIELDS,
    ENTRY_TIE,
    ENTRY_X,
    ENTRY_Y,
    I64,
    INT64_MAX,
    INT64_MIN,
    NEEDS_ROOM,
    OWNER,
    PRESENT,
    PROGRESS,
    SET_TOP,
    SIZE,
    U8,
    Int,
    has_room,
    pointers,
    root_of,
)
from tidings.kernels.rankings_blocks import rekey, seek
from tidings.kernels.rankings_change import is_taken
from tidings.kernels.rankings_insert import INSERT_BLOCKS, INSERT_LISTS, put, take

# Fields of a row of `touched`.
NUMBER, OLD, NEW, TOUCHED_FIELDS = 0, 1, 1 + ENTRY_FIELDS, 1 + 2 * ENTRY_FIELDS


@kernel
def forget(touched: I64, n: Int, slots: I64) -> None:
    """Leave no trace of the first n rows of `touched` in `slots`."""
    for r in range(n):
        slots[touched[r, NUMBER]] = 0


@kernel
def split(touched: I64, n: Int) -> Int:
    """Make two rows of each that goes from one set to another; returns how many there are then."""
    last = n
    for r in range(n):
        before, after = touched[r, OLD + OWNER], touched[r, NEW + OWNER]
        if before > 0 and after > 0 and before != after:
            touched[last] = touched[r]
            touched[last, OLD + OWNER] = touched[r, NEW + OWNER] = 0
            last += 1
    return last


@kernel
def gather(
    head: I64,
    sets: I64,
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
    """Write to `touched`, with room for twice the changes, what they come to; DONE and how many rows, or what is wrong.

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
        if not 0 <= of[i] < head[SET_TOP] or sets[of[i], SIZE] < 0:
            status = BAD_SET
        elif touched[r, NEW + OWNER] > 0 and touched[r, NEW + OWNER] != of[i] + 1:
            status = BAD_ENTRY
        elif is_present[i] and not INT64_MIN < xs[i] < INT64_MAX:
            status = BAD_X
        if status != DONE:
            head[PROGRESS] = i
            forget(touched, n, slots)
            return status, 0
        touched[r, NEW + OWNER] = of[i] + 1 if is_present[i] else 0
        if is_present[i]:
            touched[r, NEW + ENTRY_X], touched[r, NEW + ENTRY_Y], touched[r, NEW + ENTRY_TIE] = xs[i], ys[i], ties[i]
    return DONE, split(touched, n)


@kernel
def settle(head: I64, sets: I64, entries: I64, m: I64, work: I64, touched: I64, state: Int) -> Int:
    """Make entries what they are in one state, OLD or NEW, and tell nobody.

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
        if not has_room(s, INSERT_BLOCKS, INSERT_LISTS + 4 * root_of(s, of)[1]):
            return NEEDS_ROOM
        take(s, of, seek(s, of, x, tie))
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
        if not has_room(s, INSERT_BLOCKS, INSERT_LISTS + 4 * root_of(s, of)[1]):
            return NEEDS_ROOM
        put(s, of, behind, x, y, tie, entry)
        entries[entry, OWNER], entries[entry, ENTRY_X] = of + 1, x
        entries[entry, ENTRY_Y], entries[entry, ENTRY_TIE] = y, tie
        head[PRESENT] += 1
    return DONE
