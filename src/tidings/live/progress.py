"""Progress of a live job: figures of every micro-batch, as a line of a log, and for Prometheus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidings.model.errors import UsageError


@dataclass(frozen=True)
class Batch:
    """Figures of one micro-batch. counts: by the names of `counters.fields`, of all shards.

    seconds: from its trigger to its commit. lag_records: records that the sources have and the job has not yet taken; None
    if no source says. notes: lines for the log.
    """

    number: int
    seconds: float
    counts: Mapping[str, int]
    lag_records: int | None
    notes: Sequence[str] = ()

    def latency(self, quantile: str) -> float | None:
        """Seconds from the time of a change to its notifications; None if the source has no times. quantile: p50, p99, max."""
        return self.counts.get(f"latency_{quantile}", 0) / 1e6 or None

    def total(self, prefix: str) -> int:
        """Sum of all counts whose names begin so."""
        return sum(count for name, count in self.counts.items() if name.startswith(prefix))

    def lines(self) -> list[str]:
        """Lines for a log: notes, and the figures."""
        counts = self.counts
        parts = [
            f"batch {self.number}: {counts.get('changes', 0):,} changes, {self.total('notifications_'):,} notifications"
        ]
        if counts.get("answers"):
            parts.append(f"{counts['answers']:,} subscription events ({counts['answers_refused']:,} refused)")
        if refused := self.total("refused_"):
            parts.append(f"{refused:,} records refused")
        if counts.get("shared_keys"):
            parts.append(f"{counts['shared_keys']:,} changes of rows that come by several partitions")
        timing = f"{self.seconds:.2f} s"
        found = [
            f"{name} {seconds:.2f} s" for name in ("p50", "p99", "max") if (seconds := self.latency(name)) is not None
        ]
        if found:
            timing += f", latency {' '.join(found)}"
        if self.lag_records:
            timing += f", {self.lag_records:,} records behind"
        if counts.get("cache_rebuilds"):
            timing += f", {counts['cache_rebuilds']} shards restored"
        return [*self.notes, f"{', '.join(parts)}; {timing}"]


class Exporter:
    """Figures of all micro-batches so far, for Prometheus, at http://HOST:PORT/metrics."""

    def __init__(self, host: str, port: int) -> None:
        """Port 0: any free one, see `port`."""
        try:
            from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server
        except ImportError:
            raise UsageError(
                "metrics need the package prometheus-client: pip install '.[metrics]' in the clone"
            ) from None
        self._registry = registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Any:
            return Counter(f"tidings_{name}", text, labels, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Any:
            return Gauge(f"tidings_{name}", text, labels, registry=registry)

        self._totals = {
            "changes": counter("changes", "Changes applied"),
            "messages": counter("messages", "Changes handed to a family, for each family that reads the table"),
            "deliveries": counter("deliveries", "Changes that reached a subscription"),
            "folds": counter("state_folds", "Bases of state written"),
            "answers": counter("subscription_events", "Subscription events answered"),
            "answers_refused": counter("subscription_events_refused", "Subscription events refused"),
            "shared_keys": counter("shared_keys", "Changes of rows that came by another partition before"),
        }
        self._labelled = {
            "notifications_": counter("notifications", "Notifications", "family"),
            "refused_": counter("refused", "Records refused", "reason"),
            "cache_": counter("shards", "Shards found in memory, brought up to date, or restored", "how"),
        }
        self._now = {
            "rows": gauge("rows", "Rows of all tables"),
            "subscriptions": gauge("subscriptions", "Living subscriptions"),
            "state_bytes": gauge("state_bytes", "Bytes of durable state, all shards"),
            "memory_bytes": gauge("memory_bytes", "Bytes of shards in memory"),
        }
        self._seconds = gauge("batch_seconds", "Duration of the last micro-batch")
        self._number = gauge("batch", "Number of the last micro-batch")
        self._lag = gauge("lag_records", "Records that sources have and the job has not yet taken")
        self._latency = gauge("latency_seconds", "From change to notification, in the last micro-batch", "quantile")
        try:
            self._server, self._thread = start_http_server(port, host, registry)
        except OSError as error:
            raise UsageError(f"metrics cannot be served at {host}:{port}: {error.strerror}") from None
        self.port = int(self._server.server_port)

    def add(self, batch: Batch) -> None:
        for name, total in self._totals.items():
            total.inc(batch.counts.get(name, 0))
        for prefix, labelled in self._labelled.items():
            for name, count in batch.counts.items():
                if name.startswith(prefix):
                    labelled.labels(name.removeprefix(prefix)).inc(count)
        for name, now in self._now.items():
            now.set(batch.counts.get(name, 0))
        self._seconds.set(batch.seconds)
        self._number.set(batch.number)
        if batch.lag_records is not None:
            self._lag.set(batch.lag_records)
        for label, name in (("0.5", "p50"), ("0.99", "p99"), ("1", "max")):
            if (seconds := batch.latency(name)) is not None:
                self._latency.labels(label).set(seconds)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
