"""Routes of those who run the service: changes in, quarantine, tenants and keys, health and figures."""

from __future__ import annotations

import datetime as dt
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tidings import __version__
from tidings.families.registry import families
from tidings.model.errors import UsageError
from tidings.server import limits
from tidings.server.api.bodies import KeyBody, TenantBody
from tidings.server.api.errors import ApiError, not_found
from tidings.server.api.http import JSON, NDJSON, answer, body_of, check_media, chunks, whole_of
from tidings.server.api.subscriptions import moment
from tidings.server.auth import Identity
from tidings.server.engine.quarantine import QUARANTINE, Quarantine
from tidings.server.front import Front
from tidings.server.link import NotReady
from tidings.server.registry import ROLES, Tenant

_DEFAULT_PRODUCER = "http"
_decode = msgspec.json.Decoder(Quarantine).decode


class OperationRoutes:
    def __init__(self, front: Front) -> None:
        self._front = front

    async def healthz(self, request: Request) -> Response:
        return answer({"status": "ok"})

    async def readyz(self, request: Request) -> Response:
        front = self._front
        if not front.is_ready:
            return answer(
                {"ready": False, "engine": front.options.engine, "epoch": None, "seq": None, "lag_seconds": None}, 503
            )
        log = front.hub.log
        return answer(
            {
                "ready": True,
                "engine": front.options.engine,
                "epoch": log.epoch,
                "seq": log.passed,
                "lag_seconds": round(front.lag_seconds, 6),
            }
        )

    async def metrics(self, request: Request) -> Response:
        await self._front.callers.caller(request, "operator")
        return Response(self._front.metrics.text(len(self._front.hub)), media_type="text/plain; version=0.0.4")

    async def about(self, request: Request) -> Response:
        front = self._front
        caller = await front.callers.caller(request, "read")
        settings = front.options.settings
        quotas = msgspec.to_builtins(front.limiter.quotas_of(caller.tenant))
        sizes = {
            "json_body_bytes": limits.JSON_BODY_BYTES_MAX,
            "bulk_body_bytes": limits.BULK_BODY_BYTES_MAX,
            "line_bytes": limits.LINE_BYTES_MAX,
            "sql_characters": limits.SQL_CHARACTERS_MAX,
            "connection_subscriptions": limits.CONNECTION_SUBSCRIPTIONS_MAX,
            "client_frame_bytes": limits.CLIENT_FRAME_BYTES_MAX,
            "server_frame_bytes": limits.SERVER_FRAME_BYTES_MAX,
        }
        return answer(
            {
                "version": __version__,
                "engine": front.options.engine,
                "epoch": front.hub.log.epoch,
                "families": [family.name for family in families()],
                "limits": {**sizes, **quotas},
                "retention": {"seconds": settings.retain_seconds, "bytes": settings.retain_bytes},
            }
        )

    async def catalog(self, request: Request) -> Response:
        await self._front.callers.caller(request, "read")
        tables = [
            {
                "name": table.name,
                "key": list(table.key),
                "columns": [{"name": column.name, "type": column.type.name} for column in table.attributes],
            }
            for table in self._front.options.catalog.tables
        ]
        return answer({"tables": tables})

    async def changes(self, request: Request) -> Response:
        front = self._front
        await front.callers.caller(request, "operator")
        check_media(request, NDJSON, JSON)
        is_stored = front.options.engine == "spark"
        if is_stored and front.options.settings.sources:
            raise ApiError(
                "method_not_allowed",
                "changes come by the source that the service was started with",
                hint="the job on Spark has one source: changes by HTTP need a service without --source",
            )
        producer = request.query_params.get("producer", _DEFAULT_PRODUCER)
        if not producer or len(producer) > 200 or not producer.isprintable():
            raise ApiError("bad_request", "producer is a name of at most 200 characters")
        text = b"".join([chunk async for chunk in chunks(request, limits.BULK_BODY_BYTES_MAX)])
        if max(map(len, text.split(b"\n")), default=0) > limits.LINE_BYTES_MAX:
            raise ApiError("too_large", f"a line has more than {limits.LINE_BYTES_MAX:,} bytes")
        try:
            result = await front.link.changes(producer, text)
        except NotReady as error:
            raise ApiError("not_ready", str(error), headers={"retry-after": "1"}) from None
        if is_stored:
            return answer({"stored": result.accepted}, 202)
        log = front.hub.log
        return answer(
            {
                "accepted": result.accepted,
                "refused": [{"line": each.line, "reason": each.reason} for each in result.refused],
                "seq": log.passed,
                "position": f"{log.epoch}-{log.passed}",
            }
        )

    async def quarantine(self, request: Request) -> Response:
        """Records that were refused. Their numbers are where they end in the file, so a page is found at once."""
        front = self._front
        await front.callers.caller(request, "operator")
        after = whole_of(request, "after", 0, 0, 2**60)
        limit = whole_of(request, "limit", 100, 1, 1000)
        records = await front.in_thread(lambda: self._refused(after, limit + 1))
        following = records[limit - 1]["number"] if len(records) > limit else None
        return answer({"records": records[:limit], "next": following})

    def _refused(self, after: int, limit: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        with (self._front.data / QUARANTINE).open("rb") as source:
            if after:
                source.seek(after - 1)
                if source.read(1) != b"\n":
                    raise ApiError("bad_request", "after is the number of a record, or 0")
            at = after
            for line in source:
                if len(found) == limit or not line.endswith(b"\n"):
                    break
                at += len(line)
                each = _decode(line)
                found.append(
                    {
                        "number": at,
                        "seq": each.seq,
                        "reason": each.reason,
                        "raw": each.raw,
                        "source": each.source,
                        "time": moment(each.time / 1e6),
                    }
                )
        return found

    # Tenants and keys

    async def put_tenant(self, request: Request) -> Response:
        """Creates a tenant, or sets its quota."""
        front = self._front
        await front.callers.caller(request, "operator")
        body = await body_of(request, TenantBody)
        id = request.path_params.get("id", body.id)
        if id is None or body.id not in (None, id):
            raise ApiError("bad_request", "a tenant needs an 'id', the same in path and body")
        known = await front.in_thread(lambda: front.registry.get_tenant(id))
        if known is None and request.method == "PUT":
            raise not_found()
        if known is not None and request.method == "POST" and known.quota != body.quota:
            raise ApiError("id_taken", f"the tenant {id} is there already", hint="use PUT to change it")
        try:
            front.limiter.set_tenant(id, body.quota)
        except UsageError as error:
            raise ApiError("bad_request", str(error)) from None
        tenant = await front.in_thread(lambda: front.registry.ensure_tenant(id))
        tenant = msgspec.structs.replace(tenant, quota=body.quota)
        await front.in_thread(lambda: front.registry.put_tenant(tenant))
        return answer(_tenant(tenant), 201 if known is None else 200)

    async def tenants(self, request: Request) -> Response:
        await self._front.callers.caller(request, "operator")
        found = await self._front.in_thread(self._front.registry.list_tenants)
        return answer({"tenants": [_tenant(each) for each in found]})

    async def tenant(self, request: Request) -> Response:
        await self._front.callers.caller(request, "operator")
        id = request.path_params["id"]
        found = await self._front.in_thread(lambda: self._front.registry.get_tenant(id))
        if found is None:
            raise not_found()
        return answer(_tenant(found))

    async def drop_tenant(self, request: Request) -> Response:
        front = self._front
        await front.callers.caller(request, "operator")
        id = request.path_params["id"]
        if not await front.in_thread(lambda: front.registry.delete_tenant(id)):
            raise not_found()
        front.callers.authenticator.forget()
        front.limiter.set_tenant(id, {})
        await front.subscriptions.settle()
        return answer({"id": id, "state": "dropped"})

    async def create_key(self, request: Request) -> Response:
        front = self._front
        caller = await self._keeper(request)
        body = await body_of(request, KeyBody)
        tenant = request.path_params["id"]
        if ROLES.index(body.role) > ROLES.index(caller.role):
            raise ApiError("forbidden", "a key cannot make a stronger one")
        expires = _seconds(body.expires_at)
        if await front.in_thread(lambda: front.registry.get_tenant(tenant)) is None:
            raise not_found()
        key, secret = await front.in_thread(lambda: front.registry.create_key(tenant, body.role, expires))
        return answer({"id": key.id, "key": secret, "role": key.role, "expires_at": moment(key.expires_at)}, 201)

    async def drop_key(self, request: Request) -> Response:
        front = self._front
        await self._keeper(request)
        tenant, key = request.path_params["id"], request.path_params["key"]
        if not await front.in_thread(lambda: front.registry.revoke(tenant, key)):
            raise not_found()
        front.callers.authenticator.forget()
        return answer({"id": key, "state": "revoked"})

    async def _keeper(self, request: Request) -> Identity:
        """Admins keep the keys of their own tenant, operators those of all."""
        caller = await self._front.callers.caller(request, "admin")
        if caller.role != "operator" and caller.tenant != request.path_params["id"]:
            raise not_found()
        return caller


def _tenant(each: Tenant) -> dict[str, Any]:
    return {"id": each.id, "quota": each.quota, "created_at": moment(each.created_at)}


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        found = dt.datetime.fromisoformat(text)
        return found.replace(tzinfo=found.tzinfo or dt.UTC).timestamp()
    except (ValueError, OverflowError):
        raise ApiError("bad_request", "expires_at is a time such as 2030-01-31T12:00:00Z") from None
