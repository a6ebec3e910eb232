"""One loop over the events of a micro-batch: which joined rows come, go or change, and who is told.

A change of a row makes pairs (old, new) of the combinations it is part of: those with the same partners if it is joined by the
same values as before, else old ones without new ones and new ones without old. A subscription's predicates are of one column
each, so what it hears is alike for all pairs: the row comes into what it selects, leaves it, or stays. Hence all of a
notification's changes are of one kind; only a row that is joined by other values than before brings deletes and inserts, and
then what looks alike cancels out.

There are two ways to find pairs and who hears of them. Of few combinations each is looked up in the index of subscriptions
(`listen`). Where there are many, those who want the row by itself are found first, and then the combinations they want
(`candidates`).

Lists of partners follow after the event has been told, so an event that finds no room is simply begun again.
"""

# mypy: allow-untyped-decorators

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.families.join.kernels.candidates import SIDE_BITS, candidates, meet
from tidings.families.join.kernels.combine import (
    OWN,
    OWN_STOP,
    SIGNATURE,
    TOO_MANY,
    USE_SIDE,
    Newcomers,
    Plans,
    answer,
    combine,
    is_selected,
)
from tidings.families.join.kernels.listen import fill, listen
from tidings.families.join.kernels.partner_lists import Partners, Relations, change, has_room
from tidings.families.join.kernels.tell import (
    CHANGES,
    FIRST,
    HEARD,
    ITEMS,
    SECOND,
    STAMP,
    TAILS,
    TOLD,
    WANTED,
    WIDE,
    Output,
    Scratch,
    add_source,
    add_tail,
    add_told,
    tell_many,
    tell_one,
)
from tidings.kernels.events import CHANGE, CREATE, EventColumns, Projections, columns_of
from tidings.kernels.jit import kernel, uncounted
from tidings.kernels.lives import PROJECTION, Lives
from tidings.kernels.rows import COLUMNS, I64, NONE, Int, Rows, record_of, same_value
from tidings.kernels.rows.read import rows_at
from tidings.kernels.stabbing import CODE, EQUAL, VALID, Boxes

# Why the loop stopped: nothing is left; there is no room in `told` and the like, for combinations, hits, partners; or the index
# of sides lacks a side (counts[WANTED]).
DONE, OUT_FULL, FOUND_FULL, HITS_FULL, PARTNERS_FULL, SIDE_WANTED = range(6)
_NOBODY = np.int64(NONE)
_CANDIDATES_PER_LOOK = 4
"""Finding a candidate costs about a quarter of looking up a combination."""
_NEXT_LOOKS = 8
"""How many times more partners are looked at when there are too many candidates as well."""


class Sides(NamedTuple):
    """Conditions of subscriptions on single sides of their joins."""

    boxes: Boxes
    """The index of sides: owners are boxes of the index of subscriptions."""
    opened: I64
    """[signatures]: mask of sides that are in the index."""
    limits: I64
    """[LIMITS]."""


# How many partners of a row are looked at before candidates are asked for; how many of these are asked one by one for each
# combination that is saved.
LOOKS_MAX, ASKED_MAX, LIMITS = range(3)


@uncounted
def _has_room(out: Output, told: Int, changes: Int, items: Int) -> bool:
    counts = out.counts
    return bool(
        counts[TOLD] + told <= out.told.shape[0]
        and counts[TAILS] + told <= out.tails.shape[0]
        and counts[CHANGES] + changes <= out.changes.shape[0]
        and counts[ITEMS] + items <= out.sources.shape[0]
    )


@uncounted
def _changed_columns(rows: Rows, table: Int, old: Int, new: Int) -> Int:
    """Mask (bit column & 63) of columns in which two versions differ."""
    a, b, mask = record_of(rows, old), record_of(rows, new), np.int64(0)
    for column in range(rows.layout[table, COLUMNS]):
        if not same_value(rows, a, b, table, column):
            mask |= np.int64(1) << (column & 63)
    return mask


@uncounted
def _hear(
    rows: Rows,
    lives: Lives,
    boxes: Boxes,
    sides: Sides,
    partners: Partners,
    plans: Plans,
    newcomers: Newcomers,
    out: Output,
    scratch: Scratch,
    event: Int,
    use: Int,
    old: Int,
    new: Int,
    changed: Int,
    pairs: Int,
    count: Int,
) -> tuple[Int, Int, Int]:
    """Appends pairs of a row's combinations and who hears of them; new numbers of pairs and entries, and DONE or why not.

    old, new: versions with the same partners, NONE for one that the pairs have not. changed: mask of columns.
    """
    signature, side = plans.uses[use, SIGNATURE], plans.uses[use, USE_SIDE]
    version = old if new == NONE else new
    looks_max = sides.limits[LOOKS_MAX]
    while True:
        stop = combine(
            rows, partners, plans, newcomers, _NOBODY, use, version, scratch.walk, scratch.found, pairs, looks_max
        )
        if stop == NONE:
            return pairs, count, FOUND_FULL
        if stop == pairs:
            return pairs, count, DONE
        x, first = scratch.x, plans.axes[signature, side]
        for which in range(2):
            x[which, 0, VALID], x[which, 0, CODE], x[which, 0, EQUAL] = 1, signature, signature
        if old != NONE:
            fill(rows, plans, signature, side, old, x, FIRST)
        if new != NONE:
            fill(rows, plans, signature, side, new, x, SECOND)
        scratch.has[0], scratch.has[1] = np.int64(old != NONE), np.int64(new != NONE)
        axes = np.int64(0)
        for column in range(rows.layout[plans.tables[signature, side], COLUMNS]):
            if changed >> (column & 63) & 1:
                axes |= np.int64(1) << ((first + column) & 63)
        wide = out.counts[WIDE]
        if stop != TOO_MANY:
            count = listen(
                rows,
                lives,
                boxes,
                plans,
                newcomers,
                scratch,
                wide,
                event,
                signature,
                side,
                old,
                new,
                pairs,
                stop,
                axes,
                count,
            )
            return stop, count, HITS_FULL if count == NONE else DONE
        if sides.opened[signature] >> side & 1 == 0:
            out.counts[WANTED] = signature << SIDE_BITS | side
            return pairs, count, SIDE_WANTED
        most = _CANDIDATES_PER_LOOK * (looks_max + 1)
        asked = candidates(rows, lives, boxes, sides.boxes, plans, scratch, event, use, old, new, axes, most)
        if asked == NONE:
            return pairs, count, HITS_FULL
        if asked != TOO_MANY:
            pairs, count = meet(
                rows,
                lives,
                boxes,
                partners,
                plans,
                newcomers,
                scratch,
                wide,
                event,
                use,
                old,
                new,
                axes,
                asked,
                sides.limits[ASKED_MAX],
                pairs,
                count,
            )
            if pairs == NONE:
                return pairs, count, FOUND_FULL
            return pairs, count, HITS_FULL if count == NONE else DONE
        looks_max = _NEXT_LOOKS * (looks_max + 1)


@uncounted
def _change(
    rows: Rows,
    lives: Lives,
    projections: Projections,
    boxes: Boxes,
    sides: Sides,
    partners: Partners,
    plans: Plans,
    newcomers: Newcomers,
    out: Output,
    scratch: Scratch,
    event: Int,
    table: Int,
    old: Int,
    new: Int,
    is_part: bool,
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
        # The old row alone, unless it has the partners of the new one; then the new row, with the old one or alone.
        old_pairs = pairs = count = np.int64(0)
        scratch.of_pair[HEARD, 0] = 0
        for part in range(2):
            one = old if part == 0 or is_both else _NOBODY
            two = new if part == 1 else _NOBODY
            if (one == NONE and two == NONE) or (part == 0 and is_both):
                continue
            pairs, count, why = _hear(
                rows,
                lives,
                boxes,
                sides,
                partners,
                plans,
                newcomers,
                out,
                scratch,
                event,
                use,
                one,
                two,
                changed,
                pairs,
                count,
            )
            if why != DONE:
                return why
            if part == 0:
                old_pairs = pairs
        if count == 0:
            continue
        if not _has_room(out, count, count, 2 * pairs):
            return OUT_FULL
        out.counts[STAMP] += 1
        if pairs == 1:
            tell_one(rows, lives, projections, out, scratch, event, side, old, new, count)
        else:
            tell_many(
                rows,
                plans,
                lives,
                projections,
                out,
                scratch,
                event,
                signature,
                side,
                old,
                new,
                old_pairs,
                pairs,
                is_part,
            )
    return DONE


@uncounted
def _without_known(
    rows: Rows, plans: Plans, newcomers: Newcomers, found: I64, first: Int, who: Int, begin: Int, count: Int
) -> Int:
    """Removes those of found[begin:count] that satisfy one of the alternatives first:who, which are there already."""
    kept = begin
    for i in range(begin, count):
        is_known = False
        for earlier in range(first, who):
            if is_selected(rows, plans, newcomers, earlier, found, i):
                is_known = True
                break
        if not is_known:
            for side in range(found.shape[1]):
                found[kept, side] = found[i, side]
            kept += 1
    return kept


@uncounted
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
    first, count = who, np.int64(0)
    while who < len(newcomers.slots) and newcomers.slots[who] == slot:
        begin = count
        count = answer(rows, partners, plans, newcomers, who, scratch.walk, scratch.found, count)
        if count == NONE:
            return FOUND_FULL
        if who > first:
            count = _without_known(rows, plans, newcomers, scratch.found, first, who, begin, count)
        who += 1
    if not _has_room(out, SECOND, count, count):
        return OUT_FULL
    start, item = out.counts[CHANGES], out.counts[ITEMS]
    for i in range(count):
        add_source(out, scratch.found, i, item + i)
        out.changes[start + i, 0], out.changes[start + i, 1] = NONE, item + i
    out.counts[ITEMS] += count
    add_told(out, event, slot, add_tail(out, event, lives[slot, PROJECTION], start, start + count))
    return DONE


@uncounted
def _go_through(
    rows: Rows,
    events: EventColumns,
    lives: Lives,
    projections: Projections,
    boxes: Boxes,
    sides: Sides,
    partners: Partners,
    relations: Relations,
    plans: Plans,
    newcomers: Newcomers,
    out: Output,
    scratch: Scratch,
    start: Int,
) -> tuple[Int, Int]:
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
            is_part = events.is_part[event] != 0
            why = _change(
                rows,
                lives,
                projections,
                boxes,
                sides,
                partners,
                plans,
                newcomers,
                out,
                scratch,
                event,
                table,
                old,
                new,
                is_part,
            )
            if why == DONE:
                change(rows, partners, relations, table, old, new)
        elif events.kind[event] == CREATE:
            why = _create(rows, lives, partners, plans, newcomers, out, scratch, event, events.slot[event])
        if why != DONE:
            counts[TOLD], counts[TAILS], counts[CHANGES], counts[ITEMS] = told, tails, changes, items
            return event, why
    return len(events.kind), DONE


@kernel
def evaluate(
    handles: I64,
    words: I64,
    lives: Lives,
    projections: Projections,
    boxes: Boxes,
    sides: Sides,
    partners: Partners,
    relations: Relations,
    plans: Plans,
    newcomers: Newcomers,
    out: Output,
    scratch: Scratch,
    start: Int,
) -> tuple[Int, Int]:
    """Goes through the events from `start` on; gives the one at which it stopped, and why.

    handles: of the rows. words: of the events.
    """
    return _go_through(
        rows_at(handles),
        columns_of(words),
        lives,
        projections,
        boxes,
        sides,
        partners,
        relations,
        plans,
        newcomers,
        out,
        scratch,
        start,
    )
