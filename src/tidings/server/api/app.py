"""The ASGI application: routes, and what holds for all of them: request ids, errors, names of hosts, no foreign pages."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Message, Receive, Scope, Send

from tidings.server.api.errors import ApiError, encode, not_found
from tidings.server.api.http import JSON, answer, new_request_id
from tidings.server.api.openapi import openapi
from tidings.server.api.operations import OperationRoutes
from tidings.server.api.streams import StreamRoutes
from tidings.server.api.subscriptions import SubscriptionRoutes
from tidings.server.api.targets import TargetRoutes
from tidings.server.front import Front
from tidings.server.registry import RegistryError
from tidings.terminal import say

Endpoint = Callable[[Request], Awaitable[Response]]
_SAFE = [
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'self'"),
    (b"referrer-policy", b"no-referrer"),
]


class App:
    """One service."""

    def __init__(self, front: Front) -> None:
        self._front = front
        self._streams = StreamRoutes(front)
        subscriptions, operations, targets = SubscriptionRoutes(front), OperationRoutes(front), TargetRoutes(front)
        one, target, tenant = "/v1/subscriptions/{id}", "/v1/targets/{id}", "/v1/tenants/{t}"
        self._routes = [
            _route("/healthz", GET=operations.healthz),
            _route("/readyz", GET=operations.readyz),
            _route("/metrics", GET=operations.metrics),
            _route("/openapi.json", GET=_openapi),
            _route("/client.js", GET=_client),
            _route("/v1/about", GET=operations.about),
            _route("/v1/catalog", GET=operations.catalog),
            _route("/v1/subscriptions", GET=subscriptions.page, POST=subscriptions.create),
            _route(one, GET=subscriptions.get, PUT=subscriptions.edit, DELETE=subscriptions.drop),
            _route(f"{one}/rows", GET=subscriptions.rows),
            _route(f"{one}/changes", GET=subscriptions.changes),
            _route("/v1/bulk", POST=subscriptions.bulk),
            _route("/v1/explain", POST=subscriptions.explain),
            _route("/v1/tokens", POST=subscriptions.token),
            _route("/v1/changes", POST=operations.changes),
            _route("/v1/quarantine", GET=operations.quarantine),
            _route("/v1/targets", GET=targets.page, POST=targets.create),
            _route(target, GET=targets.get, PUT=targets.edit, DELETE=targets.drop),
            _route(f"{target}/rotate", POST=targets.rotate),
            _route(f"{target}/test", POST=targets.test),
            _route(f"{target}/resume", POST=targets.resume),
            _route(f"{target}/attempts", GET=targets.attempts),
            _route(f"{target}/dead-letters", GET=targets.dead_letters),
            _route(f"{target}/dead-letters/replay", POST=targets.replay),
            _route("/v1/tenants", GET=operations.tenants, POST=operations.create_tenant),
            _route(tenant, GET=operations.tenant, PUT=operations.edit_tenant, DELETE=operations.drop_tenant),
            _route(f"{tenant}/keys", POST=operations.create_key),
            _route(f"{tenant}/keys/{{id}}", DELETE=operations.drop_key),
        ]
        self._sse = [Route(path, _nothing) for path in (f"{one}/stream", "/v1/stream")]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        id = new_request_id()
        headers = [(b"x-request-id", id.encode()), *_SAFE]
        is_begun = False

        async def told(message: Message) -> None:
            nonlocal is_begun
            if message["type"] == "http.response.start":
                is_begun = True
                message["headers"] = [*message.get("headers", []), *headers]
            await send(message)

        try:
            self._check_host(scope)
            for route in self._sse:
                if route.matches(scope)[0] == Match.FULL:
                    scope.update(route.matches(scope)[1])
                    if scope["method"] != "GET":
                        raise _wrong_method("GET")
                    is_begun_by = headers
                    await self._streams.sse(scope, receive, send, is_begun_by)
                    return
            found = await self._answer(scope, receive)
            await found(scope, receive, told)
        except ApiError as error:
            if not is_begun:
                found = answer(error.body(id), error.status, error.headers)
                await found(scope, receive, told)
        except ClientDisconnect:
            return
        except asyncio.CancelledError:
            if not self._front.is_ending:
                raise
            # The service stops, and has waited for the rest of the request for as long as it could.
            if not is_begun:
                ended = ApiError("not_ready", "the service is stopping", headers={"retry-after": "1"})
                await answer(ended.body(id), ended.status, ended.headers)(scope, receive, told)
        except Exception as error:
            say(f"request {id} failed: {_place_of(error)}")
            if not is_begun:
                failed = ApiError("failed", "the request failed for a reason that lies in the service")
                if isinstance(error, RegistryError):
                    failed = ApiError("not_ready", str(error), headers={"retry-after": "1"})
                await answer(failed.body(id), failed.status, failed.headers)(scope, receive, told)

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        for route, methods in self._routes:
            match, more = route.matches(scope)
            if match != Match.NONE:
                method = "GET" if scope["method"] == "HEAD" else scope["method"]
                if method not in methods:
                    raise _wrong_method(", ".join(methods))
                scope.update(more)
                return await methods[method](Request(scope, receive))
        raise not_found()

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            self._check_host(scope)
            if scope["path"] != "/v1/ws":
                raise not_found()
        except ApiError as error:
            await receive()
            await _refuse_websocket(send, error)
            return
        await self._streams.websocket(scope, receive, send)

    def _check_host(self, scope: Scope) -> None:
        """A page of another site must not reach a service on this machine by a name of its own, nor call it from there."""
        found = {name: value.decode("latin-1") for name, value in scope["headers"] if name in (b"host", b"origin")}
        host = _name_of(f"//{found.get(b'host', '')}")
        hosts = self._front.options.hosts
        if hosts and not (host in hosts or _is_address(host)):
            raise ApiError("forbidden", "the service is not known by this name", hint="see --host")
        origin = found.get(b"origin")
        if origin is not None and _origin(origin) != found.get(b"host"):
            raise ApiError("forbidden", "pages of other sites may not call the service")


def _place_of(error: BaseException) -> str:
    """What happened and where. Not the text: that of a database has the statement and its values."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return type(error).__name__ + ("" if at is None else f" at {at.tb_frame.f_code.co_qualname}:{at.tb_lineno}")


def _route(path: str, **methods: Endpoint) -> tuple[Route, dict[str, Endpoint]]:
    return Route(path, _nothing, methods=list(methods)), methods


async def _nothing(request: Request) -> Response:
    raise AssertionError("routes are called by the application")


def _wrong_method(allowed: str) -> ApiError:
    return ApiError("method_not_allowed", f"the method must be {allowed}", headers={"allow": allowed})


async def _refuse_websocket(send: Send, error: ApiError) -> None:
    """Answers the handshake as any other request."""
    id = new_request_id()
    headers = [(b"content-type", JSON.encode()), (b"x-request-id", id.encode()), *_SAFE]
    await send({"type": "websocket.http.response.start", "status": error.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": encode(error.body(id))})


async def _openapi(request: Request) -> Response:
    return Response(encode(openapi()), media_type=JSON)


async def _client(request: Request) -> Response:
    text = (files("tidings.client") / "client.js").read_bytes()
    return Response(text, media_type="text/javascript; charset=utf-8")


def _name_of(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def _origin(text: str) -> Any:
    try:
        return urlsplit(text).netloc
    except ValueError:
        return None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
