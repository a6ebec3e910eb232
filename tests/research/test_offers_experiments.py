"""The offers experiments run at tiny sizes and write what they promise."""

from __future__ import annotations

import json
import tomllib
from contextlib import ExitStack
from pathlib import Path

import pytest

from research.bench.offers import index, inline, peers
from research.bench.offers.cases import CASES, OffersData
from research.experiments.offers import breakdown, sweeps
from research.experiments.offers.__main__ import EXPERIMENTS, HERE, main
from research.experiments.offers.sweeps import met_expected
from tidings.bench.postgres import find_server

CONFIG = """
seed = 1
breakdown = {sizes = [300]}
subscriptions = {sizes = [200], met_max = 1_000}
batches = {subscriptions = 200, batches = [1, 4], met_max = 1_000}
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("offers")
    config, out = folder / "config.toml", folder / "out"
    config.write_text(CONFIG)
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        # One server for all experiments: starting it takes seconds.
        server = peers.find_postgres(stack, lambda _: None)
        for experiment in (breakdown, sweeps):
            patch.setattr(experiment, "find_postgres", lambda *_: server)
        for module in (index, inline, peers):
            patch.setattr(module, "BUDGET_S", 0.05)
        patch.setattr(inline, "_ONE_BY_ONE", 40)
        patch.setattr(peers, "_PUBLICATIONS", 2)
        patch.setattr(peers, "_BATCHES", 2)
        main(["--config", str(config), "--out", str(out)])
    return out


@pytest.mark.extended
def test_everything_is_written(out: Path) -> None:
    written = json.loads((out / "results.json").read_text())
    assert written["stamp"]["seed"] == 1 and set(written["measured"]) == set(EXPERIMENTS)
    for rows in written["measured"].values():
        assert min(value for row in rows for value in row.values()) >= 0
    for name in ("subscriptions", "batches"):
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    page = (out / "README.md").read_text()
    assert all(f"## Figure {number}:" in page for number in (4, 5, 6, 7))
    assert "without numbers" in page and "batches.png" in page


@pytest.mark.extended
def test_all_ways_and_workloads_are_measured(out: Path) -> None:
    measured = json.loads((out / "results.json").read_text())["measured"]
    assert [row["batch"] for row in measured["batches"]] == [1, 4]
    has_server = find_server() is not None
    for row in (*measured["subscriptions"], *measured["batches"]):
        for case in CASES:
            assert row[f"{case}_index_ms"] > 0 and row[f"{case}_matches"] > 0
        assert ("fixed_postgres_ms" in row) == has_server
    assert all("conjunctions_postgres_ms" not in row for row in measured["batches"] if row["batch"] == 4)
    assert ("postgres_match_s" in measured["breakdown"][0]) == has_server


def test_the_rows_of_a_match_are_known_before() -> None:
    assert met_expected(OffersData(CASES["fixed"], 1_000, 1, 0)) == pytest.approx(5)
    assert met_expected(OffersData(CASES["conjunctions"], 1_000, 1, 0)) == 1_000 * 8 / 2


def test_the_configuration_covers_what_is_published() -> None:
    config, published = (tomllib.loads((HERE / f"{name}.toml").read_text()) for name in ("config", "published"))
    assert set(published) == set(EXPERIMENTS) == set(config) - {"seed"}
    assert config["breakdown"]["sizes"] == published["breakdown"]["subscriptions"]
    parts = ("subscription_s", "publication_s", "index_s", "histogram_s")
    sums = [sum(published["breakdown"][part][i] for part in parts) for i in range(2)]
    assert sums == pytest.approx(published["breakdown"]["preprocessing_s"], abs=0.1)
