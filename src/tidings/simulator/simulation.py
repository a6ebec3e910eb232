"""A run: events are published in their time, brokers do what they do, faults happen, and every delivery is checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from tidings.kernels.arrays import I64
from tidings.network.broker import Broker, Cell
from tidings.network.messages import SERVER, Event, Frame, Message
from tidings.network.node import RETRY_MS, Node, Server
from tidings.network.overlays import Can, Overlay, Tree, Unicast
from tidings.network.payload_cache import PayloadCache
from tidings.network.zones import Directory, partition
from tidings.simulator.config import Config, Faults
from tidings.simulator.files import Traffic
from tidings.simulator.links import Clock, Links
from tidings.simulator.metrics import Metrics
from tidings.simulator.point_store import PointStore
from tidings.simulator.topology import ip_hops

_AHEAD = 256
"""So many events are routed and looked up at a time."""
_AFTER_MS = 1_000.0
"""Faults go on for so long after the last event."""
_PATIENCE_MS = 3_600_000.0
"""What is not acknowledged so long after the last event never will be: it is then counted as it stands."""
_DOWN_MS = (100.0, 2_000.0)
"""How long a broker is down, and how long a partition lasts."""


@dataclass
class Outcome:
    """What became of the events of a run."""

    lost: int = 0
    """Points that were not told, of all events."""
    twice: int = 0
    without_payload: int = 0
    unacknowledged: int = 0
    """Events of which the server never heard that they were done."""
    deliveries: dict[int, list[tuple[int, I64]]] = field(default_factory=dict)
    """Event -> (broker, points), if they are kept."""

    @property
    def is_right(self) -> bool:
        return not (self.lost or self.twice or self.without_payload or self.unacknowledged)


class Simulation:
    """One run, by one seed."""

    def __init__(self, config: Config, traffic: Traffic, seed: int, *, keeps_deliveries: bool = False) -> None:
        self._config, self._traffic, self._seed = config, traffic, seed
        self._random = Random(seed)
        self._keeps = keeps_deliveries
        self.outcome = Outcome()
        brokers = config.brokers
        self._hops = ip_hops(config.nodes, brokers, seed)
        zone_map, cell_of = partition(traffic.points, brokers)
        self._points = PointStore(traffic.points, cell_of)
        self._directory = Directory(zone_map)
        self._clock = Clock()
        self.metrics = Metrics(brokers, self._hops)
        self._links = Links(self._clock, config.faults, self._hops, self._random, self._arrive)
        is_cached = config.cache_bytes > 0 and config.overlay != "unicast"
        self._plain = [self._random.random() < config.plain_brokers for _ in range(brokers)]
        self._is_cached = is_cached
        self._server = Server(config.rules, PayloadCache(0) if is_cached else None)
        self._brokers = [self._broker(name) for name in range(brokers)]
        points = self._points.in_cells(zone_map.cell.tolist())
        for cell, lo, hi, owner in zip(zone_map.cell.tolist(), zone_map.lo, zone_map.hi, zone_map.owner, strict=True):
            self._brokers[owner].cells[cell] = Cell(lo, hi, points[cell])
        self._overlay: tuple[int, Overlay] = 0, self._made_overlay()
        self._down: set[int] = set()
        self._ticking: set[int] = set()
        sizes = traffic.sizes or [0] * len(traffic.ids)
        columns = zip(traffic.boxes, traffic.payload, traffic.payload_bytes, sizes, strict=True)
        self._events = [
            Event(seq, lo, hi, payload, payload_bytes, size)
            for seq, ((lo, hi), payload, payload_bytes, size) in enumerate(columns)
        ]
        self._told: dict[int, list[tuple[int, I64, bool]]] = {}
        self._is_told = np.zeros(len(traffic.points), np.bool_)
        """Points that an event has been told to, while it is checked."""
        self._done = 0
        self._on_event: Callable[[int], object] | None = None
        self._frames_seen: Callable[[float, Frame], object] | None = None

    def run(
        self, on_event: Callable[[int], object] | None = None, trace: Callable[[float, Frame], object] | None = None
    ) -> None:
        """Until everything is acknowledged. on_event: told how many events are done; trace: of everything sent."""
        self._on_event, self._frames_seen = on_event, trace
        if self._events:
            self._clock.at(self._traffic.at[0], self._publish, 0)
        if self._config.faults is not None:
            self._plan_faults(self._config.faults)
        end = max(self._traffic.at, default=0.0) + _PATIENCE_MS
        while self._clock.step() and self._clock.now < end:
            pass
        self.outcome.unacknowledged = len(self._told)
        for seq in list(self._told):
            self._check(self._events[seq])

    def result(self) -> dict[str, Any]:
        """Figures that depend on config, files and seed alone."""
        outcome, config, traffic = self.outcome, self._config, self._traffic
        return {
            "seed": self._seed,
            "overlay": config.overlay,
            "brokers": config.brokers,
            "points": len(traffic.points),
            "messages": len(traffic.ids),
            "lost": outcome.lost,
            "twice": outcome.twice,
            "without_payload": outcome.without_payload,
            "unacknowledged": outcome.unacknowledged,
            **self.metrics.result(len(traffic.points), len(traffic.ids)),
            "zone_map_version": self._directory.current.version,
            "milliseconds": self._clock.now,
            "trace": f"{self._links.trace & (2**64 - 1):016x}",
        }

    def deliveries(self) -> Iterator[tuple[Any, int, list[Any]]]:
        """(message, broker, points), by message and broker."""
        ids = self._traffic.point_ids
        for seq in range(len(self._events)):
            for broker, points in sorted(self.outcome.deliveries.get(seq, ()), key=lambda entry: entry[0]):
                yield self._traffic.ids[seq], broker, [ids[point] for point in points.tolist()]

    def _broker(self, name: int) -> Broker:
        cache = self._cache(name)
        return Broker(name, self._config.rules, cache, self._directory, self._points, self._deliver)

    def _cache(self, name: int) -> PayloadCache | None:
        return PayloadCache(self._config.cache_bytes) if self._is_cached and not self._plain[name] else None

    def _node(self, name: int) -> Node:
        return self._server if name == SERVER else self._brokers[name]

    # Events.

    def _publish(self, first: int) -> None:
        """Publishes the event, and plans the next."""
        event, version = self._events[first], self._directory.current.version
        if first % _AHEAD == 0:
            self._prepare(self._events[first : first + _AHEAD])
        if event.version != version:
            self._route([event])
        self.metrics.begin(event)
        self._told[event.seq] = []
        self.metrics.brokers_reached += len(event.route.copies) or sum(map(len, event.route.parts.values()))
        self._send(SERVER, self._server.publish(event, self._clock.now))
        if first + 1 < len(self._events):
            self._clock.at(max(self._clock.now, self._traffic.at[first + 1]), self._publish, first + 1)
        if not event.route.children(SERVER):
            self._check(event)

    def _prepare(self, events: list[Event]) -> None:
        self._points.look_up(events)
        self._route(events)

    def _route(self, events: list[Event]) -> None:
        zone_map = self._directory.current
        if self._overlay[0] != zone_map.version:
            self._overlay = zone_map.version, self._made_overlay()
        for event, route in zip(events, self._overlay[1].routes(events), strict=True):
            event.version, event.route = zone_map.version, route

    def _made_overlay(self) -> Overlay:
        zone_map, brokers, kind = self._directory.current, self._config.brokers, self._config.overlay
        self._points.follow(zone_map)
        if kind == "unicast":
            return Unicast(self._points.by_owner)
        if kind == "can":
            return Can(zone_map, brokers, self._hops[SERVER, :brokers])
        return Tree(zone_map, brokers, None if kind == "btree" else self._points.bounds())

    def _check(self, event: Event) -> None:
        """Compares what was delivered with what should have been."""
        expected = self._points.reached(event)
        told = self._told.pop(event.seq)
        for _, points, _ in told:
            self._is_told[points] = True
        # Brokers find points by themselves: nobody else can be told.
        once = int(np.count_nonzero(self._is_told[expected]))
        self._is_told[expected] = False
        self.outcome.twice += sum(len(points) for _, points, _ in told) - once
        self.outcome.lost += len(expected) - once
        if event.payload_bytes:
            self.outcome.without_payload += sum(len(points) for _, points, has_payload in told if not has_payload)
        if self._keeps:
            self.outcome.deliveries[event.seq] = [(broker, points.astype(np.int32)) for broker, points, _ in told]
        self.metrics.end(event)
        self._points.forget(event)
        self._done += 1
        if self._on_event is not None:
            self._on_event(self._done)

    def _deliver(self, broker: int, message: Message, points: I64, has_payload: bool) -> None:
        told = self._told.get(message.event.seq)
        if told is None:
            self.outcome.twice += len(points)
            return
        told.append((broker, points, has_payload))
        self.metrics.delivered(message, len(points))

    # Frames.

    def _send(self, name: int, frames: list[Frame]) -> None:
        for frame in frames:
            size = frame.size
            self.metrics.sent(frame, size)
            if self._frames_seen is not None:
                self._frames_seen(self._clock.now, frame)
            self._links.send(frame, size)
        if self._config.faults is not None:
            self._watch(name)

    def _arrive(self, frame: Frame) -> None:
        if frame.to in self._down:
            return
        node = self._node(frame.to)
        self._send(frame.to, node.receive(frame, self._clock.now))
        if frame.to == SERVER:
            self._finish_events()

    def _finish_events(self) -> None:
        """Checks the events that the server has just been told are done."""
        for seq in self._server.finished():
            self._check(self._events[seq])

    def _watch(self, name: int) -> None:
        """Plans a tick for a node that waits for something. Without faults nothing is ever sent again: there are no ticks."""
        if name in self._ticking or self._node(name).is_idle:
            return
        self._ticking.add(name)
        self._clock.at(self._clock.now + RETRY_MS / 4, self._tick, name)

    def _tick(self, name: int) -> None:
        self._ticking.discard(name)
        if name not in self._down:
            self._send(name, self._node(name).tick(self._clock.now))

    # Faults.

    def _plan_faults(self, faults: Faults) -> None:
        end = max(self._traffic.at, default=0.0) + _AFTER_MS
        kinds = {
            self._restart: faults.restarts,
            self._cut: faults.partitions,
            self._evict: faults.evictions,
            self._split: faults.splits,
            self._merge: faults.merges,
        }
        for action, count in kinds.items():
            for _ in range(count):
                self._clock.at(self._random.uniform(0.0, end), action, None)

    def _restart(self, _: None) -> None:
        up = [name for name in range(len(self._brokers)) if name not in self._down]
        if up:
            name = self._random.choice(up)
            self._down.add(name)
            self._clock.at(self._clock.now + self._random.uniform(*_DOWN_MS), self._come_back, name)

    def _come_back(self, name: int) -> None:
        """A broker is up again. Where some do not cache, it comes back with the other software, as after an upgrade."""
        self._down.discard(name)
        if 0 < self._config.plain_brokers < 1:
            self._plain[name] = not self._plain[name]
        self._brokers[name].restart(self._cache(name))
        self._watch(name)

    def _cut(self, _: None) -> None:
        cut = [name for name in range(len(self._brokers)) if self._random.random() < 0.5]
        self._links.cut = frozenset(cut)
        self._clock.at(self._clock.now + self._random.uniform(*_DOWN_MS), self._heal, self._links.cut)

    def _heal(self, cut: frozenset[int]) -> None:
        if self._links.cut is cut:
            self._links.cut = frozenset()

    def _evict(self, _: None) -> None:
        cache = self._random.choice(self._brokers).cache
        if cache is not None:
            cache.evict()

    def _split(self, _: None) -> None:
        """The broker with the most points gives half of a cell to the one with the fewest."""
        self._give(is_whole=False)

    def _merge(self, _: None) -> None:
        """The broker with the fewest points gives a cell to the one that has the next fewest."""
        self._give(is_whole=True)

    def _give(self, *, is_whole: bool) -> None:
        held = self._directory.current
        size = {name: 0 for name in range(len(self._brokers)) if name not in self._down}
        cells: dict[int, list[tuple[int, int]]] = {}
        for cell, owner in zip(held.cell.tolist(), held.owner.tolist(), strict=True):
            if owner in size and cell in self._brokers[owner].cells:
                points = len(self._brokers[owner].cells[cell].points)
                size[owner] += points
                if not self._brokers[owner].is_moving:
                    cells.setdefault(owner, []).append((points, cell))
        by_size = sorted(size, key=lambda name: (size[name], name))
        givers = [name for name in (by_size if is_whole else reversed(by_size)) if name in cells]
        if not givers or len(by_size) < 2:
            return
        giver = givers[0]
        to = next(name for name in by_size if name != giver)
        cell = (min if is_whole else max)(cells[giver])[1]
        self._send(giver, self._brokers[giver].give(cell, to, self._clock.now, is_whole=is_whole))
