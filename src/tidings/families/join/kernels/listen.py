"""Who hears of combinations that are known: each is a vector, and each vector is looked up in the index of all joins."""

# mypy: allow-untyped-decorators

from __future__ import annotations

import numpy as np

from tidings.families.join.kernels.combine import Newcomers, Plans, passes_all
from tidings.families.join.kernels.tell import (
    BITS,
    FIRST,
    HEARD,
    NEW_ITEM,
    OLD_ITEM,
    PAIR,
    SECOND,
    SLOT,
    Scratch,
)
from tidings.kernels.jit import uncounted
from tidings.kernels.lives import SINCE, UNTIL, Lives
from tidings.kernels.rows import EXACT, I64, NONE, Int, Rows, code_at, equal_at, is_valid, record_of, text_at
from tidings.kernels.stabbing import CODE, EQUAL, NEW, OLD, SIDES, TEXT_START, TEXT_STOP, VALID, Boxes, stab


@uncounted
def fill(rows: Rows, plans: Plans, signature: Int, side: Int, version: Int, x: I64, which: Int) -> None:
    """Writes the tested columns of a side to vector `which`."""
    record, table = record_of(rows, version), plans.tables[signature, side]
    first = plans.axes[signature, side]
    at = signature * plans.tables.shape[1] + side
    for i in range(plans.tested[at], plans.tested[at + 1]):
        column = plans.tested_columns[i]
        axis = first + column
        x[which, axis, VALID] = np.int64(is_valid(rows, record, column))
        x[which, axis, CODE] = code_at(rows, record, table, column)
        x[which, axis, EQUAL] = equal_at(rows, record, table, column)
        if rows.kinds[table, column] != EXACT:
            x[which, axis, TEXT_START], x[which, axis, TEXT_STOP] = text_at(rows, record, table, column)


@uncounted
def selected(
    rows: Rows,
    plans: Plans,
    newcomers: Newcomers,
    found: I64,
    slot: Int,
    signature: Int,
    side: Int,
    pair: Int,
    old: Int,
    new: Int,
    bits: Int,
) -> Int:
    """Which of OLD | NEW a subscription whose box holds them does select: all, unless it is a wide one."""
    who = np.searchsorted(newcomers.slots, slot)
    if who == len(newcomers.slots) or newcomers.slots[who] != slot or not newcomers.is_wide[who]:
        return bits
    kept = np.int64(0)
    while who < len(newcomers.slots) and newcomers.slots[who] == slot and kept != bits:
        kept |= _selected_by(rows, plans, newcomers, found, who, signature, side, pair, old, new, bits)
        who += 1
    return kept


@uncounted
def _selected_by(
    rows: Rows,
    plans: Plans,
    newcomers: Newcomers,
    found: I64,
    who: Int,
    signature: Int,
    side: Int,
    pair: Int,
    old: Int,
    new: Int,
    bits: Int,
) -> Int:
    """Which of OLD | NEW an alternative of a wide subscription selects."""
    for other in range(plans.tables.shape[1]):
        table = plans.tables[signature, other]
        if table == NONE:
            break
        if other != side:
            if not passes_all(rows, newcomers, who, other, table, record_of(rows, found[pair, other])):
                return np.int64(0)
            continue
        if bits & OLD and not passes_all(rows, newcomers, who, side, table, record_of(rows, old)):
            bits &= NEW
        if bits & NEW and not passes_all(rows, newcomers, who, side, table, record_of(rows, new)):
            bits &= OLD
    return bits


@uncounted
def listen(
    rows: Rows,
    lives: Lives,
    boxes: Boxes,
    plans: Plans,
    newcomers: Newcomers,
    scratch: Scratch,
    wide: Int,
    event: Int,
    signature: Int,
    side: Int,
    old: Int,
    new: Int,
    first: Int,
    stop: Int,
    changed: Int,
    count: Int,
) -> Int:
    """Writes who hears of pairs first:stop behind the `count` entries there are; the new count, NONE if there is no room.

    The row's side is in `x`, and `has` says which versions of it the pairs have.
    """
    found, hits, heard, x = scratch.found, scratch.hits, scratch.heard, scratch.x
    for pair in range(first, stop):
        scratch.of_pair[HEARD, pair] = count
        scratch.of_pair[OLD_ITEM, pair] = scratch.of_pair[NEW_ITEM, pair] = NONE
        for other in range(found.shape[1]):
            version = found[pair, other]
            if other != side and version != NONE and (pair == first or version != found[pair - 1, other]):
                fill(rows, plans, signature, other, version, x, FIRST)
                fill(rows, plans, signature, other, version, x, SECOND)
        hit_count = stab(boxes, rows.text, x, scratch.has, changed, hits)
        if hit_count < 0 or count + hit_count > heard.shape[0]:
            return np.int64(NONE)
        for i in range(hit_count):
            slot, bits = hits[i, 0], hits[i, 1] & SIDES
            if lives[slot, SINCE] < event < lives[slot, UNTIL]:
                if wide:
                    bits = selected(rows, plans, newcomers, found, slot, signature, side, pair, old, new, bits)
                    if bits == 0:
                        continue
                heard[count, SLOT], heard[count, PAIR], heard[count, BITS] = slot, pair, bits
                count += 1
    scratch.of_pair[HEARD, stop] = count
    return count
