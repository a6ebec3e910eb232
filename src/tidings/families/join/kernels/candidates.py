"""Candidates first: who can want a changed row by itself, and which of its combinations do they want?

For rows with many combinations. Conditions on the side of the row alone give candidates; then the join is extended side by
side, and each partner takes along only those candidates whose conditions on its side it satisfies. Without any left it is not
followed further. So partners are looked at in proportion to what candidates want, not to all there is:

    row: 8 candidates -> 70 partners: 66 with none left, 4 with one or two -> 70 partners each, for these one or two ..

Where so many candidates are left that asking the index of whole combinations is cheaper than asking each of them, the index
is asked.
"""

# mypy: allow-untyped-decorators

from __future__ import annotations

import numpy as np

from tidings.families.join.kernels.combine import (
    AT,
    CELL,
    CHECKS,
    CHECKS_STOP,
    CHOSEN,
    FIRST,
    IS_SIFTED,
    KEYS,
    KEYS_STOP,
    LEFT,
    RECORD,
    SIGNATURE,
    STEP_IS_DIRECT,
    STEP_RELATION,
    STEP_SIDE,
    STOP,
    TABLE,
    TOO_MANY,
    USE_SIDE,
    Newcomers,
    Plans,
    begin_walk,
    is_joined,
    partners_of,
)
from tidings.families.join.kernels.listen import fill, selected
from tidings.families.join.kernels.partner_lists import SIZE, Partners, version_at
from tidings.families.join.kernels.tell import (
    BITS,
    BOTH,
    HEARD,
    NEW_ITEM,
    OLD_ITEM,
    PAIR,
    SLOT,
    Scratch,
)
from tidings.kernels.jit import uncounted
from tidings.kernels.lives import SINCE, UNTIL, Lives
from tidings.kernels.rows import COLUMNS, I64, NONE, Int, Rows, code_at, equal_at, is_valid, record_of
from tidings.kernels.stabbing import (
    CODE,
    EQUAL,
    NEW,
    OLD,
    SIDES,
    VALID,
    Boxes,
    exact_sides,
    holds,
    owner_and_mask,
    pointers_of,
    stab,
)

SIDE_BITS = 6
"""A side of a signature is known to the index of sides as signature << SIDE_BITS | side."""
ALL_AXES = np.int64(-1)
_OLD_VECTOR, _NEW_VECTOR = np.int64(0), np.int64(1)


@uncounted
def _fill_side(rows: Rows, plans: Plans, signature: Int, side: Int, version: Int, x: I64, which: Int) -> None:
    """Writes a row to vector `which` of the index of sides: axis 1 + 2 * column has its code, the next its equality code."""
    record, table = record_of(rows, version), plans.tables[signature, side]
    at = signature * plans.tables.shape[1] + side
    for i in range(plans.tested[at], plans.tested[at + 1]):
        column = plans.tested_columns[i]
        axis = 1 + 2 * column
        x[which, axis, VALID] = x[which, axis + 1, VALID] = np.int64(is_valid(rows, record, column))
        x[which, axis, CODE] = code_at(rows, record, table, column)
        x[which, axis + 1, CODE] = equal_at(rows, record, table, column)


@uncounted
def candidates(
    rows: Rows,
    lives: Lives,
    boxes: Boxes,
    sides: Boxes,
    plans: Plans,
    scratch: Scratch,
    event: Int,
    use: Int,
    old: Int,
    new: Int,
    changed: Int,
    most: Int,
) -> Int:
    """Writes (slot, OLD | NEW, box) of boxes whose conditions on the changed side hold to `hits`; how many these are.

    TOO_MANY if more than `most` boxes are looked at, NONE if there is no room. The row's side is in `x`, and `has` says which
    versions of it are asked for. sides: the index of sides, whose owners are boxes.
    """
    signature, side = plans.uses[use, SIGNATURE], plans.uses[use, USE_SIDE]
    hits, own, has = scratch.hits, scratch.own, scratch.has
    for which in range(2):
        own[which, 0, VALID], own[which, 0, EQUAL] = 1, signature << SIDE_BITS | side
    if has[0]:
        _fill_side(rows, plans, signature, side, old, own, _OLD_VECTOR)
    if has[1]:
        _fill_side(rows, plans, signature, side, new, own, _NEW_VECTOR)
    found = stab(sides, rows.text, own, has, ALL_AXES, hits[:most])
    if found < 0:
        return np.int64(NONE if hits.shape[0] < most else TOO_MANY)
    p = pointers_of(boxes, rows.text, scratch.x)
    first = plans.axes[signature, side]
    stop = first + rows.layout[plans.tables[signature, side], COLUMNS]
    is_both = has[0] and has[1]
    count = np.int64(0)
    for i in range(found):
        box, bits = hits[i, 0], hits[i, 1] & SIDES
        slot, mask = owner_and_mask(boxes.cells, boxes.places, p, box)
        if not lives[slot, SINCE] < event < lives[slot, UNTIL]:
            continue
        if bits & OLD and not holds(boxes.cells, boxes.places, p, box, first, stop, _OLD_VECTOR):
            bits &= NEW
        if bits & NEW and not holds(boxes.cells, boxes.places, p, box, first, stop, _NEW_VECTOR):
            bits &= OLD
        # As in `stab`: a box that holds both is left out if nothing that matters to it has changed.
        if bits == 0 or (is_both and bits == BOTH and mask & changed == 0):
            continue
        hits[count, 0], hits[count, 1], hits[count, 2] = slot, bits, box
        count += 1
    return count


@uncounted
def _sift(boxes: Boxes, rows: Rows, x: I64, hits: I64, left: Int, first: Int, stop: Int) -> Int:
    """Moves those of hits[:left] whose conditions on axes first:stop hold to the front; how many these are."""
    p = pointers_of(boxes, rows.text, x)
    kept = np.int64(0)
    for i in range(left):
        if holds(boxes.cells, boxes.places, p, hits[i, 2], first, stop, _OLD_VECTOR):
            if i != kept:
                for field in range(3):
                    hits[i, field], hits[kept, field] = hits[kept, field], hits[i, field]
            kept += 1
    return kept


@uncounted
def _known_below(plans: Plans, cells: I64, walk: I64, step: Int, stop: Int, first: Int) -> Int:
    """How many combinations a list of partners leads to at least, as far as lists are known before it is read."""
    known = cells[walk[CELL, step - first], SIZE]
    for below in range(step + 1, stop):
        if plans.steps[below, STEP_IS_DIRECT]:
            known *= cells[walk[CELL, below - first], SIZE]
    return known


@uncounted
def meet(
    rows: Rows,
    lives: Lives,
    boxes: Boxes,
    partners: Partners,
    plans: Plans,
    newcomers: Newcomers,
    scratch: Scratch,
    wide: Int,
    event: Int,
    use: Int,
    old: Int,
    new: Int,
    changed: Int,
    asked: Int,
    asked_max: Int,
    pairs: Int,
    count: Int,
) -> tuple[Int, Int]:
    """Finds the combinations that the candidates hits[:asked] want, and who hears of each; new numbers of pairs and entries.

    Pairs that nobody hears of are left out. NONE for pairs, or for entries, if there is no room for them. At most `asked_max`
    candidates are asked one by one for each combination that this may save.
    """
    # Passing many arrays to a function costs more than a step: inner functions get what they need.
    cells, lists, steps, links = partners.cells, partners.lists, plans.steps, plans.links
    found, of_pair, heard, hits, x, walk = (
        scratch.found,
        scratch.of_pair,
        scratch.heard,
        scratch.hits,
        scratch.x,
        scratch.walk,
    )
    signature, first, stop = plans.uses[use, SIGNATURE], plans.uses[use, FIRST], plans.uses[use, STOP]
    own = plans.uses[use, USE_SIDE]
    of_pair[HEARD, pairs] = count
    if not begin_walk(rows, cells, plans, use, new if scratch.has[1] else old, walk):
        return pairs, count
    p = pointers_of(boxes, rows.text, x)
    depth, last = 0, stop - first - 1
    walk[LEFT, 0], walk[IS_SIFTED, 0] = asked, 1
    while depth >= 0:
        step, cell, at = first + depth, walk[CELL, depth], walk[AT, depth]
        if cell == NONE or at == cells[cell, SIZE]:
            depth -= 1
            continue
        walk[AT, depth] = at + 1
        partner = version_at(cells, lists, cell, at)
        side, record = steps[step, STEP_SIDE], record_of(rows, partner)
        table = plans.tables[signature, side]
        if not is_joined(rows, links, walk, steps[step, CHECKS], steps[step, CHECKS_STOP], record, table):
            continue
        walk[CHOSEN, side], walk[RECORD, side], walk[TABLE, side] = partner, record, table
        left, is_sifted, saved = walk[LEFT, depth], walk[IS_SIFTED, depth], np.int64(1)
        if depth < last:
            if not steps[step + 1, STEP_IS_DIRECT]:
                relation, keys, keys_stop = (
                    steps[step + 1, STEP_RELATION],
                    steps[step + 1, KEYS],
                    steps[step + 1, KEYS_STOP],
                )
                walk[CELL, depth + 1] = partners_of(rows, cells, links, relation, keys, keys_stop, walk)
                if walk[CELL, depth + 1] == NONE:
                    continue
            saved = _known_below(plans, cells, walk, step + 1, stop, first)
        fill(rows, plans, signature, side, partner, x, _OLD_VECTOR)
        fill(rows, plans, signature, side, partner, x, _NEW_VECTOR)
        if left <= asked_max * saved and (is_sifted or depth < last):
            axis = plans.axes[signature, side]
            left = _sift(boxes, rows, x, hits, left, axis, axis + rows.layout[table, COLUMNS])
            if left == 0:
                continue
        else:
            is_sifted = np.int64(0)
        if depth < last:
            depth += 1
            walk[AT, depth], walk[LEFT, depth], walk[IS_SIFTED, depth] = 0, left, is_sifted
            continue
        if pairs == found.shape[0]:
            return np.int64(NONE), count
        for i in range(found.shape[1]):
            found[pairs, i] = walk[CHOSEN, i]
        start, stop_at = np.int64(0), left
        if not is_sifted:
            start = asked
            stop_at = stab(boxes, rows.text, x, scratch.has, changed, hits[asked:])
            if stop_at < 0:
                return pairs, np.int64(NONE)
            stop_at += start
        if count + stop_at - start > heard.shape[0]:
            return pairs, np.int64(NONE)
        for i in range(start, stop_at):
            slot, bits = hits[i, 0], hits[i, 1] & SIDES
            if is_sifted:
                bits = exact_sides(boxes.cells, boxes.places, p, hits[i, 2], bits)
            elif not lives[slot, SINCE] < event < lives[slot, UNTIL]:
                continue
            if wide and bits:
                bits = selected(rows, plans, newcomers, found, slot, signature, own, pairs, old, new, bits)
            if bits:
                heard[count, SLOT], heard[count, PAIR], heard[count, BITS] = slot, pairs, bits
                count += 1
        if count > of_pair[HEARD, pairs]:
            of_pair[OLD_ITEM, pairs] = of_pair[NEW_ITEM, pairs] = NONE
            pairs += 1
            of_pair[HEARD, pairs] = count
    return pairs, count
