"""Addresses the output of each stage to shards of the next: for the inline engine, the Spark job and test deployments.

Each of the three is a transport: it delivers every `FormsParcel` and `GatewayParcel` to the shard or zone named in it.

tables --changes, points--> forms --messages, snapshots--> gateways <--messages, snapshots, points-- tables
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from research.servers.host import Sent
from research.servers.message import MessageBatch, SnapshotBatch
from research.stages.forms import FormsWork, GroupKey, Groups, sent_on
from research.stages.tables import TablesResult
from research.stages.zones import ZoneMap
from tidings.model.change import TableChanges
from tidings.model.points import Event, PointBatch

if TYPE_CHECKING:
    # Compiled kernels take a second to import, and only gateways need them.
    from research.stages.gateway import GatewayWork


class FormsParcel(NamedTuple):
    """A batch addressed to one shard of a group in the forms stage."""

    group: GroupKey
    shard: int
    part: TableChanges | PointBatch

    def add_to(self, work: FormsWork) -> None:
        if isinstance(self.part, PointBatch):
            work.points.append(self.part)
        else:
            work.changes.append(self.part)


class GatewayParcel(NamedTuple):
    """A batch addressed to the gateway of one zone."""

    zone: int
    part: MessageBatch | SnapshotBatch | PointBatch

    def add_to(self, work: GatewayWork) -> None:
        if isinstance(self.part, MessageBatch):
            work.messages.append(self.part)
        elif isinstance(self.part, SnapshotBatch):
            work.snapshots.append(self.part)
        else:
            work.points.append(self.part)


def to_forms(result: TablesResult, groups: Groups, *, is_first: bool) -> Iterator[FormsParcel]:
    """Parcels of one tables shard for the forms stage: subscription events and images of changes.

    All tables shards release the same events: only the shard with `is_first` sends them.
    """
    if is_first:
        for points in sent_on(result.released, groups.catalog):
            group = groups.of(points.form)
            yield from (FormsParcel(group, shard, points) for shard in groups.shards(group))
    for group, changes in result.images:
        yield from (FormsParcel(group, shard, part) for shard, part in groups.split(group, changes))


def placed_points(result: TablesResult, zones: ZoneMap, *, is_first: bool) -> Iterator[GatewayParcel]:
    """Subscription events of one tables shard, addressed to the zones of their points.

    Events that all tables shards release are sent only by the shard with `is_first`; `result.placed` is sent by every shard.
    """
    for points in [*(result.released if is_first else ()), *result.placed]:
        zone_of = zones.locate(points)
        for zone in np.unique(zone_of).tolist():
            yield GatewayParcel(zone, points.take(zone_of == zone))


def routed_messages(batch: MessageBatch, zones: ZoneMap) -> Iterator[tuple[int, MessageBatch]]:
    """(zone, messages) for every zone. A message is in the batch of each zone that its region meets."""
    for zone, mask in zones.route(batch):
        yield zone, batch.take(np.flatnonzero(mask))


def placed_snapshots(
    snapshots: Iterable[SnapshotBatch], released: Iterable[PointBatch], zones: ZoneMap
) -> Iterator[tuple[int, SnapshotBatch]]:
    """(zone, rows of snapshots). A row goes to the zone of the home point of its subscription.

    released: must hold the creation events of all subscriptions that the snapshots are of.
    """
    homes: dict[tuple[str, str, int], int] = {}
    for points in released:
        zone_of = zones.locate(points)
        at = np.flatnonzero(points.event == np.int8(Event.CREATE))
        at = at[np.argsort(points.home[at], kind="stable")]
        names = zip(points.id.take(pa.array(at)).to_pylist(), points.after[at].tolist(), strict=True)
        homes.update({(points.form, *name): zone for name, zone in zip(names, zone_of[at].tolist(), strict=True)})
    for batch in SnapshotBatch.by_form(snapshots):
        names = zip(batch.target.to_pylist(), batch.seq.tolist(), strict=True)
        zone_of = np.array([homes[batch.form, *name] for name in names], np.int64)
        for zone in np.unique(zone_of).tolist():
            at = np.flatnonzero(zone_of == zone)
            chosen = pa.array(at)
            yield zone, SnapshotBatch(batch.form, batch.seq[at], batch.target.take(chosen), batch.payload.take(chosen))


def to_gateways(sent: Sent, released: Iterable[PointBatch], zones: ZoneMap) -> Iterator[GatewayParcel]:
    """Parcels with everything servers have sent: messages and rows of snapshots. released: as for `placed_snapshots`."""
    for batch in sent.merged():
        yield from (GatewayParcel(zone, part) for zone, part in routed_messages(batch, zones))
    if sent.snapshots:
        for zone, rows in placed_snapshots(sent.snapshots, released, zones):
            yield GatewayParcel(zone, rows)
