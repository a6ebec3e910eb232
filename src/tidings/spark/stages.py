"""The stages of the job and what every worker must know. Light to import: Spark unpickles stages in processes that only
plan; what does the work (`tidings.spark.shards`) is imported where it is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tidings.spark.envelope import Keys

if TYPE_CHECKING:
    from tidings.model.catalog import Catalog
    from tidings.network.zones import ZoneMap
    from tidings.pipeline.ingest import Ingest
    from tidings.spark.processor import Shard


@dataclass(frozen=True)
class Plan:
    """What every worker must know: tables, strategies, how many shards and which zones. Pickled into the job."""

    job: str
    catalog_sql: str
    strategies: Mapping[str, str]
    shards: int
    partitions: int
    zone_state: bytes

    @cached_property
    def catalog(self) -> Catalog:
        from tidings.sql import parse_catalog

        return parse_catalog(self.catalog_sql)

    @cached_property
    def zones(self) -> ZoneMap:
        from tidings.model.blob import unpack
        from tidings.network.zones import ZoneMap

        return ZoneMap.from_state(unpack(self.zone_state))

    @cached_property
    def keys(self) -> Keys:
        return Keys(self.partitions)

    @cached_property
    def ingest(self) -> Ingest:
        from tidings.pipeline.ingest import Ingest

        return Ingest(self.catalog)

    def __reduce__(self) -> tuple[Any, ...]:
        fields = (self.job, self.catalog_sql, dict(self.strategies), self.shards, self.partitions, self.zone_state)
        return (_plan, fields)


_plans: dict[tuple[str, bytes], Plan] = {}


def _plan(job: str, catalog_sql: str, strategies: dict[str, str], shards: int, partitions: int, zones: bytes) -> Plan:
    """A plan as unpickled in a worker: the same object every time, so that what it has parsed is kept."""
    key = (job, zones)
    if key not in _plans:
        _plans[key] = Plan(job, catalog_sql, strategies, shards, partitions, zones)
    return _plans[key]


@dataclass(frozen=True)
class TablesStage:
    plan: Plan
    name: str = "tables"

    @property
    def job(self) -> str:
        return self.plan.job

    def owns(self, key: str) -> bool:
        return key.startswith("table/")

    def shard(self, key: str) -> Shard:
        from tidings.spark import shards

        return shards.TablesWorker(self.plan, int(key.removeprefix("table/").partition("#")[0]))


@dataclass(frozen=True)
class FormsStage:
    plan: Plan
    name: str = "forms"

    @property
    def job(self) -> str:
        return self.plan.job

    def owns(self, key: str) -> bool:
        return key.startswith("group/")

    def shard(self, key: str) -> Shard:
        from tidings.spark import shards

        return shards.FormsWorker(self.plan)


@dataclass(frozen=True)
class DeliverStage:
    plan: Plan
    name: str = "deliver"

    @property
    def job(self) -> str:
        return self.plan.job

    def owns(self, key: str) -> bool:
        return key.startswith("zone/")

    def shard(self, key: str) -> Shard:
        from tidings.spark import shards

        return shards.DeliverWorker(self.plan)
