"""`region:renewed`: a region server whose labels stay in the order of the values last told, whatever comes and goes.

Where there is no label left between two, some subscriptions get other ones, as in section 4.3 of the paper on value-based
notification; so a change concerns one range of labels of a radius, or two. Labels of one channel that have changed so often are
its *epoch*, which messages carry: who hears of changed labels later than of messages can tell which labels these mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from research.servers.message import MessageBatch
from research.servers.protocols import ColumnarRows, Moving
from research.strategies.drift.follower_index import KINDS, Followers
from research.strategies.drift.kernels.threshold_index import ThresholdIndex
from research.strategies.drift.kernels.threshold_index.labels import LABEL_STEP
from research.strategies.drift.region_server import RegionServer
from tidings.families.drift.subscription import Space, space_of
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges
from tidings.model.channel import channel_keys
from tidings.model.codes import code_of
from tidings.model.points import Event, PointBatch
from tidings.model.types import ColumnType

EPOCH = "epoch"
"""Payload column: how often labels of the channel have changed."""


class RenewingFollowers(Followers):
    """Followers that know the points of all subscriptions, so that these can be moved."""

    def __init__(self, space: Space, label_step: int) -> None:
        super().__init__(space)
        self.index = ThresholdIndex(KINDS[space.kind], space.patience, renews=True, label_step=label_step)
        self.epochs: Counter[int] = Counter()
        """Audience -> how often labels have changed."""
        self._points: dict[str, PointBatch] = {}
        """Id -> its points, in one batch, where they are now."""
        self._moved: set[str] = set()
        self._now = 0
        """After which seq subscriptions were last created."""

    def add(self, points: PointBatch, rows: ColumnarRows) -> PointBatch:
        placed = super().add(points, rows)
        self._now = int(points.after.max(initial=self._now))
        for renewal in self.index.take_renewals():
            self.epochs[renewal.audience] += 1
            code = code_of(ColumnType.DOUBLE, renewal.reach)
            for id, own in self._points.items():
                for i, channel in enumerate(channel_keys(own.channel, len(own))):
                    is_of = self._audiences.get(channel) == renewal.audience and own.coords[i, 0] == code
                    label = renewal.of(int(own.coords[i, 1])) if is_of else own.coords[i, 1]
                    if label != own.coords[i, 1]:
                        own.coords[i, 1] = self._labels[id, renewal.audience] = label
                        self._moved.add(id)
        # The points of one subscription stand together.
        ids = placed.id.to_pylist()
        starts = [i for i, id in enumerate(ids) if not i or ids[i - 1] != id]
        for start, stop in zip(starts, [*starts[1:], len(ids)], strict=True):
            own = placed.take(np.arange(start, stop))
            self._points[ids[start]] = replace(own, coords=own.coords.copy())
        return placed

    def remove(self, points: PointBatch) -> None:
        super().remove(points)
        for id in points.id.to_pylist():
            self._points.pop(id, None)
            self._moved.discard(id)

    def moved(self) -> PointBatch | None:
        """Subscriptions that lie elsewhere since the last call, as dropped and created again; None if there are none."""
        if not self._moved:
            return None
        now = PointBatch.concat([self._points[id] for id in sorted(self._moved)])
        self._moved.clear()
        now = replace(now, after=np.full(len(now), self._now))
        events = [np.full(len(now), event, np.int8) for event in (Event.DROP, Event.CREATE)]
        return PointBatch.concat([replace(now, event=event) for event in events])

    def epoch_of(self, channels: Iterable[Any]) -> pa.Array:
        return pa.array([self.epochs[self._audiences[channel]] for channel in channels], pa.int64())

    def dump(self) -> dict[str, Any]:
        points = list(self._points.values())
        return super().dump() | {"epochs": dict(self.epochs), "points": points}

    def load(self, state: dict[str, Any]) -> None:
        super().load(state)
        self.epochs.update(state["epochs"])
        self._points = {points.id[0].as_py(): points for points in state["points"]}


class RenewingServer(RegionServer, Moving):
    """As `RegionServer`, with labels that change and messages with an epoch."""

    def __init__(self, space: Space, label_step: int) -> None:
        self.space = space
        self.followers: RenewingFollowers = RenewingFollowers(space, label_step)

    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        for batch in super().change(changes):
            epochs = self.followers.epoch_of(channel_keys(batch.channel, len(batch)))
            columns = [*batch.payload.columns, epochs]
            payload = pa.RecordBatch.from_arrays(columns, [*batch.payload.schema.names, EPOCH])
            yield replace(batch, payload=payload)

    def moved(self) -> PointBatch | None:
        return self.followers.moved()


def renewed(form: Form, catalog: Catalog, label_step: int = LABEL_STEP) -> RenewingServer:
    return RenewingServer(space_of(form, catalog), label_step)
