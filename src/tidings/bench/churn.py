"""What it costs to add and drop subscriptions beside so many: in the index, the gateway, the server, from SQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidings.bench.inline_path import INLINE, InlineRun
from tidings.bench.report import Figure, Heading
from tidings.bench.timing import each, timed
from tidings.families.registry import gathered
from tidings.model.points import Event, PointBatch
from tidings.pipeline.deliver import Gateway, GatewayWork
from tidings.pipeline.door import Door
from tidings.pipeline.tables import TableShard, TablesWork

_SINGLES = 200

Timed = Iterator[tuple[str, str, float]]
"""Key, label and seconds of one subscription."""


@dataclass(frozen=True)
class Churn:
    """Subscriptions that are not there yet: `BULK` as points, and the SQL of others."""

    BULK: ClassVar[int] = 10_000
    FROM_SQL: ClassVar[int] = 5_000

    points: PointBatch
    texts: list[str]
    rows: str
    """What their first answers come from."""

    def created(self) -> PointBatch:
        ids = pa.array([f"n{i}" for i in range(len(self.points))], pa.string())
        return replace(self.points, id=ids)

    def dropped(self) -> PointBatch:
        return replace(self.created(), event=np.full(len(self.points), Event.DROP, np.int8))


def churn(run: InlineRun, index: Timed, new: Churn, heading: Heading = INLINE) -> list[Figure]:
    """Adds subscriptions and drops them again; everything is as before afterwards. `index` does so to the index alone."""
    return [
        heading.figure(key, label, "us/subscription", taken * 1e6)
        for key, label, taken in (
            *index,
            *_gateway(new, run.gateway),
            *_server(new, run.shard),
            *_sql(new, run),
        )
    ]


def _gateway(new: Churn, gateway: Gateway) -> Timed:
    created, dropped = new.created(), new.dropped()

    def singles(batch: PointBatch) -> list[GatewayWork]:
        return [GatewayWork(points=[batch.take(np.array([i]))]) for i in range(_SINGLES)]

    count = len(created)
    yield "gateway.add_one", "add one at the gateway", each(gateway.apply, singles(created))
    yield "gateway.drop_one", "drop one at the gateway", each(gateway.apply, singles(dropped))
    adding, _ = timed(gateway.apply, GatewayWork(points=[created]))
    yield "gateway.add_many", f"add {count:,} at once at the gateway", adding.wall / count
    dropping, _ = timed(gateway.apply, GatewayWork(points=[dropped]))
    yield "gateway.drop_many", f"drop {count:,} at once at the gateway", dropping.wall / count


def _server(new: Churn, shard: TableShard) -> Timed:
    """At the server, where a new subscription's first answer is found among the rows."""
    created, dropped = new.created(), new.dropped()

    def singles(batch: PointBatch) -> list[TablesWork]:
        return [TablesWork(points=[batch.take(np.array([i]))]) for i in range(_SINGLES)]

    count = len(created)
    yield "server.add_one", f"add one at the server, {new.rows}", each(shard.apply, singles(created))
    yield "server.drop_one", "drop one at the server", each(shard.apply, singles(dropped))
    adding, _ = timed(shard.apply, TablesWork(points=[created]))
    yield "server.add_many", f"add {count:,} at once at the server, {new.rows}", adding.wall / count
    dropping, _ = timed(shard.apply, TablesWork(points=[dropped]))
    yield "server.drop_many", f"drop {count:,} at once at the server", dropping.wall / count


def _sql(new: Churn, run: InlineRun) -> Timed:
    """From SQL text through the door to the gateway."""
    texts = [(f"q{i}", sql) for i, sql in enumerate(new.texts)]
    door, gateway = Door(run.data.catalog), run.gateway
    door.place(texts[0][1])

    def add() -> None:
        for id, sql in texts:
            door.create(id, sql, 0)
        gateway.apply(GatewayWork(points=gathered(door.take(), run.data.catalog)))

    def drop() -> None:
        for id, _ in texts:
            door.drop(id, 0)
        gateway.apply(GatewayWork(points=gathered(door.take(), run.data.catalog)))

    count = len(texts)
    yield "sql.add", f"add {count:,} from SQL text, door and gateway", timed(add)[0].wall / count
    yield "sql.drop", f"drop {count:,} by id, door and gateway", timed(drop)[0].wall / count
