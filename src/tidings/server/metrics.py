"""Figures of the service for Prometheus. Labels are families and reasons, never ids, so that their number stays small."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from tidings.server.engine.frames import Done

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Metrics:
    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._changes = Counter("tidings_changes", "Changes applied", registry=registry)
        self._notifications = Counter("tidings_notifications", "Notifications", ["family"], registry=registry)
        self._refused = Counter("tidings_refused", "Records refused", ["reason"], registry=registry)
        self._batches = Histogram(
            "tidings_batch_seconds", "Duration of a micro-batch", buckets=_SECONDS, registry=registry
        )
        self._subscriptions = Gauge("tidings_subscriptions", "Living subscriptions", registry=registry)
        self._rows = Gauge("tidings_rows", "Rows of all tables", registry=registry)
        self._seq = Gauge("tidings_seq", "The last seq", registry=registry)
        self._connections = Gauge("tidings_connections", "Open streams", registry=registry)

    def add(self, done: Done) -> None:
        self._batches.observe(done.seconds)
        self._seq.set(done.passed)
        for name, count in done.counts.items():
            if name.startswith("notifications_"):
                self._notifications.labels(name.removeprefix("notifications_")).inc(count)
            elif name.startswith("refused_"):
                self._refused.labels(name.removeprefix("refused_")).inc(count)
        self._changes.inc(done.counts.get("changes", 0))
        if "subscriptions" in done.counts:
            self._subscriptions.set(done.counts["subscriptions"])
            self._rows.set(done.counts["rows"])

    def text(self, connections: int) -> bytes:
        self._connections.set(connections)
        found: bytes = generate_latest(self._registry)
        return found
