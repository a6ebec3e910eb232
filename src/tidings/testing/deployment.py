"""A deployment in one process: the stages of the pipeline as separate objects, sharded, restartable, without Spark.

Unlike the inline engine it wires several shards of every stage together, the way a cluster does, and each object keeps
what a cluster keeps of it: a blob, and a log of what came after.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from tidings.families.registry import spaces_of
from tidings.model.blob import pack, unpack
from tidings.model.catalog import Catalog
from tidings.model.change import ChangeBatch, TableChanges
from tidings.model.message import MessageBatch, SnapshotBatch
from tidings.model.points import Event, PointBatch
from tidings.model.quarantine import Quarantined
from tidings.network.zones import ZoneMap
from tidings.pipeline.deliver import Gateway, GatewayWork
from tidings.pipeline.door import Door
from tidings.pipeline.forms import FormShard, FormsWork, GroupKey, sent_on
from tidings.pipeline.host import Sent
from tidings.pipeline.ingest import Ingest
from tidings.pipeline.partition import shard_of_values
from tidings.pipeline.tables import TableShard, TablesResult, TablesWork
from tidings.testing.workload import Workload, chunks

StageT = TypeVar("StageT", bound="TableShard | FormShard | Gateway")


@dataclass(frozen=True)
class Layout:
    """How many shards every stage has."""

    tables: int = 1
    forms: int = 1
    zones: int = 1


class Durable(Generic[StageT]):
    """A stage's object together with what survives a crash: its last blob and the log since then."""

    def __init__(self, make: Callable[[], StageT]) -> None:
        self._make = make
        self.stage = make()
        self._blob: bytes | None = None
        self._log: list[bytes] = []

    def apply(self, work: Any) -> Any:
        result, entry = self.stage.apply(work)
        self._log.append(_travelled(pack(entry)))
        return result

    def fold(self) -> None:
        """Writes the state as a blob and starts a new log."""
        self._blob = _travelled(self.stage.dump())
        self._log = []

    def crash(self) -> None:
        """Forgets the object and makes it again from blob and log."""
        self.stage = self._make()
        if self._blob is not None:
            self.stage.load(self._blob)
        for entry in self._log:
            self.stage.replay(unpack(entry))


def _travelled(blob: bytes) -> bytes:
    """Bytes as another process gets them."""
    assert type(blob) is bytes, f"state must be bytes, not {type(blob).__name__}"
    copy: bytes = pickle.loads(pickle.dumps(blob))
    return copy


@dataclass
class Step:
    """What a micro-batch brought."""

    lines: list[str]
    messages: list[MessageBatch]
    points: list[PointBatch]
    refused: list[Quarantined]


class Deployment:
    """All stages, sharded by a layout. Fed with subscriptions first, then with micro-batches of raw change records."""

    def __init__(self, catalog: Catalog, strategies: dict[str, str], layout: Layout, zone_map: ZoneMap | None) -> None:
        self.catalog = catalog
        self.door = Door(catalog)
        self._ingest = Ingest(catalog)
        self._zone_map = zone_map or ZoneMap(layout.zones)
        self._layout = layout
        self._tables = [Durable(self._make_table_shard(strategies, shard)) for shard in range(layout.tables)]
        self._forms: dict[tuple[GroupKey, int], Durable[FormShard]] = {}
        self._gateways = [Durable(lambda: Gateway(catalog)) for _ in range(layout.zones)]
        self._make_form_shard: Callable[[], FormShard] = lambda: FormShard(catalog, strategies)
        self._position = 0

    def _make_table_shard(self, strategies: dict[str, str], shard: int) -> Callable[[], TableShard]:
        return lambda: TableShard(self.catalog, strategies, shard, self._layout.tables, self._layout.forms)

    @property
    def stages(self) -> list[Durable[Any]]:
        return [*self._tables, *self._forms.values(), *self._gateways]

    def feed(self, lines: list[bytes]) -> Step:
        parsed = self._ingest.parse(lines, self._position)
        self._position += len(lines)
        step = self._flow(parsed.changes, is_end=False)
        return Step(step.lines, step.messages, step.points, [*parsed.refused, *step.refused])

    def finish(self) -> Step:
        return self._flow([], is_end=True)

    def _flow(self, changes: list[ChangeBatch], *, is_end: bool) -> Step:
        whole = TablesWork.of(changes, self.door.take())
        results: list[TablesResult] = []
        for shard, durable in enumerate(self._tables):
            own = [
                batch.take(
                    shard_of_values(batch.rows, self.catalog.table(batch.table).key, self._layout.tables) == shard
                )
                for batch in changes
            ]
            results.append(durable.apply(TablesWork(own, whole.positions, whole.seqs, whole.points, is_end)))
        sent = Sent([m for r in results for m in r.sent.messages], [s for r in results for s in r.sent.snapshots])
        # Every shard releases the same events; they are passed on once.
        released = results[0].released
        self._serve_forms([(shard, *images) for shard, r in enumerate(results) for images in r.images], released, sent)
        messages = [batch.take(np.argsort(batch.seq, kind="stable").astype(np.int64)) for batch in sent.merged()]
        points = [*released, *(placed for r in results for placed in r.placed)]
        lines = self._deliver(points, messages, sent.snapshots)
        return Step(lines, messages, points, [entry for r in results for entry in r.refused])

    def _serve_forms(
        self, images: list[tuple[int, GroupKey, TableChanges]], released: list[PointBatch], sent: Sent
    ) -> None:
        works: dict[tuple[GroupKey, int], FormsWork] = {}
        for table_shard, group, changes in images:
            for shard, part in self._tables[table_shard].stage.groups.split(group, changes):
                works.setdefault((group, shard), FormsWork()).changes.append(part)
        for points in sent_on(released, self.catalog):
            groups = self._tables[0].stage.groups
            group = groups.of(points.form)
            for shard in groups.shards(group):
                works.setdefault((group, shard), FormsWork()).points.append(points)
        for key, work in works.items():
            if key not in self._forms:
                self._forms[key] = Durable(self._make_form_shard)
            answer: Sent = self._forms[key].apply(work)
            sent.messages.extend(answer.messages)
            sent.snapshots.extend(answer.snapshots)

    def _deliver(
        self, released: list[PointBatch], messages: list[MessageBatch], snapshots: list[SnapshotBatch]
    ) -> list[str]:
        works = [GatewayWork() for _ in self._gateways]
        for points in released:
            zones = self._zone_map.locate(points)
            for zone in np.unique(zones).tolist():
                works[zone].points.append(points.take(zones == zone))
        for batch in messages:
            for zone, mask in self._zone_map.route(batch):
                works[zone].messages.append(batch.take(np.flatnonzero(mask)))
        for zone, rows in self._place_snapshots(released, snapshots):
            works[zone].snapshots.append(rows)
        batches = [durable.apply(work) for durable, work in zip(self._gateways, works, strict=True)]
        return sorted((line for batch in batches for line in batch.lines()), key=_place)

    def _place_snapshots(
        self, released: list[PointBatch], snapshots: list[SnapshotBatch]
    ) -> Iterable[tuple[int, SnapshotBatch]]:
        """The rows of snapshots, each with the zone of its subscription's home point."""
        homes: dict[tuple[str, str, int], int] = {}
        for points in released:
            zones = self._zone_map.locate(points).tolist()
            entries = zip(points.id.to_pylist(), points.after.tolist(), points.home, points.event, zones, strict=True)
            for id, after, is_home, event, zone in entries:
                if event == Event.CREATE and (is_home or (points.form, id, after) not in homes):
                    homes[points.form, id, after] = zone
        for batch in snapshots:
            keys = zip(batch.target.to_pylist(), batch.seq.tolist(), strict=True)
            zones_of_rows = np.array([homes[batch.form, id, seq] for id, seq in keys], np.int64)
            for zone in np.unique(zones_of_rows).tolist():
                at = np.flatnonzero(zones_of_rows == zone)
                yield zone, SnapshotBatch(batch.form, batch.seq[at], batch.target.take(at), batch.payload.take(at))


def deploy(workload: Workload, strategies: dict[str, str], layout: Layout | None = None) -> Deployment:
    """A deployment with the workload's subscriptions at its door, and zones cut as fine as the layout allows."""
    layout = layout or Layout()
    zone_map = (
        ZoneMap.build(_all_points(workload), layout.zones, spaces_of(workload.catalog), split_points_min=2)
        if layout.zones > 1
        else None
    )
    deployment = Deployment(workload.catalog, strategies, layout, zone_map)
    deployment.door.read(workload.subscription_lines())
    return deployment


def run_steps(deployment: Deployment, lines: list[bytes], sizes: list[int]) -> list[Step]:
    return [*(deployment.feed(chunk) for chunk in chunks(lines, sizes)), deployment.finish()]


def _all_points(workload: Workload) -> list[PointBatch]:
    door = Door(workload.catalog)
    door.read(workload.subscription_lines())
    batches = [batch.take(batch.event == np.int8(Event.CREATE)) for batch in door.take()]
    space_of = spaces_of(workload.catalog)
    assert all(space_of(batch.form).dims == batch.coords.shape[1] for batch in batches)
    return batches


def _place(line: str) -> tuple[int, str, bool]:
    record = json.loads(line)
    return record["seq"], record["subscription"], record["snapshot"]
