"""The join bench runs at tiny sizes; its counts, bytes and peers agree with plain recomputation and with the engine."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from research.bench import churn, dataset, join, runner
from research.bench.join import data as join_data
from research.bench.join import index, inline
from research.bench.join.data import JoinData
from research.bench.join.peers import DuckDbExists, NumpyScan
from research.bench.join.replay import BaseSide, JoinReplay, JoinSubscribers, Tally, head, portions
from research.bench.peers import PeerWays, Way
from research.bench.verify import Verified
from research.stages.gateway import GatewayWork
from research.stages.staged import StagedEngine as Engine
from research.stages.table_store import TableStore
from research.strategies.join.relations.tombstones import FEW
from research.strategies.join.skylines import skyline_of
from research.wire import wire_size
from research.workloads.join.binary import BinaryCase
from research.workloads.join.draws import widths
from research.workloads.join.workloads import join_binary
from tidings.bench import Options
from tidings.model.change import Op

pytestmark = pytest.mark.extended

CASE = BinaryCase(r_size=150, s_size=100, join_values=10, width_a=widths(15_000.0), width_c=widths(10_000.0))
CHANGES = 120


@pytest.fixture(scope="module")
def data() -> JoinData:
    return JoinData.make(300, CHANGES, 3, CASE)


def affected(data: JoinData, row: int) -> list[int]:
    """By the definition: who selects the row and some row of S with the same join value."""
    scene = data.scene
    a_lo, a_hi, c_lo, c_hi = scene.ranges.T
    partners = scene.s_c[scene.s_b == scene.r_b[row]]
    selects = (a_lo <= scene.r_a[row]) & (scene.r_a[row] <= a_hi)
    has_partner = ((c_lo[:, None] <= partners) & (partners <= c_hi[:, None])).any(axis=1)
    found: list[int] = np.flatnonzero(selects & has_partner).tolist()
    return found


def engine_of(data: JoinData, strategy: str) -> Engine:
    engine = Engine(data.catalog, {"join": strategy}, counts_bytes=True)
    for batch in data.inserts():
        engine.feed_changes([batch])
    for i in range(data.size):
        engine.door.create(f"s{i}", data.sql(i), data.scene.r_size + len(data.scene.s_b))
    engine.feed_changes([])
    return engine


def test_images_are_those_of_the_table(data: JoinData) -> None:
    _, second, updates = *data.inserts(), *data.updates()
    store = TableStore(data.catalog.table("r"))
    store.replay(second)
    expected, refused = store.apply(updates)
    images = data.images(updates)
    assert refused == [] and images.before.equals(expected.before) and images.after.equals(expected.after)


def test_streams_begin_with_rows_that_fit_into_a_batch(data: JoinData) -> None:
    batches = list(data.stream(900, 100))
    assert sum(map(len, batches)) == 900
    *inserts, updates = batches
    assert {batch.table for batch in inserts} == {"r", "s"} and 90 < sum(map(len, inserts)) <= 100
    assert set(updates.op.tolist()) == {Op.INSERT, Op.DELETE}
    assert sum(len(batch) for batch in data.stream(900, 900) if not batch.op.any()) == CASE.r_size + CASE.s_size


def test_affected_are_those_of_the_definition(data: JoinData) -> None:
    rows = data.scene.changed[data.scene.is_insert]
    expected = [affected(data, row) for row in rows.tolist()]
    assert sum(map(len, expected)) > CHANGES
    assert [found.tolist() for found in index.affected_by(data, CHANGES // 2)] == expected


@pytest.mark.parametrize("strategy", ["ref-sj:clu", "ref-sj:tup+", "enum-sj"])
def test_tallies_count_what_is_sent(data: JoinData, strategy: str) -> None:
    (changes,) = portions(data, CHANGES, CHANGES)
    sent = JoinReplay(data, strategy).play(changes)
    tally, crowd = Tally.of(data.space, changes, sent), JoinSubscribers(data)
    assert tally.messages.sum() == sum(map(len, sent)) and tally.bytes.sum() == sum(map(wire_size, sent))
    assert tally.boxes.sum() == sum(len(batch.regions.lo) for batch in sent)
    by_seq = Counter(seq for batch in sent for seq in batch.seq.tolist())
    assert tally.messages.tolist() == [by_seq[seq] for seq in changes.seq.tolist()]
    assert tally.insertions.tolist() == data.scene.is_insert.astype(int).tolist()
    # Deleted rows have no skyline, and go to one box, or to one for each of few partners; what comes late has one as well.
    assert not tally.points[~data.scene.is_insert].any() and tally.exposed.sum() > 0
    if strategy == "enum-sj":
        assert crowd.deliveries(sent) == tally.messages.sum()
    else:
        of_rows, is_insert = tally.boxes - tally.exposed, tally.insertions == 1
        assert of_rows[is_insert].tolist() == tally.points[is_insert].tolist()
        assert of_rows[~is_insert].max() <= 2 * FEW and of_rows[~is_insert].mean() == pytest.approx(1, abs=0.5)
        points = data.points().coords
        reached = 0
        for batch in sent:
            for i in range(len(batch)):
                reached += sum(bool(batch.regions.contains(i, point)) for point in points.tolist())
        assert crowd.deliveries(sent) == reached
    few = changes.slice(0, 10)
    assert sum(map(len, head(sent, few))) == tally.messages[:10].sum()


def test_the_base_side_alone_has_the_boxes_of_the_server(data: JoinData) -> None:
    (updates,), (changes,) = data.updates(), portions(data, CHANGES, CHANGES)
    base = BaseSide(data, skyline_of("clu"))
    rows = base.arrive(updates)
    tally = Tally.of(data.space, changes, JoinReplay(data, "ref-sj:clu").play(changes))
    assert base.play(rows) == (tally.points + (1 - tally.insertions)).sum()
    assert len(base.draw(rows.insertions())) == tally.points.sum() > CHANGES


@pytest.mark.parametrize("strategy", ["auto", "ref-sj:clu", "ref-sj:min", "rel-sel", "ref-j+", "enum-j"])
def test_bytes_are_those_of_the_engine(data: JoinData, strategy: str) -> None:
    (changes,) = portions(data, CHANGES, CHANGES)
    tally = Tally.of(data.space, changes, JoinReplay(data, strategy).play(changes))
    engine = engine_of(data, strategy)
    before = engine.stats.message_bytes.get("join", 0), engine.stats.messages.get("join", 0)
    engine.feed_changes(list(data.updates()))
    assert engine.stats.message_bytes["join"] - before[0] == tally.bytes.sum()
    assert engine.stats.messages["join"] - before[1] == tally.messages.sum() > 0


def test_ratios_are_of_the_changes_both_have() -> None:
    one, half = np.ones(4, np.int64), np.array([3, 1, 9, 9])
    short = Tally(*(part[:2] for part in (one, one, one, one, one, one)))
    long = Tally(half, half, half, half, half, half)
    assert long.bytes_over(short) == 2.0 and short.points_over(long) == 0.5
    assert len(Tally.concat([short, long])) == 6


@pytest.mark.parametrize("strategy", ["auto", "ref-sj:clu"])
def test_the_inline_run_is_the_engine(data: JoinData, strategy: str) -> None:
    engine = engine_of(data, strategy)
    before = engine.stats.messages.get("join", 0)
    expected = engine.feed_changes(list(data.updates())).notifications
    sent = engine.stats.messages["join"] - before
    assert sent > CHANGES / 2 and len(expected) > CHANGES
    without = inline.run_of(data, strategy, has_views=False)
    assert sum(map(len, without.route(list(data.updates())))) == sent and not without.snapshots
    run = inline.run_of(data, strategy, has_views=True)
    run.gateway.apply(GatewayWork(run.points, [], run.snapshots))
    messages = run.route(list(data.updates()))
    assert sum(map(len, messages)) == sent
    told, _ = run.gateway.apply(GatewayWork(messages=messages))
    assert list(told.lines()) == list(expected.lines())


@pytest.mark.parametrize("make", [NumpyScan, DuckDbExists])
def test_peers_find_the_same_people(make: type[NumpyScan], data: JoinData) -> None:
    peer, scene = make(data.scene), data.scene
    row = scene.changed[:30]
    peer.feed((scene.r_b[row], scene.r_a[row]))
    assert peer.found() == [affected(data, i) for i in row.tolist()]
    peer.feed((scene.r_b[row[:1]], scene.r_a[row[:1]]))
    assert peer.found() == [affected(data, int(row[0]))]
    peer.close()


def test_a_peer_that_differs_is_noticed(data: JoinData, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "BUDGET_S", 0.01)
    monkeypatch.setattr(join, "SAMPLE", 20)
    monkeypatch.setattr(runner, "SAMPLE", 20)
    bench = join.JoinBench(Options((data.size,)), data.size, lambda _: None)
    bench.data = data
    narrower = replace(data.scene, ranges=data.scene.ranges + np.array([3_000.0, 0.0, 0.0, 0.0]))
    way = Way("numpy", "peer: numpy", 10, NumpyScan)
    assert runner.rate_of(bench, NumpyScan(data.scene), way) > 0
    with pytest.raises(AssertionError, match="in 20 changes is not ours"):
        runner.rate_of(bench, NumpyScan(narrower), way)


def test_run_fills_every_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "BUDGET_S", 0.01)
    monkeypatch.setattr(index, "BUDGET_S", 0.01)
    monkeypatch.setattr(inline, "TOLD_BUDGET_S", 0.01)
    monkeypatch.setattr(inline, "VIEWS_MAX", 1_200)
    monkeypatch.setattr(inline, "_NEW", 200)
    monkeypatch.setattr(churn.Churn, "FROM_SQL", 100)
    monkeypatch.setattr(churn, "_SINGLES", 20)
    monkeypatch.setattr(dataset, "BATCH", 500)
    monkeypatch.setattr(join_data, "BinaryCase", lambda: CASE)
    monkeypatch.setattr(join.JoinBench, "verified", Verified("join", join_binary, 20, 10))

    def without_servers(given: PeerWays) -> None:
        given.ways = [Way("numpy", "peer: numpy", 10, NumpyScan, 1_000)]
        given.missing = ["pyspark"]

    monkeypatch.setattr(join.JoinBench, "add_peers", without_servers)
    report = join.run(Options((1_000, 1_500), 1_500, ("verify", "index", "inline")), lambda _: None)
    figures = {line["key"]: line["values"] for line in report.as_json()["figures"]}
    assert {"index.base.changes_per_s", "index.clu.affected", "index.ratio.bytes.enum-j.clu"} <= set(figures)
    assert {"index.ratio.points.clu+.tup", "index.sub.points", "index.rel-sel.deliveries"} <= set(figures)
    assert {"inline.auto.routed.changes_per_s", "inline.ref-sj:clu.routed.in_turn.changes_per_s"} <= set(figures)
    told = ("matches", "ids", "notifications")
    once = ("verify.", "peer.", "ratio.", *(f"inline.auto.{name}" for name in told))
    sizes = {key: set(values) for key, values in figures.items() if not key.startswith(once)}
    assert all(found == {"1000", "1500"} for found in sizes.values())
    assert set(figures["inline.auto.notifications_per_s"]) == {"1000"}
    assert figures["verify.ref-sj:clu.differences"] == {"1000": 0} and set(figures["ratio.peers"]) == {"1000"}
    assert any("affected by 200 insertions as ours" in note for note in report.notes)
    assert any("not installed: pyspark" in note for note in report.notes)
