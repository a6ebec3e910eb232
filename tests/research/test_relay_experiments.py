"""The relay experiments run at tiny sizes and write what they promise; the simulated network does what it says."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from research.experiments.relay import sets
from research.experiments.relay.__main__ import EXPERIMENTS, HERE, main
from research.experiments.relay.claims import values
from research.experiments.relay.grown import pick
from research.experiments.relay.machines import CITIES, Machines, draw_machines
from research.experiments.relay.simulation import Deployment, deliver
from research.experiments.relay.work import fit
from tidings.relay.rewriting import Rewritings

_SETS = "sets = [{views = 600}, {views = 600, distinct = 300}], rewritings = 30"
_PLANS = """sets = [{views = 700, capacities = [30, "none"]}, {views = 600, capacities = [2, 30, 50, 100, "none"]},
    {views = 600, distinct = 300, capacities = [2, 30, 50, 100, "none"]}], rewritings = 30, slack = 1.5""".replace(
    "\n", ""
)
_WAN = """values = 3, documents = 3, interval_ms = 5, nodes_documents = 1, capacities = [2, 5, 30, 50, "none"], slack = 1.5,
    machines = 12, mbit = [20, 1_000], switch_ms = 0.2, jitter_ms = 1.0, message_ms = 0.1""".replace("\n", "")
CONFIG = f"""
seeds = [1]
sets = {{{_SETS}}}
plans = {{{_PLANS}}}
latency = {{{_PLANS}}}
levels = {{{_PLANS}}}
weights = {{views = 600, rewritings = 30, capacity = 4}}
partial = {{views = 100, capacity = 4, documents = 2}}
wan = {{views = 300, distinct = 100, pool = 1_500, publisher_capacity = 30, {_WAN}}}
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("relay")
    config, out = folder / "config.toml", folder / "out"
    config.write_text(CONFIG)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sets, "SAMPLES", 2)
        main(["--config", str(config), "--out", str(out)])
    return out


@pytest.fixture(scope="module")
def measured(out: Path) -> dict[str, list[dict[str, Any]]]:
    written = json.loads((out / "results.json").read_text())
    assert written["stamp"]["seed"] == 1
    return written["measured"]


@pytest.mark.extended
def test_everything_is_written(out: Path, measured: dict[str, Any]) -> None:
    assert set(measured) == set(EXPERIMENTS)
    for name in ("latency", "levels", "wan"):
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    page = (out / "README.md").read_text()
    assert all(title in page for title in ("## Table 2:", "## Table 3:", "## Figures 6 and 7:", "## Figure 8:"))
    assert "94,835" in page and "## Figures 9 to 11:" in page


@pytest.mark.extended
def test_plans_keep_what_they_say(measured: dict[str, Any]) -> None:
    for row in measured["plans"]:
        assert row["bound"] <= row["use"] and row["publisher_feeds"] <= row["publisher_capacity"]
    for row in measured["levels"]:
        assert sum(row["least_use"]) == sum(row["less_latency"]) == int(row["set"][:3])
    first = {(row["set"], row["capacity"]): row["latency"] for row in measured["latency"] if row["passes"] == 0}
    last = {(row["set"], row["capacity"]): row["latency"] for row in measured["latency"]}
    assert all(last[key] <= first[key] for key in first) and any(last[key] < first[key] for key in first)


@pytest.mark.extended
def test_the_table_knows_the_messages_of_nodes_to_the_byte(measured: dict[str, Any]) -> None:
    first = measured["wan"][0]
    assert first["least_use_bytes_off"] == 0
    assert first["least_use_latency_by_table_s"] == pytest.approx(first["least_use_latency_by_nodes_s"], rel=0.5)
    for row in measured["wan"]:
        for plan in ("least_use", "less_latency"):
            assert row[f"{plan}_bytes_per_document"] > 0
            assert row[f"{plan}_latency_min_s"] < row[f"{plan}_latency_mean_s"] < row[f"{plan}_delivery_mean_s"]
            assert row[f"{plan}_latency_max_s"] == row[f"{plan}_delivery_max_s"]


@pytest.mark.extended
def test_few_views_feed_the_grown_set(measured: dict[str, Any]) -> None:
    for row in measured["wan"]:
        assert row["publisher_feeds"] <= 30 and "needed" not in row


@pytest.mark.extended
def test_each_claim_has_its_number(out: Path, measured: dict[str, Any]) -> None:
    claims = tomllib.loads((HERE / "claims.toml").read_text())["claim"]
    written = json.loads((out / "results.json").read_text())["claims"]
    assert list(written) and set(written) == {said["claim"] for said in claims}
    assert all(value is not None for found in written.values() for value in found)
    assert written["relay.figure6.reduction"] == [
        min(
            100 - [row["latency_share"] for row in measured["latency"] if _is(row, "600 views, 600", capacity)][-1]
            for capacity in (30, 50, 100)
        )
    ]


def _is(row: dict[str, Any], name: str, capacity: object) -> bool:
    return row["set"].startswith(name) and row["capacity"] == capacity


def test_without_results_no_claim_has_a_number() -> None:
    assert set(values({}).values()) == {None}
    assert set(values({})) == {said["claim"] for said in tomllib.loads((HERE / "claims.toml").read_text())["claim"]}


def test_the_configuration_covers_what_is_published() -> None:
    config, published = (tomllib.loads((HERE / f"{name}.toml").read_text()) for name in ("config", "published"))
    assert set(published) == set(EXPERIMENTS) == set(config) - {"seeds"}
    assert config["plans"] == config["latency"] == config["levels"]
    assert config["plans"]["sets"][1]["capacities"] == published["plans"]["capacity"]
    sets = [each.get("distinct", each["views"]) for each in config["sets"]["sets"]]
    assert sets == published["sets"]["distinct"] and config["wan"]["publisher_capacity"] == 72


@dataclass
class _Fixed:
    """Views that all take a second and say the same."""

    size: int

    def fed(self, view: int) -> int:
        return self.size

    def compute(self, view: int) -> tuple[float, int]:
        return 1.0, self.size


def test_machines_send_one_message_after_the_other_and_compute_on_their_cores() -> None:
    # Machine 2 is the publisher's. A message takes 10 s to leave and 100 s to arrive.
    delay = np.full((3, 3), 100.0)
    machines = Machines(delay, np.full(3, 1.0), np.array([1, 1, 1]), 0.0, 0.0)
    # View 0 at machine 0 feeds 1 and 2 at machine 1, and 3 beside it, which also waits for 1.
    deployment = Deployment(machines, [0, 1, 1, 0], [1, 1, 1, 2], [[1, 2, 3], [3], [], []], [0])
    found = deliver(deployment, [_Fixed(10)], np.random.default_rng(0))
    first = 10 + 100 + 1
    assert found.done_s.tolist() == [[first, first + 111, first + 121, first + 222]]
    assert (found.messages, found.bytes) == (4, 40)
    # With both on the publisher's list, the second message waits for the first, and computations for the only core.
    both = Deployment(machines, [0, 0], [1, 1], [[], []], [0, 1])
    assert deliver(both, [_Fixed(10)], np.random.default_rng(0)).done_s.tolist() == [[111, 121]]
    assert deliver(both, [_Fixed(0)], np.random.default_rng(0)).done_s.tolist() == [[101, 102]]
    more = Deployment(Machines(delay, machines.bytes_per_s, np.array([2, 1, 1]), 0.0, 0.0), *_parts(both))
    assert deliver(more, [_Fixed(0)], np.random.default_rng(0)).done_s.tolist() == [[101, 101]]


def test_documents_that_overlap_share_lines_and_cores() -> None:
    delay = np.full((2, 2), 100.0)
    machines = Machines(delay, np.full(2, 1.0), np.array([4, 4]), 0.0, 0.0)
    # The publisher feeds view 0, which feeds 1 at the same machine. A message takes 10 s to leave, and 100 s to arrive.
    deployment = Deployment(machines, [0, 0], [1, 1], [[1], []], [0])
    works = [_Fixed(10), _Fixed(10)]
    apart = deliver(deployment, works, np.random.default_rng(0), 50.0)
    assert apart.done_s.tolist() == [[111, 112], [111, 112]]
    # The second one waits for the line; its time begins when it gets it.
    behind = deliver(deployment, works, np.random.default_rng(0), 4.0)
    assert behind.done_s.tolist() == [[111, 112], [111, 112]]
    # Where nothing takes time to leave, a view computes one document after the other, on however many cores.
    at_once = deliver(deployment, [_Fixed(0), _Fixed(0)], np.random.default_rng(0), 0.25)
    assert at_once.done_s.tolist() == [[101, 102], [101.75, 102.75]]


def _parts(deployment: Deployment) -> tuple[Any, ...]:
    return deployment.machine_of, deployment.waits, deployment.feeds, deployment.roots


def test_machines_are_as_far_apart_as_their_cities() -> None:
    machines = draw_machines(0, 300, mbit=(20, 1_000), switch_ms=0.2, jitter_ms=1, message_ms=0.1)
    assert machines.publisher == 300 and np.allclose(machines.delay_s, machines.delay_s.T)
    assert np.allclose(machines.delay_s[0, len(CITIES)], 0.0002)
    names = list(CITIES)
    lille_nice = machines.delay_s[names.index("Lille"), names.index("Nice")]
    assert lille_nice == pytest.approx(0.0002 + 1.5 * 834 / 200_000, rel=0.01)  # 834 km
    assert machines.bytes_per_s.min() >= 2.5e6 and machines.bytes_per_s.max() <= 1.25e8


def test_picked_views_have_a_rewriting_over_earlier_ones() -> None:
    # 0 feeds 1, both feed 2; 4 needs 3, which nothing feeds.
    ways = {1: [(0,)], 2: [(0, 1), (5,)], 4: [(3,)]}
    each = [ways.get(pattern, []) for pattern in range(6)]
    flat = [way for found in each for way in found]
    rewritings = Rewritings(
        np.cumsum([0, *map(len, each)]),
        np.cumsum([0, *map(len, flat)]),
        np.array([source for way in flat for source in way], np.int32),
        0,
        0,
    )
    assert pick(rewritings, 3) == [0, 1, 2]
    assert pick(rewritings, 5)[:3] == [0, 1, 2] and sorted(pick(rewritings, 9)) == [0, 1, 2, 3, 4, 5]


def test_the_speed_of_nodes_is_fitted() -> None:
    speed = fit([(ids, 1e-5 + 2e-6 * ids) for ids in range(5)])
    assert (speed.each, speed.per_id) == pytest.approx((1e-5, 2e-6))
    assert fit([(ids, 1e-3 - 1e-5 * ids) for ids in range(3)]).per_id == 0
