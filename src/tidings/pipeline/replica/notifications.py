"""Notifications of a replica: what evaluators tell is netted and rendered, put in order, and written as lines, by kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tidings.families.shown import NO_TEXT, Tails, render, render_net, rendered
from tidings.kernels.events import Events, Told
from tidings.kernels.lines import order_told, write_lines, write_told
from tidings.kernels.net import net_groups, net_units
from tidings.kernels.rows import I64, NONE
from tidings.model.notification import NotificationBatch
from tidings.model.text_column import TextColumn
from tidings.pipeline.replica.batch import Batch
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

    def text(self) -> Iterable[memoryview]:
        tails = self.tails
        if self._told is None:
            if not len(self):
                return ()
            lines = write_lines(self.ids.data, self.ids.ends, self.tail, tails.data, tails.ends)
        else:
            who, count, events, known = self._told
            lines, lives, ids = np.empty(_ROOM, np.uint8), known.lives, known.id_text
            size = write_told(who, count, events.words, lives, ids, tails.data, tails.ends, lines)
            if size > len(lines):
                lines = np.empty(size, np.uint8)
                write_told(who, count, events.words, lives, ids, tails.data, tails.ends, lines)
            lines = lines[:size]
        return (lines.data,)


def write(
    batch: Batch,
    events: Events,
    told: Sequence[tuple[str, Told]],
    rows: I64,
    shown: I64,
    known: Subscriptions,
    counted: Counter[str],
    *,
    has_net: bool,
) -> ReplicaNotifications | None:
    """What families tell as notifications; None if it comes to nothing.

    rows, shown: handles of the rows, and of the projections. counted: gets the number of each family's. has_net: whether a
    subscription is told the net effect of micro-batches.
    """
    words = events.words
    is_plain = batch.tx is None and not has_net
    if is_plain and len(told) == 1:
        # Most single changes: what follows comes to the same, and takes microseconds.
        name, part = told[0]
        counted[name] += part.size
        return ReplicaNotifications(part.who, part.size, rendered(rows, shown, words, part), events, known)
    tx_text = NO_TEXT if batch.tx is None else batch.text
    texts = Tails()
    found: list[tuple[str, I64, I64]] = []
    """Family; event, subscription and tail of notifications; event of each new tail, NONE if it is of several commits."""
    for name, part in told:
        base = len(texts)
        unit, count = (part.slot, 0) if is_plain else net_units(words, part.who, part.size, known.lives)
        if not count:
            render(texts, rows, shown, words, part, tx_text)
            found.append((name, part.who[:, : part.size] + np.array([[0], [0], [base]]), part.tails[:, 0]))
            continue
        alone = np.flatnonzero(unit == NONE)
        used, numbers = np.unique(part.tail[alone], return_inverse=True)
        kept = np.ascontiguousarray(part.tails[used])
        render(texts, rows, shown, words, Told(part.who, 0, kept, part.changes, part.sources), tx_text)
        found.append((name, np.stack([part.event[alone], part.slot[alone], numbers + base]), kept[:, 0]))
        base = len(texts)
        others = np.flatnonzero(unit != NONE)
        order = others[np.lexsort((part.event[others], part.slot[others], unit[others]))]
        slots, group, starts, grouped = net_groups(order, unit, part.slot, part.tail)
        render_net(texts, rows, shown, words, part, tx_text, starts, grouped)
        has_effect = np.diff(texts.ends, prepend=0)[base:] > 0
        told_at = has_effect[group]
        first, last = part.tails[grouped[starts[:-1]], 0], part.tails[grouped[starts[1:] - 1], 0]
        moments = np.where(events.seq[first] == events.seq[last], last, NONE)
        found.append((name, np.stack([last[group], slots, group + base])[:, told_at], moments))
    for name, own, _ in found:
        counted[name] += own.shape[1]
    who = np.concatenate([own for _, own, _ in found], axis=1)
    if not who.shape[1]:
        return None
    written = ReplicaNotifications(who, who.shape[1], TextColumn(texts.text, texts.ends), events, known)
    if batch.tx is not None:
        written.tail_tx, written.txs = batch.transactions(np.concatenate([moments for *_, moments in found]))
    return written
