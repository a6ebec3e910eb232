"""What callers may not do: each refused with one shape of error, a request id, and nothing of the inside."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import httpx2
import pytest

from service_process import Service, create

SQL = "SELECT symbol FROM stocks WHERE price < 5"
UPGRADE = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"
UPGRADE += "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"


def check_refused(done: httpx2.Response, status: int, error: str) -> None:
    assert (done.status_code, done.json()["error"]) == (status, error), done.text
    assert set(done.json()) == {"error", "what", "detail", "hint", "at", "request_id"}
    assert done.headers["x-request-id"] == done.json()["request_id"]
    assert done.headers["content-security-policy"] == "default-src 'self'"
    assert "access-control-allow-origin" not in done.headers


def raw(service: Service, text: str) -> str:
    with socket.create_connection(("127.0.0.1", service.port), 20) as found:
        found.sendall(text.encode())
        return found.recv(65_536).decode()


def test_roles_and_foreign_tenants(service: Service) -> None:
    with service.client() as operator:
        assert operator.post("/v1/tenants", json={"id": "acme"}).status_code in (200, 201)
        create(operator, "foreign", SQL)
        keys = {
            role: operator.post("/v1/tenants/acme/keys", json={"role": role}).json()
            for role in ("read", "write", "admin")
        }
    with (
        service.client(keys["read"]["key"]) as read,
        service.client(keys["write"]["key"]) as write,
        service.client(keys["admin"]["key"]) as admin,
    ):
        check_refused(read.post("/v1/subscriptions", json={"sql": SQL}), 403, "forbidden")
        assert create(write, "own", SQL)["state"] == "active"
        assert read.get("/v1/subscriptions/own").status_code == 200
        check_refused(write.post("/v1/tenants/acme/keys", json={"role": "read"}), 403, "forbidden")
        assert admin.post("/v1/tenants/acme/keys", json={"role": "read"}).status_code == 201
        check_refused(admin.post("/v1/tenants/acme/keys", json={"role": "operator"}), 403, "forbidden")
        check_refused(admin.post("/v1/tenants/default/keys", json={"role": "read"}), 404, "not_found")
        for path in ("/metrics", "/v1/quarantine", "/v1/tenants"):
            check_refused(admin.get(path), 403, "forbidden")
        for path in ("", "/rows", "/changes", "/stream"):
            bodies = [write.get(f"/v1/subscriptions/{id}{path}").json() for id in ("foreign", "nobody")]
            assert all(body.pop("request_id") for body in bodies)
            assert bodies[0] == bodies[1] and bodies[0]["error"] == "not_found"
        assert admin.delete(f"/v1/tenants/acme/keys/{keys['read']['id']}").status_code == 200
        check_refused(read.get("/v1/about"), 401, "unauthenticated")


def test_stream_tokens_read_what_they_name_and_nothing_else(service: Service) -> None:
    with service.client() as client:
        create(client, "named", SQL)
        create(client, "other", SQL)
        token = client.post("/v1/tokens", json={"subscriptions": ["named"]}).json()["token"]
        check_refused(
            client.post("/v1/tokens", json={"subscriptions": ["named"], "ttl_seconds": 301}), 400, "bad_request"
        )
    with httpx2.Client(base_url=service.url, params={"token": token}, trust_env=False) as bearer:
        assert bearer.get("/v1/subscriptions/named/rows").status_code == 200
        check_refused(bearer.get("/v1/subscriptions/other/rows"), 404, "not_found")
        check_refused(bearer.get("/v1/subscriptions"), 403, "forbidden")
        check_refused(bearer.post("/v1/tokens", json={"subscriptions": ["named"]}), 403, "forbidden")
        assert token not in service.log()


@pytest.mark.parametrize("id", ["a\n", "a\r\nb", "é", "a b", "-a", "a" * 129])
def test_ids_that_would_break_headers_are_refused(service: Service, id: str) -> None:
    with service.client() as client:
        check_refused(client.post("/v1/subscriptions", json={"id": id, "sql": SQL}), 400, "bad_request")
        path = "".join(f"%{byte:02x}" for byte in id.encode())
        check_refused(client.put(f"/v1/subscriptions/{path}", json={"sql": SQL}), 400, "bad_request")


def test_requests_that_are_too_large_or_unknown(service: Service) -> None:
    with service.client() as client:
        check_refused(client.post("/v1/explain", json={"sql": "x" * (1 << 20)}), 413, "too_large")
        check_refused(client.post("/v1/explain", json={"sql": SQL + " " * 65_536}), 400, "bad_request")
        check_refused(client.post("/v1/explain", json={"sql": SQL, "more": 1}), 400, "bad_request")
        check_refused(client.post("/v1/explain", content="{}"), 415, "media_type")
        check_refused(client.post("/healthz"), 405, "method_not_allowed")
        check_refused(client.get("/nowhere"), 404, "not_found")
        check_refused(client.get("/v1/about", headers={"origin": "http://evil.example"}), 403, "forbidden")
        many = [("subscription", f"s{number}") for number in range(101)]
        check_refused(client.get("/v1/stream", params=many), 400, "bad_request")


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("NONSENSE\r\n\r\n", 400),
        (f"GET /healthz HTTP/1.1\r\nhost: x\r\na: {'x' * 20_000}\r\n\r\n", 413),
        (f"GET /nowhere HTTP/1.1\r\nhost: x\r\n{UPGRADE}\r\n", 404),
        (f"GET /v1/ws HTTP/1.1\r\nhost: x\r\norigin: http://evil.example\r\n{UPGRADE}\r\n", 403),
    ],
)
def test_refusals_below_the_routes_have_the_same_shape(service: Service, text: str, status: int) -> None:
    head, _, body = raw(service, text).partition("\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ")
    assert f"x-request-id: {json.loads(body)['request_id']}" in head.lower()


def test_put_counts_as_a_creation(tmp_path: Path) -> None:
    with Service(tmp_path, "--quota", "subscriptions=1", has_keys=True) as small, small.client() as client:
        assert client.put("/v1/subscriptions/a", json={"sql": SQL}).status_code == 201
        assert client.put("/v1/subscriptions/a", json={"sql": SQL, "metadata": {"a": 1}}).status_code == 200
        for done in (
            client.put("/v1/subscriptions/b", json={"sql": SQL}),
            client.post("/v1/subscriptions", json={"sql": SQL}),
        ):
            check_refused(done, 429, "quota")
            assert int(done.headers["retry-after"]) > 0
