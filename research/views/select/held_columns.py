"""Long columns of rows, as receivers of strategy `entering` hold them: of snapshots, and of messages to those who lack them.

What is held are facts: the value of a column of a row as of a seq. Whoever selects a row has been sent all values since then,
so the last fact up to a seq is the value at that seq. One store serves all subscriptions on a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from research.servers.message import MessageBatch
from research.strategies.select.entering import HELD, HOLDS, LONG, long_columns
from research.strategies.select.reformulate import BOTH, NEW
from tidings.model.catalog import Table
from tidings.model.codes import Int64Array

_Key = tuple[Any, ...]


class Whole(NamedTuple):
    """The messages of a batch that tell of changes, and their payload with all columns."""

    message: Int64Array
    tags: Int64Array
    payload: pa.RecordBatch


class HeldColumns:
    """Values by row. Those of a row stay until it is deleted, or nobody is left here."""

    def __init__(self, table: Table) -> None:
        self._key = table.key
        self._facts: dict[str, dict[_Key, dict[int, Any]]] = {name: {} for name in long_columns(table)}
        """Column -> primary key -> seq -> value."""

    def clear(self) -> None:
        for by_key in self._facts.values():
            by_key.clear()

    def take_rows(self, rows: pa.RecordBatch, seq: Int64Array) -> None:
        """Takes rows of snapshots. seq: [rows], of the moments that they show."""
        if HOLDS in rows.schema.names:
            for name in self._facts:
                self._enter(name, self._keys(rows, ""), seq, rows.column(name))

    def whole(self, messages: MessageBatch, tags: Int64Array) -> Whole:
        """Takes the long columns that messages carry, and fills them in where they are left out. tags: [messages]."""
        payload, seq = messages.payload, messages.seq
        names = set(payload.schema.names)
        long = [name for name in self._facts if LONG + name in names]
        if not long:
            return Whole(np.arange(len(messages)), tags, payload)
        carried, new, told = (np.flatnonzero(tags & tag) for tag in (HELD, NEW, BOTH))
        for name in long:
            # A column that is compared is in every message. It must be held all the same: it may be left out later.
            at, prefix = (new, "new.") if "new." + name in names else (carried, LONG)
            rows = payload.take(pa.array(at))
            self._enter(name, self._keys(rows, "new."), seq[at], rows.column(prefix + name))
        rows, seqs = payload.take(pa.array(told)), seq[told].tolist()
        has = (tags[told] & NEW).tolist()
        keys = [
            new_key if is_there else old_key
            for is_there, new_key, old_key in zip(has, self._keys(rows, "new."), self._keys(rows, "old."), strict=True)
        ]
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        for name in long:
            if "new." + name not in names:
                type = columns[LONG + name].type
                for side, until in (("old.", -1), ("new.", 0)):
                    values = [self._value(name, key, at + until) for key, at in zip(keys, seqs, strict=True)]
                    columns[side + name] = pa.array(values, type)
        self._settle(zip(keys, has, strict=True))
        return Whole(told, tags[told], pa.RecordBatch.from_arrays(list(columns.values()), list(columns)))

    def _keys(self, rows: pa.RecordBatch, prefix: str) -> list[_Key]:
        return list(zip(*(rows.column(prefix + name).to_pylist() for name in self._key), strict=True))

    def _enter(self, name: str, keys: Iterable[_Key], seq: Int64Array, values: pa.Array) -> None:
        for key, at, value in zip(keys, seq.tolist(), values.to_pylist(), strict=True):
            self._facts[name].setdefault(key, {})[at] = value

    def _value(self, name: str, key: _Key, seq: int) -> Any:
        """The value as of a seq; None if nobody here selects the row then."""
        known = self._facts[name].get(key, {})
        return known.get(max((at for at in known if at <= seq), default=-1))

    def _settle(self, rows: Iterable[tuple[_Key, int]]) -> None:
        """Keeps the last value of each row, and none of those that are gone. rows: (key, whether the row is there after)."""
        for key, is_there in dict(rows).items():
            for by_key in self._facts.values():
                known = by_key.pop(key, None)
                if known and is_there:
                    last = max(known)
                    by_key[key] = {last: known[last]}
