"""Notifications of a replica: put in order, and written as lines, by kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidings.kernels.events import Events
from tidings.kernels.lines import order_told, write_lines, write_told
from tidings.kernels.rows import I64
from tidings.model.notification import NotificationBatch
from tidings.model.text_column import TextColumn
from tidings.pipeline.replica.subscriptions import Subscriptions

_Told = tuple[I64, I64, I64, Events, Subscriptions]
_ABSENT: dict[str, Any] = {"tail_time": None, "tail_tx": None, "txs": ()}


class ReplicaNotifications(NotificationBatch):
    """Subscription slot[i] is told tail[i] at event[i]: as notifications, in order.

    Lines of a single change are written without columns, which would take as long as all the rest. Columns are made when they
    are asked for, from what the replica knows of its subscriptions; it calls `keep` before that changes.
    """

    __slots__ = ("__weakref__", "_told")

    def __init__(
        self, event: I64, slot: I64, tail: I64, tails: TextColumn, events: Events, subscriptions: Subscriptions
    ) -> None:
        self.tails = tails
        self._told: _Told | None = (event, slot, tail, events, subscriptions)
        """What columns are made from; None when they have been."""

    def __len__(self) -> int:
        return len(self.tail if self._told is None else self._told[2])

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
            event, slot, tail, events, known = self._told
            ids, ends, self.tail, self.tail_seq, self.tail_is_snapshot = order_told(
                event, slot, tail, len(self.tails), events.kind, events.seq, known.lives, known.id_text
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
            event, slot, tail, events, known = self._told
            lines = write_told(
                event, slot, tail, events.kind, events.seq, known.lives, known.id_text, tails.data, tails.ends
            )
            yield lines.data
