"""Whatever goes wrong, every point in a region is told once and with the payload; without one of the rules, some are not."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traffic import random_traffic, traffics

from tidings.network.payload_cache import Rules
from tidings.network.reference import points_in
from tidings.simulator.config import OVERLAYS, Config, Faults
from tidings.simulator.simulation import Simulation

SEEDS = range(50)
FAULTS = Faults(loss=0.02, delay_ms=(1.0, 50.0), restarts=6, partitions=1, evictions=5, splits=3, merges=2)
TRAFFIC = {seed: random_traffic(seed) for seed in range(5)}


def outcome_of(seed, rules=Rules(), overlay="can", plain=0.25, cache=20_000):  # noqa: B008 (a frozen value)
    run = Simulation(Config(overlay, 48, 400, cache, plain, FAULTS, rules), TRAFFIC[seed % 5], seed)
    run.run()
    return run


@pytest.mark.parametrize("overlay", ["can", "tree"])
@pytest.mark.parametrize("part", range(5))
def test_nothing_is_missed_and_nothing_told_twice(part, overlay):
    for seed in SEEDS[part::5]:
        assert outcome_of(seed, overlay=overlay).outcome.is_right, seed


@pytest.mark.parametrize("rule", [entry.name for entry in fields(Rules)])
def test_each_rule_is_needed(rule):
    lost = 0
    for seed in SEEDS[:12]:
        found = outcome_of(seed, Rules(**{rule: False}), cache=5_000).outcome
        # Payloads are what the rules are about: messages arrive all the same.
        assert not found.lost and not found.twice
        lost += found.without_payload
    assert lost > 50


def test_a_seed_is_repeated_exactly():
    seen: list[list[tuple]] = [[], []]
    results = []
    for frames in seen:
        run = Simulation(Config("can", 48, 400, 20_000, 0.25, FAULTS), TRAFFIC[0], 3)
        run.run(trace=lambda now, frame, frames=frames: frames.append((now, frame.sender, frame.to, frame.size)))
        results.append(run.result())
    assert results[0] == results[1] and seen[0] == seen[1] and len(seen[0]) > 1_000
    assert outcome_of(4).result()["trace"] != results[0]["trace"]


@pytest.mark.parametrize("overlay", OVERLAYS)
@settings(max_examples=25)
@given(data=st.data(), seed=st.integers(0, 1_000))
def test_reached_is_enumerated(overlay, data, seed):
    traffic = data.draw(traffics(dims=st.just(1) if overlay == "btree" else None))
    whole = st.integers(0, 3)
    counts = {name: data.draw(whole) for name in ("restarts", "partitions", "evictions", "splits", "merges")}
    faults = Faults(loss=data.draw(st.sampled_from([0.0, 0.05, 0.3])), delay_ms=(1.0, 80.0), **counts)
    brokers, cache = data.draw(st.integers(1, 9)), data.draw(st.sampled_from([0, 1, 700, 5_000]))
    config = Config(overlay, brokers, 40, cache, data.draw(st.sampled_from([0.0, 0.5, 1.0])), faults)
    run = Simulation(config, traffic, seed, keeps_deliveries=True)
    run.run()
    assert run.outcome.is_right
    told: dict[int, list[int]] = {}
    for message, _, points in run.deliveries():
        told.setdefault(message, []).extend(points)
    for message, (lo, hi) in enumerate(traffic.boxes):
        assert sorted(told.get(message, [])) == points_in(traffic.points, lo, hi)


def test_payloads_cross_a_link_once():
    """The same payload to the same region: the second time it is stripped on every link."""
    config = Config("can", 16, 100, 10_000)
    first = TRAFFIC[0]
    twice = first._replace(
        ids=[0, 1], at=[0.0, 10_000.0], boxes=[first.boxes[0]] * 2, payload=[0, 0], payload_bytes=[500, 500]
    )
    run = Simulation(config, twice, 1)
    run.run()
    found = run.result()
    links = found["overlay_messages"] // 2
    assert found["stripped_messages"] == links and found["payload_bytes"] == 500 * links
    assert found["asked_payloads"] == 0


def test_a_repository_without_room_still_saves():
    """The directory alone: payloads are asked for only where somebody needs them."""
    costs = {}
    for cache in (0, 1, 30_000):
        run = Simulation(Config("can", 48, 400, cache), random_traffic(7, points=200, payloads=10), 1)
        run.run()
        assert run.outcome.is_right
        costs[cache] = run.result()["payload_bytes"]
    assert costs[30_000] < costs[1] < costs[0]
