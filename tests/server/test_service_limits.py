"""How large, how slow and how many: each limit of the contract, met by a client that goes just beyond it."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from service_process import NDJSON, Service, change, create, events, post, stock

SQL = "SELECT symbol FROM stocks WHERE price < 5"


def error_of(done: httpx2.Response) -> tuple[int, str]:
    return done.status_code, done.json()["error"]


def websocket(service: Service, key: str | None = None) -> ClientConnection:
    headers = {"authorization": f"Bearer {key or service.key}"}
    url = service.url.replace("http", "ws") + "/v1/ws"
    return connect(url, subprotocols=["tidings.v1"], additional_headers=headers, max_size=None)  # type: ignore[list-item]


def hear(socket: ClientConnection) -> dict[str, Any]:
    return dict(json.loads(socket.recv(20)))


def test_bodies_and_lines(service: Service) -> None:
    with service.client() as client:
        body = json.dumps({"sql": SQL}).encode()
        headers = {"content-type": "application/json"}
        # At the limit a body is taken; a byte more is not.
        assert client.post("/v1/explain", content=body.ljust(2**20), headers=headers).status_code == 200
        for path in ("/v1/explain", "/v1/subscriptions", "/v1/targets", "/v1/tokens"):
            assert error_of(client.post(path, content=body.ljust(2**20 + 1), headers=headers)) == (413, "too_large")
        assert client.post("/v1/explain", json={"sql": SQL.ljust(65_536)}).status_code == 200
        assert error_of(client.post("/v1/explain", json={"sql": SQL.ljust(65_537)})) == (400, "bad_request")
        line = json.dumps({"id": "line", "sql": SQL}).encode()
        for path in ("/v1/bulk", "/v1/changes"):
            done = client.post(path, content=line.ljust(2**24 + 1) + b"\n{}", headers=NDJSON)
            assert error_of(done) == (413, "too_large"), path
        done = client.post("/v1/bulk", content=line.ljust(2**24) + b"\n" + line, headers=NDJSON)
        assert [json.loads(each)["status"] for each in done.text.splitlines()] == [201, 200]


def test_bulk_and_changes_are_read_as_they_come_up_to_64_mib(service: Service) -> None:
    """Without a content-length the service has to count by itself."""
    sent = 0

    def blocks() -> Iterator[bytes]:
        nonlocal sent
        block = b"\n" * (1 << 20)
        while True:
            sent += len(block)
            yield block

    with service.client() as client:
        for path in ("/v1/bulk", "/v1/changes"):
            sent = 0
            # A client that goes on sending is hung up on, when as much again has been ignored.
            with suppress(httpx2.NetworkError):
                assert error_of(client.post(path, content=blocks(), headers=NDJSON)) == (413, "too_large")
            assert 128 << 20 < sent < 192 << 20
            # One that comes to an end reads why.
            done = client.post(path, content=b" " * 1000 + (b"\n" * 2**26), headers=NDJSON)
            assert error_of(done) == (413, "too_large")
        assert client.get("/healthz").status_code == 200


def test_quotas_of_a_tenant(service: Service) -> None:
    with service.client() as operator:
        quota = {"subscriptions": 3, "connections": 2, "creations_per_second": 1}
        assert operator.post("/v1/tenants", json={"id": "small", "quota": quota}).status_code == 201
        key = operator.post("/v1/tenants/small/keys", json={"role": "write"}).json()["key"]
    with service.client(key) as client:
        create(client, "a", SQL)
        rate = client.post("/v1/subscriptions", json={"id": "b", "sql": SQL})
        assert error_of(rate) == (429, "rate")
        assert int(rate.headers["retry-after"]) >= 1
        # Bulk is exempt from the rate, and held to the number.
        lines = "\n".join(json.dumps({"id": id, "sql": SQL}) for id in ("a", "b", "c", "d"))
        answers = [
            json.loads(each) for each in client.post("/v1/bulk", content=lines, headers=NDJSON).text.splitlines()
        ]
        assert [each["status"] for each in answers] == [200, 201, 201, 429]
        assert answers[3]["error"]["error"] == "quota"
        with events(client, "a") as stream, websocket(service, key) as open_:
            assert (next(stream)["event"], hear(open_)["type"]) == ("snapshot", "ready")
            full = client.get("/v1/stream", params={"subscription": "a"})
            assert error_of(full) == (429, "quota") and int(full.headers["retry-after"]) >= 1
            position = client.get("/v1/subscriptions/a/rows").json()["position"]
            waiting = client.get("/v1/subscriptions/a/changes", params={"after": position, "wait_seconds": 5})
            assert error_of(waiting) == (429, "quota")
            with pytest.raises(ConnectionClosed) as closed, websocket(service, key) as more:
                hear(more)
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 4429
            # Others have their own.
            with service.client() as operator:
                create(operator, "others", SQL)
                with events(operator, "others") as stream:
                    assert next(stream)["event"] == "snapshot"


def test_a_hundred_subscriptions_on_a_connection(service: Service) -> None:
    with service.client() as client:
        lines = "\n".join(json.dumps({"id": f"hundred-{number}", "sql": SQL}) for number in range(101))
        assert client.post("/v1/bulk", content=lines, headers=NDJSON).status_code == 200
        ids = [f"hundred-{number}" for number in range(101)]
        with events(client, *ids[:100]) as stream:
            assert len({next(stream)["data"]["subscription"] for _ in range(100)}) == 100
        assert error_of(client.get("/v1/stream", params=[("subscription", id) for id in ids])) == (400, "bad_request")
        with websocket(service) as socket:
            assert hear(socket)["type"] == "ready"
            for id in ids[:100]:
                socket.send(json.dumps({"type": "subscribe", "subscription": id}))
                assert hear(socket)["type"] == "snapshot"
            socket.send(json.dumps({"type": "subscribe", "subscription": ids[100]}))
            found = hear(socket)
            assert (found["type"], found["error"], found["subscription"]) == ("error", "quota", ids[100])
            # One that leaves makes room.
            socket.send(json.dumps({"type": "unsubscribe", "subscription": ids[0]}))
            socket.send(json.dumps({"type": "subscribe", "subscription": ids[100]}))
            assert hear(socket)["subscription"] == ids[100]


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ('{"type": "ping"}'.ljust(65_536), None),
        ('{"type": "ping"}'.ljust(65_537), 4400),
        ('{"type": "subscribe", "subscription": "' + "é" * 32_768 + '"}', 4400),
        ("{", 4400),
        ('{"type": "unknown"}', 4400),
        ('{"type": "subscribe"}', 4400),
        ('{"type": "ping", "more": 1}', 4400),
        ('{"type": "subscribe", "subscription": "frame", "every_seconds": -1}', 4400),
        (b'{"type": "ping"}', 4400),
    ],
    ids=["large", "too large", "too large in bytes", "json", "type", "whose", "field", "number", "binary"],
)
def test_frames_of_clients(service: Service, frame: str | bytes, code: int | None) -> None:
    with service.client() as client:
        create(client, "frame", SQL)
    with websocket(service) as socket:
        assert hear(socket)["type"] == "ready"
        socket.send(frame)
        if code is None:
            assert hear(socket) == {"type": "pong"}
        else:
            with pytest.raises(ConnectionClosed) as closed:
                hear(socket)
            assert closed.value.rcvd is not None and closed.value.rcvd.code == code


def test_frames_of_the_service_have_at_most_a_mebibyte(service: Service) -> None:
    """A large snapshot comes in parts, with an id behind the last; a large change too."""
    report = "x" * 100_000
    reviews = [
        change("upsert", "reviews", id=5_000_000 + number, symbol="LARGE", rating=1.0, report=report + str(number))
        for number in range(25)
    ]
    with service.client() as client:
        create(client, "large", "SELECT id, report FROM reviews WHERE symbol = 'LARGE'")
        with websocket(service) as socket, events(client, "large") as stream:
            assert hear(socket)["type"] == "ready"
            socket.send(json.dumps({"type": "subscribe", "subscription": "large"}))
            assert hear(socket)["type"] == "snapshot"
            assert next(stream)["event"] == "snapshot"
            post(client, [{**each, "tx": "large"} for each in reviews])
            for parts in (_parts(stream), _frames(socket)):
                _check_parts(parts, 25, is_snapshot=False)
        with events(client, "large") as stream:
            _check_parts(_parts(stream), 25, is_snapshot=True)
        post(client, [change("delete", "reviews", id=each["row"]["id"]) for each in reviews])


def _parts(stream: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    while not found or found[-1].get("more"):
        event = next(stream)
        assert len(event["line"].encode()) <= 2**20
        found.append({**event["data"], **({"position": event["id"]} if "id" in event else {})})
    return found


def _frames(socket: ClientConnection) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while not found or found[-1].get("more"):
        frame = socket.recv(20)
        assert len(frame.encode() if isinstance(frame, str) else frame) <= 2**20
        found.append(json.loads(frame))
    return found


def _check_parts(parts: list[dict[str, Any]], rows: int, *, is_snapshot: bool) -> None:
    assert [part["part"] for part in parts] == list(range(len(parts))) and len(parts) > 2
    assert [part.get("more", False) for part in parts] == [True] * (len(parts) - 1) + [False]
    assert ["position" in part for part in parts] == [False] * (len(parts) - 1) + [True]
    assert {(part["seq"], part["snapshot"]) for part in parts} == {(parts[0]["seq"], is_snapshot)}
    assert len({each["row"]["id"] for part in parts for each in part["changes"]}) == rows


def test_whoever_is_too_slow_is_refused_and_an_engine_that_is_too_slow_is_said(tmp_path: Path) -> None:
    """All of it takes ten seconds, so it happens at once."""

    def until_closed(text: str, trickle: bytes = b"") -> tuple[str, float]:
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", service.port), 30) as found:
            found.sendall(text.encode())
            found.settimeout(0.5)
            said = b""
            while True:
                try:
                    if not (more := found.recv(65_536)):
                        return said.decode(), time.monotonic() - began
                    said += more
                except TimeoutError:
                    found.sendall(trickle)
                except OSError:
                    return said.decode(), time.monotonic() - began

    def half_a_header() -> None:
        said, seconds = until_closed("GET /healthz HTTP/1.1\r\nhost: x\r\na: ", b"x")
        assert said.startswith("HTTP/1.1 408 ") and '"too_slow"' in said
        assert 9 < seconds < 14

    def nothing_at_all() -> None:
        said, seconds = until_closed("")
        assert said == "" and 9 < seconds < 14

    def a_slow_body() -> None:
        head = f"POST /v1/explain HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {service.key}\r\n"
        said, seconds = until_closed(f"{head}content-type: application/json\r\ncontent-length: 9999\r\n\r\n", b" ")
        assert said.startswith("HTTP/1.1 408 ") and '"too_slow"' in said
        assert 9 < seconds < 14

    def no_auth_frame() -> None:
        with connect(service.url.replace("http", "ws") + "/v1/ws") as open_:
            with pytest.raises(ConnectionClosed) as closed:
                open_.recv(20)
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 4401

    def an_engine_that_does_not_answer() -> None:
        with service.client() as client:
            os.kill(service.engine_pid, signal.SIGSTOP)
            try:
                done = client.post("/v1/subscriptions", json={"id": "late", "sql": SQL})
            finally:
                os.kill(service.engine_pid, signal.SIGCONT)
            assert (done.status_code, done.json()["state"], done.json()["seq"]) == (202, "pending", None)
            assert done.headers["location"] == "/v1/subscriptions/late"
            # Asked again, it waits for the first time's answer.
            done = client.post("/v1/subscriptions", json={"id": "late", "sql": SQL})
            assert (done.status_code, done.json()["state"]) == (200, "active")
            assert client.get("/v1/subscriptions/late/rows").json()["rows"] == []

    with Service(tmp_path, has_keys=True) as service, ThreadPoolExecutor(5) as pool:
        tasks = [half_a_header, nothing_at_all, a_slow_body, no_auth_frame, an_engine_that_does_not_answer]
        for done in [pool.submit(task) for task in tasks]:
            done.result()


def test_idle_subscriptions_end_however_they_were_made(service: Service) -> None:
    with service.client() as client:
        lines = json.dumps({"id": "idle-bulk", "sql": SQL, "idle_seconds": 1})
        assert json.loads(client.post("/v1/bulk", content=lines, headers=NDJSON).text)["status"] == 201
        create(client, "idle-post", SQL, idle_seconds=1)
        create(client, "idle-read", SQL, idle_seconds=1)
        create(client, "idle-kept", SQL, idle_seconds=1)
        assert client.put("/v1/subscriptions/idle-kept", json={"sql": SQL}).status_code == 200
        with events(client, "idle-read", "idle-bulk", "idle-post") as stream:
            ends = set()
            for _ in range(3):
                assert next(stream)["event"] == "snapshot"
        with events(client, "idle-read") as stream:
            assert next(stream)["event"] == "snapshot"
            deadline = time.monotonic() + 20
            while len(ends) < 2 and time.monotonic() < deadline:
                ends = {
                    id for id in ("idle-bulk", "idle-post") if client.get(f"/v1/subscriptions/{id}").status_code == 404
                }
            assert len(ends) == 2
            post(client, [stock("IDLE", 1.0)])
            assert next(stream)["event"] == "change"
        assert client.get("/v1/subscriptions/idle-kept").status_code == 200
        post(client, [change("delete", symbol="IDLE")])


def test_a_slow_client_is_disconnected_if_it_wants_to_be(service: Service) -> None:
    url = service.url.replace("http", "ws") + "/v1/ws?behind=disconnect"
    with service.client() as client:
        create(client, "slow", "SELECT * FROM reviews WHERE id = 777")
        headers = {"authorization": f"Bearer {service.key}"}
        with connect(url, additional_headers=headers, max_size=None, max_queue=1) as socket:
            assert hear(socket)["type"] == "ready"
            socket.send(json.dumps({"type": "subscribe", "subscription": "slow"}))
            assert hear(socket)["type"] == "snapshot"
            # Nobody reads meanwhile: buffers of both sides become full, and stay so for longer than is allowed.
            for number in range(40):
                row = {"id": 777, "symbol": "SLOW", "rating": float(number), "report": "x" * 400_000}
                post(client, [change("upsert", "reviews", **row)])
            until = time.monotonic() + 1.0
            while time.monotonic() < until:
                client.get("/healthz")
            with pytest.raises(ConnectionClosed) as closed:
                while True:
                    heard = hear(socket)
                    assert heard["type"] == "change"
                    post(client, [change("upsert", "reviews", **{**row, "rating": -float(heard["seq"])})])
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 4408
        assert client.get("/v1/stream", params={"subscription": "slow", "behind": "wait"}).status_code == 400
