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
from numba import njit

from tidings.families.join.kernels.partners import SIZE, Partners, begin, find, finish, version_at
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
# Fields of a test: column, closed ends of its code, values it may have, ends of a range of text and whether they are closed.
COLUMN, LO, HI, VALUES, VALUES_STOP, LO_TEXT, LO_TEXT_STOP, HI_TEXT, HI_TEXT_STOP, CLOSED, TEST_FIELDS = range(11)
# Fields of a value: equality code, text.
VALUE_CODE, VALUE_TEXT, VALUE_TEXT_STOP, VALUE_FIELDS = range(4)


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
    """Subscriptions that are created in this micro-batch, sorted by slot, and their predicates as tests of columns."""

    slots: I64
    signature: I64
    """NONE where nothing can match."""
    tests_of: I64
    """[newcomers, sides at most + 1]: first test of each side."""
    tests: I64
    values: I64
    text: U8


@njit(cache=True)
def has_value(rows: Rows, newcomers: Newcomers, value: Int, table: Int, column: Int, record: Int) -> bool:
    values = newcomers.values
    if equal_at(rows, record, table, column) != values[value, VALUE_CODE]:
        return False
    if rows.kinds[table, column] == EXACT:
        return True
    start, stop = values[value, VALUE_TEXT], values[value, VALUE_TEXT_STOP]
    return bool(same_text(rows, record, table, column, newcomers.text, start, stop))


@njit(cache=True)
def passes(rows: Rows, newcomers: Newcomers, test: Int, table: Int, record: Int) -> bool:
    """Whether a row passes one test."""
    tests = newcomers.tests
    column = tests[test, COLUMN]
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


@njit(cache=True)
def passes_all(rows: Rows, newcomers: Newcomers, who: Int, side: Int, table: Int, record: Int) -> bool:
    """Whether a row satisfies a newcomer's predicates on its side; nobody (NONE) has none."""
    if who == NONE:
        return True
    for test in range(newcomers.tests_of[who, side], newcomers.tests_of[who, side + 1]):
        if not passes(rows, newcomers, test, table, record):
            return False
    return True


@njit(cache=True)
def _partners_of(rows: Rows, partners: Partners, plans: Plans, signature: Int, step: Int, records: I64) -> Int:
    """The cell of the partners that a step finds, NONE if there are none."""
    hashed = begin(plans.steps[step, STEP_RELATION])
    for i in range(plans.steps[step, KEYS], plans.steps[step, KEYS_STOP]):
        side, column = plans.links[i, LINK_SIDE], plans.links[i, LINK_COLUMN]
        if not is_valid(rows, records[side], column):
            return np.int64(NONE)
        hashed = mix(hashed, equal_at(rows, records[side], plans.tables[signature, side], column))
    cell = find(partners, finish(hashed))
    return cell if cell != NONE and partners.cells[cell, SIZE] else np.int64(NONE)


@njit(cache=True)
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
) -> Int:
    """Writes all combinations that a version is part of to found[count:]; gives the new count, NONE if there is no room.

    Partners satisfy the predicates of newcomer `who`, all where it is NONE. walk: [4, sides at most], scratch.
    """
    signature, first, stop = plans.uses[use, SIGNATURE], plans.uses[use, FIRST], plans.uses[use, STOP]
    chosen, records, cell, at = walk[0], walk[1], walk[2], walk[3]
    own = plans.uses[use, USE_SIDE]
    chosen[:] = NONE
    chosen[own], records[own] = version, record_of(rows, version)
    for step in range(first, stop):
        if plans.steps[step, STEP_IS_DIRECT]:
            cell[step - first] = _partners_of(rows, partners, plans, signature, step, records)
            if cell[step - first] == NONE:
                return count
    depth, last = 0, stop - first - 1
    at[0] = 0
    while depth >= 0:
        step = first + depth
        if cell[depth] == NONE or at[depth] == partners.cells[cell[depth], SIZE]:
            depth -= 1
            continue
        partner = version_at(partners, cell[depth], at[depth])
        at[depth] += 1
        side, record = plans.steps[step, STEP_SIDE], record_of(rows, partner)
        table = plans.tables[signature, side]
        is_joined = passes_all(rows, newcomers, who, side, table, record)
        for i in range(plans.steps[step, CHECKS], plans.steps[step, CHECKS_STOP]):
            if not is_joined:
                break
            other = plans.links[i, LINK_SIDE]
            is_joined = joins_with(
                rows,
                records[other],
                plans.tables[signature, other],
                plans.links[i, LINK_COLUMN],
                record,
                table,
                plans.links[i, LINK_OWN],
            )
        if not is_joined:
            continue
        chosen[side], records[side] = partner, record
        if depth < last:
            depth += 1
            at[depth] = 0
            if not plans.steps[first + depth, STEP_IS_DIRECT]:
                cell[depth] = _partners_of(rows, partners, plans, signature, first + depth, records)
            continue
        if count == found.shape[0]:
            return np.int64(NONE)
        for i in range(found.shape[1]):
            found[count, i] = chosen[i]
        count += 1
    return count


@njit(cache=True)
def _list_of(partners: Partners, relation: Int, newcomers: Newcomers, value: Int) -> Int:
    """The cell of rows with a value (NONE: of all rows), by the relation of that number; NONE if there are none."""
    hashed = begin(relation)
    if value != NONE:
        hashed = mix(hashed, newcomers.values[value, VALUE_CODE])
    cell = find(partners, finish(hashed))
    return cell if cell != NONE and partners.cells[cell, SIZE] else np.int64(NONE)


@njit(cache=True)
def answer(rows: Rows, partners: Partners, plans: Plans, newcomers: Newcomers, who: Int, walk: I64, found: I64) -> Int:
    """Writes a newcomer's whole answer to `found`; how many combinations it has, NONE if there is no room.

    It begins with the side that has the fewest rows to look at: those with the value, or one of the values, of an equality,
    or the whole table.
    """
    signature = newcomers.signature[who]
    if signature == NONE:
        return 0
    best_side, best_test, best = 0, NONE, np.int64(2**62)
    for side in range(plans.tables.shape[1]):
        table = plans.tables[signature, side]
        if table == NONE:
            break
        cell = _list_of(partners, plans.whole[table], newcomers, NONE)
        if cell == NONE:
            return 0
        if partners.cells[cell, SIZE] < best:
            best_side, best_test, best = side, NONE, partners.cells[cell, SIZE]
        for test in range(newcomers.tests_of[who, side], newcomers.tests_of[who, side + 1]):
            relation = plans.equal[table, newcomers.tests[test, COLUMN]]
            first, stop = newcomers.tests[test, VALUES], newcomers.tests[test, VALUES_STOP]
            if relation == NONE or first == stop:
                continue
            size = np.int64(0)
            for value in range(first, stop):
                cell = _list_of(partners, relation, newcomers, value)
                if cell != NONE:
                    size += partners.cells[cell, SIZE]
            if size < best:
                best_side, best_test, best = side, test, size
    table, use = plans.tables[signature, best_side], plans.use_of[signature, best_side]
    first, stop, relation, column = np.int64(0), np.int64(1), plans.whole[table], np.int64(NONE)
    if best_test != NONE:
        first, stop = newcomers.tests[best_test, VALUES], newcomers.tests[best_test, VALUES_STOP]
        column = newcomers.tests[best_test, COLUMN]
        relation = plans.equal[table, column]
    count = 0
    for value in range(first, stop):
        cell = _list_of(partners, relation, newcomers, NONE if best_test == NONE else value)
        if cell == NONE:
            continue
        for i in range(partners.cells[cell, SIZE]):
            version = version_at(partners, cell, i)
            record = record_of(rows, version)
            if best_test != NONE and not has_value(rows, newcomers, value, table, column, record):
                continue
            if passes_all(rows, newcomers, who, best_side, table, record):
                count = combine(rows, partners, plans, newcomers, who, use, version, walk, found, count)
                if count == NONE:
                    return count
    return count
