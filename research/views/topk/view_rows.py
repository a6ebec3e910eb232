"""Rows as they were sent, each stored once for all views that hold it. Lists of views refer to rows by number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from research.strategies.topk.order_labels import OrderLabels
from research.views.topk.view_lists import ViewLists
from tidings.families.topk.subscription import Space
from tidings.model.channel import ChannelKey, channel_column, channel_columns, channel_keys, channel_type
from tidings.model.codes import Int64Array, codes_of
from tidings.model.render import render_rows

Key = int | ChannelKey
"""A primary key: its code if it is one column of a type with exact codes, else all its components."""
SWEEP_MIN = 4_096
_HELD_PER_NEW = 64
"""A sweep reads all places of lists, so there must be a new row for every this many places since the last sweep."""


class ViewRows:
    """Rendered rows by number, as items of view lists, each with rank, tie and look.

    A row that is sent again unchanged keeps its number. Rows have equal looks if their shown columns are equal.
    """

    def __init__(self, space: Space, lists: ViewLists) -> None:
        self._space = space
        self._lists = lists
        self._key_columns = [space.table.column(name) for name in space.table.key]
        self._has_number_keys = len(self._key_columns) == 1 and not self._key_columns[0].type.is_lossy
        self._labels = OrderLabels()
        self.texts: list[str] = []
        self._keys: list[Key] = []
        self._ranks: list[int] = []
        self._free: list[int] = []
        self._latest: dict[Key, int] = {}
        self._looks: dict[str, int] = {}
        """Text -> its look: the number of the first row with this text."""
        self._new_count = self._held_count = self._room_max = 0

    def __len__(self) -> int:
        return len(self.texts) - len(self._free)

    def keys(self, rows: pa.RecordBatch) -> list[Key]:
        """Primary keys of the rows of a payload."""
        columns = [channel_column(column.type, rows.column(column.name))[0] for column in self._key_columns]
        return self._plain_keys(columns, rows.num_rows)

    def ties(self, keys: Sequence[Key]) -> Int64Array:
        """Numbers that sort like the keys, [keys]; they order rows of equal rank."""
        if self._has_number_keys:
            return np.array(keys, np.int64)
        if self._labels.add(keys):
            self._label(self._numbers())
        return self._labels.of(keys)

    def number(self, rows: pa.RecordBatch, keys: Sequence[Key], ties: Int64Array) -> Int64Array:
        """Numbers of the rows of a payload, [rows]. New rows are in no list yet."""
        names = self._space.projection
        columns = [rows.column(name) for name in names]
        texts = render_rows(names, columns, rows.num_rows)
        codes, _ = codes_of(self._space.rank.type, rows.column(self._space.rank.name))
        ranks = ~codes if self._space.descending else codes
        return self._number(keys, ties, ranks, texts)

    def sweep(self) -> None:
        """Frees rows that are in no list, if many rows were added or many lists closed since the last time."""
        room = self._lists.room
        self._room_max = max(self._room_max, room)
        has_grown = self._new_count > max(SWEEP_MIN, self._held_count, room // _HELD_PER_NEW)
        if not has_grown and (2 * room >= self._room_max or len(self) < SWEEP_MIN):
            return
        numbers = self._numbers()
        is_held = self._lists.held()[numbers]
        for number in numbers[~is_held].tolist():
            if self._latest.get(self._keys[number]) == number:
                del self._latest[self._keys[number]]
            self.texts[number], self._keys[number], self._ranks[number] = "", 0, 0
            self._free.append(number)
        held = numbers[is_held]
        self._looks.clear()
        self._lists.relook(held, [self._looks.setdefault(self.texts[number], number) for number in held.tolist()])
        if not self._has_number_keys:
            self._labels = OrderLabels()
            self._labels.add(self._keys[number] for number in held.tolist())
            self._label(held)
        self._new_count, self._held_count, self._room_max = 0, len(held), room

    def dump(self, numbers: Int64Array) -> dict[str, Any]:
        chosen = numbers.tolist()
        keys = [self._keys[number] for number in chosen]
        if self._has_number_keys:
            columns = [pa.array(keys, pa.int64())]
        else:
            columns = channel_columns([channel_type(column.type) for column in self._key_columns], keys)
        return {
            "texts": pa.array([self.texts[number] for number in chosen], pa.large_string()),
            "keys": columns,
            "ranks": np.array([self._ranks[number] for number in chosen], np.int64),
        }

    def load(self, state: dict[str, Any]) -> Int64Array:
        """Restores the rows of a dump. Returns their numbers, in order."""
        texts = state["texts"].to_pylist()
        keys = self._plain_keys(state["keys"], len(texts))
        return self._number(keys, self.ties(keys), state["ranks"], texts)

    def _plain_keys(self, columns: Sequence[pa.Array], count: int) -> list[Key]:
        return columns[0].to_pylist() if self._has_number_keys else [*channel_keys(columns, count)]

    def _number(self, keys: Sequence[Key], ties: Int64Array, ranks: Int64Array, texts: Sequence[str]) -> Int64Array:
        numbers = np.empty(len(keys), np.int64)
        new, looks = [], []
        for i, (key, rank, text) in enumerate(zip(keys, ranks.tolist(), texts, strict=True)):
            number = self._latest.get(key)
            if number is None or self.texts[number] != text or self._ranks[number] != rank:
                number = self._latest[key] = self._take(key, rank, text)
                new.append(i)
                looks.append(self._looks.setdefault(text, number))
            numbers[i] = number
        self._lists.put_items(numbers[new], ranks[new], ties[new], looks)
        self._new_count += len(new)
        return numbers

    def _take(self, key: Key, rank: int, text: str) -> int:
        """Stores a new row. Returns its number."""
        if self._free:
            number = self._free.pop()
            self._keys[number], self._ranks[number], self.texts[number] = key, rank, text
            return number
        self._keys.append(key)
        self._ranks.append(rank)
        self.texts.append(text)
        return len(self.texts) - 1

    def _numbers(self) -> Int64Array:
        """All numbers in use."""
        is_used = np.ones(len(self.texts), np.bool_)
        is_used[self._free] = False
        return np.flatnonzero(is_used)

    def _label(self, numbers: Int64Array) -> None:
        """Writes the current ties of these rows to the lists."""
        self._lists.retie(numbers, self._labels.of(self._keys[number] for number in numbers.tolist()))
