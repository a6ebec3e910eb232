"""The drift bench runs at tiny sizes; its counts, bytes and peers agree with what the engine itself does."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from tidings.bench import BENCHES, Options, drift, drift_index, drift_verify, peers
from tidings.bench.drift_baselines import BASELINES, Baseline
from tidings.bench.drift_cases import CASES
from tidings.bench.drift_data import DriftData
from tidings.bench.drift_peers import NumpyThresholds, Peer, Postgres
from tidings.bench.drift_player import Player
from tidings.bench.drift_timeline import Timeline
from tidings.bench.drift_wire import region_bytes, unicast_bytes
from tidings.bench.lines import json_lines
from tidings.bench.peers import Peers, Way
from tidings.bench.postgres import find_server, server
from tidings.cli import bench as command
from tidings.model.errors import UsageError
from tidings.pipeline.door import Door
from tidings.pipeline.ingest import Ingest
from tidings.pipeline.staged import StagedEngine as Engine
from tidings.workloads import find

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
def test_players_count_who_is_told(name: str) -> None:
    workload = find(name).load()(seed=3, rows=0, subscriptions=200, changes=MOVES)
    timeline = Timeline.of(workload)
    player = Player(timeline)
    counts: list[int] = []
    while player.at < timeline.moves:
        members = player.members()
        counts += player.told(player.play(70), members).tolist()
    assert counts == _told(timeline)
    assert player.joined == int(np.searchsorted(timeline.member_after, timeline.moves - 1, "right"))


@pytest.mark.parametrize("name", list(CASES))
def test_everybody_comes_before_what_is_measured(name: str) -> None:
    timeline = CASES[name].make(500, MOVES, 1)
    player = Player(timeline)
    player.settle()
    assert player.joined == timeline.size == 500
    assert timeline.moves - player.at >= MOVES
    if name in ("same", "all"):
        assert len(np.unique(player.anchors.runs(0).value)) > 50


@pytest.mark.parametrize("name", ["radii", "same", "all"])
@pytest.mark.parametrize("baseline", list(BASELINES))
def test_baselines_tell_the_same(name: str, baseline: str) -> None:
    timeline = CASES[name].make(400, 2_000, 2)
    player = Player(timeline)
    player.settle()
    plain = Baseline(player, baseline)
    values = timeline.move_value[player.at :]
    members = player.members()
    expected = player.told(player.play(len(values)), members)
    assert expected.sum() > 100
    touched = plain.move(values)
    if baseline == "unicast":
        assert np.diff(touched.starts).tolist() == expected.tolist()
    else:
        start, stop = members.ranges(np.zeros(len(touched.reach_lo), np.int64), touched)
        assert int((stop - start).sum()) == expected.sum()


def test_points_and_changes_are_what_the_contract_says() -> None:
    timeline = CASES["items"].make(60, 100, 1)
    data = DriftData(timeline)
    door = Door(data.catalog)
    for i in range(60):
        door.create(f"s{i}", timeline.sql(i), 0)
    (expected,) = door.take()
    made = data.points()
    assert made.form == expected.form
    assert made.id.equals(expected.id) and made.details.equals(expected.details)
    assert made.channel[0].equals(expected.channel[0])
    for name in ("event", "after", "order", "coords", "home"):
        np.testing.assert_array_equal(getattr(made, name), getattr(expected, name))
    (first,) = data.inserts()
    parsed = Ingest(data.catalog).parse(json_lines(first))
    assert parsed.refused == [] and parsed.changes[0].rows.equals(first.rows)


def test_bytes_are_those_of_the_engine() -> None:
    timeline = CASES["radii"].make(1_000, 1_000, 4)
    data = DriftData(timeline)
    player = Player(timeline)
    # The first move tells everybody.
    player.settle()
    first, members = player.at, player.members()
    played = player.play(timeline.moves)
    told = int(player.told(played, members).sum())
    expected = {"region": int(region_bytes(data, played).sum()), "unicast": unicast_bytes(data) * told}
    for strategy, size in expected.items():
        engine = Engine(data.catalog, {"drift": strategy}, counts_bytes=True)
        for i in range(timeline.size):
            engine.door.create(f"s{i}", timeline.sql(i), 0)
        engine.feed_changes([data.batch(0, first)])
        before = engine.stats.message_bytes["drift"]
        engine.feed_changes([data.batch(first, timeline.moves)])
        assert engine.stats.message_bytes["drift"] - before == pytest.approx(size, rel=0.01), strategy


def test_peers_tell_the_same() -> None:
    timeline = CASES["radii"].make(2_000, 100, 5)
    expected = _told(timeline)[1:]
    values = timeline.move_value[1:]
    assert NumpyThresholds(timeline).move(values).tolist() == expected
    programs = find_server()
    if programs is None:
        pytest.skip("no PostgreSQL server here")
    with server(programs) as session:
        peer = Postgres(timeline, session)
        assert peer.move(values).tolist() == expected
        peer.close()


@pytest.mark.parametrize("name", list(drift_verify.LEVELS))
def test_the_index_decides_as_defined(name: str) -> None:
    wrong, told = drift_verify.differences(drift_verify.LEVELS[name], 5_000, 6)
    assert wrong == 0 and told > 1_000


def test_a_wrong_index_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drift_verify, "interval_around", lambda kind, told, least: (told - least, told + 2 * least))
    assert drift_verify.differences(drift_verify.LEVELS["all"], 1_000, 6)[0] > 0


def test_run_fills_every_cell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(peers, "BUDGET_S", 0.01)
    monkeypatch.setattr(drift, "_VERIFIED", 1)
    monkeypatch.setattr(drift_index, "BASELINE_BUDGET_S", 0.01)
    monkeypatch.setattr(drift_index, "_AGE", 1)

    def without_server(given: Peers[Timeline, Peer]) -> None:
        given.ways = [Way("numpy", "peer: numpy", 10, NumpyThresholds)]
        given.missing = ["PostgreSQL"]

    monkeypatch.setattr(drift.DriftBench, "add_peers", without_server)
    app = typer.Typer()
    command.add_to(app)
    path = tmp_path / "drift.json"
    arguments = ["drift", "--sizes", "2000,1000", "--changes", "20000", "--json", str(path)]
    result = CliRunner().invoke(app, [*arguments, "--engines", "verify,index,inline"])
    assert result.exit_code == 0, result.output
    assert "2k / 1k" in result.stdout and "told by 200 changes as ours" in result.stdout
    assert "not installed: PostgreSQL" in result.stdout
    written = json.loads(path.read_text())
    figures = {line["key"]: line["values"] for line in written["figures"]}
    assert {"ratio.index", "index.radii.scan.ratio", "inline.items.routed.changes_per_s"} <= set(figures)
    sizes = {key: set(values) for key, values in figures.items() if not key.startswith("verify.")}
    assert all(found == {"1000", "2000"} for found in sizes.values())
    assert figures["verify.same.differences"] == {"1000": 0}


def test_mistakes_name_what_there_is() -> None:
    with pytest.raises(UsageError, match="verify, index, inline, spark"):
        BENCHES["drift"].load()(Options((1_000,), engines=("nonesuch",)), lambda _: None)
