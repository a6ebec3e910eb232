"""A service whose processes are killed under load: what was acknowledged is there, and nobody has a gap or a double."""

from __future__ import annotations

import json
import resource
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import httpx2
import pytest

from service_process import Service, create, events, post, settle, stock

SYMBOLS = 8


class Writer(threading.Thread):
    """Posts changes until told to stop, each again until it is acknowledged. `seq` of a producer makes that safe."""

    def __init__(self, service: Service, name: str) -> None:
        super().__init__(daemon=True)
        self._service = service
        self._producer = name
        self._done = threading.Event()
        self.acknowledged = 0
        self.repeats = 0
        self.failures: list[str] = []

    def run(self) -> None:
        waited = threading.Event()
        while not self._done.is_set():
            number = self.acknowledged + 1
            record = {"seq": number, **stock(f"{self._producer}{number % SYMBOLS}", float(number))}
            while True:
                try:
                    with self._service.client() as client:
                        done = client.post(
                            "/v1/changes",
                            params={"producer": self._producer},
                            content=json.dumps(record),
                            headers={"content-type": "application/x-ndjson"},
                        )
                except httpx2.HTTPError:
                    waited.wait(0.05)
                    self.repeats += 1
                    continue
                if done.status_code in (200, 202):
                    break
                assert done.status_code == 503, done.text
                self.repeats += 1
                waited.wait(0.05)
            refused = done.json().get("refused")
            if refused and "is a duplicate" not in refused[0]["reason"]:
                self.failures.append(done.text)
            self.acknowledged = number

    def finish(self) -> None:
        self._done.set()
        self.join(60)
        assert not self.is_alive() and not self.failures, self.failures

    def wait_for(self, more: int) -> None:
        wanted = self.acknowledged + more
        waited = threading.Event()
        for _ in range(6_000):
            if self.acknowledged >= wanted:
                return
            waited.wait(0.01)
        raise AssertionError("nothing is acknowledged any more")


class Reader(threading.Thread):
    """Follows a subscription, and resumes where it was when the stream breaks."""

    def __init__(self, service: Service, id: str) -> None:
        super().__init__(daemon=True)
        self._service = service
        self._id = id
        self._done = threading.Event()
        self.view: Counter[str] = Counter()
        self.told: dict[int, str] = {}
        """Seq -> the line."""
        self.seq = 0
        self.problems: list[str] = []

    def run(self) -> None:
        position: str | None = None
        waited = threading.Event()
        while not self._done.is_set():
            try:
                with self._service.client() as client:
                    after = {} if position is None else {"after": position}
                    with events(client, self._id, **after) as stream:
                        for event in stream:
                            position = event.get("id", position)
                            self._take(event)
                            if self._done.is_set():
                                return
            except (httpx2.HTTPError, AssertionError):
                waited.wait(0.05)

    def _take(self, event: dict[str, Any]) -> None:
        told = event["data"]
        if event["event"] == "progress":
            return
        if event["event"] not in ("snapshot", "change") or (told["snapshot"] and self.told):
            self.problems.append(f"a stream that was resumed said {event}")
            return
        if told["seq"] in self.told:
            if self.told[told["seq"]] != event["line"]:
                self.problems.append(f"seq {told['seq']} was told in other words")
            return
        self.told[told["seq"]] = event["line"]
        for each in told["changes"]:
            if each["op"] != "insert":
                gone = json.dumps(each["row"] if each["op"] == "delete" else each["old"])
                self.view[gone] -= 1
                if self.view[gone] < 0:
                    self.problems.append(f"retracted, but not told: {gone}")
                if not self.view[gone]:
                    del self.view[gone]
            if each["op"] != "delete":
                self.view[json.dumps(each["row"])] += 1
        self.seq = told["seq"]

    def finish(self, rows: Counter[str]) -> None:
        waited = threading.Event()
        for _ in range(3_000):
            if self.view == rows:
                break
            waited.wait(0.01)
        self._done.set()
        assert not self.problems
        assert self.view == rows


def rows_of(client: httpx2.Client, id: str) -> Counter[str]:
    return Counter(json.dumps(row) for row in client.get(f"/v1/subscriptions/{id}/rows").json()["rows"])


@pytest.mark.parametrize(
    ("engine", "kills"),
    [
        ("inline", 2),
        pytest.param("inline", 6, marks=pytest.mark.extended),
        pytest.param("spark", 1, marks=pytest.mark.spark),
        pytest.param("spark", 5, marks=[pytest.mark.spark, pytest.mark.extended]),
    ],
)
def test_engine_and_front_are_killed_in_turn(tmp_path: Path, engine: str, kills: int) -> None:
    queries = {
        "all": "SELECT * FROM stocks",
        "top": "SELECT symbol, price FROM stocks WHERE per >= 1 ORDER BY price DESC LIMIT 3",
        "moved": "SELECT * FROM stocks WHERE moved(price) >= 20",
    }
    with Service(tmp_path, "--engine", engine) as service:
        with service.client() as client:
            for id, sql in queries.items():
                create(client, id, sql)
        readers = {id: Reader(service, id) for id in queries}
        writers = [Writer(service, name) for name in ("a", "b")]
        for thread in (*readers.values(), *writers):
            thread.start()
        for number in range(kills):
            writers[0].wait_for(30)
            if number % 2:
                service.kill()
                service.wait_for_the_end_of(service.engine_pid)
                service.start()
            else:
                service.kill_engine()
        writers[1].wait_for(30)
        for writer in writers:
            writer.finish()
        with service.client() as client:
            settle(client)
            last = {f"{w._producer}{n % SYMBOLS}": float(n) for w in writers for n in range(1, w.acknowledged + 1)}
            rows = client.get("/v1/subscriptions/all/rows").json()["rows"]
            assert {row["symbol"]: row["price"] for row in rows} == last
            for id, reader in readers.items():
                reader.finish(rows_of(client, id))
        assert len(readers["all"].told) > sum(writer.acknowledged for writer in writers) // 2
        assert service.stop() == 0


@pytest.mark.parametrize("engine", ["inline", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.extended])])
def test_a_full_disk_refuses_and_recovers(tmp_path: Path, engine: str) -> None:
    """Files cannot grow beyond a limit for a while: nothing is told that is not kept, and the service goes on afterwards."""
    with Service(tmp_path, "--engine", engine) as service:
        with service.client() as client:
            create(client, "all", "SELECT symbol, price FROM stocks")
            post(client, [stock("A", 1.0)])
            limits = resource.prlimit(service.engine_pid, resource.RLIMIT_FSIZE)
            journal = service.data / "engine" / "journal"
            size = max(path.stat().st_size for path in journal.iterdir()) if engine == "inline" else 0
            resource.prlimit(service.engine_pid, resource.RLIMIT_FSIZE, (size, limits[1]))
            refused = client.post(
                "/v1/changes", content=json.dumps(stock("B", 2.0)), headers={"content-type": "application/x-ndjson"}
            )
            assert (refused.status_code, refused.json()["error"]) == (503, "not_ready")
            assert "retry-after" in refused.headers and "Make room" in refused.json()["what"]
            assert rows_of(client, "all") == Counter(['{"symbol": "A", "price": 1.0}'])
            resource.prlimit(service.engine_pid, resource.RLIMIT_FSIZE, limits)
            waited = threading.Event()
            for _ in range(200):
                again = client.post(
                    "/v1/changes", content=json.dumps(stock("C", 3.0)), headers={"content-type": "application/x-ndjson"}
                )
                if again.status_code in (200, 202):
                    break
                waited.wait(0.05)
            assert again.status_code in (200, 202)
            settle(client)
            assert len(rows_of(client, "all")) == 2
        service.kill_engine()
        with service.client() as client:
            assert len(rows_of(client, "all")) == 2


def test_what_was_pending_is_settled_by_the_next_start(tmp_path: Path) -> None:
    """The registry has a subscription that the engine has not: as if the front died between the two."""
    from tidings.server.registry import Registry, Subscription, registry_url

    service = Service(tmp_path)
    service.data.mkdir()
    with Registry.open(registry_url(service.data, None)) as registry:
        registry.put([Subscription("default", "late", "SELECT symbol FROM stocks", family="select")])
    with service, service.client() as client:
        found = client.get("/v1/subscriptions/late").json()
        assert found["state"] == "active"
        post(client, [stock("X", 1.0)])
        assert client.get("/v1/subscriptions/late/rows").json()["rows"] == [{"symbol": "X"}]
