"""How a service begins and ends, and clients that leave: what uvicorn does not do by itself."""

from __future__ import annotations

import json
import os
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from service_process import Service, create, post, stock

SQL = "SELECT symbol FROM stocks WHERE price < 5"


def open_stream(service: Service, path: str) -> socket.socket:
    """A stream as bytes, whose first snapshot has come."""
    found = socket.create_connection(("127.0.0.1", service.port), 30)
    key = f"authorization: Bearer {service.key}\r\n" if service.key else ""
    found.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n{key}\r\n".encode())
    said = b""
    while b"event: snapshot" not in said:
        said += found.recv(65_536)
    return found


@contextmanager
def open_websocket(service: Service, id: str) -> Iterator[ClientConnection]:
    with connect(service.url.replace("http", "ws") + "/v1/ws", close_timeout=1) as found:
        assert json.loads(found.recv(30))["type"] == "ready"
        found.send(json.dumps({"type": "subscribe", "subscription": id}))
        assert json.loads(found.recv(30))["type"] == "snapshot"
        yield found


def to_the_end(stream: socket.socket) -> bytes:
    said = b""
    while more := stream.recv(65_536):
        said += more
    return said


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_hundred_streams_end_with_the_service(tmp_path: Path) -> None:
    """It is ready within ten seconds of a processor's time, and exits with 0 within ten seconds of SIGTERM. Streams are told
    that they end."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert before > 400
    with Service(tmp_path) as service, service.client() as client, ExitStack() as stack:
        assert cpu_seconds(service.pid) + cpu_seconds(service.engine_pid) < 10
        create(client, "a", SQL)
        paths = ["/v1/subscriptions/a/stream?every_seconds=60", "/v1/stream?subscription=a"]
        streams = [stack.enter_context(open_stream(service, path)) for path in paths * 25]
        sockets = [stack.enter_context(open_websocket(service, "a")) for _ in range(50)]
        position = client.get("/v1/subscriptions/a/rows").json()["position"]
        polled: list[httpx2.Response] = []

        def poll() -> None:
            with service.client() as own:
                polled.append(own.get("/v1/subscriptions/a/changes", params={"after": position, "wait_seconds": 60}))

        polling = threading.Thread(target=poll)
        polling.start()
        while "tidings_connections 101.0" not in client.get("/metrics").text:
            assert polling.is_alive()
        # One that neither sends a whole request nor goes away, and one in the middle of a body.
        silent = [stack.enter_context(socket.create_connection(("127.0.0.1", service.port))) for _ in range(2)]
        silent[0].sendall(b"GET /healthz HTTP/1.1\r\nhost:")
        head = b"POST /v1/explain HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"
        silent[1].sendall(head)
        began = time.monotonic()
        assert service.stop() == 0
        assert time.monotonic() - began < 10
        polling.join(10)
        assert polled and polled[0].status_code == 200
        for stream in streams:
            assert to_the_end(stream).endswith(b"0\r\n\r\n"), "a stream ends as HTTP has it"
        for each in sockets:
            with pytest.raises(ConnectionClosed) as closed:
                each.recv(5)
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 1012
        assert silent[1].recv(65_536).startswith(b"HTTP/1.1 503 ")
        assert not (tmp_path / "ready.json").exists()
        assert "Traceback" not in service.log()


def test_whoever_leaves_leaves_nothing_behind(service: Service) -> None:
    """Streams, sockets and polls of clients that went away, politely or not, are no connections any more."""
    with service.client() as operator:
        assert operator.post("/v1/tenants", json={"id": "leaving", "quota": {"connections": 3}}).status_code == 201
        key = operator.post("/v1/tenants/leaving/keys", json={"role": "write"}).json()["key"]
        with service.client(key) as client:
            create(client, "left", SQL)
            position = client.get("/v1/subscriptions/left/rows").json()["position"]
        headers = f"host: localhost\r\nauthorization: Bearer {key}\r\n"
        paths = ["/v1/subscriptions/left/stream", f"/v1/subscriptions/left/changes?wait_seconds=60&after={position}"]
        for number in range(6):
            with ExitStack() as stack:
                for path in paths:
                    found = stack.enter_context(socket.create_connection(("127.0.0.1", service.port), 30))
                    found.sendall(f"GET {path} HTTP/1.1\r\n{headers}\r\n".encode())
                    if "stream" in path:
                        assert b"200 OK" in found.recv(65_536)
                    if number % 2:
                        # Closed with a reset, as by a crash.
                        found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                url = service.url.replace("http", "ws") + "/v1/ws"
                key_header = {"authorization": f"Bearer {key}"}
                open_ = stack.enter_context(connect(url, additional_headers=key_header, close_timeout=1))
                assert json.loads(open_.recv(30))["type"] == "ready"
                _until(operator, 3)
                if number % 2:
                    open_.socket.shutdown(socket.SHUT_RDWR)
            _until(operator, 0)
        post(operator, [stock("LEFT", 1.0)])


def _until(client: httpx2.Client, connections: int) -> None:
    deadline = time.monotonic() + 20
    while f"tidings_connections {connections}.0" not in client.get("/metrics").text:
        assert time.monotonic() < deadline, client.get("/metrics").text
