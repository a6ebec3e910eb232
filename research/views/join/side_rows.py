"""Reads rows of one side of a join out of payloads, for views: keys, join values and texts."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from research.strategies.join.space import Space
from tidings.model.channel import ChannelKey, channel_column, channel_keys, group_channels
from tidings.model.codes import Int64Array
from tidings.model.render import render_rows

Texts = tuple[str, ...]
"""Text of the row's part of a joined row: its pieces, as in `pieces_of`."""


def pieces_of(space: Space) -> list[tuple[int, list[int]]]:
    """The columns of a joined row in runs of one side each: (side, columns)."""
    runs = groupby(range(len(space.shown)), key=lambda column: space.shown[column][0])
    return [(side, list(columns)) for side, columns in runs]


class SideRows:
    """Reads rows of one side out of payloads, where the columns of other sides are null."""

    def __init__(self, space: Space, number: int) -> None:
        side = space.sides[number]
        self._number, self._table = number, side.table
        self.edges: list[int] = []
        """Numbers of the edges of this side."""
        self._joined: list[tuple[str, ...]] = []
        for at, edge in enumerate(space.edges):
            if number in edge.sides:
                self.edges.append(at)
                self._joined.append(edge.columns[edge.sides.index(number)])
        self._pieces = [
            [(space.names[i], space.shown[i][1]) for i in columns]
            for owner, columns in pieces_of(space)
            if owner == number
        ]
        self._predicated = [column.name for column in side.columns]

    def keys(self, rows: pa.RecordBatch, at: Int64Array) -> list[ChannelKey]:
        """Primary keys of the rows at `at` of a payload."""
        return channel_keys([self._components(rows, at, name)[0] for name in self._table.key], len(at))

    def group(self, rows: pa.RecordBatch, at: Int64Array) -> Int64Array:
        """Numbers that are equal exactly if the keys of the rows are, [at]."""
        return group_channels([self._column(rows, at, name) for name in self._table.key], len(at))[0]

    def links(self, rows: pa.RecordBatch, at: Int64Array) -> list[list[ChannelKey | None]]:
        """[edges of this side]: join value of each row at `at`; None if it has a null, which equals nothing."""
        found: list[list[ChannelKey | None]] = []
        for names in self._joined:
            columns = [self._components(rows, at, name) for name in names]
            keys = channel_keys([column for column, _ in columns], len(at))
            valid = np.logical_and.reduce([valid for _, valid in columns])
            found.append([*keys] if valid.all() else [k if ok else None for k, ok in zip(keys, valid, strict=True)])
        return found

    def texts(self, rows: pa.RecordBatch, at: Int64Array) -> list[Texts]:
        """Texts of each row for joined rows, [at]."""
        shown = []
        for piece in self._pieces:
            names, columns = [name for name, _ in piece], [self._column(rows, at, column) for _, column in piece]
            shown.append([text[1:-1] for text in render_rows(names, columns, len(at))])
        return list(zip(*shown, strict=True)) if shown else [()] * len(at)

    def values(self, rows: pa.RecordBatch, at: Int64Array) -> list[list[Any]]:
        """Values of the columns with a predicate, encoded as components of channels; None for null."""
        found = []
        for name in self._predicated:
            column, valid = self._components(rows, at, name)
            values = column.to_pylist()
            found.append(values if valid.all() else [v if ok else None for v, ok in zip(values, valid, strict=True)])
        return found

    def _components(self, rows: pa.RecordBatch, at: Int64Array, name: str) -> tuple[pa.Array, Any]:
        return channel_column(self._table.column(name).type, self._column(rows, at, name))

    def _column(self, rows: pa.RecordBatch, at: Int64Array, name: str) -> pa.Array:
        column = rows.column(f"{self._number}.{name}")
        return column if len(at) == len(column) else column.take(pa.array(at))
