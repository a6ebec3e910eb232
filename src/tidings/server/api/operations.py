"""Routes of those who run the service: changes in, quarantine, tenants and keys, health and figures."""

from __future__ import annotations

import datetime as dt
import re

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tidings import __version__
from tidings.families.registry import families
from tidings.server import limits
from tidings.server.api.answers import (
    About,
    Applied,
    Dropped,
    Health,
    NewKey,
    QuarantinedRecord,
    QuarantinePage,
    Readiness,
    ShownTenant,
    StoredChanges,
    Tables,
    TenantPage,
)
from tidings.server.api.bodies import KeyBody, NewTenantBody, TenantBody
from tidings.server.api.errors import ApiError, not_found
from tidings.server.api.http import NUMBER_MAX, answer, body_of, text_of, whole_of
from tidings.server.api.subscriptions import moment
from tidings.server.auth import Identity
from tidings.server.engine.quarantine import QUARANTINE, Quarantine
from tidings.server.front import Front
from tidings.server.link import NotReady
from tidings.server.registry import ROLES, Tenant

_DEFAULT_PRODUCER = "http"
_PLACE = re.compile(r":[0-9]{19}$")
"""What the engine calls a request, behind its producer."""
PRODUCER_PATTERN = r"^[^\x00-\x1f\x7f]{1,200}$"
_decode = msgspec.json.Decoder(Quarantine).decode


class OperationRoutes:
    def __init__(self, front: Front) -> None:
        self._front = front

    async def healthz(self, request: Request) -> Response:
        return answer(Health(status="ok"))

    async def readyz(self, request: Request) -> Response:
        front = self._front
        if not front.is_ready:
            waiting = Readiness(ready=False, engine=front.options.engine, epoch=None, seq=None, lag_seconds=None)
            return answer(waiting, 503)
        log = front.hub.log
        found = Readiness(
            ready=True,
            engine=front.options.engine,
            epoch=log.epoch,
            seq=log.passed,
            lag_seconds=round(front.lag_seconds, 6),
        )
        return answer(found)

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
        about = About(
            version=__version__,
            engine=front.options.engine,
            epoch=front.hub.log.epoch,
            families=[family.name for family in families()],
            limits={**sizes, **quotas},
            retention={"seconds": settings.retain_seconds, "bytes": settings.retain_bytes},
        )
        return answer(about)

    async def catalog(self, request: Request) -> Response:
        await self._front.callers.caller(request, "read")
        tables: Tables = {
            "tables": [
                {
                    "name": table.name,
                    "key": list(table.key),
                    "columns": [{"name": column.name, "type": column.type.name} for column in table.attributes],
                }
                for table in self._front.queries.catalog.tables
            ]
        }
        return answer(tables)

    async def changes(self, request: Request) -> Response:
        front = self._front
        await front.callers.caller(request, "operator")
        is_stored = front.options.engine == "spark"
        if front.options.engine == "gateway":
            raise ApiError("method_not_allowed", "a gateway takes no changes", hint="they go to the source of the job")
        if is_stored and front.options.settings.sources:
            raise ApiError(
                "method_not_allowed",
                "changes come by the source that the service was started with",
                hint="the job on Spark has one source: changes by HTTP need a service without --source",
            )
        producer = request.query_params.get("producer", _DEFAULT_PRODUCER)
        if not re.fullmatch(PRODUCER_PATTERN, producer):
            raise ApiError("bad_request", "producer is a name of at most 200 characters, without control characters")
        text = await text_of(request, limits.BULK_BODY_BYTES_MAX)
        try:
            result = await front.link.changes(producer, text)
        except NotReady as error:
            raise ApiError("not_ready", str(error), headers={"retry-after": "1"}) from None
        if is_stored:
            return answer(StoredChanges(stored=result.accepted), 202)
        log = front.hub.log
        applied = Applied(
            accepted=result.accepted,
            refused=[{"line": each.line, "reason": each.reason} for each in result.refused],
            seq=log.passed,
            position=f"{log.epoch}-{log.passed}",
        )
        return answer(applied)

    async def quarantine(self, request: Request) -> Response:
        """Records that were refused. Their numbers are where they end in the file, so a page is found at once."""
        front = self._front
        await front.callers.caller(request, "operator")
        after = whole_of(request, "after", 0, 0, NUMBER_MAX)
        limit = whole_of(request, "limit", 100, 1, 1000)
        records = await front.in_thread(lambda: self._refused(after, limit + 1))
        following = records[limit - 1]["number"] if len(records) > limit else None
        return answer(QuarantinePage(records=records[:limit], next=following))

    def _refused(self, after: int, limit: int) -> list[QuarantinedRecord]:
        found: list[QuarantinedRecord] = []
        with (self._front.data / QUARANTINE).open("rb") as source:
            at = 0
            if after > source.seek(0, 2):
                return found
            source.seek(0)
            if after:
                # Within a record: the next one begins behind its end.
                source.seek(after - 1)
                source.readline()
                at = source.tell()
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
                        "source": _PLACE.sub("", each.source),
                        "time": moment(each.time / 1e6),
                    }
                )
        return found

    # Tenants and keys

    async def create_tenant(self, request: Request) -> Response:
        front = self._front
        await front.callers.caller(request, "operator")
        body = await body_of(request, NewTenantBody)
        known = await front.in_thread(lambda: front.registry.get_tenant(body.id))
        if known is not None and known.quota != body.quota.numbers():
            raise ApiError("id_taken", f"the tenant {body.id} is there already", hint="use PUT to change it")
        return answer(await self._put_tenant(body.id, body), 201 if known is None else 200)

    async def edit_tenant(self, request: Request) -> Response:
        """Sets the quota of a tenant."""
        front, id = self._front, _tenant_id(request)
        await front.callers.caller(request, "operator")
        body = await body_of(request, TenantBody)
        if body.id not in (None, id):
            raise ApiError("bad_request", "the id in the body is not that of the path")
        if await front.in_thread(lambda: front.registry.get_tenant(id)) is None:
            raise not_found()
        return answer(await self._put_tenant(id, body))

    async def _put_tenant(self, id: str, body: TenantBody) -> ShownTenant:
        front, quota = self._front, body.quota.numbers()
        tenant = await front.in_thread(lambda: front.registry.ensure_tenant(id))
        tenant = msgspec.structs.replace(tenant, quota=quota)
        await front.in_thread(lambda: front.registry.put_tenant(tenant))
        front.limiter.set_tenant(id, quota)
        return _tenant(tenant)

    async def tenants(self, request: Request) -> Response:
        await self._front.callers.caller(request, "operator")
        found = await self._front.in_thread(self._front.registry.list_tenants)
        return answer(TenantPage(tenants=[_tenant(each) for each in found]))

    async def tenant(self, request: Request) -> Response:
        await self._front.callers.caller(request, "operator")
        id = _tenant_id(request)
        found = await self._front.in_thread(lambda: self._front.registry.get_tenant(id))
        if found is None:
            raise not_found()
        return answer(_tenant(found))

    async def drop_tenant(self, request: Request) -> Response:
        front = self._front
        caller = await front.callers.caller(request, "operator")
        id = _tenant_id(request)
        if id == caller.tenant:
            raise ApiError("forbidden", "a key cannot drop its own tenant: nobody could call the service any more")
        if not await front.in_thread(lambda: front.registry.delete_tenant(id)):
            raise not_found()
        front.callers.authenticator.forget()
        front.hub.revoke(id, None)
        front.limiter.set_tenant(id, {})
        await front.subscriptions.settle()
        return answer(Dropped(id=id, state="dropped"))

    async def create_key(self, request: Request) -> Response:
        front = self._front
        caller = await self._keeper(request)
        body = await body_of(request, KeyBody)
        tenant = _tenant_id(request)
        if ROLES.index(body.role) > ROLES.index(caller.role):
            raise ApiError("forbidden", "a key cannot make a stronger one")
        expires = _seconds(body.expires_at)
        if await front.in_thread(lambda: front.registry.get_tenant(tenant)) is None:
            raise not_found()
        key, secret = await front.in_thread(lambda: front.registry.create_key(tenant, body.role, expires))
        until = None if key.expires_at is None else moment(key.expires_at)
        return answer(NewKey(id=key.id, key=secret, role=key.role, expires_at=until), 201)

    async def drop_key(self, request: Request) -> Response:
        front = self._front
        await self._keeper(request)
        tenant, key = _tenant_id(request), request.path_params["id"]
        if not await front.in_thread(lambda: front.registry.revoke(tenant, key)):
            raise not_found()
        front.callers.authenticator.forget()
        front.hub.revoke(tenant, key)
        return answer(Dropped(id=key, state="revoked"))

    async def _keeper(self, request: Request) -> Identity:
        """Admins keep the keys of their own tenant, operators those of all."""
        caller = await self._front.callers.caller(request, "admin")
        if caller.role != "operator" and caller.tenant != _tenant_id(request):
            raise not_found()
        return caller


def _tenant_id(request: Request) -> str:
    id: str = request.path_params["t"]
    return id


def _tenant(each: Tenant) -> ShownTenant:
    return {"id": each.id, "filter": each.filter, "quota": each.quota, "created_at": moment(each.created_at)}


def _seconds(text: str | None) -> float | None:
    """A time as RFC 3339 has it; without an offset it is in UTC."""
    if text is None:
        return None
    try:
        found = dt.datetime.fromisoformat(text.upper())
        return max(0.0, found.replace(tzinfo=found.tzinfo or dt.UTC).timestamp())
    except (ValueError, OverflowError):
        raise ApiError("bad_request", "expires_at is a time such as 2030-01-31T12:00:00Z") from None
