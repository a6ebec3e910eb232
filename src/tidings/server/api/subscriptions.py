"""Routes of subscriptions: create, edit, list, drop, explain, rows and changes."""

from __future__ import annotations

import asyncio
import datetime as dt
import re
from collections.abc import AsyncIterator

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tidings.model.errors import TidingsError
from tidings.server.api.answers import DroppedSubscription, Shown, SubscriptionPage, Token
from tidings.server.api.bodies import ID_PATTERN, QueryBody, SubscriptionBody, TokenBody
from tidings.server.api.errors import ApiError, encode, not_found, refused_query
from tidings.server.api.http import (
    NDJSON,
    answer,
    body_of,
    number_of,
    parts_of,
    quota_error,
    text_of,
    whole_of,
)
from tidings.server.front import Front
from tidings.server.gateway.cursor import Cursor, Event
from tidings.server.gateway.hub import Connection
from tidings.server.gateway.position import Position
from tidings.server.gateway.sse import until_gone
from tidings.server.limits import BULK_BODY_BYTES_MAX, QuotaError
from tidings.server.link import EVENTS_MAX
from tidings.server.registry import Subscription

IF_MATCH_PATTERN = r'^("[0-9]{1,9}"|[0-9]{1,9}|\*)$'


def moment(seconds: float) -> str:
    """RFC 3339, UTC."""
    return dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def shown(front: Front, each: Subscription) -> Shown:
    """A subscription as clients see it."""
    position = None if each.seq is None else f"{front.hub.log.epoch}-{each.seq}"
    return {
        "id": each.id,
        "sql": each.sql,
        "params": each.params,
        "family": each.family,
        "state": each.state,
        "version": each.version,
        "seq": each.seq,
        "position": position,
        "columns": each.columns,
        "key": each.key,
        "order": each.order,  # type: ignore[typeddict-item]
        "targets": each.targets,
        "every_seconds": each.every_seconds,
        "idle_seconds": each.idle_seconds,
        "place": each.place,
        "metadata": each.metadata,
        "created_at": moment(each.created_at),
        "stream": f"/v1/subscriptions/{each.id}/stream",
    }


class SubscriptionRoutes:
    def __init__(self, front: Front) -> None:
        self._front = front

    async def create(self, request: Request) -> Response:
        front = self._front
        caller = await front.callers.caller(request, "write")
        await self._check_quota(caller.tenant)
        body = await body_of(request, SubscriptionBody)
        found, status = await front.subscriptions.create(caller.tenant, body)
        front.used(caller.tenant, found.id, found.idle_seconds)
        headers = {"location": f"/v1/subscriptions/{found.id}"} if status != 200 else {}
        return answer(shown(front, found), status, {**headers, "etag": f'"{found.version}"'})

    async def _check_quota(self, tenant: str) -> None:
        """Counts one creation, by POST or by PUT."""
        front = self._front
        try:
            front.limiter.take_creation(tenant)
            if front.limiter.quotas_of(tenant).subscriptions is not None:
                held = await front.in_thread(lambda: front.registry.count(tenant))
                front.limiter.check_subscriptions(tenant, held)
        except QuotaError as error:
            raise quota_error(error) from None

    async def edit(self, request: Request) -> Response:
        front = self._front
        caller = await front.callers.caller(request, "write")
        match = request.headers.get("if-match")
        if match is not None and not re.fullmatch(IF_MATCH_PATTERN, match):
            raise ApiError("bad_request", 'If-Match is a version in quotes, such as "1", or *')
        version = int(match.strip('"')) if match not in (None, "*") else None
        body = await body_of(request, SubscriptionBody)
        id = _id(request)
        if not re.search(ID_PATTERN, id):
            raise ApiError("bad_request", "an id has letters, digits and . _ ~ -; at most 128 characters")
        if await front.in_thread(lambda: front.registry.get(caller.tenant, id)) is None:
            if match is not None:
                raise ApiError("version_mismatch", "the subscription is not there")
            await self._check_quota(caller.tenant)
        found, status = await front.subscriptions.edit(caller.tenant, id, body, version)
        front.used(caller.tenant, found.id, found.idle_seconds)
        return answer(shown(front, found), status, {"etag": f'"{found.version}"'})

    async def get(self, request: Request) -> Response:
        caller = await self._front.callers.caller(request, "read")
        found = await self._front.subscriptions.get(caller.tenant, _id(request))
        return answer(shown(self._front, found), 200, {"etag": f'"{found.version}"'})

    async def drop(self, request: Request) -> Response:
        caller = await self._front.callers.caller(request, "write")
        id = _id(request)
        seq = await self._front.subscriptions.drop(caller.tenant, id)
        return answer(DroppedSubscription(id=id, state="dropped", seq=seq))

    async def page(self, request: Request) -> Response:
        front = self._front
        caller = await front.callers.caller(request, "read")
        limit = whole_of(request, "limit", 100, 1, 1000)
        after, family, state = (request.query_params.get(name) for name in ("after", "family", "state"))
        found = await front.in_thread(
            lambda: front.registry.page(caller.tenant, limit + 1, after, family or None, state or None)
        )
        following = found[limit - 1].id if len(found) > limit else None
        return answer(SubscriptionPage(subscriptions=[shown(front, each) for each in found[:limit]], next=following))

    async def bulk(self, request: Request) -> Response:
        front = self._front
        caller = await front.callers.caller(request, "write")
        limit = front.limiter.quotas_of(caller.tenant).subscriptions
        # Read before the first answer: many clients read nothing until they have sent everything.
        text = await text_of(request, BULK_BODY_BYTES_MAX)

        async def answers() -> AsyncIterator[bytes]:
            first = 1
            for part in parts_of(text, EVENTS_MAX):
                await asyncio.sleep(0)
                if not part:
                    continue
                room = None
                if limit is not None:
                    room = max(0, limit - await front.in_thread(lambda: front.registry.count(caller.tenant)))
                found = await front.subscriptions.bulk(caller.tenant, part, first, room)
                first += len(part)
                yield b"".join(encode(each) + b"\n" for each in found)

        return StreamingResponse(answers(), 200, media_type=NDJSON)

    async def explain(self, request: Request) -> Response:
        await self._front.callers.caller(request, "read")
        body = await body_of(request, QueryBody)
        try:
            explained = self._front.queries.explain(body.sql, body.params)
        except TidingsError as error:
            raise refused_query(error) from None
        except RecursionError:
            raise ApiError("sql_refused", "the query is nested too deeply") from None
        return answer(explained)

    async def token(self, request: Request) -> Response:
        front = self._front
        caller = await front.callers.caller(request, "read")
        body = await body_of(request, TokenBody)
        known = await front.in_thread(lambda: front.registry.get_many(caller.tenant, body.subscriptions))
        if len(known) < len(set(body.subscriptions)):
            raise not_found()
        token, expires = front.callers.authenticator.issue(caller, body.subscriptions, body.ttl_seconds)
        return answer(Token(token=token, expires_at=moment(expires)), 201)

    async def rows(self, request: Request) -> Response:
        front = self._front
        id = _id(request)
        caller = await front.callers.caller(request, "stream", id)
        found, number = await followed(front, caller.tenant, id)
        log = front.hub.log
        bag = log.view(number)
        texts = [] if bag is None else bag.rows()
        if found.order is not None and found.order["shown"]:
            texts = _ordered(texts, found.order["by"], is_descending=found.order["descending"])
        head = f'{{"position":"{log.epoch}-{log.passed}","seq":{log.passed},"rows":['.encode()
        return Response(head + b",".join(texts) + b"]}", 200, media_type="application/json")

    async def changes(self, request: Request) -> Response:
        front = self._front
        id = _id(request)
        caller = await front.callers.caller(request, "stream", id)
        limit = whole_of(request, "limit", 1000, 1, 10_000)
        wait = number_of(request, "wait_seconds", 20.0, 0.0, 60.0)
        after = position_of(request.query_params.get("after"))
        found, number = await followed(front, caller.tenant, id)
        log = front.hub.log
        if after is None:
            cursor = Cursor(log)
            cursor.follow(number, found.id, found.key or [], None)
            return _changes(front, cursor.read(0.0), log.passed, is_up_to_date=True)
        records = None if after.epoch != log.epoch or after.seq > log.passed else log.since(number, after.seq)
        if records is None:
            raise ApiError("position_expired", "what came after this position is gone", hint="begin without after")
        if not records and wait:
            connection = Connection(front.hub, Cursor(log), caller)
            connection.cursor.follow(number, found.id, found.key or [], after)
            await self._wait(request, connection, wait)
            records = log.since(number, after.seq) or []
        quoted = msgspec.json.encode(found.id)
        events = [
            Event("change", b'{"subscription": ' + quoted + record.tail)
            if not record.is_end
            else Event("end", b'{"subscription": %b, "seq": %d, "why": "dropped"}' % (quoted, record.seq))
            for record in records[:limit]
        ]
        is_whole = len(records) <= limit
        return _changes(front, events, log.passed if is_whole else records[limit - 1].seq, is_up_to_date=is_whole)

    async def _wait(self, request: Request, connection: Connection, seconds: float) -> None:
        """Until there is something new. Whoever waits has a connection as good as a stream."""
        front, tenant = self._front, connection.caller.tenant
        try:
            front.limiter.open_connection(tenant)
        except QuotaError as error:
            raise quota_error(error) from None
        front.hub.watch(connection)
        gone = asyncio.create_task(until_gone(request.receive, connection))
        try:
            await asyncio.wait_for(connection.news(), seconds)
        except TimeoutError:
            pass
        finally:
            gone.cancel()
            front.hub.leave(connection)
            front.limiter.close_connection(tenant)


def _changes(front: Front, events: list[Event], seq: int, *, is_up_to_date: bool) -> Response:
    head = f'{{"position":"{front.hub.log.epoch}-{seq}","up_to_date":{"true" if is_up_to_date else "false"},'
    told = b",".join(event.data for event in events)
    return Response(head.encode() + b'"notifications":[' + told + b"]}", 200, media_type="application/json")


async def followed(front: Front, tenant: str, id: str) -> tuple[Subscription, int]:
    """A subscription, and its number in the log."""
    found = await front.subscriptions.get(tenant, id)
    number = front.hub.log.number(f"{tenant}/{id}")
    if number is None or found.state == "refused":
        raise not_found()
    front.used(tenant, id, found.idle_seconds)
    return found, number


def position_of(text: str | None) -> Position | None:
    if text is None:
        return None
    found = Position.parse(text)
    if found is None:
        raise ApiError("bad_request", "a position is EPOCH-SEQ, as it stands in ids of events")
    return found


def _id(request: Request) -> str:
    id: str = request.path_params["id"]
    return id


def _ordered(texts: list[bytes], column: str, *, is_descending: bool) -> list[bytes]:
    keys = [msgspec.json.decode(text)[column] for text in texts]
    order = sorted(range(len(texts)), key=lambda at: keys[at], reverse=is_descending)
    return [texts[at] for at in order]
