"""Which places hold which rows, and what each is sent in a micro-batch: `tidings.kernels.packs` says how it is decided."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidings.kernels.arrays import grow
from tidings.kernels.packs import EVENT, encode_packs, list_items
from tidings.kernels.rows import I64
from tidings.model.points import PointBatch
from tidings.pipeline.edge.pack import Pack
from tidings.pipeline.replica.batch import Batch
from tidings.pipeline.replica.row_versions import RowVersions

_WORD = 64
_NO_TX = np.empty((2, 0), np.int64)

Entered = tuple[I64, I64, I64]
"""Rows that enter answers: event, version, and places [entered, words] as bits."""


class Holders:
    """The places that may hold, and those that surely hold, each version of a row that is current."""

    def __init__(self, places: int) -> None:
        self.places = places
        self.words = -(-places // _WORD)
        """Words of a set of places."""
        self._may = np.zeros((0, self.words), np.int64)
        self._sure = np.zeros((0, self.words), np.int64)
        self.counts = np.zeros((places, 2), np.int64)
        """[places, 2]: rows sent so far, and how many of them were backfills."""

    def packs(
        self,
        rows: RowVersions,
        batch: Batch,
        entered: Sequence[Entered],
        points: Sequence[list[PointBatch]],
        passed: int,
    ) -> dict[int, Pack]:
        """What is sent of a micro-batch, by place. points: [places], events of their subscriptions."""
        events = batch.events
        assert events is not None
        self._cover(len(rows.rows.alive))
        event, version, places = self._in_order(entered)
        items, masks = list_items(
            events.kind,
            events.seq,
            events.old,
            events.new,
            events.is_part,
            rows.rows.since,
            event,
            version,
            places,
            self._may,
            self._sure,
        )
        before, ends = self.counts[:, 0].copy(), np.zeros(self.places, np.int64)
        base = int(events.seq[items[0, EVENT]]) if len(items) else passed
        tx = _NO_TX if batch.tx is None else batch.tx
        out = encode_packs(
            rows.handles, rows.types, items, masks, events.seq, base, tx, batch.text, self.counts, ends
        ).tobytes()
        counts, stops = self.counts[:, 0] - before, ends.tolist()
        concerned = set(np.flatnonzero(counts).tolist()) | {place for place, own in enumerate(points) if own}
        return {
            place: Pack(
                base,
                passed,
                int(counts[place]),
                out[stops[place - 1] if place else 0 : stops[place]],
                (*points[place],),
            )
            for place in sorted(concerned)
        }

    def _in_order(self, entered: Sequence[Entered]) -> Entered:
        if not entered:
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, self.words), np.int64)
        event, version, places = entered[0]
        if len(entered) > 1:
            event, version, places = (np.concatenate(parts) for parts in zip(*entered, strict=True))
        if len(event) < 2:
            return event, version, places
        order = np.argsort(event, kind="stable")
        return event[order], version[order], places[order]

    def forget(self, versions: I64) -> None:
        """Who holds these current rows is not known: from now on every place may, and none surely does."""
        self._cover(int(versions.max(initial=-1)) + 1)
        everywhere = np.full(self.words, -1)
        if self.places % _WORD:
            everywhere[-1] = (1 << self.places % _WORD) - 1
        self._may[versions], self._sure[versions] = everywhere, 0

    def assign(self, place: int, current: I64, versions: I64) -> None:
        """Says that a place holds these rows, and no others of the current ones."""
        self._cover(int(current.max(initial=-1)) + 1)
        word, bit = place // _WORD, np.int64(1) << np.int64(place % _WORD)
        for bits in (self._may, self._sure):
            bits[current, word] &= ~bit
            bits[versions, word] |= bit

    def dump(self, versions: I64) -> tuple[I64, I64]:
        """Who holds these current rows, for `load`."""
        self._cover(int(versions.max(initial=-1)) + 1)
        return self._may[versions], self._sure[versions]

    def load(self, versions: I64, may: I64, sure: I64) -> None:
        self._cover(int(versions.max(initial=-1)) + 1)
        self._may[versions], self._sure[versions] = may, sure

    def _cover(self, versions: int) -> None:
        grow(self._may, versions)
        grow(self._sure, versions)
