"""Notifications of a replica: put in order, and written as lines, by kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tidings.kernels.events import Events
from tidings.kernels.lines import order_told, write_lines, write_told
from tidings.kernels.rows import I64
from tidings.model.notification import NotificationBatch
from tidings.model.text_column import TextColumn
from tidings.pipeline.replica.subscriptions import Subscriptions

_Told = tuple[I64, int, Events, Subscriptions]
_ROOM = 1 << 14
"""Bytes for lines to begin with."""
_ABSENT: dict[str, Any] = {"tail_time": None, "tail_tx": None, "txs": ()}


class ReplicaNotifications(NotificationBatch):
    """Who is told which tail, put in order.

    Lines of a single change are written without columns, which would take as long as all the rest. Columns are made when they
    are asked for, from what the replica knows of its subscriptions; it calls `keep` before that changes.
    """

    __slots__ = ("__weakref__", "_told")

    def __init__(self, who: I64, size: int, tails: TextColumn, events: Events, subscriptions: Subscriptions) -> None:
        """who, size: as in `Told`."""
        self.tails = tails
        self._told: _Told | None = (who, size, events, subscriptions)
        """What columns are made from; None when they have been."""

    def __len__(self) -> int:
        return len(self.tail) if self._told is None else self._told[1]

    def __getattr__(self, name: str) -> Any:
        # Called for what has not been set.
        if name in _ABSENT:
            return _ABSENT[name]
        if name not in NotificationBatch.__slots__ or self._told is None:
            raise AttributeError(name)
        self.keep()
        return getattr(self, name)

    def keep(self) -> None:
        """Makes the columns, if there are none."""
        if self._told is not None:
            who, size, events, known = self._told
            ids, ends, self.tail, self.tail_seq, self.tail_is_snapshot = order_told(
                who, size, len(self.tails), events.words, known.lives, known.id_text
            )
            self.ids = TextColumn(ids, ends)
            self._told = None

    def text(self) -> Iterator[memoryview]:
        tails = self.tails
        if not len(self):
            return
        if self._told is None:
            yield write_lines(self.ids.data, self.ids.ends, self.tail, tails.data, tails.ends).data
        else:
            who, count, events, known = self._told
            told = who, count, events.words, known.lives, known.id_text, tails.data, tails.ends
            lines = np.empty(_ROOM, np.uint8)
            size = write_told(*told, lines)
            if size > len(lines):
                lines = np.empty(size, np.uint8)
                write_told(*told, lines)
            yield lines[:size].data
