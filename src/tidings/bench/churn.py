"""What it costs to add and drop subscriptions beside so many: in the index, the gateway, the server, from SQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from tidings.bench.report import Figure
from tidings.bench.select_data import SelectData
from tidings.bench.timing import each, timed
from tidings.kernels.forest import PointForest
from tidings.model.points import Event, PointBatch
from tidings.pipeline.deliver import Gateway, GatewayWork
from tidings.pipeline.door import Door
from tidings.pipeline.tables import TableShard, TablesWork

_SINGLES = 200
_INDEXED = 5_000
_BULK = 10_000
_FROM_SQL = 5_000


def churn(data: SelectData, points: PointBatch, shard: TableShard, gateway: Gateway) -> list[Figure]:
    """Adds subscriptions and drops them again; everything is as before afterwards."""
    return [
        Figure(f"inline.{key}", f"inline: {label}", "us/subscription", taken * 1e6)
        for key, label, taken in (
            *_index(data, points),
            *_gateway(data, points, gateway),
            *_server(data, points, shard),
            *_sql(data, gateway),
        )
    ]


Timed = Iterator[tuple[str, str, float]]


def _index(data: SelectData, points: PointBatch) -> Timed:
    forest = PointForest(points.coords.shape[1])
    forest.add_many(data.kind, np.arange(data.size), points.coords)
    some = SelectData.make(_INDEXED, 0, data.seed + 1)
    coords = some.points().coords
    new = [(int(kind), data.size + i, coords[i]) for i, kind in enumerate(some.kind.tolist())]
    yield "index.add", "add one, index alone", each(lambda one: forest.add(*one), new)
    yield "index.drop", "drop one, index alone", each(lambda one: forest.remove(one[1]), new)


def _gateway(data: SelectData, points: PointBatch, gateway: Gateway) -> Timed:
    created = _new_points(data, points, _BULK)
    dropped = _drops(created)

    def singles(batch: PointBatch) -> list[GatewayWork]:
        return [GatewayWork(points=[batch.take(np.array([i]))]) for i in range(_SINGLES)]

    yield "gateway.add_one", "add one at the gateway", each(gateway.apply, singles(created))
    yield "gateway.drop_one", "drop one at the gateway", each(gateway.apply, singles(dropped))
    adding, _ = timed(gateway.apply, GatewayWork(points=[created]))
    yield "gateway.add_many", f"add {_BULK:,} at once at the gateway", adding.wall / _BULK
    dropping, _ = timed(gateway.apply, GatewayWork(points=[dropped]))
    yield "gateway.drop_many", f"drop {_BULK:,} at once at the gateway", dropping.wall / _BULK


def _server(data: SelectData, points: PointBatch, shard: TableShard) -> Timed:
    """At the server, where a new subscription's first answer is found among the rows."""
    created = _new_points(data, points, _BULK)
    dropped = _drops(created)

    def singles(batch: PointBatch) -> list[TablesWork]:
        return [TablesWork(points=[batch.take(np.array([i]))]) for i in range(_SINGLES)]

    rows = f"first answer out of {data.rows:,} rows"
    yield "server.add_one", f"add one at the server, {rows}", each(shard.apply, singles(created))
    yield "server.drop_one", "drop one at the server", each(shard.apply, singles(dropped))
    adding, _ = timed(shard.apply, TablesWork(points=[created]))
    yield "server.add_many", f"add {_BULK:,} at once at the server, {rows}", adding.wall / _BULK
    dropping, _ = timed(shard.apply, TablesWork(points=[dropped]))
    yield "server.drop_many", f"drop {_BULK:,} at once at the server", dropping.wall / _BULK


def _sql(data: SelectData, gateway: Gateway) -> Timed:
    """From SQL text through the door to the gateway."""
    some = SelectData.make(_FROM_SQL, 0, data.seed + 2)
    texts = [(f"q{i}", some.sql(i)) for i in range(_FROM_SQL)]
    door = Door(data.catalog)
    door.place(texts[0][1])

    def add() -> None:
        for id, sql in texts:
            door.create(id, sql, 0)
        gateway.apply(GatewayWork(points=door.take()))

    def drop() -> None:
        for id, _ in texts:
            door.drop(id, 0)
        gateway.apply(GatewayWork(points=door.take()))

    yield "sql.add", f"add {_FROM_SQL:,} from SQL text, door and gateway", timed(add)[0].wall / _FROM_SQL
    yield "sql.drop", f"drop {_FROM_SQL:,} by id, door and gateway", timed(drop)[0].wall / _FROM_SQL


def _new_points(data: SelectData, points: PointBatch, count: int) -> PointBatch:
    """Subscriptions that are not there yet."""
    made = SelectData.make(count, 0, data.seed + 1).points()
    return replace(made, form=points.form, id=pa.array([f"n{i}" for i in range(count)], pa.string()))


def _drops(points: PointBatch) -> PointBatch:
    return replace(points, event=np.full(len(points), Event.DROP, np.int8))
