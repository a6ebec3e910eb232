"""What is counted is what brokers do; the B-tree keeps its books; tiny experiments give every claim a number."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from traffic import random_traffic

from research.experiments.network.__main__ import EXPERIMENTS, main
from research.experiments.network.btree import BTree
from research.experiments.network.counted import Network
from research.experiments.network.kernels import BYTES, IP_BYTES, MESSAGES, SERVER_BYTES
from tidings.simulator.config import Config
from tidings.simulator.files import Traffic
from tidings.simulator.simulation import Simulation

HERE = Path(__file__).parents[2] / "research" / "experiments" / "network"
CONFIG = """
seeds = [1]
growth = {sizes = [300, 900], insertions = 30, slow = 10, strategies = STRATEGIES}
database = {r_sizes = [200, 16_000], subscriptions = 300, insertions = 20, slow = 10, strategies = STRATEGIES}
output = {s_sizes = [100, 2_000], subscriptions = 300, insertions = 20, slow = 10, strategies = STRATEGIES}
join_stocks = {sizes = [300, 600], insertions = 20, slow = 10, strategies = STRATEGIES}
payload = {payloads = [1, 1_000], subscriptions = 300, insertions = 20, slow = 10, strategies = STRATEGIES}
overlap = {overlaps = [0, 6_000], subscriptions = 1_000, insertions = 60, slow = 60, strategies = STRATEGIES}
repository = {r_size = 60, payload = 1_000, subscriptions = 400, insertions = 12, entries = [0, 100, 400]}
latency = {r_size = 60, payload = 1_000, subscriptions = 400, insertions = 12, entries = [100]}
radii = {sizes = [10_000], events = [60]}
same = {sizes = [10_000], events = [60]}
arrivals = {subscriptions = 300, events = 60, rates = [0.0, 2.0]}
all = {sizes = [300, 600], events = [200, 200]}
stocks = {sizes = [300, 600], events = [200, 200]}
rankings = {ks = [1, 5, 15], rows = 300, subscriptions = 3_000, changes = 2_000, parts = 1, every = 1}
ranking_stocks = {ks = [1, 10], rows = 300, subscriptions = 3_000, changes = 2_000, parts = 1, every = 1}
""".replace(
    "STRATEGIES",
    '["enum-j", "enum-sj", "rel-sel", "ref-j", "ref-j+", "ref-sj:sub", "ref-sj:tup", "ref-sj:clu", "ref-sj:clu+"]',
)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_counted_is_what_brokers_send(seed):
    traffic: Traffic = random_traffic(seed, points=2_000, messages=80, dims=3)
    run = Simulation(Config("can", 60, 20_000), traffic, seed)
    run.run()
    found = run.result()
    network = Network(traffic.points, seed, 60)
    starts = np.concatenate([[0], np.cumsum([len(lo) for lo, _ in traffic.boxes])])
    lo, hi = (np.concatenate([boxes[end] for boxes in traffic.boxes]) for end in (0, 1))
    size = np.array([event.size + event.payload_bytes for event in run._events])
    cost = network.cost(lo, hi, starts, size).sum(axis=0)
    assert cost[MESSAGES] == found["overlay_messages"] and cost[BYTES] == found["overlay_bytes"]
    assert cost[SERVER_BYTES] == found["server_bytes"] and cost[IP_BYTES] == found["ip_bytes"]


@given(st.data(), st.integers(1, 30))
def test_the_btree_keeps_its_books(data, brokers):
    universe = 60
    key = st.integers(0, universe - 1)
    keys = data.draw(st.lists(key, min_size=1, max_size=80))
    tree = BTree(np.array(keys), universe, brokers)
    for _ in range(data.draw(st.integers(0, 6))):
        old = [keys.pop() for _ in range(data.draw(st.integers(0, len(keys))))]
        new = data.draw(st.lists(key, min_size=len(old), max_size=len(old)))
        tree.sent[:] = 0
        messages = tree.move(np.array(old, np.int64), np.array(new, np.int64))
        assert tree.sent.sum() == messages
        keys += new
        assert tree.entries.tolist() == np.bincount(keys, minlength=universe).tolist()
        owner = tree.broker_of(np.array(keys))
        assert tree.held.tolist() == np.bincount(owner, minlength=brokers).tolist()
        assert (np.diff(tree.first) >= 0).all() and tree.first[0] == 0 and len(tree.first) == brokers
        low, high = sorted(data.draw(st.tuples(key, key)))
        tree.sent[:] = 0
        told = tree.tell(low, high)
        first, last = tree.broker_of(np.array([low, high]))
        # Everybody with a part of the range, and those above them.
        assert last - first + 1 <= told <= brokers and tree.sent.sum() == told


@pytest.mark.extended
def test_every_claim_gets_a_number(tmp_path):
    config, out = tmp_path / "config.toml", tmp_path / "out"
    config.write_text(CONFIG)
    main(["--config", str(config), "--out", str(out)])
    written = json.loads((out / "results.json").read_text())
    assert set(written["measured"]) == set(EXPERIMENTS)
    claims = {claim["claim"] for claim in tomllib.loads((HERE / "claims.toml").read_text())["claim"]}
    assert set(written["claims"]) == claims
    assert all(isinstance(value, float) for values in written["claims"].values() for value in values)
    page = (out / "README.md").read_text()
    assert "Bytes between nodes" in page and "![growth](growth.png)" in page
