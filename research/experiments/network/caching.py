"""Payload caching (paper 000, figures 11 and 12), by the simulator.

A joined row has two payloads, either of which may have been sent before with another partner: it is sent as two messages, of
which the second has a header of its own, and no region to speak of. Figures are of the second half of a run, when caches
are as full as they get.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from research.bench.join.data import JoinData
from research.experiments.network.counted import BROKERS, NODES
from research.experiments.network.joins import Scene, Sent, sent_by
from research.experiments.paper import Config, Rows, Say
from research.workloads.join.binary import BinaryCase
from tidings.network.messages import CONTROL_BYTES
from tidings.simulator.config import Config as Simulated
from tidings.simulator.files import Traffic
from tidings.simulator.simulation import Simulation

_INSERTION_MS = 5_000.0
"""From one insertion to the next: all is quiet by then."""


def traffic_of(scene: Scene, strategy: str, insertions: int, payload: int) -> Traffic:
    """What a strategy sends, for the simulator."""
    numbers: dict[tuple[str, int], int] = {}
    messages: list[tuple[int, Any, int, int]] = []
    for sent in sent_by(scene, strategy, insertions):
        assert isinstance(sent, Sent)
        columns = _payload_ids(sent)
        for i, seq in enumerate(np.asarray(sent.messages.seq).tolist()):
            boxes = slice(int(sent.starts[i]), int(sent.starts[i + 1]))
            region = sent.lo[boxes], sent.hi[boxes]
            bare = int(sent.size[i] - payload * sent.notes[i])
            for place, (table, ids) in enumerate(columns):
                number = numbers.setdefault((table, ids[i]), len(numbers))
                messages.append((seq, region, number, CONTROL_BYTES if place else bare))
    messages.sort(key=lambda message: message[0])
    seqs = sorted({message[0] for message in messages})
    at = {seq: _INSERTION_MS * place for place, seq in enumerate(seqs)}
    return Traffic(
        range(len(scene.network.points)),
        scene.network.points,
        range(len(messages)),
        [at[message[0]] for message in messages],
        [message[1] for message in messages],
        [message[2] for message in messages],
        [payload] * len(messages),
        [message[3] for message in messages],
    )


def _payload_ids(sent: Sent) -> list[tuple[str, list[int]]]:
    """Whose rows' payloads messages have: table, and key by message."""
    rows = sent.messages.payload
    names = rows.schema.names
    if "note" in names:
        return [("r" if "a" in names else "s", rows.column("id").to_pylist())]
    return [(table, rows.column(f"{side}.id").to_pylist()) for side, table in enumerate("rs")]


def cost(traffic: Traffic, cache_bytes: int, seed: int) -> dict[str, float]:
    """Totals over the second half of a run; the mean hops of a delivery, waiting for payloads included."""
    run = Simulation(Simulated("can", BROKERS, NODES, cache_bytes), traffic, seed)
    half = len(traffic.ids) // 2
    before: list[dict[str, Any]] = []
    run.run(lambda done: before.append(run.result()) if done == half else None)
    if not run.outcome.is_right:
        raise AssertionError("points were missed")
    first, whole = before[0], run.result()
    totals = {name: whole[name] - first[name] for name in ("overlay_bytes", "server_bytes", "deliveries")}
    hops = whole["hops_mean"] * whole["deliveries"] - first["hops_mean"] * first["deliveries"]
    found = {"bytes": totals["overlay_bytes"], "server_bytes": totals["server_bytes"]}
    return {**found, "hops": hops / totals["deliveries"]}


def _rows(config: Config, seed: int, say: Say, strategies: list[str]) -> Rows:
    rows: Rows = []
    payload = config["payload"]
    case = BinaryCase(r_size=config["r_size"], payload=payload)
    scene = case.scene(seed=seed, subscriptions=config["subscriptions"], changes=2 * config["insertions"])
    on = Scene(JoinData(case, scene, seed), seed)
    for strategy in strategies:
        traffic = traffic_of(on, strategy, config["insertions"], payload)
        # A byte is room for no payload, and the directory is kept all the same; without one nothing is cached.
        caches = {"none": 0} | {str(entries): max(1, entries * payload) for entries in config["entries"]}
        for name, cache_bytes in caches.items():
            if strategy == "rel-sel" and name != "none":
                continue
            say(f"{strategy}, entries {name}, {len(traffic.ids):,} messages")
            rows.append({"strategy": strategy, "entries": name} | cost(traffic, cache_bytes, seed))
    return rows


def repository(config: Config, seed: int, say: Say) -> Rows:
    """By the entries of the repository."""
    return _rows(config, seed, say, ["ref-sj:clu+", "ref-j+"])


def latency(config: Config, seed: int, say: Say) -> Rows:
    return _rows(config, seed, say, ["ref-sj:clu+", "ref-j+", "rel-sel"])
