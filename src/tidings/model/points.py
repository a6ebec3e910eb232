"""Subscription events in columnar batches: points of a form's space that appear and go, each after a sequence number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.model.channel import ChannelKey
from tidings.model.codes import BoolArray, Int64Array

_BATCH_BYTES = 1_000
"""Approximate bytes of the objects of a batch."""


class Event(IntEnum):
    CREATE = 0
    DROP = 1


class Placement(NamedTuple):
    """Where a subscription lies: one point on each of its channels, and where its other disjuncts lie, if there are any.

    `details` is the family's own encoded note that its views need beyond the point; empty where the point says all.
    In batches it stands at the first point of the placement alone: those on its other channels have empty details.
    """

    form: str
    channels: tuple[ChannelKey, ...]
    coords: tuple[int, ...]
    details: bytes = b""
    others: tuple[Placement, ...] = ()


@dataclass(frozen=True)
class PointBatch:
    """Events of one form in the order they happened. A subscription on several channels (IN) has a row for each.

    `order` numbers the events of the whole subscription stream; `home` marks the first row of a subscription. One with
    several disjuncts may have rows of several forms, in as many batches: all have the same `order`, one is home.
    coords: (n, dims). `details` is the family's own encoded note: at the first of the points that one placement has, empty
    at those behind it.
    """

    form: str
    event: npt.NDArray[np.int8]
    after: Int64Array
    order: Int64Array
    id: pa.Array
    channel: tuple[pa.Array, ...]
    coords: Int64Array
    home: BoolArray
    details: pa.Array

    def __len__(self) -> int:
        return len(self.after)

    @property
    def nbytes(self) -> int:
        """Approximate bytes of the arrays."""
        columns = (self.id, self.details, *self.channel)
        arrays = self.event.nbytes + self.home.nbytes + self.after.nbytes + self.order.nbytes + self.coords.nbytes
        return int(arrays + sum(column.nbytes for column in columns) + _BATCH_BYTES)

    def take(self, at: Int64Array | BoolArray) -> PointBatch:
        picked = np.flatnonzero(at) if at.dtype == np.bool_ else at
        if len(picked) == len(self) and (len(picked) == 0 or bool((picked == np.arange(len(picked))).all())):
            return self
        chosen = pa.array(picked)
        return PointBatch(
            self.form,
            self.event[picked],
            self.after[picked],
            self.order[picked],
            self.id.take(chosen),
            tuple(column.take(chosen) for column in self.channel),
            self.coords[picked],
            self.home[picked],
            self.details.take(chosen),
        )

    def in_order(self) -> PointBatch:
        """The events sorted by (after, order), a subscription's first row before its others."""
        return self.take(np.lexsort((~self.home, self.order, self.after)).astype(np.int64))

    @property
    def follows_homes(self) -> bool:
        """Whether every point stands behind the home point of its subscription; False if a home point is in another form."""
        is_other = ~self.home[1:] & (self.order[1:] != self.order[:-1])
        return bool(self.home[0]) and not is_other.any()

    def runs(self) -> Iterator[tuple[Event, PointBatch]]:
        """The events in order, as runs of creations and runs of drops."""
        cuts = np.flatnonzero(np.diff(self.event, prepend=np.int8(-1), append=np.int8(-1))).tolist()
        for start, stop in pairwise(cuts):
            yield Event(int(self.event[start])), self.take(np.arange(start, stop))

    def slice(self, start: int, stop: int) -> PointBatch:
        return PointBatch(
            self.form,
            self.event[start:stop],
            self.after[start:stop],
            self.order[start:stop],
            self.id.slice(start, stop - start),
            tuple(column.slice(start, stop - start) for column in self.channel),
            self.coords[start:stop],
            self.home[start:stop],
            self.details.slice(start, stop - start),
        )

    @staticmethod
    def by_form(batches: Iterable[PointBatch]) -> list[PointBatch]:
        """One batch per form."""
        parts: dict[str, list[PointBatch]] = {}
        for batch in batches:
            parts.setdefault(batch.form, []).append(batch)
        return [PointBatch.concat(part) for part in parts.values()]

    @staticmethod
    def by_moment(batches: Iterable[PointBatch]) -> list[tuple[int, list[PointBatch]]]:
        """(moment, events of each form then), in order, for batches sorted by `after`."""
        moments: dict[int, list[PointBatch]] = {}
        for batch in batches:
            cuts = [*np.flatnonzero(np.diff(batch.after, prepend=-1)).tolist(), len(batch)]
            for start, stop in pairwise(cuts):
                moments.setdefault(int(batch.after[start]), []).append(batch.slice(start, stop))
        return sorted(moments.items(), key=lambda entry: entry[0])

    @staticmethod
    def concat(batches: Sequence[PointBatch]) -> PointBatch:
        """Joins batches of one form, sorted by (after, order), a subscription's first row before its others."""
        joined = PointBatch.joined(batches)
        if joined is batches[0]:
            return joined
        return joined.in_order()

    @staticmethod
    def joined(batches: Sequence[PointBatch]) -> PointBatch:
        """Joins batches of one form as they are, one behind the other."""
        if len(batches) == 1:
            return batches[0]
        return PointBatch(
            batches[0].form,
            np.concatenate([batch.event for batch in batches]),
            np.concatenate([batch.after for batch in batches]),
            np.concatenate([batch.order for batch in batches]),
            pa.concat_arrays([batch.id for batch in batches]),
            tuple(pa.concat_arrays(parts) for parts in zip(*(batch.channel for batch in batches), strict=True)),
            np.concatenate([batch.coords for batch in batches]),
            np.concatenate([batch.home for batch in batches]),
            pa.concat_arrays([batch.details for batch in batches]),
        )


def on_some_channel(points: PointBatch) -> BoolArray:
    """Whether each point is on a channel, [points]. A contradictory query has a channel of nulls, which no message matches."""
    ok = np.ones(len(points), np.bool_)
    for column in points.channel:
        ok &= np.asarray(column.is_valid())
    return ok
