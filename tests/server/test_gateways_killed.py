"""Three gateways, one at a leaf node and one behind a broker, while everything is killed in turn and the leaf's link is cut:
nothing is lost.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from leaf_node import Hub, Link, leaf_node, source_place
from live_job import expected, view
from place_processes import BrokerProcess, GatewayProcess, PlacesJob, until
from service_process import CATALOG, stock
from tidings.sinks.publisher import Publisher, Sending
from tidings.sources.jetstream import Address, JetStream

pytestmark = pytest.mark.extended
PLACES = ("berlin", "eu/paris", "rome")
RATE = 2_000
SECONDS = float(os.environ.get("TIDINGS_KILL_SECONDS", "60"))
LINES = 20
"""Changes in a message."""
SYMBOLS, REVIEWS = 400, 300


def queries(count: int) -> dict[str, str]:
    rng = random.Random(7)
    found = {}
    for number in range(count):
        low = rng.randrange(0, 9_000) / 100
        found[f"q{number}"] = [
            f"SELECT symbol, price FROM stocks WHERE price BETWEEN {low} AND {low + 2}",
            f"SELECT symbol, price FROM stocks WHERE risk BETWEEN {number % 9} AND {number % 9 + 1} ORDER BY price LIMIT 3",
            f"SELECT symbol, price FROM stocks WHERE symbol = 'S{number % SYMBOLS}' AND moved(price) >= 5",
            f"SELECT * FROM stocks JOIN reviews USING (symbol) WHERE stocks.price >= {90 + low / 10} AND reviews.rating >= 7",
        ][number % 4]
    return found


def change(number: int) -> dict[str, Any]:
    rng = random.Random(number)
    symbol = f"S{rng.randrange(SYMBOLS)}"
    if number % 5 == 4:
        row = {"id": rng.randrange(REVIEWS), "symbol": symbol, "rating": float(rng.randrange(10)), "report": ""}
        return {"table": "reviews", "op": "upsert", "row": row}
    if number % 11 == 10:
        return {"table": "stocks", "op": "upsert", "row": {**stock(symbol, 0.0)["row"], "price": None}}
    return stock(symbol, rng.randrange(10_000) / 100, risk=float(rng.randrange(10)))


class Writer(threading.Thread):
    """Publishes changes at a steady rate, whatever happens to the server."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._publisher = Publisher(Address((url,), timeout=120))
        self.written = 0

    def run(self) -> None:
        began, pause = time.monotonic(), threading.Event()
        while self.written < RATE * SECONDS:
            if self.written >= (time.monotonic() - began) * RATE:
                pause.wait(0.005)
                continue
            records = [json.dumps(change(each)).encode() for each in range(self.written, self.written + LINES)]
            self._publisher.send([Sending("changes", f"c{self.written}", b"\n".join(records), is_ordered=True)])
            self.written += LINES
        self._publisher.finish()
        self._publisher.close()

    def finish(self) -> int:
        self.join(300)
        return self.written


class Lags(threading.Thread):
    """How many seconds of changes each gateway has not told of, twice a second while there are changes and it answers."""

    def __init__(self, url: str, writer: Writer, gateways: dict[str, GatewayProcess]) -> None:
        super().__init__(daemon=True)
        self._url, self._writer, self._gateways = url, writer, gateways
        self._found: dict[str, list[float]] = {place: [] for place in gateways}
        self._is_over = threading.Event()

    def run(self) -> None:
        while self._writer.is_alive() and not self._is_over.wait(0.5):
            for place, gateway in self._gateways.items():
                with suppress(Exception), JetStream(Address((self._url,), timeout=1)) as connection:
                    stored = LINES * connection.stream("CHANGES").state.messages
                    self._found[place].append(max(0.0, (stored - gateway.passed()) / RATE))

    def finish(self) -> None:
        self._is_over.set()
        self.join(30)

    def __str__(self) -> str:
        texts = [
            f"{place} p50 {sorted(found)[len(found) // 2]:.2f} s, max {max(found):.1f} s"
            for place, found in self._found.items()
            if found
        ]
        return f"lag: {'; '.join(texts)}"


def test_nothing_is_lost_or_told_twice_whoever_is_killed(tmp_path: Path) -> None:
    wanted_queries = queries(240)
    place_of = {id: PLACES[number % 3] for number, id in enumerate(wanted_queries)}
    with ExitStack() as stack:
        hub = Hub(tmp_path / "hub")
        stack.callback(hub.close)
        link = Link(hub.leaf_port)
        stack.callback(link.close)
        leaf = stack.enter_context(leaf_node(tmp_path / "leaf", link))
        words = [f"places={','.join(PLACES)}", "stream=TIDINGS", f"servers={hub.server.url}", "timeout=120"]
        sink = ["--sink", "places:nats:tidings", *(word for each in words for word in ("--sink-option", each))]
        job = PlacesJob(tmp_path / "job", CATALOG, hub.server, sink)
        job.start()
        stack.callback(job.stop)
        source_place(leaf, "ROME", "TIDINGS", "tidings.place.rome")
        job.send("events", ({"id": id, "sql": sql, "place": place_of[id]} for id, sql in wanted_queries.items()))
        until(lambda: "240 subscription events (0 refused)" in job.job.errors, lambda: job.job.errors)
        option = f"servers={hub.server.url}"
        broker = BrokerProcess(tmp_path / "eu", "nats:tidings", "eu", "--feed-option", option)
        stack.enter_context(broker)
        gateways = {
            place: GatewayProcess(tmp_path / place.replace("/", "-"), "nats:tidings", place, "--feed-option", option)
            for place in PLACES[:2]
        }
        at_leaf = ["--feed-option", f"servers={leaf.url}", "--feed-option", "stream=ROME"]
        gateways["rome"] = GatewayProcess(tmp_path / "rome", "nats:tidings", "rome", *at_leaf)
        for gateway in gateways.values():
            stack.enter_context(gateway)
        berlin, paris, rome = gateways.values()
        writer = Writer(hub.server.url)
        writer.start()
        lags = Lags(hub.server.url, writer, gateways)
        lags.start()
        began = time.monotonic()

        def at(share: float) -> None:
            """Waits until such a share of the time is over."""
            threading.Event().wait(max(0.0, began + share * SECONDS - time.monotonic()))

        at(0.1)
        job.kill()
        job.start()
        at(0.2)
        broker.kill()
        broker.start()
        at(0.3)
        hub.kill()
        threading.Event().wait(1.0)
        hub.start()
        at(0.4)
        link.cut()
        rome.kill()
        rome.start()
        berlin.kill()
        berlin.start()
        paris.kill_engine()
        at(0.9)
        link.mend()
        paris.stop()
        shutil.rmtree(paris.data)
        paris.start()
        changes = writer.finish()
        assert changes == RATE * SECONDS
        wanted = expected(CATALOG, wanted_queries, dict.fromkeys(wanted_queries, 1), map(change, range(changes)))
        for gateway in gateways.values():
            until(lambda gateway=gateway: gateway.passed() >= changes, gateway.log)  # type: ignore[misc]
        lags.finish()
        lines = 0
        for id, place in place_of.items():
            records = [json.loads(line) for line in wanted[id]]
            rows, gateway = view(records), gateways[place]

            def held(id: str = id, gateway: GatewayProcess = gateway) -> Any:
                found = gateway.rows(id)
                return None if found is None else view([{"snapshot": True, "changes": _inserts(found)}])

            until(
                lambda held=held, rows=rows: held() == rows,  # type: ignore[misc]
                lambda id=id, gateway=gateway: f"{id}: {gateway.log()}",  # type: ignore[misc]
            )
            told = gateway.told(id)
            seqs = [each["seq"] for each in told]
            assert seqs == sorted(set(seqs)), id
            own, all_of_them = _contents(told), _contents(records)
            assert own == all_of_them[len(all_of_them) - len(own) :], id
            if place != "eu/paris":
                assert len(own) == len(all_of_them), id
            lines += len(own)
        print(f"{changes:,} changes, {lines:,} lines told, none wrong, missing or doubled; {lags}")


def _contents(told: list[dict[str, Any]]) -> list[Any]:
    """What was told after the last snapshot."""
    begin = max((number for number, each in enumerate(told, 1) if each["snapshot"]), default=0)
    return [each["changes"] for each in told[begin:]]


def _inserts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"op": "insert", "row": row} for row in rows]
