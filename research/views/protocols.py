"""What a receiver of messages does: it holds views, which turn messages into notifications."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from research.servers.message import MessageBatch, SnapshotBatch
from tidings.model.codes import Int64Array
from tidings.model.notification import snapshot_tail
from tidings.model.points import PointBatch


@dataclass(frozen=True)
class Notifications:
    """Notifications: the subscription in slot[i] gets a line with seq[i] that ends in tails[tail[i]]."""

    seq: Int64Array
    slot: Int64Array
    tail: Int64Array
    tails: list[str]


@dataclass(frozen=True)
class FirstRows:
    """Snapshot rows of new views: the view at slot[i], created after seq[i], starts with rows[starts[i]:starts[i + 1]].

    `rows` is None if no view has any. Rows of one view come from many shards, in no particular order.
    """

    slot: Int64Array
    seq: Int64Array
    starts: Int64Array
    rows: pa.RecordBatch | None

    def tails(self, texts: Sequence[str]) -> list[str]:
        """Tail of the snapshot line of each view. texts: each row as text. Rows are sorted, so that lines are reproducible."""
        cuts = self.starts.tolist()
        return [
            snapshot_tail(seq, sorted(texts[start:stop]))
            for seq, start, stop in zip(self.seq.tolist(), cuts[:-1], cuts[1:], strict=True)
        ]


@dataclass(frozen=True)
class Pairs:
    """Deliveries: message[i] of the batch reaches the point at slot[i]; tags[i]: tags of the boxes that contain the point."""

    message: Int64Array
    slot: Int64Array
    tags: np.ndarray[Any, np.dtype[np.uint8]]


class Views(ABC):
    """Client state of all subscriptions of one form at one gateway. Each point of a subscription has a slot."""

    @abstractmethod
    def create(self, slots: Int64Array, points: PointBatch) -> None:
        """Makes views for new points. slots: [points]."""

    @abstractmethod
    def drop(self, slots: Int64Array) -> None:
        """Removes the views of these slots."""

    @abstractmethod
    def snapshots(self, first: FirstRows) -> list[str]:
        """Fills new views with their snapshot rows. Returns the tail of each view's snapshot line."""

    @abstractmethod
    def tell(self, messages: MessageBatch, pairs: Pairs) -> Notifications:
        """Applies delivered messages. Returns notifications, at most one per subscription and seq.

        Batches of several shards come one by one, in any order, except to `RememberingViews`.
        """


class RememberingViews(Views):
    """Views with state beyond their points, which `snapshots` and `tell` alter. A log replay calls both again.

    Messages come in sequence order. Messages of one seq keep the order of their batch; there is no order between shards.
    """

    def is_memorable(self, batch: MessageBatch | SnapshotBatch) -> bool:
        """Whether the batch alters state, so that the log must include it."""
        return True

    @abstractmethod
    def dump(self, slots: Int64Array) -> Any:
        """State of the views of these slots beyond their points, as something `tidings.model.blob.pack` takes."""

    @abstractmethod
    def load(self, slots: Int64Array, state: Any) -> None:
        """Restores what `dump` gave. slots: of the same views in the same order, though the numbers may differ."""


class Matching(ABC):
    """Views that match messages with an index of their own; the gateway has no point index for them.

    Messages come as they were sent, with regions along the axes they name. `Views.tell` gets the pairs that `find` returned
    or, for unicast messages, pairs of a message and the slots of its target.
    """

    @abstractmethod
    def coords(self, slots: Int64Array) -> Int64Array:
        """Coordinates of the points in these slots, [slots, dims], as `create` needs them to make the index anew."""

    @abstractmethod
    def find(self, messages: MessageBatch, moved: Int64Array, born: Int64Array, died: Int64Array) -> Pairs:
        """Returns the pairs of messages and slots that get a notification.

        moved: slots created or dropped in this micro-batch, which hear a message only if born[slot] < seq <= died[slot]; all
        other slots hear every message. born, died: [slots].
        """

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of the index."""
