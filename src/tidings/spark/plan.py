"""The stages of the job, and the plan that every worker gets. Cheap to import, since Spark unpickles stages in processes that
only plan: the code of the stages (`tidings.spark.message_workers`) is imported where it is used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.live.job import check_goes_on
from tidings.model.errors import UsageError
from tidings.spark.envelope import Keys, replica_keys
from tidings.spark.shard_state import STATE_FORMAT

if TYPE_CHECKING:
    from tidings.model.catalog import Catalog
    from tidings.network.zones import ZoneMap
    from tidings.pipeline.ingest import Ingest
    from tidings.spark.sources.recorded import Recording
    from tidings.spark.stateful_processor import Shard


_COMMIT, _RECORD = "commit", "record"


@dataclass(frozen=True)
class Plan:
    """Configuration of a job for all its workers: tables, strategies, number of shards, zones. Pickled into the job.

    parts: a folder that all workers reach, where replicas write notifications; if empty, notifications are rows of the
    result. has_columns: there they are packed columns, instead of lines. index: the index file of recorded input
    (`sources.recorded.Recording`). is_stream: lines come from partitions of a stream, and subscriptions by events (`stream`).
    by_commit: as in `RowStore`. load: file or folder of rows that replicas load before their first micro-batch; empty: none.
    """

    job: str
    catalog_sql: str
    strategies: Mapping[str, str]
    shards: int
    partitions: int
    zone_state: bytes = b""
    parts: str = ""
    index: str = ""
    is_stream: bool = False
    by_commit: bool = True
    load: str = ""
    has_columns: bool = False

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
    def replica_keys(self) -> tuple[str, ...]:
        return replica_keys(self.shards)

    @cached_property
    def text(self) -> str:
        """What durable state depends on, as text: for `formerly`."""
        known = {"format": STATE_FORMAT, "shards": self.shards, "strategies": dict(self.strategies)}
        known["notify"] = _COMMIT if self.by_commit else _RECORD
        return json.dumps({**known, "catalog": self.catalog_sql}, sort_keys=True)

    def formerly(self, text: str) -> Plan:
        """The plan that state was written for. UsageError if that state cannot be used with this plan."""
        known = json.loads(text)
        if known["format"] != STATE_FORMAT:
            raise UsageError(
                f"the checkpoint is of format {known['format']}, this version of Tidings writes {STATE_FORMAT}: go on with the "
                "version that wrote it, or begin with a new checkpoint"
            )
        if known["shards"] != self.shards:
            raise UsageError(
                f"the checkpoint is of a job with {known['shards']} shards, this one has {self.shards}: give it "
                f"{known['shards']} shards, or begin with a new checkpoint"
            )
        if known["strategies"] != dict(self.strategies):
            raise UsageError("the checkpoint is of a job with other strategies: begin with a new checkpoint")
        # Earlier versions told every record for itself.
        former = replace(self, catalog_sql=known["catalog"], by_commit=known.get("notify", _RECORD) == _COMMIT)
        check_goes_on(self.catalog, former.catalog)
        return former

    @cached_property
    def recording(self) -> Recording:
        from tidings.spark.sources.recorded import Recording

        return Recording(Path(self.index))

    @cached_property
    def ingest(self) -> Ingest:
        from tidings.pipeline.ingest import Ingest

        return Ingest(self.catalog)

    def __reduce__(self) -> tuple[Any, ...]:
        known = {field.name: getattr(self, field.name) for field in fields(self)}
        return (_plan, ({**known, "strategies": dict(self.strategies)},))


def shards_of(text: str) -> int:
    """The number of shards of the plan that has this text."""
    return int(json.loads(text)["shards"])


_PLANS_MAX = 16
_plans: dict[tuple[str, bytes], Plan] = {}


def _plan(known: dict[str, Any]) -> Plan:
    """Unpickles a plan. Returns the same object for the same job and zones, so that its parsed catalog is kept."""
    key = (known["job"], known["zone_state"])
    if key not in _plans:
        for stale in list(_plans)[: len(_plans) - _PLANS_MAX + 1]:
            del _plans[stale]
        _plans[key] = Plan(**known)
    return _plans[key]


REPLICA, TABLES, FORMS, DELIVER = "replica", "tables", "forms", "deliver"
_KEY_PREFIX = {REPLICA: "replica/", TABLES: "table/", FORMS: "group/", DELIVER: "zone/"}


@dataclass(frozen=True)
class JobStage:
    """One stateful stage of the job: which envelopes it handles, and the class of its shards."""

    name: str
    plan: Plan

    @property
    def job(self) -> str:
        return self.plan.job

    @property
    def plan_text(self) -> str:
        return self.plan.text

    def formerly(self, plan_text: str) -> JobStage:
        return JobStage(self.name, self.plan.formerly(plan_text))

    def owns(self, key: str) -> bool:
        return key.startswith(_KEY_PREFIX[self.name])

    def shard(self, key: str) -> Shard:
        if self.name == REPLICA:
            from tidings.spark.replica_worker import ReplicaWorker

            return ReplicaWorker(self.plan, key)
        from tidings.spark import message_workers

        workers: dict[str, Callable[[Plan, str], Shard]] = {
            TABLES: message_workers.TablesWorker,
            FORMS: message_workers.FormsWorker,
            DELIVER: message_workers.DeliverWorker,
        }
        return workers[self.name](self.plan, key)
