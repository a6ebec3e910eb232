"""What goes into an evaluator and what comes out of it, as compiled loops see it: events, projections, who is told what."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.kernels.jit import kernel
from tidings.kernels.lives import IS_NET, Lives
from tidings.kernels.rows.read import I64, U8, Int

_NONE = np.empty(0, np.int64)
CHANGE, CREATE, DROP = 0, 1, 2
"""Kinds of events."""
PART, SILENT = 1, 2
"""Kinds of changes. SILENT: a row that a partial replica had not been sent before, and which alters none of its answers."""


class Events(NamedTuple):
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
    is_part: I64 = _NONE
    """PART for changes of a commit that has several, SILENT for rows that are there without a change; empty if all are 0."""


@kernel
def is_netted(is_part: I64, lives: Lives, event: Int, slot: Int) -> bool:
    """Whether what a subscription is told of a change is netted with what it is told of others.

    Then rows that look alike must not cancel out before: which of them stays decides what is an update.
    """
    return bool((len(is_part) > 0 and is_part[event] != 0) or lives[slot, IS_NET] != 0)


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


class Told(NamedTuple):
    """Who is told what. A creation has exactly one entry, its snapshot; a change at most one per subscription.

    Tails and changes are good until the evaluator is asked again.
    """

    event: I64
    slot: I64
    tail: I64
    """[told]: number of what the subscription is told; those told the same share one."""
    tails: I64
    """[tails, 4]: event, projection, first change, end of changes."""
    changes: I64
    """[changes, 2]: old and new item, NONE for none."""
    sources: I64
    """[items, sides]: versions that a joined row is made of; [0, 0] where an item is a version itself."""
