"""Notification conditions on a distributed B-tree (paper 002, figures 7 and 9 to 12)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from research.bench.drift.data import Timeline
from research.experiments.drift.cases import CASES, of_one_radius
from research.experiments.drift.dissemination import Sent, Way, dissemination
from research.experiments.network.btree import ENTRY_BYTES, UNICAST_BYTES, BTree
from research.experiments.network.counted import BROKERS
from research.experiments.paper import Config, Rows, Run, Say
from tidings.kernels.arrays import I64

CALM = 100
"""Events in which no node sends as many messages are calm."""


def cost(timeline: Timeline, begin: int, way: Way, brokers: int = BROKERS) -> dict[str, float]:
    """Bytes between nodes, per event and per operation (an event, or a subscription that comes); the highest stress."""
    sent = list(dissemination(timeline, begin, way))
    arrived = int(((timeline.member_after > begin) & (timeline.member_after <= sent[-1].move)).sum())
    if way == "unicast":
        told = np.array([len(of_event.told) for of_event in sent])
        # A subscription is registered by one message to the server.
        return _figures(told, told * UNICAST_BYTES, arrived, arrived * UNICAST_BYTES)
    numbers, universe = _numbered(sent)
    tree = BTree(numbers[0].joined, universe, brokers)
    stress, messages, arriving = [], [], 0
    # Where there is no server, the way of an event into the network does not count.
    entry = 1 if way in ("lr", "c") else 0
    for place, of_event in enumerate(numbers):
        tree.sent[:] = 0
        if place:
            arriving += tree.insert(of_event.joined)
            arriving += tree.move(of_event.renewed[0], of_event.renewed[1])
        tree.sent[:] = 0
        count = sum(tree.tell(low, high) - entry for low, high in of_event.ranges)
        count += tree.move(of_event.left, of_event.entered)
        messages.append(count)
        stress.append(int(tree.sent.max()))
    return _figures(np.array(stress), np.array(messages) * ENTRY_BYTES, arrived, arriving * ENTRY_BYTES)


def _figures(stress: I64, size: I64, arrived: int, arriving_bytes: int) -> dict[str, float]:
    return {
        "bytes": float(size.mean()),
        "operation_bytes": float(size.sum() + arriving_bytes) / (len(size) + arrived),
        "stress_max": float(stress.max()),
        "calm": float((stress < CALM).mean()),
    }


class _Numbered:
    """A change with keys by their places among all keys of a run."""

    def __init__(self, sent: Sent, places: Iterator[I64]) -> None:
        self.joined: I64 = next(places)
        self.renewed: tuple[I64, I64] = next(places), next(places)
        self.left: I64 = next(places)
        self.entered: I64 = next(places)
        ends: list[int] = next(places).tolist()
        self.ranges = list(zip(ends[::2], ends[1::2], strict=True))


def _numbered(sent: list[Sent]) -> tuple[list[_Numbered], int]:
    parts = [part for of_event in sent for part in _keys(of_event)]
    keys = np.concatenate(parts)
    order = np.lexsort(keys.T[::-1])
    ordered = keys[order]
    is_new = np.append(False, (ordered[1:] != ordered[:-1]).any(axis=1))
    place = np.empty(len(keys), np.int64)
    place[order] = np.cumsum(is_new)
    places = iter(np.split(place, np.cumsum([len(part) for part in parts])[:-1]))
    return [_Numbered(of_event, places) for of_event in sent], int(is_new.sum()) + 1


def _keys(sent: Sent) -> list[I64]:
    ranges = sent.ranges.reshape(-1, 3)
    return [sent.joined.key, sent.renewed[0].key, sent.renewed[1].key, sent.left.key, sent.entered.key, ranges]


def _by_size(name: str, ways: list[Way]) -> Run:
    def run(config: Config, seed: int, say: Say) -> Rows:
        rows: Rows = []
        for size, events in zip(config["sizes"], config["events"], strict=True):
            say(f"{size:,} subscriptions")
            timeline, begin = CASES[name]({"events": events}, size, seed)
            rows.extend({"subscriptions": size, "way": way} | cost(timeline, begin, way) for way in ways)
        return rows

    return run


def _arrivals(config: Config, seed: int, say: Say) -> Rows:
    rows: Rows = []
    for rate in config["rates"]:
        say(f"{rate:g} new subscriptions per event")
        timeline, begin = of_one_radius(config, seed, rate)
        rows.extend({"rate": rate, "way": way} | cost(timeline, begin, way) for way in ("unicast", "lid", "c"))
    return rows


NOTIFICATIONS: dict[str, Run] = {
    "radii": _by_size("radii", ["unicast", "r", "lr"]),
    "same": _by_size("same", ["unicast", "lid", "c", "lr"]),
    "arrivals": _arrivals,
    "all": _by_size("all", ["unicast", "r,lid", "lr"]),
    "stocks": _by_size("stocks", ["unicast", "r,lid", "lr"]),
}
