"""Cost of adding and dropping subscriptions beside many others: in the index, the gateway, the server, and from SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from research.bench.dataset import Dataset
from research.bench.inline import INLINE, InlineRun
from research.bench.timing import each
from research.servers.forms import gathered
from research.stages.gateway import GatewayWork
from research.stages.tables import TablesWork
from tidings.bench.report import Figure, Heading
from tidings.bench.timing import timed
from tidings.model.points import Event, PointBatch
from tidings.pipeline.door import Door

_SINGLES = 200

Timed = Iterator[tuple[str, str, float]]
"""(key, label, seconds per subscription) of each measurement."""


@dataclass(frozen=True)
class Churn:
    """New subscriptions to add and drop: some as points, others as SQL."""

    BULK: ClassVar[int] = 10_000
    FROM_SQL: ClassVar[int] = 5_000

    points: PointBatch
    texts: list[str]
    rows: str
    """Label of the rows that their snapshots are computed from."""

    @staticmethod
    def of(make: Callable[[int, int], Dataset], seed: int, rows: str, bulk: int | None = None) -> Churn:
        """make: (subscriptions, seed) -> data. bulk: number of points, `BULK` by default."""
        some, others = make(bulk or Churn.BULK, seed + 1), make(Churn.FROM_SQL, seed + 2)
        (points,) = gathered([some.points()], some.catalog)
        return Churn(points, [others.sql(i) for i in range(others.size)], rows)

    def created(self) -> PointBatch:
        ids = pa.array([f"n{i}" for i in range(len(self.points))], pa.string())
        return replace(self.points, id=ids)

    def dropped(self) -> PointBatch:
        return replace(self.created(), event=np.full(len(self.points), Event.DROP, np.int8))


def churn(run: InlineRun, index: Timed, new: Churn, heading: Heading = INLINE) -> list[Figure]:
    """Times adding and dropping subscriptions; afterwards the run is as before. index: measurements of the index alone."""
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
    """Times subscriptions one by one, then all at once. answer: part of the label that says what new ones are sent."""
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
