"""The serve bench: a real `tidings serve` with many subscriptions and clients, at a steady rate of changes.

How long creations and acknowledgements take, how late clients hear of a change, what a connection and an idle subscription cost
the front, whether anything is missing, and what clients that never read do to the others. Subscriptions, rows and changes are
those of the market workload.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tidings.bench import Options, Say, Serve
from tidings.bench.report import Figure, Report
from tidings.bench.serve.clients import SSE, WEBSOCKET
from tidings.bench.serve.crowd import Received, client_process, connect_deaf, raise_file_limit
from tidings.bench.serve.posting import Posted, post_at_rate
from tidings.bench.serve.service import Service, cpu_seconds, memory_bytes, running
from tidings.bench.stamp import describe, load_average, stamp
from tidings.model.codes import Int64Array
from tidings.model.errors import UsageError
from tidings.workloads.market import MarketFeed
from tidings.workloads.market.listing import SECTORS

TRANSPORTS = {SSE: (SSE,), WEBSOCKET: (WEBSOCKET,), "both": (SSE, WEBSOCKET)}
_FILLED_AT_ONCE = 1_000
_CREATED_AT_ONCE = 10_000
_SINGLES = _ACKNOWLEDGED = 300
_WARM_SHARE = 20
"""One of so many subscriptions and connections comes first, and is not counted: caches are filled by it."""
_READERS_PER_DEAF = 10
_QUIET_SECONDS = 1.0
_SETTLE_SHARE = 0.25
"""So much of the time is given to buffers of clients that never read to become full."""
GOALS = {
    "bulk_s_per_100k": 60.0,
    "create_p99_ms": 50.0,
    "ack_p50_ms": 10.0,
    "latency_p99_ms": 100.0,
    "connection_kb": 16.0,
    "idle_bytes": 300.0,
    "missing": 0.0,
    "deaf_mb": 64.0,
    "deaf_ratio": 2.0,
}
"""The most that a figure may be."""


def run(options: Options, say: Say) -> Report:
    serve = options.serve
    if serve.transport not in TRANSPORTS:
        raise UsageError(f"--transport is {', '.join(TRANSPORTS)}, not {serve.transport!r}")
    title = f"serve: {serve.clients:,} clients ({serve.transport}), {serve.rate:,} changes/s for {serve.seconds:,} s"
    report = Report(title, options.sizes, stamp(options.seed))
    if (problem := raise_file_limit(serve.clients + serve.clients // _READERS_PER_DEAF)) is not None:
        report.notes.append(problem)
        say(problem)
    for size in options.sizes:
        with tempfile.TemporaryDirectory(prefix="tidings-serve-") as folder:
            report.add(size, _Serve(Path(folder), size, serve, options.seed, say).run())
        _judge(report, size)
    report.stamp["load_average_end"] = load_average()
    report.notes.append(describe(report.stamp) + f"; load at the end {report.stamp['load_average_end'][0]}")
    return report


def _judge(report: Report, size: int) -> None:
    """Says which goals are missed. Something missing is not a matter of speed."""
    report.is_wrong |= bool(report.value("serve.missing", size) or report.value("serve.doubled", size))
    for key, most in GOALS.items():
        value = report.value(f"serve.{key}", size)
        if value is not None and value > most:
            report.notes.append(f"{size:,} subscriptions: {key} is {value:,.4g}, the goal is {most:g}")


class _Serve:
    def __init__(self, folder: Path, size: int, serve: Serve, seed: int, say: Say) -> None:
        self._folder, self._size, self._serve, self._say = folder, size, serve, say
        self._feed = MarketFeed(seed)
        queries = self._feed.queries()
        self._subscriptions = [(f"s{number}", next(queries)) for number in range(size)]
        self._singles = [(f"single{number}", sql) for number, sql in enumerate(islice(queries, _SINGLES))]
        self._figures: list[Figure] = []
        self._peak = 0

    def _add(self, key: str, label: str, unit: str, value: float) -> None:
        goal = f" (goal {GOALS[key]:g})" if key in GOALS else ""
        self._figures.append(Figure(f"serve.{key}", label + goal, unit, float(value)))

    def run(self) -> list[Figure]:
        with running(self._folder, MarketFeed.catalog_sql) as service, ExitStack() as stack:
            filling = self._feed.changes(self._feed.filling)
            for start in range(0, len(filling), _FILLED_AT_ONCE):
                service.post_changes(filling[start : start + _FILLED_AT_ONCE])
            self._create(service)
            self._acknowledge(service)
            ids = [id for id, _ in self._subscriptions[:: max(1, self._size // self._serve.clients)]]
            ids = [ids[number % len(ids)] for number in range(self._serve.clients)]
            transports = self._transports(len(ids))
            clients = stack.enter_context(client_process(service, self._folder, ids, transports))
            self._connect(service, clients.connect)
            steady = self._post(service, clients.pid)
            deaf = self._with_deaf(service, stack)
            time.sleep(_QUIET_SECONDS)
            received = clients.stop()
            self._latencies(steady, received, transports)
            self._compare_deaf(steady, deaf, received)
            self._check(service, ids, received)
        return self._figures

    def _transports(self, count: int) -> list[str]:
        kinds = TRANSPORTS[self._serve.transport]
        return [kinds[number % len(kinds)] for number in range(count)]

    def _create(self, service: Service) -> None:
        warm = max(1, self._size // _WARM_SHARE)
        began = time.perf_counter()
        service.bulk(self._subscriptions[:warm])
        time.sleep(_QUIET_SECONDS)
        before, paused = memory_bytes(service.pid), time.perf_counter()
        for start in range(warm, self._size, _CREATED_AT_ONCE):
            service.bulk(self._subscriptions[start : start + _CREATED_AT_ONCE])
        seconds = time.perf_counter() - paused
        time.sleep(_QUIET_SECONDS)
        count = max(1, self._size - warm)
        taken = max(0, memory_bytes(service.pid) - before)
        self._say(f"{self._size:,} subscriptions created in {time.perf_counter() - began - 2 * _QUIET_SECONDS:.1f} s")
        self._add("bulk_s_per_100k", "bulk creation of 100k subscriptions", "s", seconds / count * 100_000)
        self._add("idle_bytes", "front memory of an idle subscription", "B", taken / count)
        singles = []
        for id, sql in self._singles:
            began = time.perf_counter()
            service.create(id, sql)
            singles.append(1e3 * (time.perf_counter() - began))
        self._add("create_p50_ms", "creation of one, median", "ms", np.percentile(singles, 50))
        self._add("create_p99_ms", "creation of one, 99%", "ms", np.percentile(singles, 99))

    def _acknowledge(self, service: Service) -> None:
        """One change at a time, while nobody listens."""
        taken = []
        for line in self._feed.changes(_ACKNOWLEDGED):
            began = time.perf_counter()
            service.post_changes([line])
            taken.append(1e3 * (time.perf_counter() - began))
        self._add("ack_p50_ms", "one change durable, applied and acknowledged, median", "ms", np.percentile(taken, 50))
        self._add("ack_p99_ms", "one change durable, applied and acknowledged, 99%", "ms", np.percentile(taken, 99))

    def _connect(self, service: Service, connect: object) -> None:
        assert callable(connect)
        warm = max(1, self._serve.clients // _WARM_SHARE)
        connect(warm)
        time.sleep(_QUIET_SECONDS)
        before, began = memory_bytes(service.pid), time.perf_counter()
        count = self._serve.clients - warm
        connect(count)
        seconds = time.perf_counter() - began
        time.sleep(_QUIET_SECONDS)
        self._say(f"{self._serve.clients:,} clients connected, {count / seconds:,.0f}/s")
        taken = memory_bytes(service.pid) - before
        self._add("connection_kb", "front memory of a connection", "kB", taken / max(1, count) / 1e3)

    def _post(self, service: Service, clients: int) -> Posted:
        """At the rate, with all clients; and what this takes of the processors."""
        lines = self._feed.changes(self._serve.rate * self._serve.seconds)
        pids = {"front": service.pid, "engine": service.engine_pid, "clients": clients}
        before = {name: cpu_seconds(pid) for name, pid in pids.items()}
        posted = post_at_rate(service, lines, self._serve.rate, lambda: None)
        self._say(f"{posted.changes:,} changes posted in {posted.seconds:.1f} s")
        self._add("changes_per_s", "changes posted", "/s", posted.changes / posted.seconds)
        for name, pid in pids.items():
            used = (cpu_seconds(pid) - before[name]) / posted.seconds
            self._add(f"cpu_{name}", f"processor time of {name}, of one core", "%", 100 * used)
        return posted

    def _with_deaf(self, service: Service, stack: ExitStack) -> Posted:
        """The same beside clients that never read, once these have what fits into their buffers."""
        broad = [f"broad{number}" for number in range(len(SECTORS))]
        for id, sector in zip(broad, SECTORS, strict=True):
            service.create(id, f"SELECT * FROM stocks WHERE sector = '{sector}'")
        time.sleep(_QUIET_SECONDS)
        before = self._peak = memory_bytes(service.pid)
        count = max(1, self._serve.clients // _READERS_PER_DEAF)
        ids = [broad[number % len(broad)] for number in range(count)]
        connect_deaf(stack, service, ids, self._transports(count))

        def sample() -> None:
            self._peak = max(self._peak, memory_bytes(service.pid))

        settle = max(1, int(self._serve.seconds * _SETTLE_SHARE))
        rate = self._serve.rate
        post_at_rate(service, self._feed.changes(rate * settle), rate, sample)
        posted = post_at_rate(service, self._feed.changes(rate * max(1, self._serve.seconds // 2)), rate, sample)
        sample()
        self._say(f"{count:,} clients that never read: {posted.changes:,} changes posted in {posted.seconds:.1f} s")
        self._add("deaf", "clients that never read", "clients", count)
        self._add("deaf_mb", "front memory that they take at most", "MB", (self._peak - before) / 1e6)
        return posted

    def _latencies(self, posted: Posted, received: Received, transports: Sequence[str]) -> None:
        is_own = posted.has(received.seq)
        late = _latency_ms(posted, received)
        told = len(np.unique(received.client[is_own]))
        self._add("delivered_per_s", "notifications delivered", "/s", len(late) / posted.seconds)
        self._add("clients_told", "clients that were told something", "clients", told)
        if len(late):
            self._add("latency_p50_ms", "change due to client, median", "ms", np.percentile(late, 50))
            self._add("latency_p99_ms", "change due to client, 99%", "ms", np.percentile(late, 99))
            self._add("latency_max_ms", "change due to client, longest", "ms", late.max())
        answered = posted.answered_ms
        self._add("rate_ack_p50_ms", "request at that rate acknowledged, median", "ms", np.percentile(answered, 50))
        self._add("rate_ack_p99_ms", "request at that rate acknowledged, 99%", "ms", np.percentile(answered, 99))
        kinds = np.array(transports)[received.client[is_own]]
        for kind in TRANSPORTS[self._serve.transport] if self._serve.transport == "both" else ():
            if (own := late[kinds == kind]).size:
                self._add(
                    f"{kind}.latency_p99_ms", f"change due to client by {kind}, 99%", "ms", np.percentile(own, 99)
                )

    def _compare_deaf(self, steady: Posted, deaf: Posted, received: Received) -> None:
        alone, beside = _latency_ms(steady, received), _latency_ms(deaf, received)
        if len(alone) and len(beside):
            found = np.percentile(beside, 99)
            self._add("deaf_p99_ms", "change due to client beside them, 99%", "ms", found)
            self._add("deaf_ratio", "99% beside them over 99% without", "", found / np.percentile(alone, 99))

    def _check(self, service: Service, ids: Sequence[str], received: Received) -> None:
        """Compares what each client received with what polls give now."""
        epoch = str(service.ready()["epoch"])
        order = np.argsort(received.client, kind="stable")
        ends = np.searchsorted(received.client[order], np.arange(len(ids) + 1))
        missing = doubled = expected = 0
        for client, id in enumerate(ids):
            own = order[ends[client] : ends[client + 1]]
            wanted = np.array(service.seqs_since(id, int(received.begun[client]), epoch), np.int64)
            seqs, starts = received.seq[own], received.net_from[own]
            expected += len(wanted)
            doubled += int((np.diff(seqs) <= 0).sum())
            missing += _missing(wanted, seqs, starts)
        self._add("expected", "notifications compared with polls", "lines", expected)
        self._add("missing", "missing", "lines", missing)
        self._add("doubled", "doubled or out of order", "lines", doubled)
        self._add("net", "net changes instead of single ones", "lines", int((received.net_from >= 0).sum()))
        self._add("lost", "connections lost", "clients", received.lost)
        self._add("resets", "clients that had to begin anew", "clients", received.resets)


def _latency_ms(posted: Posted, received: Received) -> NDArray[np.float64]:
    is_own = posted.has(received.seq)
    return (received.at_ns[is_own] - posted.due(received.seq[is_own])) / 1e6


def _missing(wanted: Int64Array, seqs: Int64Array, net_from: Int64Array) -> int:
    """How many of the seqs wanted were neither received nor lie in a net change."""
    gone = wanted[~np.isin(wanted, seqs)]
    for start, end in zip(net_from[net_from >= 0], seqs[net_from >= 0], strict=True):
        gone = gone[(gone <= start) | (gone > end)]
    return len(gone)
