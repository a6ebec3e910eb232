"""Binary joins on a network without caching (paper 000, figures 6, 7, 9, 10 and 17 to 20, table 3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from research.bench.join.data import JoinData
from research.experiments.join.outcome import notes_of
from research.experiments.join.subscribers import skip
from research.experiments.network.counted import Network, linear
from research.experiments.network.kernels import BYTES, IP_BYTES, MESSAGES, NOTES, SERVER_BYTES, SERVER_NOTES
from research.experiments.paper import Config, Rows, Run, Say
from research.servers.changes import ChangeBatch
from research.servers.forms import project_all
from research.servers.message import MessageBatch
from research.servers.protocols import Server
from research.strategies.join.servers import server_of
from research.wire import wire_sizes
from research.workloads.join.binary import BinaryCase, BinaryScene
from research.workloads.join.stocks import JoinStocksCase
from tidings.kernels.arrays import I64
from tidings.kernels.point_index import PointIndex
from tidings.model.change import Op

ENUMERATION = ("enum-j", "enum-sj")
_TOGETHER = 100
_MEANS = {"messages": MESSAGES, "bytes": BYTES, "server_bytes": SERVER_BYTES, "ip_bytes": IP_BYTES}


class Scene:
    """Subscriptions on a network, and the changes to come."""

    def __init__(self, data: JoinData, seed: int) -> None:
        self.data = data
        self._coords = linear(data.coords())
        self.network = Network(self._coords, seed)
        self._rows = [data.images(batch) for batch in data.inserts()]

    @cached_property
    def points(self) -> PointIndex:
        """Whom messages reach."""
        index, count = PointIndex(self._coords.shape[1]), len(self._coords)
        index.add_many(np.zeros(count, np.int64), np.arange(count, dtype=np.int32), self._coords)
        return index

    def server(self, strategy: str) -> Server:
        """A server with rows and subscriptions in place."""
        server = server_of(self.data.catalog, strategy)
        server.create(self.data.points(), {}, wants_snapshots=False)
        for changes in self._rows:
            skip(server, changes)
        return server


class Sent(NamedTuple):
    """Messages of one insertion after the other."""

    messages: MessageBatch
    lo: I64
    hi: I64
    starts: I64
    size: I64
    notes: I64
    """How many payloads each message has."""


def sent_by(scene: Scene, strategy: str, insertions: int) -> list[Sent | I64]:
    """What a strategy sends for insertions of R rows; by enumeration, the bytes of each message."""
    data = scene.data
    server = scene.server(strategy)
    changes = ChangeBatch.concat(list(data.updates()))
    inserts, deletes = (changes.take(changes.op == op) for op in (Op.INSERT, Op.DELETE))
    found: list[Sent | I64] = []
    for start in range(0, insertions, _TOGETHER):
        stop = min(insertions, start + _TOGETHER)
        for messages in server.change(data.images(inserts.slice(start, stop))):
            if not len(messages):
                continue
            if messages.target is not None:
                found.append(np.stack([wire_sizes(messages), notes_of(messages)]))
                continue
            (own,) = project_all(messages, data.catalog)
            regions = own.regions
            starts = np.asarray(regions.starts, np.int64)
            ends = linear(regions.lo), linear(regions.hi)
            found.append(Sent(messages, *ends, starts, wire_sizes(messages), notes_of(messages)))
        skip(server, data.images(deletes.slice(start, stop)))
    return found


def costs(scene: Scene, strategy: str, insertions: int, *, has_last_hop: bool = False) -> dict[str, float]:
    """Means per insertion, between the server and brokers, and between brokers."""
    totals = dict.fromkeys((*_MEANS, "notes", "server_notes", "last_hop_bytes"), 0.0)
    path = float(scene.network.ip_hops[-1, :-1].mean())
    for sent in sent_by(scene, strategy, insertions):
        if isinstance(sent, Sent):
            cost = scene.network.cost(sent.lo, sent.hi, sent.starts, sent.size, sent.notes)
            for name, column in _MEANS.items():
                totals[name] += float(cost[:, column].sum())
            totals["notes"] += float(cost[:, NOTES].sum())
            totals["server_notes"] += float(cost[:, SERVER_NOTES].sum())
            totals["last_hop_bytes"] += float(cost[:, BYTES].sum())
            if has_last_hop:
                told = scene.points.count(np.zeros(len(sent.size), np.int64), sent.lo, sent.hi, sent.starts)
                totals["last_hop_bytes"] += float((told * sent.size).sum())
            continue
        size, notes = sent
        whole = float(size.sum())
        # From the server to the subscriber's broker, or to the subscriber: one message, past all other brokers.
        for name, more in (
            ("messages", len(size)),
            ("bytes", whole),
            ("server_bytes", whole),
            ("ip_bytes", path * whole),
        ):
            totals[name] += more
        totals["notes"] += float(notes.sum())
        totals["server_notes"] += float(notes.sum())
        totals["last_hop_bytes"] += whole
    return {name: total / insertions for name, total in totals.items()}


def _row(scene: Scene, strategy: str, config: Config, *, has_last_hop: bool = False) -> dict[str, Any]:
    insertions = config["slow"] if strategy in ENUMERATION else config["insertions"]
    return {"strategy": strategy} | costs(scene, strategy, insertions, has_last_hop=has_last_hop)


def _scene(case: BinaryCase | JoinStocksCase, config: Config, seed: int, subscriptions: int) -> BinaryScene:
    return case.scene(seed=seed, subscriptions=subscriptions, changes=2 * config["insertions"])


def _by_size(case: BinaryCase | JoinStocksCase) -> Run:
    """By subscriptions."""

    def run(config: Config, seed: int, say: Say) -> Rows:
        rows: Rows = []
        scene = _scene(case, config, seed, max(config["sizes"]))
        for size in config["sizes"]:
            say(f"{size:,} subscriptions")
            data = JoinData(BinaryCase(), replace(scene, ranges=scene.ranges[:size]), seed)
            on = Scene(data, seed)
            rows.extend({"subscriptions": size} | _row(on, strategy, config) for strategy in config["strategies"])
        return rows

    return run


def _swept(column: str, case_of: Callable[[Any], BinaryCase], *, has_last_hop: bool = False) -> Run:
    def run(config: Config, seed: int, say: Say) -> Rows:
        rows: Rows = []
        for value in config[f"{column}s"]:
            say(f"{column} {value:,}")
            case = case_of(value)
            data = JoinData(case, _scene(case, config, seed, config["subscriptions"]), seed)
            on = Scene(data, seed)
            rows.extend(
                {column: value} | _row(on, strategy, config, has_last_hop=has_last_hop)
                for strategy in config["strategies"]
            )
        return rows

    return run


def _payload(config: Config, seed: int, say: Say) -> Rows:
    """By the bytes of payload: played without any, counting where there would be one."""
    rows: Rows = []
    data = JoinData(BinaryCase(payload=0), _scene(BinaryCase(payload=0), config, seed, config["subscriptions"]), seed)
    on = Scene(data, seed)
    for strategy in config["strategies"]:
        say(strategy)
        cost = _row(on, strategy, config)
        rows.extend(
            {"payload": payload, "strategy": strategy, "bytes": cost["bytes"] + payload * cost["notes"]}
            for payload in config["payloads"]
        )
    return rows


JOINS: dict[str, Run] = {
    "growth": _by_size(BinaryCase()),
    "database": _swept("r_size", lambda size: BinaryCase(r_size=size)),
    "output": _swept("s_size", lambda size: BinaryCase(s_size=size)),
    "join_stocks": _by_size(JoinStocksCase()),
    "payload": _payload,
    "overlap": _swept("overlap", lambda overlap: BinaryCase(overlap=overlap), has_last_hop=True),
}
