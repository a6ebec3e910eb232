"""Long values of the rows that somebody at a gateway holds: kept once for all of them, by channel and primary key."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from tidings.model.channel import ChannelKey, channel_columns, channel_keys

RowKey = tuple[Any, ...]
Values = tuple[Any, ...]
"""One per bulky column; None where the row's value is not long."""


class Coming(NamedTuple):
    """Values of a row in the first answer of a subscription created after `seq`."""

    seq: int
    channel: ChannelKey
    key: RowKey
    values: Values


class Shelf:
    """Channel -> primary key -> long values. First answers come early, and are put in place when their moment is over."""

    def __init__(self) -> None:
        self._channels: dict[ChannelKey, dict[RowKey, Values]] = {}
        self._coming: deque[Coming] = deque()

    def find(self, channel: ChannelKey, key: RowKey) -> Values | None:
        return self._channels.get(channel, {}).get(key)

    def put(self, channel: ChannelKey, key: RowKey, values: Values | None) -> None:
        """Replaces what is known of a row; None, or no long value in it, forgets the row."""
        if values is not None and any(value is not None for value in values):
            self._channels.setdefault(channel, {})[key] = values
            return
        rows = self._channels.get(channel)
        if rows is not None and rows.pop(key, None) is not None and not rows:
            del self._channels[channel]

    def expect(self, rows: Iterable[Coming]) -> None:
        """Takes the first answers of a micro-batch, before its messages; the moments of those before are over."""
        self.settle()
        self._coming = deque(sorted(rows, key=lambda row: row.seq))

    def settle(self, before: int | None = None) -> None:
        """Puts first answers in place: those of moments before a seq, or all."""
        while self._coming and (before is None or self._coming[0].seq < before):
            row = self._coming.popleft()
            self.put(row.channel, row.key, row.values)

    def clear(self, channel: ChannelKey) -> None:
        """Forgets the rows of a channel where nobody is left."""
        self.settle()
        self._channels.pop(channel, None)

    def dump(self, channels: Sequence[pa.DataType], keys: Sequence[pa.DataType], values: Sequence[pa.DataType]) -> Any:
        """All of it in columns of these types, or None where there is nothing."""
        self.settle()
        rows = [(channel, key, kept) for channel, known in self._channels.items() for key, kept in known.items()]
        if not rows:
            return None
        return {
            "channel": channel_columns(channels, [channel for channel, _, _ in rows]),
            "key": [pa.array([key[i] for _, key, _ in rows], type) for i, type in enumerate(keys)],
            "values": [pa.array([kept[i] for _, _, kept in rows], type) for i, type in enumerate(values)],
        }

    def load(self, state: Any) -> None:
        columns = [zip(*(column.to_pylist() for column in state[part]), strict=True) for part in ("key", "values")]
        channels = channel_keys(state["channel"], len(state["key"][0]))
        for channel, key, values in zip(channels, *columns, strict=True):
            self.put(channel, key, values)
