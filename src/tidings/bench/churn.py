"""What it costs to add and drop subscriptions beside so many: in the index, the gateway, the server, from SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidings.bench.dataset import Dataset
from tidings.bench.inline import INLINE, InlineRun
from tidings.bench.report import Figure, Heading
from tidings.bench.timing import each, timed
from tidings.families.registry import gathered
from tidings.model.points import Event, PointBatch
from tidings.pipeline.door import Door
from tidings.pipeline.gateway import GatewayWork
from tidings.pipeline.tables import TablesWork

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

    @staticmethod
    def of(make: Callable[[int, int], Dataset], seed: int, rows: str, bulk: int | None = None) -> Churn:
        """`make` gives data with so many subscriptions, by seed; `bulk`: fewer at once than usual."""
        some, others = make(bulk or Churn.BULK, seed + 1), make(Churn.FROM_SQL, seed + 2)
        (points,) = gathered([some.points()], some.catalog)
        return Churn(points, [others.sql(i) for i in range(others.size)], rows)

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
            *_stage("gateway", "gateway", "", new, lambda points: run.gateway.apply(GatewayWork(points=[points]))),
            *_stage(
                "server", "server", f", {new.rows}", new, lambda points: run.shard.apply(TablesWork(points=[points]))
            ),
            *_sql(new, run),
        )
    ]


def _stage(key: str, place: str, answer: str, new: Churn, apply: Callable[[PointBatch], object]) -> Timed:
    """One by one, then all at once; `answer`: what those who come are given."""
    created, dropped, count = new.created(), new.dropped(), len(new.points)

    def singles(batch: PointBatch) -> list[PointBatch]:
        return [batch.take(np.array([i])) for i in range(_SINGLES)]

    yield f"{key}.add_one", f"add one at the {place}{answer}", each(apply, singles(created))
    yield f"{key}.drop_one", f"drop one at the {place}", each(apply, singles(dropped))
    adding, _ = timed(apply, created)
    yield f"{key}.add_many", f"add {count:,} at once at the {place}{answer}", adding.wall / count
    dropping, _ = timed(apply, dropped)
    yield f"{key}.drop_many", f"drop {count:,} at once at the {place}", dropping.wall / count


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
