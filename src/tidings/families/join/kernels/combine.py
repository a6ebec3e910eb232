"""Combinations of rows that are joined: all that a given row is part of, found depth first through the edges of the join.

Tables joined by the same edges make a *signature*, shared by all subscriptions that join them so, whatever else these say. For
each of its sides there is a plan: in which order to visit the other sides, by which values of sides visited before their
partners are found, and what to look at again. Sides that depend on the first row alone are looked up before anything else: most
rows that are part of nothing are known at once.
"""

# mypy: allow-untyped-decorators

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.families.join.kernels.partner_lists import SIZE, Partners, begin, find, finish, version_at
from tidings.kernels.jit import uncounted
from tidings.kernels.rows import (
    EXACT,
    I64,
    NONE,
    U8,
    Int,
    Rows,
    code_at,
    compare_texts,
    equal_at,
    is_valid,
    joins_with,
    mix,
    record_of,
    same_text,
    text_at,
)

# Fields of a use (a table as a side of a signature): the side's plan is steps FIRST:STOP, its join columns own[OWN:OWN_STOP].
SIGNATURE, USE_SIDE, FIRST, STOP, OWN, OWN_STOP, USE_FIELDS = range(7)
# Fields of a step: the side visited, the relation that has its partners, whether it depends on the first row alone,
# links whose values lead to the partners, links to look at again.
STEP_SIDE, STEP_RELATION, STEP_IS_DIRECT, KEYS, KEYS_STOP, CHECKS, CHECKS_STOP, STEP_FIELDS = range(8)
# Fields of a link: a side visited before and its column, and the column of the side visited now that equals it.
LINK_SIDE, LINK_COLUMN, LINK_OWN, LINK_FIELDS = range(4)
# Fields of a test: column, closed ends of its code, values it may have, ends of a range of text and whether they are closed,
# whether the value must be null instead.
COLUMN, LO, HI, VALUES, VALUES_STOP, LO_TEXT, LO_TEXT_STOP, HI_TEXT, HI_TEXT_STOP, CLOSED, IS_NULL, TEST_FIELDS = range(
    12
)
# Fields of a value: equality code, text.
VALUE_CODE, VALUE_TEXT, VALUE_TEXT_STOP, VALUE_FIELDS = range(4)
# Rows of a walk: by side the version chosen, its record and table; by depth the list of partners, how far it is read, how many
# candidates are left, and whether they are all that satisfy what was chosen before.
CHOSEN, RECORD, TABLE, CELL, AT, LEFT, IS_SIFTED, WALK_FIELDS = range(8)
TOO_MANY = -2
NO_LIMIT = 2**62
SAMPLE = 16
"""Rows of a list that are looked at to know how many combinations it may lead to."""


class Plans(NamedTuple):
    """Signatures in use. Made anew when one comes or goes."""

    of_table: I64
    """[tables + 1]: first use of each table."""
    uses: I64
    """[uses, USE_FIELDS]."""
    steps: I64
    links: I64
    own: I64
    tables: I64
    """[signatures, sides at most]: table of each side, NONE beyond the last."""
    axes: I64
    """[signatures, sides at most]: first axis of each side."""
    use_of: I64
    """[signatures, sides at most]: the use of each side."""
    matters: I64
    """[signatures, sides at most]: mask (bit column & 63) of columns that are joined by, tested or shown."""
    tested: I64
    """[signatures * sides at most + 1]: first entry in `tested_columns` of each side."""
    tested_columns: I64
    whole: I64
    """[tables]: number of the relation of all rows, NONE if there is none."""
    equal: I64
    """[tables, columns at most]: number of the relation by that column alone, NONE if there is none."""


class Newcomers(NamedTuple):
    """Predicates, as tests of columns, of subscriptions that are created in this micro-batch, and of wide ones; by slot.

    A subscription is wide if its boxes hold more than it selects: its lists of values combine to so many boxes that it has
    fewer, larger ones, or it has several alternatives. Each alternative is an entry with the same slot.
    """

    slots: I64
    is_wide: I64
    signature: I64
    """NONE where nothing can match."""
    tests_of: I64
    """[newcomers, sides at most + 1]: first test of each side."""
    tests: I64
    values: I64
    text: U8


@uncounted
def has_value(rows: Rows, newcomers: Newcomers, value: Int, table: Int, column: Int, record: Int) -> bool:
    values = newcomers.values
    if equal_at(rows, record, table, column) != values[value, VALUE_CODE]:
        return False
    if rows.kinds[table, column] == EXACT:
        return True
    start, stop = values[value, VALUE_TEXT], values[value, VALUE_TEXT_STOP]
    return bool(same_text(rows, record, table, column, newcomers.text, start, stop))


@uncounted
def passes(rows: Rows, newcomers: Newcomers, test: Int, table: Int, record: Int) -> bool:
    """Whether a row passes one test."""
    tests = newcomers.tests
    column = tests[test, COLUMN]
    if tests[test, IS_NULL]:
        return not is_valid(rows, record, column)
    if not is_valid(rows, record, column):
        return False
    code = code_at(rows, record, table, column)
    if code < tests[test, LO] or tests[test, HI] < code:
        return False
    if tests[test, VALUES] < tests[test, VALUES_STOP]:
        for value in range(tests[test, VALUES], tests[test, VALUES_STOP]):
            if has_value(rows, newcomers, value, table, column, record):
                return True
        return False
    if tests[test, LO_TEXT] != NONE:
        start, stop = text_at(rows, record, table, column)
        order = compare_texts(rows.text, start, stop, newcomers.text, tests[test, LO_TEXT], tests[test, LO_TEXT_STOP])
        if order < 0 or (order == 0 and tests[test, CLOSED] & 1 == 0):
            return False
    if tests[test, HI_TEXT] != NONE:
        start, stop = text_at(rows, record, table, column)
        order = compare_texts(rows.text, start, stop, newcomers.text, tests[test, HI_TEXT], tests[test, HI_TEXT_STOP])
        if order > 0 or (order == 0 and tests[test, CLOSED] & 2 == 0):
            return False
    return True


@uncounted
def is_selected(rows: Rows, plans: Plans, newcomers: Newcomers, who: Int, found: I64, pair: Int) -> bool:
    """Whether a combination satisfies a newcomer's predicates on all sides."""
    signature = newcomers.signature[who]
    for side in range(plans.tables.shape[1]):
        table = plans.tables[signature, side]
        if table == NONE:
            break
        if not passes_all(rows, newcomers, who, side, table, record_of(rows, found[pair, side])):
            return False
    return True


@uncounted
def passes_all(rows: Rows, newcomers: Newcomers, who: Int, side: Int, table: Int, record: Int) -> bool:
    """Whether a row satisfies a newcomer's predicates on its side."""
    for test in range(newcomers.tests_of[who, side], newcomers.tests_of[who, side + 1]):
        if not passes(rows, newcomers, test, table, record):
            return False
    return True


@uncounted
def partners_of(rows: Rows, cells: I64, links: I64, relation: Int, first: Int, stop: Int, walk: I64) -> Int:
    """The cell of the partners that links[first:stop] lead to, NONE if there are none."""
    hashed = begin(relation)
    for i in range(first, stop):
        side, column = links[i, LINK_SIDE], links[i, LINK_COLUMN]
        record = walk[RECORD, side]
        if not is_valid(rows, record, column):
            return np.int64(NONE)
        hashed = mix(hashed, equal_at(rows, record, walk[TABLE, side], column))
    cell = find(cells, finish(hashed))
    return cell if cell != NONE and cells[cell, SIZE] else np.int64(NONE)


@uncounted
def begin_walk(rows: Rows, cells: I64, plans: Plans, use: Int, version: Int, walk: I64) -> bool:
    """Places a walk at a version, before its first partner; False if there is a side on which it has none."""
    steps, first, stop = plans.steps, plans.uses[use, FIRST], plans.uses[use, STOP]
    own = plans.uses[use, USE_SIDE]
    for side in range(walk.shape[1]):
        walk[CHOSEN, side] = NONE
    walk[CHOSEN, own], walk[RECORD, own] = version, record_of(rows, version)
    walk[TABLE, own] = plans.tables[plans.uses[use, SIGNATURE], own]
    for step in range(first, stop):
        if steps[step, STEP_IS_DIRECT]:
            relation, keys, keys_stop = steps[step, STEP_RELATION], steps[step, KEYS], steps[step, KEYS_STOP]
            cell = partners_of(rows, cells, plans.links, relation, keys, keys_stop, walk)
            if cell == NONE:
                return False
            walk[CELL, step - first] = cell
    walk[AT, 0] = 0
    return True


@uncounted
def is_joined(rows: Rows, links: I64, walk: I64, first: Int, stop: Int, record: Int, table: Int) -> bool:
    """Whether a row equals rows chosen before in the columns of links[first:stop]."""
    for i in range(first, stop):
        other = links[i, LINK_SIDE]
        column, own = links[i, LINK_COLUMN], links[i, LINK_OWN]
        if not joins_with(rows, walk[RECORD, other], walk[TABLE, other], column, record, table, own):
            return False
    return True


@uncounted
def combine(
    rows: Rows,
    partners: Partners,
    plans: Plans,
    newcomers: Newcomers,
    who: Int,
    use: Int,
    version: Int,
    walk: I64,
    found: I64,
    count: Int,
    looks_max: Int,
) -> Int:
    """Writes all combinations that a version is part of to found[count:]; gives the new count.

    NONE if there is no room, TOO_MANY if that takes a look at more than `looks_max` partners. Partners satisfy the predicates
    of newcomer `who`, all where it is NONE. walk: [WALK_FIELDS, sides at most], scratch.
    """
    # Passing many arrays to a function costs more than a step: inner functions get what they need.
    cells, lists, steps, links, tables = partners.cells, partners.lists, plans.steps, plans.links, plans.tables
    signature, first, stop = plans.uses[use, SIGNATURE], plans.uses[use, FIRST], plans.uses[use, STOP]
    if not begin_walk(rows, cells, plans, use, version, walk):
        return count
    depth, last = 0, stop - first - 1
    while depth >= 0:
        step, cell, at = first + depth, walk[CELL, depth], walk[AT, depth]
        if cell == NONE or at == cells[cell, SIZE]:
            depth -= 1
            continue
        if looks_max == 0:
            return np.int64(TOO_MANY)
        looks_max -= 1
        walk[AT, depth] = at + 1
        partner = version_at(cells, lists, cell, at)
        side, record = steps[step, STEP_SIDE], record_of(rows, partner)
        table = tables[signature, side]
        if not is_joined(rows, links, walk, steps[step, CHECKS], steps[step, CHECKS_STOP], record, table):
            continue
        if who != NONE and not passes_all(rows, newcomers, who, side, table, record):
            continue
        walk[CHOSEN, side], walk[RECORD, side], walk[TABLE, side] = partner, record, table
        if depth < last:
            depth += 1
            walk[AT, depth] = 0
            step += 1
            if not steps[step, STEP_IS_DIRECT]:
                relation, keys, keys_stop = steps[step, STEP_RELATION], steps[step, KEYS], steps[step, KEYS_STOP]
                walk[CELL, depth] = partners_of(rows, cells, links, relation, keys, keys_stop, walk)
            continue
        if count == found.shape[0]:
            return np.int64(NONE)
        for i in range(found.shape[1]):
            found[count, i] = walk[CHOSEN, i]
        count += 1
    return count


@uncounted
def _list_of(partners: Partners, relation: Int, newcomers: Newcomers, value: Int) -> Int:
    """The cell of rows with a value (NONE: of all rows), by the relation of that number; NONE if there are none."""
    hashed = begin(relation)
    if value != NONE:
        hashed = mix(hashed, newcomers.values[value, VALUE_CODE])
    cell = find(partners.cells, finish(hashed))
    return cell if cell != NONE and partners.cells[cell, SIZE] else np.int64(NONE)


@uncounted
def _expected_looks(
    rows: Rows, partners: Partners, plans: Plans, newcomers: Newcomers, who: Int, side: Int, cell: Int, walk: I64
) -> Int:
    """How many rows and first partners a newcomer's answer takes a look at if it begins with this list; from a sample."""
    cells, lists = partners.cells, partners.lists
    signature = newcomers.signature[who]
    table, use = plans.tables[signature, side], plans.use_of[signature, side]
    size, sampled, looks = cells[cell, SIZE], min(cells[cell, SIZE], SAMPLE), np.int64(0)
    for i in range(sampled):
        version = version_at(cells, lists, cell, i * size // sampled)
        if passes_all(rows, newcomers, who, side, table, record_of(rows, version)) and begin_walk(
            rows, cells, plans, use, version, walk
        ):
            looks += cells[walk[CELL, 0], SIZE]
    return size + looks * size // sampled


@uncounted
def answer(
    rows: Rows, partners: Partners, plans: Plans, newcomers: Newcomers, who: Int, walk: I64, found: I64, count: Int
) -> Int:
    """Writes a newcomer's whole answer to `found`, behind the `count` entries there are; the new count, NONE without room.

    It begins where the fewest rows and partners have to be looked at: with rows that have the value, or one of the values, of
    an equality, or with a whole table.
    """
    signature = newcomers.signature[who]
    if signature == NONE:
        return count
    best_side: Int = np.int64(0)
    best_test: Int = np.int64(NONE)
    best: Int = np.int64(NO_LIMIT)
    for side in range(plans.tables.shape[1]):
        table = plans.tables[signature, side]
        if table == NONE:
            break
        cell = _list_of(partners, plans.whole[table], newcomers, np.int64(NONE))
        if cell == NONE:
            return count
        looks = _expected_looks(rows, partners, plans, newcomers, who, side, cell, walk)
        if looks < best:
            best_side, best_test, best = side, np.int64(NONE), looks
        for test in range(newcomers.tests_of[who, side], newcomers.tests_of[who, side + 1]):
            relation = plans.equal[table, newcomers.tests[test, COLUMN]]
            first, stop = newcomers.tests[test, VALUES], newcomers.tests[test, VALUES_STOP]
            if relation == NONE or first == stop:
                continue
            looks = np.int64(0)
            for value in range(first, stop):
                cell = _list_of(partners, relation, newcomers, value)
                if cell != NONE:
                    looks += _expected_looks(rows, partners, plans, newcomers, who, side, cell, walk)
            if looks < best:
                best_side, best_test, best = side, test, looks
    table, use = plans.tables[signature, best_side], plans.use_of[signature, best_side]
    first, stop, relation, column = np.int64(0), np.int64(1), plans.whole[table], np.int64(NONE)
    if best_test != NONE:
        first, stop = newcomers.tests[best_test, VALUES], newcomers.tests[best_test, VALUES_STOP]
        column = newcomers.tests[best_test, COLUMN]
        relation = plans.equal[table, column]
    limit = np.int64(NO_LIMIT)
    for value in range(first, stop):
        cell = _list_of(partners, relation, newcomers, np.int64(NONE) if best_test == NONE else value)
        if cell == NONE:
            continue
        for i in range(partners.cells[cell, SIZE]):
            version = version_at(partners.cells, partners.lists, cell, i)
            record = record_of(rows, version)
            if best_test != NONE and not has_value(rows, newcomers, value, table, column, record):
                continue
            if passes_all(rows, newcomers, who, best_side, table, record):
                count = combine(rows, partners, plans, newcomers, who, use, version, walk, found, count, limit)
                if count == NONE:
                    return count
    return count
