"""What callers may not do: each refused with one shape of error, a request id, and nothing of the inside."""

from __future__ import annotations

import json
import re
import socket
import time
from pathlib import Path

import httpx2
import jwt
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from in_process import tidings
from service_process import NDJSON, Service, create, events, post, stock

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
        for path in ("/metrics", "/v1/quarantine", "/v1/tenants", "/v1/tenants/acme"):
            check_refused(admin.get(path), 403, "forbidden")
        check_refused(admin.post("/v1/changes", content="{}", headers=NDJSON), 403, "forbidden")
        for method, path in (
            ("PUT", "/v1/subscriptions/own"),
            ("DELETE", "/v1/subscriptions/own"),
            ("POST", "/v1/bulk"),
            ("POST", "/v1/targets"),
            ("DELETE", "/v1/targets/own"),
            ("POST", "/v1/targets/own/test"),
            ("DELETE", "/v1/tenants/acme/keys/x"),
        ):
            check_refused(read.request(method, path), 403, "forbidden")
        assert read.post("/v1/tokens", json={"subscriptions": ["own"]}).status_code == 201
        for path in ("", "/rows", "/changes", "/stream"):
            bodies = [write.get(f"/v1/subscriptions/{id}{path}").json() for id in ("foreign", "nobody")]
            assert all(body.pop("request_id") for body in bodies)
            assert bodies[0] == bodies[1] and bodies[0]["error"] == "not_found"
        with service.client() as operator:
            target = {"id": "foreign", "url": "http://127.0.0.1:9/"}
            assert operator.post("/v1/targets", json=target).status_code in (200, 201)
        calls = [("DELETE", "/v1/subscriptions/{}"), ("GET", "/v1/stream?subscription={}"), ("GET", "/v1/targets/{}")]
        calls += [("DELETE", "/v1/targets/{}"), ("PUT", "/v1/targets/{}"), ("GET", "/v1/targets/{}/attempts")]
        calls += [("POST", f"/v1/targets/{{}}/{each}") for each in ("rotate", "test", "resume", "dead-letters/replay")]
        for method, path in calls:
            body = {"json": {"url": "http://127.0.0.1:9/"}} if method == "PUT" else {}
            answers = [write.request(method, path.format(id), **body) for id in ("foreign", "nobody")]
            assert {each.status_code for each in answers} == {404}, path
            bodies = [each.json() for each in answers]
            assert all(body.pop("request_id") for body in bodies) and bodies[0] == bodies[1]
        tokens = [write.post("/v1/tokens", json={"subscriptions": [id]}).json() for id in ("foreign", "nobody")]
        assert tokens[0]["error"] == "not_found" and tokens[0]["what"] == tokens[1]["what"]
        headers = {"authorization": f"Bearer {keys['read']['key']}"}
        with connect(service.url.replace("http", "ws") + "/v1/ws", additional_headers=headers) as open_:
            assert json.loads(open_.recv(20))["type"] == "ready"
            for id in ("foreign", "nobody"):
                open_.send(json.dumps({"type": "subscribe", "subscription": id}))
            frames = [json.loads(open_.recv(20)) for _ in range(2)]
            assert [frame.pop("subscription") for frame in frames] == ["foreign", "nobody"]
            assert frames[0] == frames[1] and frames[0]["error"] == "not_found"
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


def test_put_counts_as_a_creation(service: Service) -> None:
    with service.client() as operator:
        assert operator.post("/v1/tenants", json={"id": "one", "quota": {"subscriptions": 1}}).status_code == 201
        key = operator.post("/v1/tenants/one/keys", json={"role": "write"}).json()["key"]
    with service.client(key) as client:
        assert client.put("/v1/subscriptions/a", json={"sql": SQL}).status_code == 201
        assert client.put("/v1/subscriptions/a", json={"sql": SQL, "metadata": {"a": 1}}).status_code == 200
        for done in (
            client.put("/v1/subscriptions/b", json={"sql": SQL}),
            client.post("/v1/subscriptions", json={"sql": SQL}),
        ):
            check_refused(done, 429, "quota")
            assert int(done.headers["retry-after"]) > 0


def test_a_key_is_shown_once_and_streams_end_with_it(service: Service) -> None:
    """Also those of tokens, when the tenant is dropped."""
    with service.client() as operator:
        assert operator.post("/v1/tenants", json={"id": "ending"}).status_code == 201
        made = [operator.post("/v1/tenants/ending/keys", json={"role": "write"}).json() for _ in range(2)]
        assert all(key["key"] not in operator.get("/v1/tenants/ending").text for key in made)
        assert made[0]["key"] not in (service.data / "registry.db").read_bytes().decode("latin-1")
        with service.client(made[0]["key"]) as first, service.client(made[1]["key"]) as second:
            create(first, "ended", SQL)
            token = second.post("/v1/tokens", json={"subscriptions": ["ended"]}).json()["token"]
            headers = {"authorization": f"Bearer {made[0]['key']}"}
            with (
                events(first, "ended") as stream,
                events(second, "ended") as other,
                httpx2.Client(base_url=service.url, trust_env=False) as bearer,
                events(bearer, "ended", token=token) as by_token,
                connect(service.url.replace("http", "ws") + "/v1/ws", additional_headers=headers) as open_,
            ):
                assert json.loads(open_.recv(20))["type"] == "ready"
                open_.send('{"type": "subscribe", "subscription": "ended"}')
                assert json.loads(open_.recv(20))["type"] == "snapshot"
                assert {next(each)["event"] for each in (stream, other, by_token)} == {"snapshot"}
                assert operator.delete(f"/v1/tenants/ending/keys/{made[0]['id']}").status_code == 200
                end = next(stream)
                assert (end["event"], end["data"]["why"]) == ("end", "revoked")
                assert next(stream, None) is None
                assert json.loads(open_.recv(20))["why"] == "revoked"
                with pytest.raises(ConnectionClosed) as closed:
                    open_.recv(20)
                assert closed.value.rcvd is not None and closed.value.rcvd.code == 4401
                check_refused(first.get("/v1/about"), 401, "unauthenticated")
                # Another key's go on.
                post(operator, [stock("ENDED", 1.0)])
                assert next(other)["event"] == "change"
                assert operator.delete("/v1/tenants/ending").status_code == 200
                assert next(by_token)["event"] == "change"
                assert {next(each)["data"]["why"] for each in (other, by_token)} == {"revoked"}
        check_refused(operator.delete("/v1/tenants/default"), 403, "forbidden")


def test_lines_of_one_id_happen_in_order(service: Service) -> None:
    other = "SELECT price FROM stocks WHERE price < 5"
    lines = [{"id": "o", "sql": SQL}, {"id": "o", "sql": other}, {"id": "o", "drop": True}, {"id": "o", "sql": other}]
    with service.client() as client:
        done = client.post("/v1/bulk", content="\n".join(map(json.dumps, lines)), headers=NDJSON)
        answers = [json.loads(line) for line in done.text.splitlines()]
        assert [each["status"] for each in answers] == [201, 409, 200, 201]
        assert answers[0]["seq"] < answers[2]["seq"] <= answers[3]["seq"]
        assert client.get("/v1/subscriptions/o").json()["sql"] == other


@pytest.mark.parametrize("path", ["/v1/subscriptions/a/why", "/v1/backtest", "/", "/v1/subscriptions/a/nothing"])
def test_what_is_not_there_yet_is_unknown(service: Service, path: str) -> None:
    with service.client() as client:
        for method in ("GET", "POST"):
            check_refused(client.request(method, path), 404, "not_found")


def test_no_page_of_another_site_is_let_in(service: Service) -> None:
    with service.client() as client:
        asked = {"origin": "http://evil.example", "access-control-request-method": "POST"}
        done = client.options("/v1/subscriptions", headers=asked)
        assert done.status_code == 403
        assert not [name for name in done.headers if name.startswith("access-control-")]
        own = client.get("/v1/about", headers={"origin": service.url})
        assert own.status_code == 200 and "access-control-allow-origin" not in own.headers
        for origin in ("null", "http://127.0.0.1", "", "nonsense://["):
            check_refused(client.get("/v1/about", headers={"origin": origin}), 403, "forbidden")
    # A page of the service itself may open a socket, one of another site may not.
    key = {"authorization": f"Bearer {service.key}"}
    url = service.url.replace("http", "ws") + "/v1/ws"
    with connect(url, origin=service.url, additional_headers=key) as open_:  # type: ignore[arg-type]
        assert json.loads(open_.recv(20))["type"] == "ready"


def test_without_authentication_it_serves_this_machine_alone(tmp_path: Path) -> None:
    """By its own names, so that no name of others leads here (DNS rebinding)."""
    with Service(tmp_path) as service, service.client() as client:
        for host in ("evil.example", f"evil.example:{service.port}", "127.0.0.1.evil.example", ""):
            check_refused(client.get("/v1/about", headers={"host": host}), 403, "forbidden")
        for host in (f"localhost:{service.port}", "127.0.0.1", "[::1]:80"):
            assert client.get("/v1/about", headers={"host": host}).status_code == 200
    for address in ("0.0.0.0:0", "192.0.2.1:0", "[::]:0"):
        words = ["serve", "--catalog", "catalog.sql", "--data", "other", "--no-auth", "--listen", address]
        done = tidings(tmp_path, *words)
        assert done.returncode == 2 and "--no-auth" in done.stderr


def test_nothing_that_is_secret_is_logged_and_metrics_have_no_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys, JWTs, tokens, queries and rows go in, by every door there is, also where they are refused."""
    monkeypatch.setenv("TIDINGS_JWT_SECRET", "j" * 32)
    secrets = ["SECRETROW", "SECRETSQL", "SECRETID", "SECRETPARAM", "SECRETREPORT", "SECRETHOST"]
    with Service(tmp_path, "--allow-private-webhooks", has_keys=True) as service, service.client() as client:
        claims = {"exp": time.time() + 60, "tenant": "default", "scope": "operator"}
        tokens = [jwt.encode(claims, "j" * 32), jwt.encode(claims, "k" * 32)]
        with service.client(tokens[0]) as by_jwt, service.client(tokens[1]) as stranger:
            create(by_jwt, "SECRETID", "SELECT symbol, sector FROM stocks WHERE sector = 'SECRETSQL'")
            check_refused(stranger.get("/v1/about"), 401, "unauthenticated")
        create(client, "bound", "SELECT symbol FROM stocks WHERE sector = ?", params=["SECRETPARAM"])
        tokens.append(client.post("/v1/tokens", json={"subscriptions": ["SECRETID"]}).json()["token"])
        assert client.get("/v1/subscriptions/SECRETID/rows", params={"token": tokens[2]}).status_code == 200
        client.post("/v1/subscriptions", json={"sql": "SELECT SECRETSQL FROM stocks WHERE"})
        client.post("/v1/explain", content=b'{"sql": "SECRETSQL', headers={"content-type": "application/json"})
        target = client.post("/v1/targets", json={"id": "SECRETID", "url": "http://127.0.0.1:9/SECRETHOST"}).json()
        tokens.append(target["secret"])
        client.put("/v1/subscriptions/bound", json={"sql": "SELECT * FROM stocks", "targets": ["SECRETID"]})
        rows = [stock("SECRETROW", 1.0, sector="SECRETSQL"), {"table": "stocks", "op": "SECRETROW"}]
        assert len(post(client, rows, producer="SECRETID")["refused"]) == 1
        client.post("/v1/changes", content=b'{"SECRETROW\n', headers=NDJSON)
        assert client.post("/v1/targets/SECRETID/test").json()["error"]
        with pytest.raises(ConnectionClosed), connect(service.url.replace("http", "ws") + "/v1/ws") as open_:
            open_.send('{"type": "auth", "token": "SECRETROW"}')
            open_.recv(20)
        raw(service, "GET /SECRETROW\x01 HTTP/1.1\r\nSECRETSQL\r\n\r\n")
        figures = client.get("/metrics").text
        labels = {name for line in figures.splitlines() for name in re.findall(r"(\w+)=\"", line)}
        assert labels == {"family", "reason", "le"}
        families = set(re.findall(r'family="(\w+)"', figures))
        assert families and families <= set(client.get("/v1/about").json()["families"])
        service.kill_engine()
        assert client.get("/v1/subscriptions/SECRETID/rows").json()["rows"]
    said = service.log()
    assert "starting it again" in said
    for secret in (*secrets, *tokens, service.key):
        assert secret not in said and secret not in figures
