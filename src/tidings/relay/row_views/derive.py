"""One row view computed from others, by what they say of a batch of rows; and the rows that a subscriber is told.

Every row of the target is a row of each source. To be done per batch: intersect the ids of all sources, drop rows outside of
the ranges whose ends the sources do not have, and take the columns from a source that has them.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tidings.model.codes import double_of
from tidings.model.render import value_text
from tidings.model.types import ColumnType
from tidings.relay.message import Part, Parts
from tidings.relay.row_views.document import OrderKey, order_key
from tidings.relay.row_views.embedding import is_row_rewriting
from tidings.relay.row_views.query import ColumnRange, RowQuery

_EPOCH = dt.datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class _Column:
    """Where texts of a column are: in a column of a source's part, or in a place of the key, then `source` is -1."""

    source: int
    place: int


class RowDerivation:
    """Called with what the sources say, in their order. Sources must be a rewriting of the target (`derivation`)."""

    def __init__(self, target: RowQuery, sources: Sequence[RowQuery]) -> None:
        self._is_empty = target.is_empty
        self._key = len(target.key)
        self._columns = tuple(_where(target, sources, name) for name in target.carried)
        self._checks = tuple(
            (each, _where(target, sources, each.column.name)) for each in target.ranges if not _is_known(each, sources)
        )

    def __call__(self, inputs: Sequence[Parts]) -> Parts:
        given: list[Part] = []
        for parts in inputs:
            if parts is None or self._is_empty:
                return None
            given.append(parts[0])
        ids = _common([part.ids for part in given])
        for each, column in self._checks:
            texts = self._texts(ids, given, column)
            type = each.column.type
            ids = [id for id, text in zip(ids, texts, strict=True) if each.holds(_order_key(type, text))]
        if not ids:
            return None
        return (Part(ids, tuple(self._texts(ids, given, column) for column in self._columns)),)

    def _texts(self, ids: list[str], given: list[Part], column: _Column) -> list[str]:
        """The column for some of its rows, in order."""
        if column.source < 0:
            return [_key_texts(id, self._key)[column.place] for id in ids]
        part = given[column.source]
        values = part.columns[column.place]
        if len(part.ids) == len(ids):
            return values
        found = dict(zip(part.ids, values, strict=True))
        return [found[id] for id in ids]


def derivation(target: RowQuery, sources: Sequence[RowQuery]) -> RowDerivation | None:
    """None if the sources are no rewriting of the target."""
    return RowDerivation(target, sources) if is_row_rewriting(sources, target) else None


def result_rows(query: RowQuery, parts: Parts) -> list[tuple[Any, ...]]:
    """The rows that a view's message of a batch stands for: see `RowQuery.rows`."""
    if parts is None:
        return []
    part = parts[0]
    keys = [_key_texts(id, len(query.key)) for id in part.ids]
    places = {column.name: place for place, column in enumerate(query.key)}
    columns = []
    for column in query.columns:
        if column.name in places:
            place = places[column.name]
            columns.append([key[place] for key in keys])
        elif column.name in query.carried:
            columns.append(part.columns[query.carried.index(column.name)])
        else:
            columns.append([_pinned_text(query.range_of[column.name])] * len(part.ids))
    texts = {f"[{', '.join(row)}]" for row in zip(*columns, strict=True)}
    return [tuple(json.loads(text)) for text in sorted(texts)]


def _is_known(each: ColumnRange, sources: Sequence[RowQuery]) -> bool:
    """Whether the sources' conditions together are this one."""
    own = [found for source in sources if (found := source.range_of.get(each.column.name)) is not None]
    return any(one.start == each.start for one in own) and any(one.stop == each.stop for one in own)


def _where(target: RowQuery, sources: Sequence[RowQuery], name: str) -> _Column:
    for place, column in enumerate(target.key):
        if column.name == name:
            return _Column(-1, place)
    for number, source in enumerate(sources):
        if name in source.carried:
            return _Column(number, source.carried.index(name))
    raise AssertionError("a rewriting has a source for each column")


def _common(lists: list[list[str]]) -> list[str]:
    ids = min(lists, key=len)
    for other in lists:
        if other is not ids:
            known = set(other)
            ids = [id for id in ids if id in known]
    return ids


def _key_texts(id: str, count: int) -> list[str]:
    """JSON texts of the columns of a key."""
    return [id] if count == 1 else [json.dumps(value, ensure_ascii=False) for value in json.loads(id)]


def _order_key(type: ColumnType, text: str) -> OrderKey | None:
    """From the JSON text of a value."""
    value = json.loads(text)
    if value is None:
        return None
    if type is ColumnType.DATE:
        return order_key(type, dt.date.fromisoformat(value))
    return order_key(type, dt.datetime.fromisoformat(value) if type is ColumnType.TIMESTAMP else value)


def _pinned_text(pinned: ColumnRange) -> str:
    """The JSON text of the only value of a range."""
    type, key = pinned.column.type, pinned.start
    if isinstance(key, str):
        return value_text(type, key)
    if type is ColumnType.DOUBLE:
        return value_text(type, double_of(key))
    if type in (ColumnType.DATE, ColumnType.TIMESTAMP):
        moment = _EPOCH + dt.timedelta(microseconds=key)
        return value_text(type, moment.date() if type is ColumnType.DATE else moment)
    return value_text(type, key)
