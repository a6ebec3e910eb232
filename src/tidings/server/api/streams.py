"""Routes of streams, as raw ASGI: server-sent events and WebSocket."""

from __future__ import annotations

import asyncio
import time

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from tidings.server.api.errors import ApiError, encode, not_found
from tidings.server.api.http import new_request_id, number_of, quota_error
from tidings.server.api.subscriptions import followed, position_of
from tidings.server.auth import Identity, Unauthenticated, bearer_of
from tidings.server.front import Front
from tidings.server.gateway import sse
from tidings.server.gateway.cursor import Cursor
from tidings.server.gateway.hub import Connection
from tidings.server.gateway.websocket import (
    AUTH_SECONDS,
    BAD_FRAME,
    PROTOCOL,
    QUOTA,
    RESTART,
    UNAUTHENTICATED,
    ClientFrame,
    Closed,
    Session,
    frame_of,
)
from tidings.server.limits import CONNECTION_SUBSCRIPTIONS_MAX, QuotaError

_BEHIND = ("coalesce", "every", "disconnect")
_BEHIND_HINT = f"behind is {', '.join(_BEHIND)}"
_SECONDS_MAX = 86_400.0


class StreamRoutes:
    def __init__(self, front: Front) -> None:
        self._front = front

    async def sse(self, scope: Scope, receive: Receive, send: Send, headers: list[tuple[bytes, bytes]]) -> None:
        """A stream of one or several subscriptions. ApiError before anything was sent."""
        front = self._front
        request = Request(scope, receive)
        id = scope["path_params"].get("id")
        ids = list(dict.fromkeys([id] if id is not None else request.query_params.getlist("subscription")))
        if not ids:
            raise ApiError("bad_request", "which subscriptions? Say ?subscription=ID, once for each")
        if len(ids) > CONNECTION_SUBSCRIPTIONS_MAX:
            raise ApiError("bad_request", f"a stream has at most {CONNECTION_SUBSCRIPTIONS_MAX} subscriptions")
        behind = request.query_params.get("behind", _BEHIND[0])
        if behind not in _BEHIND:
            raise ApiError("bad_request", _BEHIND_HINT)
        after = position_of(request.headers.get("last-event-id") or request.query_params.get("after"))
        caller: Identity | None = None
        cursor = Cursor(front.hub.log, behind=behind)
        found = []
        for each in ids:
            caller = await front.callers.caller(request, "stream", each)
            found.append(await followed(front, caller.tenant, each))
        assert caller is not None
        if front.is_ending:
            raise ApiError("not_ready", "the service is stopping", headers={"retry-after": "1"})
        try:
            front.limiter.open_connection(caller.tenant)
        except QuotaError as error:
            raise quota_error(error) from None
        try:
            # All at once, so that they begin at one position.
            for subscription, number in found:
                every = number_of(request, "every_seconds", subscription.every_seconds, 0.0, _SECONDS_MAX)
                cursor.follow(number, subscription.id, subscription.key or [], after, every)
            connection = Connection(front.hub, cursor, caller)
            await sse.stream(front.hub, connection, receive, send, headers)
        finally:
            front.limiter.close_connection(caller.tenant)

    async def websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        front = self._front
        await receive()
        if front.is_ending or not front.is_ready:
            await send({"type": "websocket.close", "code": RESTART})
            return
        headers = [(b"x-request-id", new_request_id().encode())]
        is_known = PROTOCOL in scope.get("subprotocols", [])
        await send({"type": "websocket.accept", "subprotocol": PROTOCOL if is_known else None, "headers": headers})
        try:
            caller = await self._caller(scope, receive)
            scope["headers"].clear()
            try:
                front.limiter.open_connection(caller.tenant)
            except QuotaError as error:
                raise Closed(QUOTA, str(error)) from None
            try:
                behind = QueryParams(scope["query_string"]).get("behind", _BEHIND[0])
                if behind not in _BEHIND:
                    raise Closed(BAD_FRAME, _BEHIND_HINT)
                connection = Connection(front.hub, Cursor(front.hub.log, behind=behind), caller)

                async def subscribe(to: Connection, frame: ClientFrame) -> bytes | None:
                    return await self._subscribe(caller, to, frame)

                await Session(front.hub, connection, receive, send, subscribe).run()
            finally:
                front.limiter.close_connection(caller.tenant)
        except Closed as closed:
            await send({"type": "websocket.close", "code": closed.code, "reason": closed.reason})
        except _Left:
            return

    async def _caller(self, scope: Scope, receive: Receive) -> Identity:
        """By a header, or by the first frame."""
        header = dict(scope["headers"]).get(b"authorization")
        callers = self._front.callers
        try:
            bearer = bearer_of(None if header is None else header.decode("latin-1"))
            if bearer is not None or self._front.options.no_auth:
                return await callers.identify(bearer, None)
            message = await asyncio.wait_for(receive(), AUTH_SECONDS)
            if message["type"] == "websocket.disconnect":
                raise _Left
            frame = frame_of(message)
            if frame.type != "auth" or not frame.token:
                raise Closed(UNAUTHENTICATED, "the first frame must be auth")
            return await callers.identify(*callers.authenticator.sort(frame.token))
        except (ApiError, Unauthenticated, TimeoutError) as error:
            raise Closed(UNAUTHENTICATED, str(error)[:100] or "no auth frame within 10 seconds") from None

    async def _subscribe(self, caller: Identity, connection: Connection, frame: ClientFrame) -> bytes | None:
        id = frame.subscription or ""
        try:
            if not caller.is_valid(time.time()):
                raise Closed(UNAUTHENTICATED, "the key or token has expired")
            if not caller.may("stream", id):
                raise not_found()
            found, number = await followed(self._front, caller.tenant, id)
            if frame.type == "unsubscribe":
                connection.cursor.leave(number)
                return None
            if len(connection.cursor) >= CONNECTION_SUBSCRIPTIONS_MAX:
                raise ApiError("quota", f"a connection has at most {CONNECTION_SUBSCRIPTIONS_MAX} subscriptions")
            every = found.every_seconds if frame.every_seconds is None else frame.every_seconds
            if not 0 <= every <= _SECONDS_MAX:
                raise Closed(BAD_FRAME, "every_seconds is a number of seconds")
            connection.cursor.follow(number, found.id, found.key or [], position_of(frame.after), every)
            return None
        except ApiError as error:
            said = {"type": "error", "subscription": id, **error.body("")}
            return encode({name: value for name, value in said.items() if name != "request_id"})


class _Left(Exception):
    """The client has left before it was known."""
