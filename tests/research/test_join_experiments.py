"""The join experiments run at tiny sizes and write what they promise; what must be so by the definitions is so."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

from research.bench.join.data import JoinData
from research.bench.join.multi_data import MultiData
from research.experiments.join.__main__ import EXPERIMENTS, HERE, main
from research.experiments.join.binary import R, Run, Sample
from research.experiments.join.claims import values
from research.experiments.join.multi import Play
from research.experiments.join.outcome import BEST, LABELS, SKYLINES, figures
from research.experiments.join.pages import PICTURES
from research.experiments.join.subscribers import Subscribers, brokers_of
from research.servers.forms import project_all
from research.strategies import JOINS
from research.workloads.join.binary import BinaryCase
from research.workloads.join.multi import StarCase
from research.workloads.join.tables import STAR

ALL = [name for name in LABELS if name not in ("auto", "long-sj")]
CONFIG = f"""
seeds = [1, 2]
growth = {{sizes = [300, 1_000], insertions = 60, deletions = 20, timed = 40, strategies = {ALL}}}
database = {{r_sizes = [100, 2_000], subscriptions = 1_000, insertions = 40, deletions = 20, strategies = {ALL}}}
output = {{s_sizes = [100, 2_000], subscriptions = 1_000, insertions = 40, deletions = 20, timed = 40, strategies = {ALL}}}
stocks = {{sizes = [300, 1_000], insertions = 40, deletions = 20, strategies = {ALL}}}
payload = {{payloads = [1, 1_000], subscriptions = 1_000, insertions = 40, deletions = 20, strategies = {ALL}}}
overlap = {{overlaps = [0, 6_000], subscriptions = 1_000, insertions = 40, deletions = 20, strategies = {ALL}}}
general = {{widths = [[4_000, 2_500]], rows = 350, subscriptions = 600, changes = 80, decompositions = 6}}
[columns]
width = 20_000
s_size = 300
subscriptions = 500
insertions = 30
late = 20
strategies = ["ref-sj:tup", "ref-sj:clu+"]
[star]
widths = [[20_000, 20_000], [40_000, 40_000]]
fact_payloads = [0, 100]
facts = 1_000
subscriptions = 300
changes = 80
slow = 60
strategies = ["enum-j", "rel-sel", "ref-j", "ref-j+", "ref-sj:clu+", "auto", "long-sj"]
"""
SAMPLE = Sample(30, 10)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("join")
    config, out = folder / "config.toml", folder / "out"
    config.write_text(CONFIG)
    main(["--config", str(config), "--out", str(out)])
    return out


@pytest.mark.extended
def test_everything_is_written(out: Path) -> None:
    written = json.loads((out / "results.json").read_text())
    assert written["stamp"]["seed"] == 1 and set(written["measured"]) == set(EXPERIMENTS)
    for name, rows in written["measured"].items():
        if name in PICTURES:
            assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        numbers = [value for row in rows for value in row.values() if not isinstance(value, str)]
        assert min(numbers) >= 0, name
    page = (out / "README.md").read_text()
    for part in (
        "Figures 5, 6 and 17",
        "Figure 7",
        "Figures 8 and 9",
        "Figure 10",
        "Figure 13",
        "Figure 14",
        "Figure 18",
    ):
        assert f"## {part}" in page, part
    assert all(f"![{name}.png]({name}.png)" in page for name in PICTURES)
    assert {len(values) for values in written["claims"].values()} == {2}


@pytest.mark.extended
def test_results_are_in_the_order_that_must_be(out: Path) -> None:
    measured = json.loads((out / "results.json").read_text())["measured"]
    for experiment, x in (("growth", "subscriptions"), ("database", "r_size"), ("overlap", "overlap")):
        rows = measured[experiment]
        for of_x in figures(rows, x, "deliveries").values():
            assert {of_x[name] for name in ("ref-j", "ref-j+")} == {of_x["enum-j"]}
            assert {of_x[name] for name in SKYLINES} == {of_x["enum-sj"]}
        for of_x in figures(rows, x, "points").values():
            least, *others = (of_x[f"ref-sj:{name}"] for name in ("min", "tup+", "clu+", "clu", "tup"))
            assert all(least <= other for other in others) and others == sorted(others)
        for of_x in figures(rows, x, "sent").values():
            assert of_x["ref-j+"] <= of_x["ref-j"] <= of_x["enum-j"] + of_x["ref-j"]
            assert of_x[BEST] <= of_x["ref-sj:clu"] <= of_x["ref-sj:tup"]
    for row in measured["growth"]:
        assert row["hops"] <= row["deliveries"] and row["output_us"] > row["us"] > 0
    payloads = figures(measured["payload"], "payload", "sent")
    assert all(payloads[1_000][name] > payloads[1][name] for name in ALL)
    ways = [row for row in measured["general"] if row["strategy"] == BEST]
    assert len(ways) == 12 and sum(row["is_drawn"] for row in ways) == 6
    assert sum(row["is_best_by_numbers"] for row in ways) == 1
    assert len({row["delete_carried"] for row in ways}) == 1


def test_unknown_experiments_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["nonesuch"])
    assert "overlap" in capsys.readouterr().err


@pytest.mark.extended
def test_every_claim_has_a_number(out: Path) -> None:
    config = tomllib.loads((HERE / "config.toml").read_text())
    assert set(EXPERIMENTS) == set(config) - {"seeds"}
    for name in EXPERIMENTS:
        assert set(config[name].get("strategies", [])) <= {"auto", *JOINS}
    said = [claim["claim"] for claim in tomllib.loads((HERE / "claims.toml").read_text())["claim"]]
    found = values(json.loads((out / "results.json").read_text())["measured"])
    assert sorted(found) == sorted(said) and all(np.isfinite(value) for value in found.values())


@pytest.mark.extended
def test_numbers_of_claims_are_those_of_the_rows(out: Path) -> None:
    measured = json.loads((out / "results.json").read_text())["measured"]
    found = values(measured)
    star = {(row["width"], row["fact_payload"], row["strategy"]): row["carried"] for row in measured["star"]}
    assert found["join.figure14.relaxed"] == star[20_000, 0, "rel-sel"] / star[20_000, 0, BEST]
    assert found["join.figure14.relaxed_chosen"] == star[40_000, 0, "rel-sel"] / star[40_000, 0, BEST]
    sent = figures(measured["growth"], "subscriptions", "sent")
    enumerated = min(of_x[name] / of_x[BEST] for of_x in sent.values() for name in ("enum-j", "enum-sj"))
    assert found["join.table3.enumerated"] == pytest.approx(enumerated)
    # Where one strategy becomes worse, so do the claims about it, and no others.
    for row in measured["overlap"]:
        if row["strategy"] == "rel-sel" and row["overlap"] == 6_000:
            row["carried"] *= 3
    changed = values(measured)
    assert changed["join.figure19.relaxed"] == pytest.approx(3 * found["join.figure19.relaxed"])
    differ = {name for name, value in changed.items() if value != found[name]}
    assert differ <= {"join.figure19.relaxed", "join.figure20.gain"}


@pytest.mark.extended
@pytest.mark.parametrize("strategy", ["rel-sel", "long-sj", BEST])
def test_facts_with_payload_cost_what_they_would(strategy: str) -> None:
    found = []
    for payload in (0, 70):
        case = StarCase(payloads=(100, payload, 100, 100)).sized(300)
        play = Play(MultiData(STAR, case.scene(seed=2, subscriptions=200, changes=60)))
        totals = play.play(play.server(strategy), 60)
        found.append(play.figures(totals, 60, 70 - payload))
    for name in ("sent", "carried", "delivered", "last_hop"):
        assert found[0][name] == pytest.approx(found[1][name])


@pytest.mark.extended
def test_late_rows_go_to_those_they_are_new_to(out: Path) -> None:
    by_columns = {1: [], 2: []}
    for row in json.loads((out / "results.json").read_text())["measured"]["columns"]:
        by_columns[row["columns"]].append(row)
    for row in by_columns[2]:
        assert row["late_boxed"] >= row["late_told"] == row["late_needed"] > 0
    for one, two in zip(*by_columns.values(), strict=True):
        assert one["late_told"] > two["late_told"] and one["deliveries"] > two["deliveries"]


@pytest.mark.extended
def test_slow_strategies_see_the_first_of_the_changes() -> None:
    data = JoinData.make(500, 60, 2, BinaryCase(r_size=60, s_size=200, join_values=10))
    run = Run(Subscribers(data.catalog, [data.points()], R), data)
    some, few = run.play("enum-sj", Sample(30, 10, slow=6)), run.play("enum-sj", Sample(6, 2))
    assert some.sample == Sample(6, 2) and (some.inserted, some.deleted) == (few.inserted, few.deleted)
    assert run.play(BEST, Sample(30, 10, slow=6)).sample.insertions == 30


@pytest.mark.extended
def test_sizes_are_the_same_whoever_is_reached() -> None:
    data = JoinData.make(500, 2 * 60, 2, BinaryCase(r_size=6_000, s_size=200, join_values=10))
    run = Run(Subscribers(data.catalog, [data.points()], R), data)
    reached, sized = run.play(BEST, Sample(60, 0)), run.play(BEST, Sample(20, 0, timed=40))
    assert sized.sized is not None
    for name in ("messages", "sent", "points"):
        assert sized.inserted[name] + sized.sized[name] == reached.inserted[name] > 0


@pytest.mark.extended
@pytest.mark.parametrize("strategy", ["rel-sel", "ref-j+", "ref-sj:clu+", "enum-sj"])
def test_payloads_cost_what_they_would(strategy: str) -> None:
    outcomes = []
    for payload in (0, 70):
        case = BinaryCase(r_size=300, s_size=200, join_values=10, payload=payload)
        data = JoinData.make(500, SAMPLE.changes, 2, case)
        outcomes.append(Run(Subscribers(data.catalog, [data.points()], R), data).play(strategy, SAMPLE))
    without, with_payload = outcomes
    for name in ("sent", "carried", "delivered"):
        expected = without.inserted[name] + 70 * without.inserted[f"{name}_notes"]
        assert with_payload.inserted[name] == expected > without.inserted[name]


@pytest.mark.extended
def test_what_is_not_told_still_happens() -> None:
    """Whatever part of the deletions is looked at, insertions come to the same."""
    data = JoinData.make(500, SAMPLE.changes, 2, BinaryCase(r_size=60, s_size=200, join_values=10))
    run = Run(Subscribers(data.catalog, [data.points()], R), data)
    few, all_of_them = (run.play(BEST, Sample(30, deletions)) for deletions in (3, 30))
    assert few.inserted == all_of_them.inserted and 0 < few.deleted["messages"] <= 3 < all_of_them.deleted["messages"]


def test_told_deletions_are_as_many_as_asked_for() -> None:
    assert [Sample(40, count).is_told(np.arange(40)).sum() for count in (0, 1, 7, 40)] == [0, 1, 7, 40]


@pytest.mark.extended
@pytest.mark.parametrize("strategy", ["rel-sel", "ref-sj:tup", "ref-sj:clu+", "ref-j"])
def test_reach_is_what_regions_say(strategy: str) -> None:
    data = JoinData.make(300, 40, 5, BinaryCase(r_size=80, s_size=100, join_values=6))
    points = data.points()
    people = Subscribers(data.catalog, [points], R, brokers=7)
    server = people.server(strategy, map(data.images, data.inserts()))
    owner, messages = brokers_of(points.coords, 7), 0
    for batch in data.updates():
        for sent in server.change(data.images(batch)):
            found = people.reach(sent)
            (sent,) = project_all(sent, data.catalog)
            for i in range(len(sent)):
                told = [number for number, at in enumerate(points.coords.tolist()) if sent.regions.contains(i, at)]
                assert found.deliveries[i] == len(told)
                assert found.brokers[i] == len(set(owner[told].tolist()))
                messages += 1
    assert messages > 20


def test_brokers_have_as_many_points_each() -> None:
    coords = np.random.default_rng(1).integers(0, 50, (1_000, 4))
    for brokers in (1, 2, 7, 64):
        sizes = np.bincount(brokers_of(coords, brokers), minlength=brokers)
        assert len(sizes) == brokers and sizes.max() - sizes.min() <= 8
    assert len(brokers_of(coords[:0], 3)) == 0
