"""A small family for tests: `SELECT .. WHERE column = x` on the table `mirrored`, as plain as a family can be.

Its evaluator asks every subscription about every change, in Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.families.evaluator import Evaluator, Store
from tidings.families.protocols import Explanation, Family
from tidings.families.select.reference import SelectReference
from tidings.families.select.subscription import place, space_of, spec_of
from tidings.families.spec import Form
from tidings.kernels.events import CHANGE, CREATE, NOBODY, Events, Told
from tidings.kernels.lives import PROJECTION, SINCE, UNTIL
from tidings.kernels.rows import I64, NONE, is_current
from tidings.model.points import Placement, PointBatch

CATALOG = """
CREATE TABLE mirrored (id INT PRIMARY KEY, kind TEXT, n INT);
CREATE TABLE items (id INT PRIMARY KEY, kind TEXT, n INT);
"""
QUERIES = [
    "SELECT * FROM mirrored WHERE kind = {}",
    "SELECT n FROM mirrored WHERE kind = {}",
    "SELECT * FROM items WHERE kind = {}",
]


class MirrorEvaluator(Evaluator):
    name = "mirror"
    remembers = False

    def __init__(self, catalog: Any, store: Store) -> None:
        self._catalog, self._store = catalog, store
        self._table = store.number("mirrored")
        self._wanted: dict[int, tuple[int, bytes]] = {}
        """Slot -> column and the text of the value it must have."""

    def add(self, points: PointBatch, slots: I64, lives: I64) -> None:
        (column,) = space_of(Form.from_key(points.form.replace('"mirror"', '"select"', 1)), self._catalog).equalities
        at = self._catalog.table("mirrored").column_names.index(column.name)
        for slot, value in zip(slots.tolist(), points.channel[0].to_pylist(), strict=True):
            text = f'"{value}"' if isinstance(value, str) else str(value)
            self._wanted[slot] = (at, b"" if value is None else text.encode())

    def remove(self, slots: I64) -> None:
        for slot in slots.tolist():
            self._wanted.pop(slot, None)

    def apply(self, events: Events, lives: I64, projections: Any) -> Told:
        told: list[tuple[int, int, list[tuple[int, int]]]] = []
        for event, (kind, table, old, new, slot) in enumerate(
            zip(events.kind, events.table, events.old, events.new, events.slot, strict=True)
        ):
            if kind == CREATE and slot in self._wanted:
                rows = [version for version in self._versions() if is_current(self._store.rows, version, event)]
                told.append((event, int(slot), [(NONE, row) for row in rows if self._has(int(slot), row)]))
            if kind != CHANGE or table != self._table:
                continue
            for who in self._wanted:
                if not lives[who, SINCE] < event < lives[who, UNTIL]:
                    continue
                before, after = (int(row) if row != NONE and self._has(who, row) else NONE for row in (old, new))
                is_kept = before != NONE and after != NONE
                if before != after and not (is_kept and self._alike(who, before, after, lives, projections)):
                    told.append((event, who, [(before, after)]))
        if not told:
            return NOBODY
        event, slot = (np.array([entry[i] for entry in told], np.int64) for i in (0, 1))
        ends = np.cumsum([len(changes) for _, _, changes in told])
        tails = np.stack([event, lives[slot, PROJECTION], ends - np.diff(ends, prepend=0), ends], axis=1)
        changes = np.array([pair for _, _, pairs in told for pair in pairs], np.int64).reshape(-1, 2)
        return Told.of(event, slot, np.arange(len(told)), tails, changes)

    @property
    def nbytes(self) -> int:
        return 100 * len(self._wanted)

    def _versions(self) -> list[int]:
        rows = self._store.rows
        versions = np.flatnonzero(rows.alive)
        return [int(v) for v in versions if rows.page_table[v >> 8] == self._table]

    def _has(self, slot: int, version: int) -> bool:
        at, text = self._wanted[slot]
        return bool(text) and self._store.texts_of(int(version))[at] == text

    def _alike(self, slot: int, a: int, b: int, lives: I64, projections: Any) -> bool:
        shown = lives[slot, PROJECTION]
        columns = projections.column[projections.starts[shown] : projections.starts[shown + 1]]
        first, second = self._store.texts_of(a), self._store.texts_of(b)
        return all(first[column] == second[column] for column in columns)


class MirrorExplanation(Explanation):
    summary = "rows of the table `mirrored` with one value"

    def lines(self, form, placement, catalog):
        return [("point", "one value")]


class MirrorFamily(Family):
    name = "mirror"
    reference = SelectReference()
    explanation = MirrorExplanation()

    def claims(self, shape, catalog):
        return shape.tables == ("mirrored",) and shape.order is None

    def place(self, shape, constants, catalog):
        placement = place(shape, constants, catalog)
        return Placement(placement.form.replace('"select"', '"mirror"', 1), placement.channels, placement.coords)

    def spec(self, form, catalog):
        return spec_of(form, catalog)

    def evaluator(self, catalog, store):
        return MirrorEvaluator(catalog, store)
