"""A deployment in one process: the stages of the pipeline as separate objects, sharded, restartable, without Spark.

Unlike the inline engine it has several shards of every stage, as a cluster does, and each object has the durable state that a
cluster keeps: a blob, and a log of the micro-batches since.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from tidings.families.registry import gathered, spaces_of
from tidings.model.blob import pack, unpack
from tidings.model.catalog import Catalog
from tidings.model.change import ChangeBatch
from tidings.model.message import MessageBatch
from tidings.model.notification import NotificationBatch
from tidings.model.points import Event, PointBatch
from tidings.model.quarantine import Quarantined
from tidings.network.zones import ZoneMap
from tidings.pipeline.dispatch import placed_points, to_forms, to_gateways
from tidings.pipeline.door import Door
from tidings.pipeline.forms import FormShard, FormsWork, GroupKey
from tidings.pipeline.gateway import Gateway, GatewayWork
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
        """Discards the object and restores it from blob and log."""
        self.stage = self._make()
        if self._blob is not None:
            self.stage.load(self._blob)
        for entry in self._log:
            self.stage.replay(unpack(entry))


def _travelled(blob: bytes) -> bytes:
    """The bytes after pickling and unpickling, as another process would get them."""
    assert type(blob) is bytes, f"state must be bytes, not {type(blob).__name__}"
    copy: bytes = pickle.loads(pickle.dumps(blob))
    return copy


@dataclass
class BatchResult:
    """Output of a micro-batch. points: subscription events with final coordinates."""

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

    def feed(self, lines: list[bytes]) -> BatchResult:
        parsed = self._ingest.parse(lines, self._position)
        self._position += len(lines)
        step = self._flow(parsed.changes, is_end=False)
        return BatchResult(step.lines, step.messages, step.points, [*parsed.refused, *step.refused])

    def finish(self) -> BatchResult:
        return self._flow([], is_end=True)

    def _flow(self, changes: list[ChangeBatch], *, is_end: bool) -> BatchResult:
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
        forms: dict[tuple[GroupKey, int], FormsWork] = {}
        for shard, result in enumerate(results):
            for parcel in to_forms(result, self._tables[shard].stage.groups, is_first=shard == 0):
                parcel.add_to(forms.setdefault((parcel.group, parcel.shard), FormsWork()))
        sent = Sent()
        for result in results:
            sent.extend(result.sent)
        for key, forms_work in forms.items():
            if key not in self._forms:
                self._forms[key] = Durable(self._make_form_shard)
            sent.extend(self._forms[key].apply(forms_work))
        points = [*results[0].released, *(placed for result in results for placed in result.placed)]
        works = [GatewayWork() for _ in self._gateways]
        for shard, result in enumerate(results):
            for each in placed_points(result, self._zone_map, is_first=shard == 0):
                each.add_to(works[each.zone])
        for each in to_gateways(sent, points, self._zone_map):
            each.add_to(works[each.zone])
        batches = [durable.apply(work) for durable, work in zip(self._gateways, works, strict=True)]
        lines = NotificationBatch.merge(batches).lines()
        messages = [batch.take(np.argsort(batch.seq, kind="stable").astype(np.int64)) for batch in sent.merged()]
        return BatchResult(lines, messages, points, [entry for result in results for entry in result.refused])


def deploy(workload: Workload, strategies: dict[str, str], layout: Layout | None = None) -> Deployment:
    """A deployment with the workload's subscriptions at its door, and zones cut as fine as the layout allows."""
    layout = layout or Layout()
    zone_map, catalog = None, workload.catalog
    if layout.zones > 1:
        points = gathered(_all_points(workload), catalog)
        zone_map = ZoneMap.build(points, layout.zones, spaces_of(catalog), split_points_min=2)
    deployment = Deployment(workload.catalog, strategies, layout, zone_map)
    deployment.door.read(workload.subscription_lines())
    return deployment


def run_steps(deployment: Deployment, lines: list[bytes], sizes: list[int]) -> list[BatchResult]:
    return [*(deployment.feed(chunk) for chunk in chunks(lines, sizes)), deployment.finish()]


def _all_points(workload: Workload) -> list[PointBatch]:
    door = Door(workload.catalog)
    door.read(workload.subscription_lines())
    batches = [batch.take(batch.event == np.int8(Event.CREATE)) for batch in door.take()]
    space_of = spaces_of(workload.catalog)
    assert all(space_of(batch.form).dims == batch.coords.shape[1] for batch in batches)
    return batches
