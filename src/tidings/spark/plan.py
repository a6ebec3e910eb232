"""The plan of the job, which every worker gets. Cheap to import, since Spark unpickles it in processes that only plan: what
runs in workers (`tidings.spark.replica_worker`) is imported where it is used.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.live.job import check_goes_on
from tidings.model.errors import UsageError
from tidings.pipeline.live import WITH_GATEWAYS, WITHOUT_GATEWAYS
from tidings.spark.envelope import replica_keys
from tidings.spark.shard_state import STATE_FORMAT

if TYPE_CHECKING:
    from tidings.model.catalog import Catalog
    from tidings.spark.sources.recorded import Recording
    from tidings.spark.stateful_processor import Shard


_COMMIT, _RECORD = "commit", "record"


@dataclass(frozen=True)
class Plan:
    """Configuration of a job for all its workers: tables, number of shards. Pickled into the job.

    parts: a folder that all workers reach, where replicas write notifications; if empty, notifications are rows of the
    result. has_columns: there they are packed columns, instead of lines. index: the index file of recorded input
    (`sources.recorded.Recording`). is_stream: lines come from partitions of a stream, and subscriptions by events (`stream`).
    by_commit: as in `RowStore`. load: file or folder of rows that replicas load before their first micro-batch; empty: none.
    gateways: names of the places that are sent parcels, with receive and sender as in `PlaceOptions`; without, notifications
    are the output.
    """

    job: str
    catalog_sql: str
    shards: int
    parts: str = ""
    index: str = ""
    is_stream: bool = False
    by_commit: bool = True
    load: str = ""
    has_columns: bool = False
    gateways: tuple[str, ...] = ()
    receive: str = ""
    sender: str = ""

    @cached_property
    def catalog(self) -> Catalog:
        from tidings.sql import parse_catalog

        return parse_catalog(self.catalog_sql)

    @cached_property
    def replica_keys(self) -> tuple[str, ...]:
        return replica_keys(self.shards)

    @cached_property
    def text(self) -> str:
        """What durable state depends on, as text: for `formerly`."""
        # There is one way to serve subscriptions. Earlier versions had several, and say so here.
        known: dict[str, Any] = {"format": STATE_FORMAT, "shards": self.shards, "strategies": {}}
        known["notify"] = _COMMIT if self.by_commit else _RECORD
        if self.gateways:
            known["places"] = [*self.gateways]
            known["receive"] = self.receive
            known["sender"] = self.sender
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
        if known["strategies"]:
            raise UsageError("the checkpoint is of a job that sent messages to regions: begin with a new checkpoint")
        places = tuple(known.get("places", ()))
        if bool(places) != bool(self.gateways):
            raise UsageError(WITH_GATEWAYS if places else WITHOUT_GATEWAYS)
        # Earlier versions told every record for itself.
        by_commit = known.get("notify", _RECORD) == _COMMIT
        former = replace(
            self,
            catalog_sql=known["catalog"],
            by_commit=by_commit,
            gateways=places,
            receive=known.get("receive", ""),
            sender=known.get("sender", ""),
        )
        check_goes_on(self.catalog, former.catalog)
        return former

    def shard(self, key: str) -> Shard:
        from tidings.spark.replica_worker import ReplicaWorker

        return ReplicaWorker(self, key)

    @cached_property
    def recording(self) -> Recording:
        from tidings.spark.sources.recorded import Recording

        return Recording(Path(self.index))

    def __reduce__(self) -> tuple[Any, ...]:
        return (_plan, ({field.name: getattr(self, field.name) for field in fields(self)},))


def shards_of(text: str) -> int:
    """The number of shards of the plan that has this text."""
    return int(json.loads(text)["shards"])


_PLANS_MAX = 16
_plans: dict[str, Plan] = {}


def _plan(known: dict[str, Any]) -> Plan:
    """Unpickles a plan. Returns the same object for the same job, so that its parsed catalog is kept."""
    key = known["job"]
    if key not in _plans:
        for stale in list(_plans)[: len(_plans) - _PLANS_MAX + 1]:
            del _plans[stale]
        _plans[key] = Plan(**known)
    return _plans[key]
