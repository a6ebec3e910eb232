"""A partial replica: subscriptions of one place, evaluated over the rows that the place was sent.

Rows that nobody here needs do no harm: every answer over some rows more than it needs is the answer over all rows (`select`,
`drift`, `join`, `offers`: an answer is made of rows that satisfy it; `topk`: the others rank behind). So a sender may send too
much, and must never send too little.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from tidings.kernels.events import CHANGE
from tidings.kernels.lives import Lives
from tidings.kernels.packs import decode_pack
from tidings.kernels.rows import I64
from tidings.kernels.rows.change import ACCEPTED, OP, OUTCOME, PASSED, RECORD_FIELDS, TX_START, UNKNOWN
from tidings.model.catalog import Catalog
from tidings.model.change import SEQ_MAX, Op
from tidings.model.errors import TidingsError
from tidings.model.notification import NotificationBatch
from tidings.model.quarantine import Quarantined
from tidings.pipeline.edge.pack import Pack
from tidings.pipeline.replica.batch import Batch
from tidings.pipeline.replica.replica import Replica
from tidings.pipeline.replica.row_store import RowStore
from tidings.pipeline.replica.row_texts import bytes_of

_CELL_BYTES = 4
"""Of a null, which is sent as one byte and kept as a word."""


class PackError(TidingsError):
    """A pack that does not fit what the place holds: something is wrong with the sender, the place, or between them."""


class PartialStore(RowStore):
    """Rows as a place was sent them. They come by seqs of the centre, of which several rows may have the same."""

    @cached_property
    def _has_words(self) -> bool:
        return any(table.has_constraints for table in self.catalog.tables)

    def take_pack(self, pack: Pack, *, forgives: bool) -> Batch:
        """Reads a pack and applies its rows. forgives: deletes of rows that are not here are passed over."""
        batch = Batch((), 0)
        batch.numbers = np.zeros((RECORD_FIELDS, pack.count), np.int64)
        size = len(pack.items)
        batch.text = bytes_of(pack.items if not self._has_words else pack.items + bytes(8 * size))
        batch.is_part = np.zeros(pack.count, np.int64)
        self._reserve_text((8 if self._has_words else 1) * size + _CELL_BYTES * self._kinds.shape[1] * pack.count)
        self._reserve_keys(pack.count)
        done = at = 0
        while True:
            done, at = decode_pack(self.handles, batch.text, size, pack.base, at, done, batch.numbers, batch.is_part)
            if done == pack.count:
                break
            self._grow_pages(1)
        if at != size:
            raise PackError(f"a pack of {pack.count} rows has {size} bytes, and ends at byte {at}")
        self.keys.counts[PASSED] = pack.passed
        batch.has_tx = bool((batch.numbers[TX_START] >= 0).any())
        self._apply_rows(batch)
        batch.is_applied = True
        outcome = batch.numbers[OUTCOME]
        is_odd = outcome != ACCEPTED
        if is_odd.any() and not (forgives and (outcome[is_odd] == UNKNOWN).all()):
            op = Op(int(batch.numbers[OP, np.flatnonzero(is_odd)[0]]))
            raise PackError(f"a pack has the {op.name.lower()} of a row that the place does not hold")
        return batch

    def _refusals(self, batch: Batch) -> Iterator[Quarantined]:
        """Nothing is refused here: what could be, `take_pack` has looked at."""
        return iter(())

    def apply(self, batch: Batch, after: I64, kind: I64, slot: I64, lives: Lives) -> None:
        super().apply(batch, after, kind, slot, lives)
        events, taken = batch.events, batch.is_part
        assert events is not None and taken is not None
        if taken.any():
            events.is_part[events.kind == CHANGE] = taken[batch.numbers[OUTCOME] == ACCEPTED]


class PartialReplica(Replica):
    """The subscriptions of a place. Fed with packs only: which records are accepted is decided at the centre."""

    store: PartialStore

    def __init__(self, catalog: Catalog, *, keeps_points: bool = False) -> None:
        super().__init__(catalog, keeps_points=keeps_points)
        self.store = PartialStore(catalog)
        self.forgives = False
        """Whether deletes of rows that are not here are passed over: after a sender has forgotten who holds what."""

    def take(self, pack: Pack, *, is_told: bool = True) -> NotificationBatch:
        """Applies a pack. is_told: False when state is restored from packs."""
        self._keep_written()
        for points in pack.points:
            self._wait(points)
        batch = self.store.take_pack(pack, forgives=self.forgives)
        return self._carry(batch, SEQ_MAX, 0, is_told=is_told).notifications
