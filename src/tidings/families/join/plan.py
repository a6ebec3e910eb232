"""Plans of joins over shared rows: the steps that find all combinations of a row, and the lists of partners they need.

A signature is the tables of a join in the order of FROM and the edges between them. Subscriptions of one signature share its
plans, and a space whose axes are the columns of all sides, whatever they select and show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tidings.families.join.kernels.combine import LINK_FIELDS, STEP_FIELDS, USE_FIELDS, Plans
from tidings.families.join.kernels.partner_lists import Relations
from tidings.kernels.rows import I64, NONE

Columns = tuple[int, ...]
RelationKey = tuple[int, Columns]
"""(number of the table, columns by whose values its rows are found)."""
SIGNATURE_AXIS = 0
"""The axis with the number of the signature, which separates subscriptions of different signatures."""


@dataclass(frozen=True)
class Signature:
    """Numbers of the tables, and per edge (side, its columns, other side, its columns)."""

    tables: tuple[int, ...]
    edges: tuple[tuple[int, Columns, int, Columns], ...]

    @cached_property
    def links(self) -> list[list[tuple[int, int, int]]]:
        """[sides]: (own column, other side, its column) of every pair of columns that must be equal."""
        found: list[list[tuple[int, int, int]]] = [[] for _ in self.tables]
        for one, left, two, right in self.edges:
            for a, b in zip(left, right, strict=True):
                found[one].append((a, two, b))
                found[two].append((b, one, a))
        return found

    def steps(self, first: int) -> list[Step]:
        """Steps to find the combinations of a row of side `first`. Sides joined to `first` alone come as early as possible."""
        visited, steps = [first], []
        while len(visited) < len(self.tables):
            open_sides = [side for side in range(len(self.tables)) if side not in visited]
            reachable = [side for side in open_sides if any(link[1] in visited for link in self.links[side])]
            side = min(
                reachable, key=lambda side: {link[1] for link in self.links[side] if link[1] in visited} != {first}
            )
            checks = [link for link in self.links[side] if link[1] in visited]
            keys = {column: (column, other, theirs) for column, other, theirs in reversed(checks)}
            steps.append(Step(side, tuple(keys[column] for column in sorted(keys)), tuple(checks), first))
            visited.append(side)
        return steps

    def relations(self) -> set[RelationKey]:
        """The lists of partners that the plans read, and the list of all rows of each table, for snapshots."""
        found: set[RelationKey] = {(table, ()) for table in self.tables}
        for first in range(len(self.tables)):
            found |= {(self.tables[step.side], step.columns) for step in self.steps(first)}
        return found


@dataclass(frozen=True)
class Step:
    """Visits a side: its rows are found by `keys`, then tested by `checks`, both (own column, other side, its column)."""

    side: int
    keys: tuple[tuple[int, int, int], ...]
    checks: tuple[tuple[int, int, int], ...]
    first: int

    @property
    def columns(self) -> Columns:
        return tuple(key[0] for key in self.keys)

    @property
    def is_direct(self) -> bool:
        return all(other == self.first for _, other, _ in self.keys)


class Interest:
    """Columns that the subscriptions of a signature need: [sides] with a predicate, and [sides] shown."""

    def __init__(self, sides: int) -> None:
        self.tested: list[set[int]] = [set() for _ in range(sides)]
        self.shown: list[set[int]] = [set() for _ in range(sides)]


@dataclass
class RelationTable:
    """Relations in use, by number. New relations are appended to those of their table."""

    tables: int
    numbers: dict[RelationKey, int] = field(default_factory=dict)
    arrays: Relations = field(init=False)

    def __post_init__(self) -> None:
        self._build()

    def add(self, key: RelationKey) -> None:
        self.numbers[key] = len(self.numbers)
        self._build()

    def index(self, key: RelationKey) -> int:
        """Place of the relation in `arrays`."""
        return int(np.flatnonzero(self.arrays.number == self.numbers[key])[0])

    def _build(self) -> None:
        ordered = sorted(self.numbers, key=lambda key: (key[0], self.numbers[key]))
        of_table = np.searchsorted(np.array([table for table, _ in ordered], np.int64), np.arange(self.tables + 1))
        starts = np.cumsum([0, *(len(columns) for _, columns in ordered)])
        self.arrays = Relations(
            of_table.astype(np.int64),
            starts.astype(np.int64),
            np.array([column for _, columns in ordered for column in columns], np.int64),
            np.array([self.numbers[key] for key in ordered], np.int64),
        )


def plans_of(
    signatures: Sequence[Signature | None],
    interests: Sequence[Interest],
    relations: RelationTable,
    columns: Sequence[int],
) -> Plans:
    """Plans of all signatures by number (None: not in use). columns: number of columns of each table."""
    sides_max = max((len(signature.tables) for signature in signatures if signature), default=1)
    shape = (len(signatures), sides_max)
    tables, use_of = np.full(shape, NONE, np.int64), np.full(shape, NONE, np.int64)
    axes, matters = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    tested: list[list[int]] = [[] for _ in range(len(signatures) * sides_max)]
    steps: list[Sequence[int]] = []
    links: list[Sequence[int]] = []
    own: list[int] = []
    uses: list[tuple[int, Sequence[int]]] = []
    for number, signature in enumerate(signatures):
        if signature is None:
            continue
        axis = SIGNATURE_AXIS + 1
        for side, table in enumerate(signature.tables):
            joined = sorted({link[0] for link in signature.links[side]})
            interest = interests[number]
            tables[number, side], axes[number, side] = table, axis
            tested[number * sides_max + side] = sorted(interest.tested[side])
            matters[number, side] = mask_of({*joined, *interest.tested[side], *interest.shown[side]})
            axis += columns[table]
            first = len(steps)
            for step in signature.steps(side):
                keys = len(links)
                links += [(other, theirs, column) for column, other, theirs in step.keys]
                checks = len(links)
                links += [(other, theirs, column) for column, other, theirs in step.checks]
                relation = relations.numbers[signature.tables[step.side], step.columns]
                steps.append((step.side, relation, step.is_direct, keys, checks, checks, len(links)))
            uses.append((table, (number, side, first, len(steps), len(own), len(own) + len(joined))))
            own += joined
    uses.sort(key=lambda use: use[0])
    for at, (_, use) in enumerate(uses):
        use_of[use[0], use[1]] = at
    used_tables = np.array([table for table, _ in uses], np.int64)
    whole = np.array([relations.numbers.get((table, ()), NONE) for table in range(len(columns))], np.int64)
    equal = np.full((len(columns), max(columns, default=1)), NONE, np.int64)
    for (table, by), relation in relations.numbers.items():
        if len(by) == 1:
            equal[table, by[0]] = relation
    return Plans(
        np.searchsorted(used_tables, np.arange(len(columns) + 1)).astype(np.int64),
        _rows([use for _, use in uses], USE_FIELDS),
        _rows(steps, STEP_FIELDS),
        _rows(links, LINK_FIELDS),
        np.array(own, np.int64),
        tables,
        axes,
        use_of,
        matters,
        np.cumsum([0, *map(len, tested)]).astype(np.int64),
        np.array([column for part in tested for column in part], np.int64),
        whole,
        equal,
    )


def mask_of(columns: set[int]) -> int:
    """An int64 with bit (column & 63) of each column set."""
    mask = 0
    for column in columns:
        mask |= 1 << (column & 63)
    return mask - (1 << 64) if mask >> 63 else mask


def _rows(values: Sequence[Sequence[int]], fields: int) -> I64:
    return np.array(values, np.int64).reshape(len(values), fields)
