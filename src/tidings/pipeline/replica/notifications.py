"""Notifications of a replica: put in order, and written as lines, by kernels."""

from __future__ import annotations

from collections.abc import Iterator

from tidings.kernels.events import Events
from tidings.kernels.lines import order_told, write_lines
from tidings.kernels.rows import I64
from tidings.model.notification import NotificationBatch
from tidings.model.text_column import TextColumn
from tidings.pipeline.replica.subscriptions import Subscriptions


class ReplicaNotifications(NotificationBatch):
    """Notifications whose lines a kernel writes."""

    def text(self) -> Iterator[memoryview]:
        if len(self):
            yield write_lines(self.ids.data, self.ids.ends, self.tail, self.tails.data, self.tails.ends).data


def ordered(
    event: I64, slot: I64, tail: I64, tails: TextColumn, events: Events, subscriptions: Subscriptions
) -> ReplicaNotifications:
    """Subscription slot[i] is told tail[i] at event[i]: as notifications, in order."""
    known = subscriptions
    ids, ends, own, seq, is_snapshot = order_told(
        event, slot, tail, len(tails), events.kind, events.seq, known.lives, known.id_text
    )
    return ReplicaNotifications(TextColumn(ids, ends), own, tails, seq, is_snapshot)
