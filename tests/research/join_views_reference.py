"""Join views in plain words: rows by key, joined by trying all of them, for a few subscriptions with a few rows each."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from research.strategies.join.payload import GONE, PLACED
from research.strategies.join.space import Space
from tidings.families.join.subscription import Predicate
from tidings.model.channel import channel_component
from tidings.model.notification import change_tail, delete_change, insert_change, snapshot_tail, update_change
from tidings.model.render import render_rows
from tidings.model.types import ColumnType

Values = dict[str, Any]
Arrived = tuple[Values, ...] | tuple[int, Values]
"""A whole joined row, by its parts; or a row of a side, and which one."""
Key = tuple[Any, ...]


class Row(NamedTuple):
    key: Key
    links: tuple[Key | None, ...]
    """By edge; None where the edge is not of its side."""
    cells: tuple[str, ...]


Joined = tuple[Row, ...]
Results = dict[tuple[Key, ...], Joined]


class PlainViews:
    """What the views of `JoinViews` are to hold and tell."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.rows: dict[int, dict[tuple[int, Key], Row]] = {}
        """By slot, side and key."""
        self.wholes: dict[int, Results] = {}
        self.predicates: dict[int, list[Predicate | None]] = {}

    def create(self, slot: int, details: bytes) -> None:
        self.rows[slot], self.wholes[slot] = {}, {}
        if details:
            self.predicates[slot] = msgspec.msgpack.decode(details, type=list[Predicate | None])

    def drop(self, slot: int) -> None:
        del self.rows[slot], self.wholes[slot]
        self.predicates.pop(slot, None)

    def move(self, slots: dict[int, int]) -> None:
        """Gives views other slots."""
        self.rows, self.wholes, self.predicates = (
            {slots[slot]: value for slot, value in held.items()} for held in (self.rows, self.wholes, self.predicates)
        )

    def start(self, slot: int, seq: int, arrived: list[Arrived]) -> str:
        self.rows[slot], self.wholes[slot] = {}, {}
        for one in arrived:
            if self.satisfies(slot, one):
                self._hold(slot, *self._read(one))
        shown = [*self.wholes[slot].values(), *self._joined(slot)]
        return snapshot_tail(seq, sorted(map(self._text, shown)))

    def tell(self, slot: int, seq: int, arrived: list[tuple[Arrived, int]]) -> str:
        """The tail of the line at a seq, given all that arrives then; empty if there is none."""
        rows: dict[tuple[int, Key], Row | None] = {}
        wholes: dict[tuple[Key, ...], Joined | None] = {}
        for one, tag in arrived:
            assert tag & (PLACED | GONE)
            place, row = self._read(one)
            into: dict[Any, Any] = wholes if isinstance(row, dict) else rows
            is_placed = bool(tag & PLACED) and self.satisfies(slot, one)
            value = tuple(row.values()) if isinstance(row, dict) else row
            if is_placed or place not in into:
                into[place] = value if is_placed else None
        rows = {place: row for place, row in rows.items() if self.rows[slot].get(place) != row}
        before = self._touched(slot, rows, wholes)
        for held, changed in ((self.rows[slot], rows), (self.wholes[slot], wholes)):
            for place, value in changed.items():
                held.pop(place, None)
                if value is not None:
                    held[place] = value
        changes = self._difference(before, self._touched(slot, rows, wholes))
        return change_tail(seq, changes) if changes else ""

    def _hold(self, slot: int, place: Any, row: Any) -> None:
        if isinstance(row, dict):
            self.wholes[slot][place] = tuple(row.values())
        else:
            self.rows[slot][place] = row

    def _read(self, one: Arrived) -> tuple[Any, Any]:
        """(keys, {side: row}) of a whole row, ((side, key), row) of another."""
        if isinstance(one[0], int):
            row = self._row(one[0], one[1])
            return (one[0], row.key), row
        parts = {side: self._row(side, values) for side, values in enumerate(one)}
        return tuple(row.key for row in parts.values()), parts

    def _row(self, number: int, values: Values) -> Row:
        side = self.space.sides[number]
        links = [
            next((tuple(values[n] for n in names) for at, names in ends if at == number), None)
            for ends in (list(zip(edge.sides, edge.columns, strict=True)) for edge in self.space.edges)
        ]
        cells = []
        for name, (at, column) in zip(self.space.names, self.space.shown, strict=True):
            if at == number:
                columns = [pa.array([values[column]], side.table.schema.field(column).type)]
                cells.append(render_rows([name], columns, 1)[0][1:-1])
        return Row(tuple(values[name] for name in side.table.key), tuple(links), tuple(cells))

    def satisfies(self, slot: int, one: Arrived) -> bool:
        predicates = self.predicates.get(slot)
        if predicates is None:
            return True
        parts = {one[0]: one[1]} if isinstance(one[0], int) else dict(enumerate(one))
        columns = [(number, column) for number, side in enumerate(self.space.sides) for column in side.columns]
        return all(
            _satisfies(predicate, column.type, parts[number][column.name])
            for predicate, (number, column) in zip(predicates, columns, strict=True)
            if predicate is not None and number in parts
        )

    def _joined(self, slot: int) -> list[Joined]:
        sides = [
            [row for (at, _), row in self.rows[slot].items() if at == side] for side in range(len(self.space.sides))
        ]
        return [joined for joined in product(*sides) if self._fits(joined)]

    def _fits(self, joined: Joined) -> bool:
        links = [[joined[side].links[at] for side in edge.sides] for at, edge in enumerate(self.space.edges)]
        return all(one == other and one is not None and None not in one for one, other in links)

    def _touched(self, slot: int, rows: dict[tuple[int, Key], Any], wholes: dict[tuple[Key, ...], Any]) -> Results:
        """All joined rows with one of these in them, and those that came whole."""
        found = {
            tuple(row.key for row in joined): joined
            for joined in self._joined(slot)
            if any((side, row.key) in rows for side, row in enumerate(joined))
        }
        found.update((keys, self.wholes[slot][keys]) for keys in wholes if keys in self.wholes[slot])
        return found

    def _difference(self, old: Results, new: Results) -> str:
        """Changes from one answer to the other as multisets of what is shown; empty if there are none."""
        gone, come = Counter(map(self._text, old.values())), Counter(map(self._text, new.values()))
        gone, come = gone - come, come - gone
        changes = []
        for key in sorted(old.keys() & new.keys()):
            before, after = self._text(old[key]), self._text(new[key])
            if gone[before] > 0 and come[after] > 0:
                gone[before] -= 1
                come[after] -= 1
                changes.append(update_change(before, after))
        for results, left, change in ((old, gone, delete_change), (new, come, insert_change)):
            for key in sorted(results):
                text = self._text(results[key])
                if left[text] > 0:
                    left[text] -= 1
                    changes.append(change(text))
        return ", ".join(changes)

    def _text(self, joined: Joined) -> str:
        return "{" + ", ".join(self._in_order([row.cells for row in joined])) + "}"

    def _in_order(self, cells: list[tuple[str, ...]]) -> list[str]:
        taken = [iter(part) for part in cells]
        return [next(taken[side]) for side, _ in self.space.shown]


def _satisfies(predicate: Predicate, type: ColumnType, value: Any) -> bool:
    if value is None:
        return False
    if predicate.values is not None:
        return channel_component(type, value) in predicate.values
    above = predicate.lo is None or value > predicate.lo or (predicate.lo_closed and value == predicate.lo)
    below = predicate.hi is None or value < predicate.hi or (predicate.hi_closed and value == predicate.hi)
    return above and below
