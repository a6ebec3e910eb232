"""A micro-batch on its way through a replica: its lines, where they come from, and what became of each record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tidings.kernels.events import Events
from tidings.kernels.rows import I64
from tidings.kernels.rows.change import ACCEPTED
from tidings.kernels.rows.scan import OUTCOME, RECORD_FIELDS, SEQ
from tidings.model.codes import BoolArray
from tidings.model.quarantine import Quarantined

_NO_PARTITIONS = np.empty(0, np.int64)


class Places(NamedTuple):
    """Where the lines of a stream come from: line i from partition names[partition[i]].

    For reports it is line offset[i] of labels[block[i]].
    """

    names: list[str]
    partition: I64
    labels: list[str]
    block: I64
    offset: I64

    def take(self, at: I64) -> Places:
        return self._replace(partition=self.partition[at], block=self.block[at], offset=self.offset[at])

    @staticmethod
    def joined(parts: Sequence[Places]) -> Places:
        """Places that were taken from the same ones."""
        return parts[0]._replace(
            partition=np.concatenate([part.partition for part in parts]),
            block=np.concatenate([part.block for part in parts]),
            offset=np.concatenate([part.offset for part in parts]),
        )


Origin = int | Places
"""Position of the first line, if lines follow each other in a file; else the place of each."""


class Batch:
    """A micro-batch on its way into the store: its usable records in order, and the records refused so far."""

    def __init__(self, lines: Sequence[bytes], origin: Origin) -> None:
        self.lines = lines
        self._origin = origin
        self.at: I64 | None = None
        """[records]: index of the record's line in `lines`; None: record i is line i."""
        self.numbers = np.zeros((RECORD_FIELDS, len(lines)), np.int64)
        """[RECORD_FIELDS, records]: status, seq, op, version, outcome, old and new version."""
        self.refused: list[Quarantined] = []
        self.partition = _NO_PARTITIONS
        """[records]: number of the partition of a stream that each came by."""
        self.is_expired: BoolArray | None = None
        """[records]: whether each is the delete of a row that expired with the record behind it; None: no row did."""
        self.events: Events | None = None
        """The accepted changes and subscription events in order; None until they have been applied."""
        self.shared: list[tuple[int, str]] = []
        """(line, name of another partition) of accepted records whose row came by that other partition before."""
        self.given: I64 | None = None
        """[lines]: index of the line of the input that each stands for (`expansion`); None: they are those of the input."""

    @staticmethod
    def joined(parts: Sequence[Batch], given: I64) -> Batch:
        """Micro-batches of a stream that were applied one after the other, as one. given: of all their lines."""
        origins = [part._origin for part in parts if isinstance(part._origin, Places)]
        whole = Batch([line for part in parts for line in part.lines], Places.joined(origins))
        firsts = np.cumsum([0, *(len(part.lines) for part in parts)]).tolist()
        at = [
            (np.arange(len(part.lines)) if part.at is None else part.at) + first
            for part, first in zip(parts, firsts, strict=False)
        ]
        whole.at, whole.given = np.concatenate(at), given
        whole.numbers = np.concatenate([part.numbers for part in parts], axis=1)
        whole.shared = [
            (line + first, other) for part, first in zip(parts, firsts, strict=False) for line, other in part.shared
        ]
        return whole

    def numbered(self) -> tuple[I64, I64]:
        """(seqs of the accepted records, indexes of their lines in the input), both in order."""
        accepted = np.flatnonzero(self.numbers[OUTCOME] == ACCEPTED)
        lines = accepted if self.at is None else self.at[accepted]
        return self.numbers[SEQ, accepted], lines if self.given is None else self.given[lines]

    def place(self, line: int) -> tuple[str | None, int]:
        """Where a line comes from: (partition, offset), or (None, position) if it is of a file."""
        origin = self._origin
        if isinstance(origin, int):
            return None, origin + line
        return origin.labels[origin.block[line]], int(origin.offset[line])
