"""One loop over the events of a micro-batch: which joined rows come, go or change, and who is told.

A change of a row makes pairs (old, new) of the combinations it is part of: those with the same partners if it is joined by the
same values as before, else old ones without new ones and new ones without old. Each pair is looked up in the index of
subscriptions. A subscription's predicates are of one column each, so what it hears is alike for all pairs: the row comes into
what it selects, leaves it, or stays. Hence all of a notification's changes are of one kind; only a row that is joined by other
values than before brings deletes and inserts, and then what looks alike cancels out.

Lists of partners follow after the event has been told, so an event that finds no room is simply begun again.
"""

# mypy: allow-untyped-decorators

from __future__ import annotations

import numpy as np

from tidings.families.evaluator import CHANGE, CREATE, Events, Projections
from tidings.families.join.kernels import compiled
from tidings.families.join.kernels.combine import (
    OWN,
    OWN_STOP,
    SIGNATURE,
    USE_SIDE,
    Newcomers,
    Plans,
    answer,
    combine,
    passes_all,
)
from tidings.families.join.kernels.partners import Partners, Relations, change, has_room
from tidings.families.join.kernels.tell import (
    BITS,
    CHANGES,
    FIRST,
    HEARD,
    ITEMS,
    NEW_ITEM,
    OLD_ITEM,
    PAIR,
    SECOND,
    SLOT,
    STAMP,
    TAILS,
    TOLD,
    WIDE,
    Output,
    Scratch,
    add_source,
    add_tail,
    add_told,
    tell_many,
    tell_one,
)
from tidings.kernels.lives import PROJECTION, SINCE, UNTIL, Lives
from tidings.kernels.rows import (
    COLUMNS,
    EXACT,
    I64,
    NONE,
    Int,
    Rows,
    code_at,
    equal_at,
    is_valid,
    record_of,
    same_value,
    text_at,
)
from tidings.kernels.stabbing import CODE, EQUAL, NEW, OLD, TEXT_START, TEXT_STOP, VALID, Boxes, stab

# Why the loop stopped: nothing is left, or there is no room in `told` and the like, for combinations, hits, partners.
DONE, OUT_FULL, FOUND_FULL, HITS_FULL, PARTNERS_FULL = range(5)
_NOBODY = np.int64(NONE)


@compiled
def _fill(rows: Rows, plans: Plans, signature: Int, side: Int, version: Int, x: I64, which: Int) -> None:
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


@compiled
def _selected(
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
    for other in range(plans.tables.shape[1]):
        table = plans.tables[signature, other]
        if table == NONE:
            break
        if other != side:
            if not passes_all(rows, newcomers, who, other, table, record_of(rows, found[pair, other])):
                return 0
            continue
        if bits & OLD and not passes_all(rows, newcomers, who, side, table, record_of(rows, old)):
            bits &= NEW
        if bits & NEW and not passes_all(rows, newcomers, who, side, table, record_of(rows, new)):
            bits &= OLD
    return bits


@compiled
def _listen(
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
    old_pairs: Int,
    pairs: Int,
    is_both: bool,
    changed: Int,
) -> Int:
    """Writes who hears of each pair; how many entries that makes, NONE if there is no room. The row's side is in `x`."""
    found, hits, heard, x = scratch.found, scratch.hits, scratch.heard, scratch.x
    has, count = scratch.has, 0
    for pair in range(pairs):
        scratch.of_pair[HEARD, pair] = count
        scratch.of_pair[OLD_ITEM, pair] = scratch.of_pair[NEW_ITEM, pair] = NONE
        has[0], has[1] = np.int64(is_both or pair < old_pairs), np.int64(pair >= old_pairs)
        for other in range(found.shape[1]):
            version = found[pair, other]
            if other != side and version != NONE and (pair == 0 or version != found[pair - 1, other]):
                _fill(rows, plans, signature, other, version, x, FIRST)
                _fill(rows, plans, signature, other, version, x, SECOND)
        hit_count = stab(boxes, rows.text, x, has, changed, hits)
        if hit_count < 0 or count + hit_count > heard.shape[0]:
            return np.int64(NONE)
        for i in range(hit_count):
            slot, bits = hits[i, 0], hits[i, 1]
            if lives[slot, SINCE] < event < lives[slot, UNTIL]:
                if wide:
                    bits = _selected(rows, plans, newcomers, found, slot, signature, side, pair, old, new, bits)
                    if bits == 0:
                        continue
                heard[count, SLOT], heard[count, PAIR], heard[count, BITS] = slot, pair, bits
                count += 1
    scratch.of_pair[HEARD, pairs] = count
    return count


@compiled
def _has_room(out: Output, told: Int, changes: Int, items: Int) -> bool:
    counts = out.counts
    return bool(
        counts[TOLD] + told <= out.told.shape[0]
        and counts[TAILS] + told <= out.tails.shape[0]
        and counts[CHANGES] + changes <= out.changes.shape[0]
        and counts[ITEMS] + items <= out.sources.shape[0]
    )


@compiled
def _changed_columns(rows: Rows, table: Int, old: Int, new: Int) -> Int:
    """Mask (bit column & 63) of columns in which two versions differ."""
    a, b, mask = record_of(rows, old), record_of(rows, new), np.int64(0)
    for column in range(rows.layout[table, COLUMNS]):
        if not same_value(rows, a, b, table, column):
            mask |= np.int64(1) << (column & 63)
    return mask


@compiled
def _change(
    rows: Rows,
    lives: Lives,
    projections: Projections,
    boxes: Boxes,
    partners: Partners,
    plans: Plans,
    newcomers: Newcomers,
    out: Output,
    scratch: Scratch,
    event: Int,
    table: Int,
    old: Int,
    new: Int,
) -> Int:
    """Tells all who hear of a row's change; why it could not, if not DONE."""
    is_update = old != NONE and new != NONE
    changed = _changed_columns(rows, table, old, new) if is_update else np.int64(-1)
    for use in range(plans.of_table[table], plans.of_table[table + 1]):
        signature, side = plans.uses[use, SIGNATURE], plans.uses[use, USE_SIDE]
        if changed & plans.matters[signature, side] == 0:
            continue
        is_both = is_update
        if is_update:
            a, b = record_of(rows, old), record_of(rows, new)
            for i in range(plans.uses[use, OWN], plans.uses[use, OWN_STOP]):
                is_both = is_both and same_value(rows, a, b, table, plans.own[i])
        old_pairs = np.int64(0)
        if old != NONE and not is_both:
            old_pairs = combine(
                rows, partners, plans, newcomers, _NOBODY, use, old, scratch.walk, scratch.found, old_pairs
            )
        pairs = old_pairs
        if new != NONE and pairs != NONE:
            pairs = combine(rows, partners, plans, newcomers, _NOBODY, use, new, scratch.walk, scratch.found, pairs)
        if pairs == NONE:
            return FOUND_FULL
        if pairs == 0:
            continue
        x = scratch.x
        for which in range(2):
            x[which, 0, VALID], x[which, 0, CODE], x[which, 0, EQUAL] = 1, signature, signature
        if old != NONE:
            _fill(rows, plans, signature, side, old, x, FIRST)
        if new != NONE:
            _fill(rows, plans, signature, side, new, x, SECOND)
        first = plans.axes[signature, side]
        axes = np.int64(0)
        for column in range(rows.layout[table, COLUMNS]):
            if changed >> (column & 63) & 1:
                axes |= np.int64(1) << ((first + column) & 63)
        count = _listen(
            rows,
            lives,
            boxes,
            plans,
            newcomers,
            scratch,
            out.counts[WIDE],
            event,
            signature,
            side,
            old,
            new,
            old_pairs,
            pairs,
            is_both,
            axes,
        )
        if count == NONE:
            return HITS_FULL
        if count == 0:
            continue
        if not _has_room(out, count, count, 2 * pairs):
            return OUT_FULL
        out.counts[STAMP] += 1
        if pairs == 1:
            tell_one(rows, lives, projections, out, scratch, event, side, old, new, count)
        else:
            tell_many(rows, plans, lives, projections, out, scratch, event, signature, side, old, new, old_pairs, pairs)
    return DONE


@compiled
def _create(
    rows: Rows,
    lives: Lives,
    partners: Partners,
    plans: Plans,
    newcomers: Newcomers,
    out: Output,
    scratch: Scratch,
    event: Int,
    slot: Int,
) -> Int:
    """The snapshot of a new subscription, if it is one of this family; why it could not be made, if not DONE."""
    who = np.searchsorted(newcomers.slots, slot)
    if who == len(newcomers.slots) or newcomers.slots[who] != slot:
        return DONE
    count = answer(rows, partners, plans, newcomers, who, scratch.walk, scratch.found)
    if count == NONE:
        return FOUND_FULL
    if not _has_room(out, SECOND, count, count):
        return OUT_FULL
    start, item = out.counts[CHANGES], out.counts[ITEMS]
    for i in range(count):
        add_source(out, scratch.found, i, item + i)
        out.changes[start + i, 0], out.changes[start + i, 1] = NONE, item + i
    out.counts[ITEMS] += count
    add_told(out, event, slot, add_tail(out, event, lives[slot, PROJECTION], start, start + count))
    return DONE


@compiled
def evaluate(
    rows: Rows,
    events: Events,
    lives: Lives,
    projections: Projections,
    boxes: Boxes,
    partners: Partners,
    relations: Relations,
    plans: Plans,
    newcomers: Newcomers,
    out: Output,
    scratch: Scratch,
    start: Int,
) -> tuple[Int, Int]:
    """Goes through events[start:]; gives the event at which it stopped, and why."""
    counts = out.counts
    for event in range(start, len(events.kind)):
        told, tails, changes, items = counts[TOLD], counts[TAILS], counts[CHANGES], counts[ITEMS]
        why = DONE
        if events.kind[event] == CHANGE:
            table, old, new = events.table[event], events.old[event], events.new[event]
            if relations.of_table[table] == relations.of_table[table + 1]:
                continue
            if not has_room(rows, partners, relations, table, new):
                return event, PARTNERS_FULL
            why = _change(
                rows, lives, projections, boxes, partners, plans, newcomers, out, scratch, event, table, old, new
            )
            if why == DONE:
                change(rows, partners, relations, table, old, new)
        elif events.kind[event] == CREATE:
            why = _create(rows, lives, partners, plans, newcomers, out, scratch, event, events.slot[event])
        if why != DONE:
            counts[TOLD], counts[TAILS], counts[CHANGES], counts[ITEMS] = told, tails, changes, items
            return event, why
    return len(events.kind), DONE
