"""Messages from servers to gateways: a payload, a region of subscription space, a sequence number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from research.servers.space import ServedSpace
from tidings.model.change import concat_batches
from tidings.model.codes import Int64Array
from tidings.model.region import Regions


@dataclass(frozen=True)
class MessageBatch:
    """Messages of one form in sequence order. Subscriptions on the channel with a point in the region get the payload.

    channel: one array per equality column. payload: columns of the family's own choice. target: None for region messages;
    for unicast messages the id of the subscription. to: if messages are addressed to several forms, their keys; then
    regions are along `axes`, which the spaces of all these forms have, and `form` only identifies the payload.
    """

    form: str
    seq: Int64Array
    channel: tuple[pa.Array, ...]
    regions: Regions
    payload: pa.RecordBatch
    target: pa.Array | None = None
    to: tuple[str, ...] = ()
    axes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.seq)

    def take(self, at: Int64Array) -> MessageBatch:
        if len(at) == len(self) and bool((at == np.arange(len(at))).all()):
            return self
        chosen = pa.array(at)
        return MessageBatch(
            self.form,
            self.seq[at],
            tuple(column.take(chosen) for column in self.channel),
            self.regions.take(at),
            self.payload.take(chosen),
            None if self.target is None else self.target.take(chosen),
            self.to,
            self.axes,
        )

    def project(self, form: str, space: ServedSpace, payload: pa.RecordBatch) -> MessageBatch:
        """Messages to several forms as messages of `form`, one of these. Regions are open along axes that they do not name."""
        return MessageBatch(form, self.seq, self.channel, space.read(self.regions, self.axes), payload, self.target)

    @staticmethod
    def concat(batches: Sequence[MessageBatch]) -> MessageBatch:
        """Joins batches with equal form, `to` and `axes`, in the order given."""
        if len(batches) == 1:
            return batches[0]
        targets = [batch.target for batch in batches]
        return MessageBatch(
            batches[0].form,
            np.concatenate([batch.seq for batch in batches]),
            tuple(pa.concat_arrays(parts) for parts in zip(*(batch.channel for batch in batches), strict=True)),
            Regions.concat([batch.regions for batch in batches]),
            concat_batches([batch.payload for batch in batches]),
            None if targets[0] is None else pa.concat_arrays(targets),
            batches[0].to,
            batches[0].axes,
        )


@dataclass(frozen=True)
class SnapshotBatch:
    """Rows of snapshots of new subscriptions: row i belongs to subscription target[i], created after seq[i].

    The rows of one snapshot may be in several batches (one per shard); an empty snapshot is in none.
    """

    form: str
    seq: Int64Array
    target: pa.Array
    payload: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.seq)

    @staticmethod
    def by_form(batches: Iterable[SnapshotBatch]) -> list[SnapshotBatch]:
        """One batch per form."""
        parts: dict[str, list[SnapshotBatch]] = {}
        for batch in batches:
            parts.setdefault(batch.form, []).append(batch)
        return [
            SnapshotBatch(
                form,
                np.concatenate([batch.seq for batch in part]),
                pa.concat_arrays([batch.target for batch in part]),
                concat_batches([batch.payload for batch in part]),
            )
            for form, part in parts.items()
        ]
