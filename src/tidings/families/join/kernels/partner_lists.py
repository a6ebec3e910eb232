"""Partners: a hash multimap that says which current rows of a table have given values in given columns.

A *relation* is a table and some of its columns, none for all rows of the table. The hash of (relation, equality codes) leads to
a cell, and the cell to a list of versions; a list of one lies in the cell itself, longer ones in extents of a power of two.
Rows with a null in the columns are in no list. Hashes may collide: who reads a list looks at the values again.

    cells:  hash | start or version | size | room     lists:  v v v . | v v | free ..
    place[ordinal of the relation in its table, version]: where the version is in its list, so that it leaves in one step
"""

# mypy: allow-untyped-decorators

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.kernels.jit import uncounted
from tidings.kernels.rows import I32, I64, NONE, Int, Rows, equal_at, is_valid, mix, record_of

# Fields of a cell. Without room the one version of the list stands in START.
HASH, START, SIZE, ROOM, CELL_FIELDS = range(5)
# Fields of `head`: cells in use, end of the lists in use; then the first free extent of each power of two.
CELLS, END, FREE = range(3)
POWERS = 32
NOWHERE = 0
"""The hash of a row that is in no list, and of a cell never used."""
_SEED = 0x2545F4914F6CDD1D


class Relations(NamedTuple):
    """What rows are found by. Relations of one table follow each other."""

    of_table: I64
    """[tables + 1]: first relation of each table."""
    starts: I64
    """[relations + 1]: first column of each relation."""
    columns: I64
    number: I64
    """[relations]: the number that hashes begin with; it stays when other relations come and go."""


class Partners(NamedTuple):
    """Lists of versions. Arrays are replaced when they grow."""

    cells: I64
    """[a power of two, CELL_FIELDS]: open addressing."""
    lists: I32
    head: I64
    place: I32
    """[relations of one table at most, versions]."""

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self)


def no_partners() -> Partners:
    head = np.zeros(FREE + POWERS, np.int64)
    head[FREE:] = NONE
    return Partners(np.zeros((64, CELL_FIELDS), np.int64), np.empty(64, np.int32), head, np.empty((1, 0), np.int32))


def wider(partners: Partners, ordinals: int, versions: int) -> Partners:
    """Room in `place` for so many relations of a table and so many versions."""
    known, had = partners.place.shape
    if ordinals <= known and versions <= had:
        return partners
    place = np.empty((max(ordinals, known), versions if versions <= had else max(versions, 3 * had // 2)), np.int32)
    place[:known, :had] = partners.place
    return partners._replace(place=place)


def with_room(partners: Partners) -> Partners:
    """Room for more after `has_room` said no."""
    cells, lists = partners.cells, partners.lists
    if 3 * (int(partners.head[CELLS]) + len(partners.place)) <= 2 * len(cells):
        longer = np.empty(2 * len(lists), np.int32)
        longer[: len(lists)] = lists
        return partners._replace(lists=longer)
    used = int(np.count_nonzero(cells[:, SIZE])) + len(partners.place)
    fresh = np.zeros((1 << max(6, (2 * used).bit_length()), CELL_FIELDS), np.int64)
    partners.head[CELLS] = rehash(cells, fresh)
    return partners._replace(cells=fresh)


@uncounted
def rehash(cells: I64, fresh: I64) -> Int:
    """Writes cells that have a list to an empty table; gives how many these are."""
    mask, count = fresh.shape[0] - 1, 0
    for i in range(cells.shape[0]):
        if cells[i, SIZE]:
            at = cells[i, HASH] & mask
            while fresh[at, HASH] != NOWHERE:
                at = (at + 1) & mask
            for field in range(CELL_FIELDS):
                fresh[at, field] = cells[i, field]
            count += 1
    return count


@uncounted
def begin(number: Int) -> Int:
    """The hash of a relation before its values are mixed into it."""
    return mix(np.int64(_SEED), number)


@uncounted
def finish(hashed: Int) -> Int:
    return np.int64(1) if hashed == NOWHERE else np.int64(hashed)


@uncounted
def hash_of(rows: Rows, relations: Relations, relation: Int, table: Int, record: Int) -> Int:
    """The hash that leads to the list of a row, NOWHERE if a null keeps it out."""
    hashed = begin(relations.number[relation])
    for i in range(relations.starts[relation], relations.starts[relation + 1]):
        if not is_valid(rows, record, relations.columns[i]):
            return np.int64(NOWHERE)
        hashed = mix(hashed, equal_at(rows, record, table, relations.columns[i]))
    return finish(hashed)


@uncounted
def find(cells: I64, hashed: Int) -> Int:
    """The cell of a hash, NONE if there is none."""
    mask = cells.shape[0] - 1
    at = hashed & mask
    while cells[at, HASH] != NOWHERE:
        if cells[at, HASH] == hashed:
            return at
        at = (at + 1) & mask
    return np.int64(NONE)


@uncounted
def version_at(cells: I64, lists: I32, cell: Int, i: Int) -> Int:
    """Number i of a cell's list."""
    if cells[cell, ROOM] == 0:
        return cells[cell, START]
    return np.int64(lists[cells[cell, START] + i])


@uncounted
def has_room(rows: Rows, partners: Partners, relations: Relations, table: Int, version: Int) -> bool:
    """Whether a version can be put into all lists it belongs to."""
    first, stop = relations.of_table[table], relations.of_table[table + 1]
    if 3 * (partners.head[CELLS] + stop - first) > 2 * partners.cells.shape[0]:
        return False
    if version == NONE:
        return True
    wanted, record = np.int64(0), record_of(rows, version)
    for relation in range(first, stop):
        cell = find(partners.cells, hash_of(rows, relations, relation, table, record))
        if cell != NONE and partners.cells[cell, SIZE] >= max(partners.cells[cell, ROOM], 1):
            wanted += 2 * partners.cells[cell, SIZE]
    return bool(partners.head[END] + wanted <= len(partners.lists))


@uncounted
def _power(room: Int) -> Int:
    power = 0
    while (1 << power) < room:
        power += 1
    return power


@uncounted
def _release(partners: Partners, cell: Int) -> None:
    """Gives the room of a list back."""
    cells, lists, head = partners.cells, partners.lists, partners.head
    chain = FREE + _power(cells[cell, ROOM])
    lists[cells[cell, START]] = head[chain]
    head[chain] = cells[cell, START]
    cells[cell, ROOM] = 0


@uncounted
def _widen(partners: Partners, cell: Int) -> None:
    """Gives a list twice the room it has."""
    cells, lists, head = partners.cells, partners.lists, partners.head
    room = max(2 * cells[cell, ROOM], 2)
    chain = FREE + _power(room)
    start = head[chain]
    if start != NONE:
        head[chain] = lists[start]
    else:
        start = head[END]
        head[END] += room
    if cells[cell, ROOM] == 0:
        lists[start] = cells[cell, START]
    else:
        old = cells[cell, START]
        for i in range(cells[cell, SIZE]):
            lists[start + i] = lists[old + i]
        _release(partners, cell)
    cells[cell, START], cells[cell, ROOM] = start, room


@uncounted
def _put(partners: Partners, ordinal: Int, hashed: Int, version: Int) -> None:
    cells = partners.cells
    mask = cells.shape[0] - 1
    at = hashed & mask
    while cells[at, HASH] != hashed:
        if cells[at, HASH] == NOWHERE:
            cells[at, HASH], cells[at, SIZE], cells[at, ROOM] = hashed, 0, 0
            partners.head[CELLS] += 1
            break
        at = (at + 1) & mask
    size = cells[at, SIZE]
    if size == 0:
        cells[at, START] = version
    else:
        if size >= max(cells[at, ROOM], 1):
            _widen(partners, at)
        partners.lists[cells[at, START] + size] = version
    cells[at, SIZE] = size + 1
    partners.place[ordinal, version] = size


@uncounted
def _remove(partners: Partners, ordinal: Int, hashed: Int, version: Int) -> None:
    cells = partners.cells
    cell = find(partners.cells, hashed)
    last = cells[cell, SIZE] - 1
    cells[cell, SIZE] = last
    if cells[cell, ROOM]:
        at, start = partners.place[ordinal, version], cells[cell, START]
        moved = partners.lists[start + last]
        partners.lists[start + at] = moved
        partners.place[ordinal, moved] = at
        if last == 0:
            _release(partners, cell)


@uncounted
def _replace(partners: Partners, ordinal: Int, hashed: Int, old: Int, new: Int) -> None:
    cell = find(partners.cells, hashed)
    at = partners.place[ordinal, old]
    if partners.cells[cell, ROOM]:
        partners.lists[partners.cells[cell, START] + at] = new
    else:
        partners.cells[cell, START] = new
    partners.place[ordinal, new] = at


@uncounted
def change(rows: Rows, partners: Partners, relations: Relations, table: Int, old: Int, new: Int) -> None:
    """A row has another version, NONE for none: lists of all relations of its table follow. There is room."""
    first = relations.of_table[table]
    for relation in range(first, relations.of_table[table + 1]):
        gone = come = np.int64(NOWHERE)
        if old != NONE:
            gone = hash_of(rows, relations, relation, table, record_of(rows, old))
        if new != NONE:
            come = hash_of(rows, relations, relation, table, record_of(rows, new))
        if gone == come:
            if gone != NOWHERE:
                _replace(partners, relation - first, gone, old, new)
            continue
        if gone != NOWHERE:
            _remove(partners, relation - first, gone, old)
        if come != NOWHERE:
            _put(partners, relation - first, come, new)


@uncounted
def fill(
    rows: Rows, partners: Partners, relations: Relations, table: Int, relation: Int, versions: I64, start: Int
) -> Int:
    """Enters versions[start:] into the lists of one relation; gives where it stopped for lack of room."""
    ordinal = relation - relations.of_table[table]
    for i in range(start, len(versions)):
        if not has_room(rows, partners, relations, table, versions[i]):
            return i
        hashed = hash_of(rows, relations, relation, table, record_of(rows, versions[i]))
        if hashed != NOWHERE:
            _put(partners, ordinal, hashed, versions[i])
    return len(versions)
