"""What goes into an evaluator and what comes out of it, as compiled loops see it: events, projections, who is told what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from tidings.kernels.handles import array_at, text_array_at
from tidings.kernels.jit import kernel
from tidings.kernels.lives import IS_NET, Lives
from tidings.kernels.rows.read import I64, NONE, U8, Int

NO_SOURCES = np.empty((0, 0), np.int64)
CHANGE, CREATE, DROP = 0, 1, 2
"""Kinds of events."""
PART, SILENT = 1, 2
"""Kinds of changes. SILENT: a row that a partial replica had not been sent before, and which alters none of its answers."""


# Words of an event, as in `EventColumns`; then where the id of its transaction stands, NO_TX for none.
KIND, SEQ, TABLE, OLD, NEW, SLOT, IS_PART, TX_START, TX_STOP, EVENT_WORDS = range(10)
NO_TX = -1


class EventColumns(NamedTuple):
    """A micro-batch in order; at equal seq a change stands before creations and drops. All arrays [events]."""

    kind: I64
    seq: I64
    table: I64
    """Of a change: number of its table; else NONE."""
    old: I64
    """Of a change: the row's version before, NONE for an insert."""
    new: I64
    """Of a change: the row's version after, NONE for a delete."""
    slot: I64
    """Of a creation or drop: the subscription, of whatever family."""
    is_part: I64
    """PART for changes of a commit that has several, SILENT for rows that are there without a change; else 0."""


@kernel
def columns_of(words: I64) -> EventColumns:
    """The columns of events as Python has them."""
    return EventColumns(words[KIND], words[SEQ], words[TABLE], words[OLD], words[NEW], words[SLOT], words[IS_PART])


class Events:
    """Events as Python has them: one array, since each array that a compiled function is given has its price."""

    __slots__ = ("size", "words")

    def __init__(self, words: I64) -> None:
        """words: [EVENT_WORDS, events]."""
        self.words = words
        self.size = words.shape[1]

    @classmethod
    def of(cls, kind: int, seq: int, slots: I64) -> Self:
        """Creations or drops, all at one seq."""
        words = np.full((EVENT_WORDS, len(slots)), NONE, np.int64)
        words[KIND], words[SEQ], words[SLOT], words[IS_PART] = kind, seq, slots, 0
        return cls(words)

    def with_parts(self, is_part: I64 | int) -> Self:
        """The same events with other `is_part`."""
        words = self.words.copy()
        words[IS_PART] = is_part
        return type(self)(words)

    @property
    def kind(self) -> I64:
        return self.words[KIND]

    @property
    def seq(self) -> I64:
        return self.words[SEQ]

    @property
    def table(self) -> I64:
        return self.words[TABLE]

    @property
    def old(self) -> I64:
        return self.words[OLD]

    @property
    def new(self) -> I64:
        return self.words[NEW]

    @property
    def slot(self) -> I64:
        return self.words[SLOT]

    @property
    def is_part(self) -> I64:
        return self.words[IS_PART]

    @property
    def tx(self) -> I64:
        """[2, events]: start and stop of the transaction's id, or NO_TX."""
        return self.words[TX_START:]


@kernel
def is_netted(is_part: I64, lives: Lives, event: Int, slot: Int) -> bool:
    """Whether what a subscription is told of a change is netted with what it is told of others.

    Then rows that look alike must not cancel out before: which of them stays decides what is an update.
    """
    return bool(is_part[event] != 0 or lives[slot, IS_NET] != 0)


class Projections(NamedTuple):
    """What subscriptions show, by number: projection p has entries starts[p]:starts[p + 1]."""

    starts: I64
    side: I64
    """[entries]: place of the table in FROM; 0 where there is one."""
    table: I64
    column: I64
    header: I64
    """[entries + 1]: where the text before the value stands in `headers`: brace or comma, name, colon."""
    headers: U8


@kernel
def projections_at(handles: I64) -> Projections:
    """The projections whose arrays have these handles."""
    return Projections(
        array_at(handles, 0),
        array_at(handles, 1),
        array_at(handles, 2),
        array_at(handles, 3),
        array_at(handles, 4),
        text_array_at(handles, 5),
    )


class Told:
    """Who is told what. A creation has exactly one entry, its snapshot; a change at most one per subscription.

    Arrays are good until the evaluator is asked again.
    """

    __slots__ = ("changes", "size", "sources", "tails", "who")

    def __init__(self, who: I64, size: int, tails: I64, changes: I64, sources: I64 = NO_SOURCES) -> None:
        self.who = who
        """[3, at least size]: event, slot, and the number of what the subscription is told; those told the same share one."""
        self.size = size
        self.tails = tails
        """[tails, 4]: event, projection, first change, end of changes."""
        self.changes = changes
        """[changes, 2]: old and new item, NONE for none."""
        self.sources = sources
        """[items, sides]: versions that a joined row is made of; [0, 0] where an item is a version itself."""

    @classmethod
    def of(cls, event: I64, slot: I64, tail: I64, tails: I64, changes: I64) -> Self:
        return cls(np.stack([event, slot, tail]), len(event), tails, changes)

    @staticmethod
    def joined(parts: Sequence[Told]) -> Told:
        """What parts say whose items are versions."""
        parts = [part for part in parts if part.size]
        if len(parts) < 2:
            return parts[0] if parts else NOBODY
        first_tail = first_change = 0
        who, tails = [], []
        for part in parts:
            who.append(part.who[:, : part.size] + np.array([[0], [0], [first_tail]]))
            tails.append(part.tails + np.array([0, 0, first_change, first_change]))
            first_tail += len(part.tails)
            first_change += len(part.changes)
        made = np.concatenate(who, axis=1)
        return Told(made, made.shape[1], np.concatenate(tails), np.concatenate([part.changes for part in parts]))

    @property
    def event(self) -> I64:
        return self.who[0, : self.size]

    @property
    def slot(self) -> I64:
        return self.who[1, : self.size]

    @property
    def tail(self) -> I64:
        return self.who[2, : self.size]

    def copy(self) -> Told:
        """The same, for longer."""
        return Told(self.who.copy(), self.size, self.tails.copy(), self.changes.copy(), self.sources.copy())


NOBODY = Told(np.empty((3, 0), np.int64), 0, np.empty((0, 4), np.int64), np.empty((0, 2), np.int64))
"""Nobody is told anything."""
