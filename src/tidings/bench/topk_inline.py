"""The inline engine on the top-k bench: the whole path, and subscriptions that come and go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidings.bench import Say
from tidings.bench.churn import Churn, Timed, churn
from tidings.bench.inline_path import InlineRun, flow, load, runs_in_turn
from tidings.bench.report import Figure, Heading
from tidings.bench.timing import timed
from tidings.bench.topk_data import TopkData
from tidings.bench.topk_player import crowds_of, points_of
from tidings.model.catalog import Catalog
from tidings.pipeline.deliver import GatewayWork
from tidings.pipeline.forms import FormShard, FormsWork, sent_on
from tidings.pipeline.tables import TableShard, TablesResult, TablesWork

STRATEGIES = ("dense", "sparse")


def heading_of(strategy: str) -> Heading:
    return Heading(f"inline.{strategy}", f"inline, {strategy}")


class WholeServer(TableShard):
    """The tables stage and, for the one group of forms there is, the stage behind it."""

    def __init__(self, catalog: Catalog, strategies: Mapping[str, str]) -> None:
        super().__init__(catalog, strategies)
        self._forms = FormShard(catalog, strategies)

    def apply(self, work: TablesWork) -> tuple[TablesResult, Any]:
        result, entry = super().apply(work)
        points = sent_on(result.released, self._catalog)
        sent, _ = self._forms.apply(FormsWork([changes for _, changes in result.images], points))
        result.sent.messages.extend(sent.messages)
        result.sent.snapshots.extend(sent.snapshots)
        return result, entry


class TopkRun(InlineRun):
    """Server with all rows and subscriptions in place, and a gateway that has none yet.

    People come after the rows: to be told of every row that comes would take far longer than to be given the best.
    """

    def __init__(self, data: TopkData, strategy: str = STRATEGIES[0]) -> None:
        super().__init__(data)
        self.shard = WholeServer(data.catalog, {"topk": strategy})
        for batch in data.inserts():
            self.messages([batch])
        result, _ = self.shard.apply(TablesWork(points=self.points))
        # As released, after the rows: a snapshot is known by when its subscription came.
        self.points, self.snapshots = result.released, result.sent.snapshots


def in_turn(sizes: Sequence[TopkData], strategy: str) -> dict[int, Figure]:
    return runs_in_turn([TopkRun(data, strategy) for data in sizes], heading_of(strategy))


def measure(data: TopkData, strategy: str, seed: int, say: Say) -> list[Figure]:
    heading = heading_of(strategy)
    say(f"{strategy}: filling server and gateway")
    run = TopkRun(data, strategy)
    figures = load(run, lambda: run.gateway.apply(GatewayWork(run.points, [], run.snapshots)), heading)
    say(f"{strategy}: changes to messages, ids and notifications")
    updates = data.updates()
    run.gateway.apply(GatewayWork(messages=run.route([next(updates)])))
    figures += flow(run, updates, heading)
    say(f"{strategy}: adding and dropping subscriptions")
    # Only one of the strategies has subscriptions in an index of its own.
    index = _index(data, seed) if strategy == "sparse" else iter(())
    figures += churn(run, index, _new(data, seed), heading)
    return figures


def _new(data: TopkData, seed: int) -> Churn:
    some, others = (TopkData.make(count, 0, seed + i) for i, count in enumerate((Churn.BULK, Churn.FROM_SQL), 1))
    rows = f"given the first {data.scene.k} rows"
    return Churn(some.points(), [others.sql(i) for i in range(others.size)], rows)


def _index(data: TopkData, seed: int) -> Timed:
    """Among the subscriptions that `sparse` looks at."""
    crowds = crowds_of(points_of(data.scene))
    points = points_of(TopkData.make(Churn.BULK, 0, seed + 1).scene)
    columns = ([0] * len(points), points[:, 0], points[:, 1])
    adding, _ = timed(crowds.add, *columns)
    yield "index.add", f"add {len(points):,} at once, index alone", adding.wall / len(points)
    dropping, _ = timed(crowds.remove, *columns)
    yield "index.drop", f"drop {len(points):,} at once, index alone", dropping.wall / len(points)
