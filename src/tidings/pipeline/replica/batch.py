"""A micro-batch on its way through a replica: its lines, where they come from, and what became of each record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np

from tidings.kernels.events import NO_TX, Events
from tidings.kernels.rows import I64, NONE, U8
from tidings.kernels.rows.change import (
    ACCEPTED,
    COMMIT,
    FOLDED,
    OUT_OF_ORDER,
    OUTCOME,
    RECORD_FIELDS,
    SEQ,
    TX_START,
    TX_STOP,
)
from tidings.model.codes import BoolArray
from tidings.model.notification import NotificationBatch
from tidings.model.quarantine import Quarantined

_NO_PARTITIONS = np.empty(0, np.int64)
_NO_TEXT = np.empty(0, np.uint8)


class Places(NamedTuple):
    """Where the lines of a stream come from: line i from partition names[partition[i]].

    For reports it is line offset[i] of labels[block[i]]. A transaction does not reach from one `unit` to another: a partition,
    or a file of it; None: partitions.
    """

    names: list[str]
    partition: I64
    labels: list[str]
    block: I64
    offset: I64
    unit: I64 | None = None

    def take(self, at: I64) -> Places:
        unit = None if self.unit is None else self.unit[at]
        return self._replace(partition=self.partition[at], block=self.block[at], offset=self.offset[at], unit=unit)

    @staticmethod
    def joined(parts: Sequence[Places]) -> Places:
        """Places that were taken from the same ones."""
        return parts[0]._replace(
            partition=np.concatenate([part.partition for part in parts]),
            block=np.concatenate([part.block for part in parts]),
            offset=np.concatenate([part.offset for part in parts]),
            unit=None if parts[0].unit is None else np.concatenate([part.unit for part in parts]),
        )


Origin = int | Places
"""Position of the first line, if lines follow each other in a file; else the place of each."""


class Piece(NamedTuple):
    """Lines to be read together. at: index of the given line that each stands for; None: they are the given ones."""

    lines: Sequence[bytes]
    origin: Origin
    at: I64 | None = None
    refused: Sequence[Quarantined] = ()
    """Special records among them that are repeated."""


class Batch:
    """A micro-batch on its way into the store: its usable records in order, and the records refused so far."""

    text: U8 = _NO_TEXT
    """Where the ids of transactions stand."""
    has_tx = False
    """Whether there are transactions, and notifications are by commit."""
    tx: I64 | None = None
    """[2, events]: start and stop of the transaction's id, or NO_TX; None unless `has_tx`."""
    is_applied = False
    """Whether the store has the rows as after the batch already."""
    loaded = 0
    """Seq of the last record of a first load that the batch has; 0: it has none."""
    at: I64 | None = None
    """[records]: index of the record's line in `lines`; None: record i is line i."""
    partition = _NO_PARTITIONS
    """[records]: number of the partition of a stream that each came by."""
    is_expired: BoolArray | None = None
    """[records]: whether each is the delete of a row that expired with the record behind it; None: no row did."""
    events: Events | None = None
    """The accepted changes and subscription events in order; None until they have been applied."""
    shared: Sequence[tuple[int, str]] = ()
    """(line, name of another partition) of accepted records whose row came by that other partition before."""
    is_part: I64 | None = None
    """[records]: of a pack: as in `Events`; else None."""
    given: I64 | None = None
    """[lines]: index of the line of the input that each stands for (`expansion`); None: they are those of the input."""

    def __init__(self, lines: Sequence[bytes], origin: Origin) -> None:
        self.lines = lines
        self._origin = origin
        self.numbers = np.zeros((RECORD_FIELDS, len(lines)), np.int64)
        """[RECORD_FIELDS, records], the fields of `tidings.kernels.rows.change`."""
        self.refused: list[Quarantined] = []

    @staticmethod
    def joined(parts: Sequence[Batch], given: I64) -> Batch:
        """Parts of a micro-batch of a stream that were taken one after the other, as one. given: of all their lines."""
        origins = [part._origin for part in parts if isinstance(part._origin, Places)]
        whole = Batch([line for part in parts for line in part.lines], Places.joined(origins))
        firsts = np.cumsum([0, *(len(part.lines) for part in parts)]).tolist()
        at = [
            (np.arange(len(part.lines)) if part.at is None else part.at) + first
            for part, first in zip(parts, firsts, strict=False)
        ]
        whole.at, whole.given = np.concatenate(at), given
        texts = np.cumsum([0, *(len(part.text) for part in parts)]).tolist()
        for part, start in zip(parts, texts, strict=False):
            is_tx = part.numbers[TX_START] >= 0
            part.numbers[TX_START, is_tx] += start
            part.numbers[TX_STOP, is_tx] += start
        whole.text = np.concatenate([part.text for part in parts])
        whole.numbers = np.concatenate([part.numbers for part in parts], axis=1)
        whole.has_tx = any(part.has_tx for part in parts)
        whole.partition = np.concatenate([part.partition for part in parts])
        if any(part.is_expired is not None for part in parts):
            nothing = [np.zeros(part.numbers.shape[1], np.bool_) for part in parts]
            expired = [part.is_expired for part in parts]
            whole.is_expired = np.concatenate(
                [zeros if own is None else own for own, zeros in zip(expired, nothing, strict=True)]
            )
        whole.refused = [entry for part in parts for entry in part.refused]
        whole.loaded = max(part.loaded for part in parts)
        whole.is_applied = True
        return whole

    @property
    def unit(self) -> I64:
        """[records]: as in `Places`; empty if the lines are of one file."""
        if isinstance(self._origin, int):
            return _NO_PARTITIONS
        unit = self._origin.partition if self._origin.unit is None else self._origin.unit
        return unit if self.at is None else unit[self.at]

    @property
    def accepted(self) -> int:
        """How many records were accepted."""
        outcome = self.numbers[OUTCOME]
        return int(((outcome == ACCEPTED) | (outcome == FOLDED)).sum())

    def transactions(self, event: I64) -> tuple[I64, list[str]]:
        """(number of the transaction of each event, NONE for none; their ids). event: NONE for none."""
        assert self.tx is not None
        start = np.where(event == NONE, NO_TX, self.tx[0, event])
        starts, first, number = np.unique(start, return_index=True, return_inverse=True)
        stops = self.tx[1, event[first]]
        own = starts >= 0
        found = [
            msgspec.json.decode(b'"' + self.text[begin:end].tobytes() + b'"', type=str)
            for begin, end in zip(starts[own].tolist(), stops[own].tolist(), strict=True)
        ]
        return number.reshape(-1) - int((~own).sum()), found

    def after_commits(self, after: I64) -> I64:
        """Moments of subscription events, [events]; those within a transaction are moved to its end."""
        commit, seq = self.numbers[COMMIT], self.numbers[SEQ]
        admitted = self.numbers[OUTCOME] != OUT_OF_ORDER
        commit, seq = commit[admitted], seq[admitted]
        if not len(seq):
            return after
        firsts = np.flatnonzero(np.diff(commit, prepend=-1))
        begin, end = seq[firsts], seq[np.append(firsts[1:], len(seq)) - 1]
        at = np.searchsorted(begin, after, "right") - 1
        inside = (at >= 0) & (after < end[at])
        return np.where(inside, end[at], after)

    def numbered(self) -> tuple[I64, I64]:
        """(seqs of the accepted records, indexes of their lines in the input), both in order."""
        accepted = np.flatnonzero((self.numbers[OUTCOME] == ACCEPTED) | (self.numbers[OUTCOME] == FOLDED))
        lines = accepted if self.at is None else self.at[accepted]
        return self.numbers[SEQ, accepted], lines if self.given is None else self.given[lines]

    def place(self, line: int) -> tuple[str | None, int]:
        """Where a line comes from: (partition, offset), or (None, position) if it is of a file."""
        origin = self._origin
        if isinstance(origin, int):
            return None, origin + line
        return origin.labels[origin.block[line]], int(origin.offset[line])


@dataclass(slots=True)
class Applied:
    """What came of a micro-batch: notifications, refused records, and the records that were read."""

    notifications: NotificationBatch
    refused: list[Quarantined]
    batch: Batch
    failed: Sequence[tuple[str, str]] = ()
    """(id, reason) of subscriptions that were dropped because their evaluator failed."""
