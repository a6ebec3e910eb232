"""Interned rows: rows as they were sent, each stored once for all views that hold it, by number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from research.strategies.join.space import Space
from research.views.join.join_state import NONE, JoinState, Numbers
from research.views.join.side_rows import SideRows, Texts, pieces_of
from tidings.model.channel import ChannelKey
from tidings.model.codes import Int64Array

SWEEP_MIN = 4_096


class Interner:
    """Gives values small numbers. Values belong to groups; equal values of different groups have different numbers."""

    def __init__(self, groups: int) -> None:
        self._numbers: list[dict[ChannelKey, int]] = [{} for _ in range(groups)]
        self._values: list[ChannelKey | None] = []
        self._groups: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._values) - len(self._free)

    def known(self, group: int, values: Iterable[ChannelKey]) -> list[int]:
        """Numbers of values; NONE for unknown values."""
        numbers = self._numbers[group]
        return [numbers.get(value, NONE) for value in values]

    def take(self, group: int, values: Iterable[ChannelKey | None]) -> list[int]:
        """Numbers of values; unknown values get new numbers, None gets NONE."""
        numbers = self._numbers[group]
        found = []
        for value in values:
            if value is None:
                found.append(NONE)
                continue
            number = numbers.get(value)
            if number is None:
                number = numbers[value] = self._new(group, value)
            found.append(number)
        return found

    def values(self, numbers: Numbers) -> list[ChannelKey | None]:
        """Values of numbers; None for NONE."""
        values = self._values
        return [None if number == NONE else values[number] for number in numbers.tolist()]

    def ranks(self, numbers: Numbers) -> Int64Array:
        """Ranks of the values of these numbers, which are all of one group."""
        distinct, which = np.unique(numbers, return_inverse=True)
        values: list[Any] = self.values(distinct)
        ranks = np.empty(len(distinct), np.int64)
        ranks[sorted(range(len(values)), key=values.__getitem__)] = np.arange(len(values))
        ranked: Int64Array = ranks[which]
        return ranked

    def keep(self, used: Numbers) -> None:
        """Frees all numbers but these."""
        is_used = np.zeros(len(self._values), np.bool_)
        is_used[used] = True
        for number in np.flatnonzero(~is_used).tolist():
            value = self._values[number]
            if value is not None:
                del self._numbers[self._groups[number]][value]
                self._values[number] = None
                self._free.append(number)

    def _new(self, group: int, value: ChannelKey) -> int:
        if self._free:
            number = self._free.pop()
            self._values[number], self._groups[number] = value, group
            return number
        self._values.append(value)
        self._groups.append(group)
        return len(self._values) - 1


class InternedRows:
    """Rows of views by number. New rows are entered into `JoinState`, with numbers of their keys and join values.

    Relation i has the rows of side i; the relation after the last side has whole joined rows. Equal rows have equal numbers.
    """

    def __init__(self, space: Space, sides: Sequence[SideRows], state: JoinState) -> None:
        self._sides, self._state = sides, state
        self._whole = len(sides)
        self._edges = len(space.edges)
        self._pieces: list[tuple[int, int]] = []
        """(side, index among the pieces of that side) of each piece of a joined row."""
        taken = [0] * len(sides)
        for side, _ in pieces_of(space):
            self._pieces.append((side, taken[side]))
            taken[side] += 1
        self._interner = Interner(self._whole + 1 + self._edges)
        self._texts: list[Texts] = []
        self._content: list[tuple[Any, ...]] = []
        """[numbers]: key, join values and texts of the row; empty if the number is free."""
        self._free: list[int] = []
        self._number: dict[tuple[Any, ...], int] = {}
        self._looks: dict[tuple[int, Texts], int] = {}
        """(relation, texts) -> number of the first row with these."""

    def __len__(self) -> int:
        return len(self._texts) - len(self._free)

    def known(self, relation: int, rows: pa.RecordBatch, at: Int64Array) -> list[int]:
        """Numbers of the keys of the rows at `at` of a payload; NONE for keys of no known row."""
        return self._interner.known(relation, self._keys(relation, rows, at))

    def number(self, relation: int, rows: pa.RecordBatch, at: Int64Array) -> tuple[Int64Array, Int64Array]:
        """(numbers of keys, numbers of rows), both [at], of the rows at `at` of a payload."""
        keys = self._keys(relation, rows, at)
        if relation == self._whole:
            parts = [self.number(side, rows, at)[1].tolist() for side in range(self._whole)]
            return self._number_whole(keys, list(zip(*parts, strict=True)))
        reader = self._sides[relation]
        values = np.full((len(at), self._edges), NONE, np.int64)
        for edge, links in zip(reader.edges, reader.links(rows, at), strict=True):
            values[:, edge] = self._interner.take(self._whole + 1 + edge, links)
        return self._number_rows(relation, keys, values, reader.texts(rows, at))

    def render(self, combinations: Numbers) -> list[str]:
        """Joined rows as text. combinations: [joined rows, sides], numbers of their parts."""
        if not len(combinations):
            return []
        versions = combinations.T.tolist()
        texts = self._texts
        pieces = [[texts[version][piece] for version in versions[side]] for side, piece in self._pieces]
        return ["{" + ", ".join(parts) + "}" for parts in zip(*pieces, strict=True)]

    def places(self, combinations: Numbers) -> Int64Array:
        """Numbers that sort like the keys of joined rows, [joined rows]; equal for equal keys."""
        return _dense([self._interner.ranks(self._state.keys(versions)) for versions in combinations.T])

    def looks(self, combinations: Numbers) -> Int64Array:
        """Numbers that are equal exactly if the shown columns of joined rows are, [joined rows]."""
        return _dense([self._state.looks(versions) for versions in combinations.T])

    def sweep(self) -> None:
        """Frees rows that no view holds, if there are many."""
        if self._state.unused <= max(SWEEP_MIN, len(self) // 2):
            return
        used = np.array([number for number, content in enumerate(self._content) if content], np.int64)
        unused = self._state.forget_unused(used)
        for number in unused.tolist():
            del self._number[self._content[number]]
            self._content[number] = self._texts[number] = ()
            self._free.append(number)
        held = np.setdiff1d(used, unused)
        self._looks.clear()
        relations = self._state.relations(held).tolist()
        looks = [
            self._looks.setdefault((relation, self._texts[number]), number)
            for relation, number in zip(relations, held.tolist(), strict=True)
        ]
        self._state.set_looks(held, looks)
        rows = held[self._state.relations(held) < self._whole]
        values = self._state.values(rows)
        self._interner.keep(np.concatenate([self._state.keys(held), values[values != NONE]]))

    def dump(self, versions: Numbers) -> tuple[dict[str, Any], Numbers]:
        """(state of these rows for `load`, index of each in it). Rows of sides come before whole joined rows."""
        used = np.unique(versions)
        relations = self._state.relations(used)
        wholes = used[relations == self._whole]
        rows = np.union1d(used[relations < self._whole], self._state.parts(wholes))
        place = np.zeros(len(self._content), np.int32)
        place[rows], place[wholes] = np.arange(len(rows)), len(rows) + np.arange(len(wholes))
        state = {
            "kinds": self._state.relations(rows).astype(np.int8),
            "keys": self._interner.values(self._state.keys(rows)),
            "links": [self._interner.values(column) for column in self._state.values(rows).T],
            "texts": [self._texts[number] for number in rows.tolist()],
            "wholes": place[self._state.parts(wholes)],
        }
        return state, place[versions]

    def load(self, state: dict[str, Any]) -> Int64Array:
        """Restores the rows of a dump. Returns their numbers, in order."""
        relations = state["kinds"]
        keys = [tuple(key) for key in state["keys"]]
        links = [[None if link is None else tuple(link) for link in column] for column in state["links"]]
        texts = [tuple(parts) for parts in state["texts"]]
        numbers = np.empty(len(keys), np.int64)
        for relation in range(self._whole):
            at = np.flatnonzero(relations == relation)
            values = np.full((len(at), self._edges), NONE, np.int64)
            for edge in self._sides[relation].edges:
                values[:, edge] = self._interner.take(self._whole + 1 + edge, [links[edge][i] for i in at.tolist()])
            own_keys, own_texts = ([column[i] for i in at.tolist()] for column in (keys, texts))
            numbers[at] = self._number_rows(relation, own_keys, values, own_texts)[1]
        wholes = state["wholes"]
        named = [_joined_key(keys[at] for at in parts) for parts in wholes.tolist()]
        parts = [tuple(versions) for versions in numbers[wholes].tolist()]
        return np.concatenate([numbers, self._number_whole(named, parts)[1]])

    def _keys(self, relation: int, rows: pa.RecordBatch, at: Int64Array) -> list[ChannelKey]:
        """Primary keys of the rows at `at`; that of a whole joined row is the keys of all its parts."""
        if relation < self._whole:
            return self._sides[relation].keys(rows, at)
        parts = zip(*(side.keys(rows, at) for side in self._sides), strict=True)
        return [_joined_key(part) for part in parts]

    def _number_rows(
        self,
        relation: int,
        keys: Sequence[ChannelKey],
        values: Int64Array,
        texts: Sequence[Texts],
    ) -> tuple[Int64Array, Int64Array]:
        names = self._interner.take(relation, keys)
        numbers = np.empty(len(keys), np.int64)
        new, looks = [], []
        for i, (name, joined_by, text) in enumerate(zip(names, values.tolist(), texts, strict=True)):
            content = (name, *joined_by, *text)
            number = self._number.get(content)
            if number is None:
                number = self._take(content, text)
                new.append(i)
                looks.append(self._looks.setdefault((relation, text), number))
            numbers[i] = number
        named = np.array(names, np.int64)
        if new:
            self._state.put_rows(numbers[new], relation, named[new], looks, values[new])
        return named, numbers

    def _number_whole(
        self, keys: Sequence[ChannelKey], parts: Sequence[tuple[int, ...]]
    ) -> tuple[Int64Array, Int64Array]:
        names = self._interner.take(self._whole, keys)
        numbers = np.empty(len(keys), np.int64)
        new = []
        for i, (name, versions) in enumerate(zip(names, parts, strict=True)):
            content = (name, *versions)
            number = self._number.get(content)
            if number is None:
                number = self._take(content, ())
                new.append(i)
            numbers[i] = number
        named = np.array(names, np.int64)
        if new:
            self._state.put_rows(numbers[new], self._whole, named[new], numbers[new], [parts[i] for i in new])
        return named, numbers

    def _take(self, content: tuple[Any, ...], texts: Texts) -> int:
        if self._free:
            number = self._free.pop()
            self._content[number], self._texts[number] = content, texts
        else:
            number = len(self._content)
            self._content.append(content)
            self._texts.append(texts)
        self._number[content] = number
        return number


def _joined_key(keys: Iterable[ChannelKey]) -> ChannelKey:
    return tuple(component for key in keys for component in key)


def _dense(columns: Iterable[Numbers]) -> Int64Array:
    """Numbers that sort like the rows of these columns, the first column being the most significant."""
    first, *others = columns
    number = first.astype(np.int64)
    for column in others:
        _, number = np.unique(number * (int(column.max(initial=0)) + 1) + column, return_inverse=True)
    return number
