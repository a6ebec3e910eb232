"""The relay bench runs at a tiny size; all ways find the same rows, and capacities that cannot be kept are reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from research.__main__ import app
from research.bench import relay
from research.bench.relay import running
from research.bench.relay.data import ViewSet, documents
from research.bench.relay.stages import Prepared, plan, prepare
from tidings.bench import Options
from tidings.relay.plan import PUBLISHER, RelayPlan, check

pytestmark = pytest.mark.extended


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    # Few values, and many equal views.
    texts = [pattern.text for pattern in ViewSet(900, 600, 3).patterns(1)]
    return prepare(texts, documents(1, 1, 2))


def test_plans_are_valid_and_passes_make_them_faster(prepared: Prepared) -> None:
    outcome = plan(prepared, 2, None)
    assert outcome.infeasible is None and 0 < prepared.unfed < len(prepared.groups) < 900
    capacities = dict.fromkeys((view.id for view in prepared.views), 2)
    for made in (outcome.least_use, outcome.hastened):
        check(made, prepared.views, capacities)
        assert made.feeds >= prepared.unfed
    latencies = [each.latency for each in outcome.passes]
    assert max(latencies[1:]) < latencies[0] and len({each.use for each in outcome.passes}) > 1
    assert -1 < outcome.latency_change < 0 <= outcome.use_change


def test_the_publisher_feeds_the_least_where_its_capacity_cannot_be_kept(prepared: Prepared) -> None:
    outcome = plan(prepared, None, prepared.unfed - 1)
    assert outcome.infeasible is not None and outcome.infeasible.is_proven
    assert outcome.infeasible.needed == outcome.least_use.feeds == outcome.hastened.feeds == prepared.unfed


def test_all_ways_find_the_same_rows(prepared: Prepared) -> None:
    some = documents(1, 1, 1)
    made = plan(prepared, 3, None).hastened
    figures = {figure.key: figure.value for figure in running.measure(made, prepared.views, some, lambda _: None)}
    assert figures["run.relay.results_per_s"] > 0 and figures["publisher.fed"] == made.feeds
    assert figures["publisher.all_shared.share"] > 0 and figures["publisher.all_each.share"] > 0


def test_ways_that_differ_are_found_out(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "rows_of", lambda *_: [])
    everything = RelayPlan({view.id: (PUBLISHER,) for view in prepared.views})
    with pytest.raises(AssertionError, match="each: what it finds"):
        list(running.measure(everything, prepared.views, documents(1, 1, 1), lambda _: None))


def test_the_report_has_all_figures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in (
        ("_SAMPLES", 1),
        ("_TINY", 50),
        ("_DOCUMENTS", 1),
        ("_CAPACITY", 3),
        ("CAPACITIES", (3, None)),
    ):
        monkeypatch.setattr(relay, name, value)
    report = relay.run(Options((200,)), lambda _: None)
    for key in (
        "stage.rewritings_s",
        "plan.3.gap",
        "plan.none.latency",
        "memory.peak",
        "change.add_ms",
        "change.rehomed",
        "run.each.over_relay",
    ):
        assert report.value(key, 200) is not None
    out = tmp_path / "relay.json"
    ran = CliRunner().invoke(app, ["bench", "relay", "--sizes", "200", "--engines", "plan", "--json", str(out)])
    assert ran.exit_code == 0, ran.output
    keys = {figure["key"] for figure in json.loads(out.read_text())["figures"]}
    assert "plan.3.solve_s" in keys and not any(key.startswith("run.") for key in keys)
