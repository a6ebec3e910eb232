"""The network bench: its figures are those of the runs it describes, and a run that loses something is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidings.bench import Options, network
from tidings.bench.network import joined, scattered
from tidings.model.errors import UsageError
from tidings.network.payload_cache import Rules
from tidings.network.reference import points_in
from tidings.simulator.config import Config


def test_the_report_has_all_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "SCALE", Config(brokers=20, nodes=100))
    report = network.run(Options((300, 600), changes=400), lambda _: None)
    assert not report.is_wrong
    traffic = joined(600, 40, 0)
    reached = sum(len(points_in(traffic.points, lo, hi)) for lo, hi in traffic.boxes)
    assert report.value("scale.deliveries", 600) == reached / 40 > 0
    keys = [figure["key"] for figure in report.as_json()["figures"]]
    scale = ["setup_s", "run_s", "message_us", "messages", "deliveries", "bytes", "memory"]
    rules = ["neighbour_ack", "link_session", "ask_source", "server_keeps", "stripped_flag"]
    assert keys == [f"scale.{name}" for name in scale] + ["faults.wrong"] + [f"faults.{name}" for name in rules]
    # Four seeds, of which each rule's absence spoils some.
    assert report.value("faults.wrong", 300) == 0
    assert sum(report.value(f"faults.{name}", 300) or 0 for name in rules) > 4


def test_a_mistake_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "FAULTY", replace(network.FAULTY, rules=Rules(neighbour_ack=False)))
    report = network.run(Options((300,), changes=600, cases=("faults",)), lambda _: None)
    assert report.is_wrong


def test_the_same_seed_gives_the_same_traffic() -> None:
    for make in (lambda seed: joined(50, 5, seed), scattered):
        assert (make(3).points == make(3).points).all() and (make(3).points != make(4).points).any()


def test_unknown_cases_are_named() -> None:
    with pytest.raises(UsageError, match="there are: scale, faults"):
        network.run(Options((300,), cases=("nonesuch",)), lambda _: None)
