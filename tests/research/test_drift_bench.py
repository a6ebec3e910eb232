"""The drift bench runs at tiny sizes; its counts, bytes and peers agree with what the engine itself does."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from research.__main__ import app
from research.bench import drift, runner
from research.bench.drift import index
from research.bench.drift.cases import CASES
from research.bench.drift.data import DriftData, Timeline
from research.bench.drift.index import BASELINES, Baseline
from research.bench.drift.peers import NumpyThresholds, Postgres
from research.bench.drift.replay import DriftReplay, region_bytes, unicast_bytes
from research.bench.peers import PeerWays, Way
from research.bench.psql import server
from research.bench.verify import Verified
from research.stages.staged import StagedEngine as Engine
from research.workloads import find
from research.workloads.drift.all import drift_all
from tidings.bench.peers import Peer
from tidings.bench.postgres import find_server

pytestmark = pytest.mark.extended

MOVES = 300


def _told(timeline: Timeline) -> list[int]:
    """How many members every move tells, by the definition, looking at each of them."""
    centre, counts = np.full(timeline.size, np.nan), []
    value = np.full(len(timeline.names), np.nan)
    come = 0
    for i, (item, now) in enumerate(zip(timeline.move_item.tolist(), timeline.move_value.tolist(), strict=True)):
        here = int(np.searchsorted(timeline.member_after, i, "right"))
        centre[come:here] = value[timeline.member_item[come:here]]
        come = here
        reach, follows = timeline.member_reach[:here], timeline.member_item[:here] == item
        stays = (now < centre[:here] + reach) & (now > centre[:here] - reach)
        centre[:here][follows & ~stays] = now
        value[item] = now
        counts.append(int((follows & ~stays).sum()))
    return counts


@pytest.mark.parametrize("name", ["drift-radii", "drift-same", "drift-all", "drift-stocks"])
def test_replays_count_who_is_told(name: str) -> None:
    workload = find(name).load()(seed=3, rows=0, subscriptions=200, changes=MOVES)
    timeline = Timeline.of(workload)
    replay = DriftReplay(timeline)
    counts: list[int] = []
    while replay.at < timeline.moves:
        members = replay.members()
        counts += replay.told(replay.play(70), members).tolist()
    assert counts == _told(timeline)
    assert replay.joined == int(np.searchsorted(timeline.member_after, timeline.moves - 1, "right"))


@pytest.mark.parametrize("name", list(CASES))
def test_everybody_comes_before_what_is_measured(name: str) -> None:
    timeline = CASES[name].make(500, MOVES, 1)
    replay = DriftReplay(timeline)
    replay.settle()
    assert replay.joined == timeline.size == 500
    assert timeline.moves - replay.at >= MOVES
    if name in ("same", "all"):
        assert len(np.unique(replay.anchors.runs(0).value)) > 50


@pytest.mark.parametrize("name", ["radii", "same", "all"])
@pytest.mark.parametrize("baseline", list(BASELINES))
def test_baselines_tell_the_same(name: str, baseline: str) -> None:
    timeline = CASES[name].make(400, 2_000, 2)
    replay = DriftReplay(timeline)
    replay.settle()
    plain = Baseline(replay, baseline)
    values = timeline.move_value[replay.at :]
    members = replay.members()
    expected = replay.told(replay.play(len(values)), members)
    assert expected.sum() > 100
    touched = plain.move(values)
    if baseline == "unicast":
        assert np.diff(touched.starts).tolist() == expected.tolist()
    else:
        start, stop = members.ranges(np.zeros(len(touched.reach_lo), np.int64), touched)
        assert int((stop - start).sum()) == expected.sum()


def test_bytes_are_those_of_the_engine() -> None:
    timeline = CASES["radii"].make(1_000, 1_000, 4)
    data = DriftData(timeline)
    replay = DriftReplay(timeline)
    # The first move tells everybody.
    replay.settle()
    first, members = replay.at, replay.members()
    moved = replay.play(timeline.moves)
    told = int(replay.told(moved, members).sum())
    expected = {"region": int(region_bytes(data, moved).sum()), "unicast": unicast_bytes(data) * told}
    for strategy, size in expected.items():
        engine = Engine(data.catalog, {"drift": strategy}, counts_bytes=True)
        for i in range(timeline.size):
            engine.door.create(f"s{i}", timeline.sql(i), 0)
        engine.feed_changes([data.moves(0, first)])
        before = engine.stats.message_bytes["drift"]
        engine.feed_changes([data.moves(first, timeline.moves)])
        assert engine.stats.message_bytes["drift"] - before == pytest.approx(size, rel=0.01), strategy


def test_peers_tell_the_same() -> None:
    timeline = CASES["radii"].make(2_000, 100, 5)
    expected = _told(timeline)[1:]
    values = timeline.move_value[1:]
    peer: Peer = NumpyThresholds(timeline)
    peer.feed(values)
    assert peer.found() == expected
    programs = find_server()
    if programs is None:
        pytest.skip("no PostgreSQL server here")
    with server(programs) as session:
        peer = Postgres(timeline, session)
        peer.feed(values)
        assert peer.found() == expected
        peer.close()


def test_run_fills_every_cell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(runner, "BUDGET_S", 0.01)
    monkeypatch.setattr(index, "BASELINE_BUDGET_S", 0.01)
    monkeypatch.setattr(index, "_AGE", 1)
    monkeypatch.setattr(drift.DriftBench, "verified", Verified("drift", drift_all, 1, 30))

    def without_server(given: PeerWays) -> None:
        given.ways = [Way("numpy", "peer: numpy", 10, NumpyThresholds)]
        given.missing = ["PostgreSQL"]

    monkeypatch.setattr(drift.DriftBench, "add_peers", without_server)
    path = tmp_path / "drift.json"
    arguments = ["bench", "drift", "--sizes", "2000,1000", "--changes", "20000", "--json", str(path)]
    result = CliRunner().invoke(app, [*arguments, "--engines", "verify,index,inline"])
    assert result.exit_code == 0, result.output
    assert "2k / 1k" in result.stdout and "told by 200 changes as ours" in result.stdout
    assert "not installed: PostgreSQL" in result.stdout
    written = json.loads(path.read_text())
    figures = {line["key"]: line["values"] for line in written["figures"]}
    assert {"ratio.index", "index.radii.scan.ratio", "inline.items.routed.changes_per_s"} <= set(figures)
    sizes = {key: set(values) for key, values in figures.items() if not key.startswith("verify.")}
    assert all(found == {"1000", "2000"} for found in sizes.values())
    assert figures["verify.region.differences"] == {"1000": 0}
