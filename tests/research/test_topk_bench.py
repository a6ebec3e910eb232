"""The top-k bench runs at tiny sizes; its counts, bytes and peers agree with plain recomputation and with the engine."""

from __future__ import annotations

import numpy as np
import pytest

from research.bench import dataset, runner, topk
from research.bench.peers import PeerWays, Way
from research.bench.topk import index
from research.bench.topk.data import TopkData
from research.bench.topk.index import BASELINES
from research.bench.topk.peers import DuckDbAffected, DuckDbWindow, NumpyHeld
from research.bench.topk.replay import RangeSubscribers, TopkReplay, region_bytes, unicast_bytes
from research.bench.verify import Verified
from research.stages.staged import StagedEngine as Engine
from research.workloads.topk.cases import CLUSTERED, UNIFORM, topk_uniform
from research.workloads.topk.scene import Scene, scene_of
from tidings.bench import Options
from tidings.model.change import Op
from tidings.model.codes import codes_of_doubles

pytestmark = pytest.mark.extended

CHANGES = 150


@pytest.fixture(scope="module", params=[UNIFORM, CLUSTERED], ids=["uniform", "clustered"])
def scene(request: pytest.FixtureRequest) -> Scene:
    return scene_of(request.param, seed=3, rows=60, subscriptions=300, changes=CHANGES).with_k(4)


def answers(scene: Scene, score: np.ndarray) -> np.ndarray:
    """[subscriptions, rows] who has which row, by the definition."""
    order = np.argsort(score, kind="stable")
    place = scene.place[order]
    is_in = (scene.ranges[:, :1] <= place) & (place <= scene.ranges[:, 1:])
    best = np.empty_like(is_in)
    best[:, order] = is_in & (np.cumsum(is_in, axis=1) <= scene.k)
    return best


def told(scene: Scene) -> tuple[list[int], list[int]]:
    """By the definition, for every change: (who has the row before or after, messages these need).

    Those who lose the row need two: that it has fallen, and what comes in its place, if there is anything.
    """
    score = scene.score.copy()
    affected, messages = [], []
    for row, new in zip(scene.changed.tolist(), scene.new_score.tolist(), strict=True):
        before = answers(scene, score)
        score[row] = new
        after = answers(scene, score)
        concerned = before[:, row] | after[:, row]
        affected.append(int(concerned.sum()))
        messages.append(int(concerned.sum() + (before[:, row] & ~after[:, row]).sum()))
    return affected, messages


def test_people_are_counted_right(scene: Scene) -> None:
    people = RangeSubscribers(scene)
    played = TopkReplay(scene).play(1_000)
    assert len(played) == CHANGES
    affected, messages = told(scene)
    assert sum(affected) > CHANGES
    assert people.affected(played.sends).tolist() == affected
    assert people.deliveries(played.sends).tolist() == messages
    place = scene.place[scene.changed]
    around = ((scene.ranges[:, :1] <= place) & (place <= scene.ranges[:, 1:])).sum(axis=0)
    assert people.around(codes_of_doubles(place)).tolist() == around.tolist()
    bounded = people.bounded(played.sends, codes_of_doubles(place))
    assert (bounded >= affected).all() and (bounded <= around).all() and bounded.sum() > sum(affected)


def test_for_one_row_regions_are_their_own_bounds(scene: Scene) -> None:
    people, first = RangeSubscribers(scene), scene.with_k(1)
    sends = TopkReplay(first).play(CHANGES).sends
    x = codes_of_doubles(scene.place[scene.changed])
    assert people.bounded(sends, x).tolist() == people.affected(sends).tolist()


def test_sparse_reaches_the_same_people_with_no_more_boxes(scene: Scene) -> None:
    people = RangeSubscribers(scene)
    dense, sparse = TopkReplay(scene).play(CHANGES).sends, TopkReplay(scene, among=people.crowds).play(CHANGES).sends
    assert people.deliveries(sparse).tolist() == people.deliveries(dense).tolist()
    assert people.affected(sparse).tolist() == people.affected(dense).tolist()
    assert len(sparse.box_lo) < len(dense.box_lo)
    # Boxes that hold nobody are not sent.
    empty = people.forest.count(
        np.zeros(len(sparse.box_lo), np.int64), sparse.box_lo, sparse.box_hi, np.arange(len(sparse.box_lo) + 1)
    )
    assert empty.min() > 0


def test_baselines_find_whom_they_should(scene: Scene) -> None:
    people = RangeSubscribers(scene)
    unicast, relax = (BASELINES[name](scene, people) for name in ("unicast", "relax"))
    assert [unicast(1) for _ in range(CHANGES)] == told(scene)[1]
    around = people.around(codes_of_doubles(scene.place[scene.changed]))
    assert [relax(1) for _ in range(CHANGES)] == around.tolist()


def test_streams_begin_with_rows_that_fit_into_a_batch() -> None:
    data = TopkData.make(10, 100, 1, rows=500)
    small = list(data.stream(800, 100))
    assert sum(map(len, small)) == 800
    assert set(small[0].op.tolist()) == {Op.INSERT} and set(small[1].op.tolist()) == {Op.UPDATE}
    assert all(max(batch.rows.column("id").to_pylist()) < 100 for batch in small)


@pytest.mark.parametrize("strategy", ["dense", "unicast"])
def test_bytes_are_those_of_the_engine(strategy: str) -> None:
    data = TopkData.make(200, 100, 4, rows=80)
    replay = TopkReplay(data.scene)
    sends = replay.play(100).sends
    told_people = int(RangeSubscribers(data.scene).deliveries(sends).sum())
    expected = float(region_bytes(data, sends).sum()) if strategy == "dense" else unicast_bytes(data) * told_people
    engine = Engine(data.catalog, {"topk": strategy}, counts_bytes=True)
    engine.feed_changes(list(data.inserts()))
    for i in range(data.size):
        engine.door.create(f"s{i}", data.sql(i), 0)
    engine.feed_changes([])
    before = engine.stats.message_bytes.get("topk", 0)
    engine.feed_changes(list(data.updates()))
    assert engine.stats.message_bytes["topk"] - before == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("strategy", ["dense", "sparse"])
def test_the_inline_run_is_the_engine(strategy: str) -> None:
    data = TopkData.make(200, 300, 5, rows=80)
    bench = topk.TopkBench(Options((data.size,)), data.size, lambda _: None)
    bench.data = data
    run = bench.inline_run(strategy)
    (messages,) = run.route(list(data.updates()))
    engine = Engine(data.catalog, {"topk": strategy})
    engine.feed_changes(list(data.inserts()))
    for i in range(data.size):
        engine.door.create(f"s{i}", data.sql(i), 0)
    engine.feed_changes([])
    before = engine.stats.messages.get("topk", 0)
    engine.feed_changes(list(data.updates()))
    assert len(messages) == engine.stats.messages["topk"] - before > 300
    assert sum(map(len, run.snapshots)) > 200


@pytest.mark.parametrize("make", [NumpyHeld, DuckDbAffected, DuckDbWindow])
@pytest.mark.parametrize("k", [1, 6])
def test_peers_have_the_same_answers(make: type[NumpyHeld], k: int, scene: Scene) -> None:
    of_k = scene.with_k(k)
    expected = index.answers_after(of_k, 20)
    score = scene.score.copy()
    score[scene.changed[:20]] = scene.new_score[:20]
    by_definition = [
        row for own in answers(of_k, score) for row in np.flatnonzero(own)[np.argsort(score[own])].tolist()
    ]
    assert expected.tolist() == by_definition
    peer = make(of_k)
    for part in (slice(0, 5), slice(5, 20)):
        peer.feed((scene.changed[part], scene.new_score[part]))
    assert peer.found() == expected.tolist()
    peer.close()


def test_run_fills_every_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "BUDGET_S", 0.01)
    monkeypatch.setattr(index, "BASELINE_BUDGET_S", 0.01)
    monkeypatch.setattr(index, "ROWS", (1_000,))
    monkeypatch.setattr(index, "KS", (1,))
    monkeypatch.setattr(topk.TopkBench, "verified", Verified("topk", topk_uniform, 20, 10))
    for module in (dataset, index):
        monkeypatch.setattr(module, "BATCH", 500)

    def without_servers(given: PeerWays) -> None:
        given.ways = [Way("numpy", "peer: numpy", 10, NumpyHeld, 1_000)]
        given.missing = ["pyspark"]

    monkeypatch.setattr(topk.TopkBench, "add_peers", without_servers)
    report = topk.run(Options((1_000, 1_500), 1_500, ("verify", "index", "inline")), lambda _: None)
    figures = {line["key"]: line["values"] for line in report.as_json()["figures"]}
    assert {"index.sparse.changes_per_s", "index.unicast.dense.ratio", "sent.k20.sparse.ratio"} <= set(figures)
    assert {"inline.sparse.routed.changes_per_s", "inline.dense.routed.in_turn.changes_per_s"} <= set(figures)
    once = ("verify.", "index.rows.", "peer.", "ratio.")
    sizes = {key: set(values) for key, values in figures.items() if not key.startswith(once)}
    assert all(found == {"1000", "1500"} for found in sizes.values())
    assert figures["verify.dense.differences"] == {"1000": 0} and set(figures["peer.numpy.changes_per_s"]) == {"1000"}
    assert any("answers after 200 changes as ours" in note for note in report.notes)
    assert any("not installed: pyspark" in note for note in report.notes)
