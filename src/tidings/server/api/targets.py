"""Routes of targets: webhooks, what became of their deliveries, and letters that could not be delivered."""

from __future__ import annotations

import base64
import secrets
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from tidings.server.api.answers import (
    AttemptPage,
    Dropped,
    LetterPage,
    NewSecret,
    NewTarget,
    Replayed,
    ShownAttempt,
    ShownLetter,
    ShownTarget,
    TargetPage,
)
from tidings.server.api.bodies import TargetBody
from tidings.server.api.errors import ApiError, not_found
from tidings.server.api.http import NUMBER_MAX, answer, body_of, whole_of
from tidings.server.api.subscriptions import moment
from tidings.server.front import Front
from tidings.server.registry import Attempt, Target
from tidings.server.webhooks.addresses import UrlRefused, check_url

_OLD_SECRET_SECONDS = 86_400.0


class TargetRoutes:
    def __init__(self, front: Front) -> None:
        self._front = front

    async def create(self, request: Request) -> Response:
        front = self._front
        caller = await front.callers.caller(request, "write")
        body = await body_of(request, TargetBody)
        self._check(body.url)
        id = body.id or secrets.token_hex(8)
        known = await front.in_thread(lambda: front.registry.get_target(caller.tenant, id))
        if known is not None:
            if _content(known) == _of_body(body):
                return answer(await self._shown(known))
            raise ApiError("id_taken", f"the id {id} is taken by another target", hint="use PUT to change it")
        target = Target(
            caller.tenant,
            id,
            body.url,
            _new_secret(),
            int(body.batch),
            body.every_seconds,
            body.format,
            position=front.hub.log.passed,
            created_at=time.time(),
        )
        await front.in_thread(lambda: front.registry.put_target(target))
        front.webhooks.changed(caller.tenant, id)
        headers = {"location": f"/v1/targets/{id}"}
        return answer(NewTarget(**await self._shown(target), secret=target.secret), 201, headers)

    async def edit(self, request: Request) -> Response:
        tenant, known = await self._known(request, "write")
        body = await body_of(request, TargetBody)
        if body.id not in (None, known.id):
            raise ApiError("bad_request", "the id in the body is not that of the path")
        self._check(body.url)
        fields: dict[str, Any] = {
            "url": body.url,
            "batch": int(body.batch),
            "every_seconds": body.every_seconds,
            "format": body.format,
        }
        await self._update(tenant, known.id, fields)
        return await self._answered(tenant, known.id)

    async def get(self, request: Request) -> Response:
        _, known = await self._known(request, "read")
        return answer(await self._shown(known))

    async def page(self, request: Request) -> Response:
        caller = await self._front.callers.caller(request, "read")
        found = await self._front.in_thread(lambda: self._front.registry.list_targets(caller.tenant))
        return answer(TargetPage(targets=[await self._shown(each) for each in found]))

    async def drop(self, request: Request) -> Response:
        tenant, known = await self._known(request, "write")
        await self._front.in_thread(lambda: self._front.registry.remove_target(tenant, known.id))
        self._front.webhooks.changed(tenant, known.id)
        return answer(Dropped(id=known.id, state="dropped"))

    async def rotate(self, request: Request) -> Response:
        """A new secret. The old one signs too, for a day."""
        tenant, known = await self._known(request, "write")
        secret = _new_secret()
        fields = {
            "secret": secret,
            "old_secret": known.secret,
            "old_secret_until": time.time() + _OLD_SECRET_SECONDS,
        }
        await self._update(tenant, known.id, fields)
        return answer(NewSecret(id=known.id, secret=secret))

    async def test(self, request: Request) -> Response:
        tenant, known = await self._known(request, "write")
        return answer(_attempt(await self._front.webhooks.test(tenant, known.id)))

    async def resume(self, request: Request) -> Response:
        tenant, known = await self._known(request, "write")
        fields = {"state": "active", "failures": 0, "retry_at": None, "last_error": None}
        await self._update(tenant, known.id, fields)
        return await self._answered(tenant, known.id)

    async def attempts(self, request: Request) -> Response:
        tenant, known = await self._known(request, "read")
        found = await self._front.in_thread(lambda: self._front.registry.list_attempts(tenant, known.id))
        return answer(AttemptPage(attempts=[_attempt(each) for each in found]))

    async def dead_letters(self, request: Request) -> Response:
        front = self._front
        tenant, known = await self._known(request, "read")
        limit = whole_of(request, "limit", 100, 1, 1000)
        after = whole_of(request, "after", 0, 0, NUMBER_MAX)
        found = await front.in_thread(lambda: front.registry.page_dead_letters(tenant, known.id, limit + 1, after))
        letters: list[ShownLetter] = [
            {
                "number": each.number,
                "subscription": each.subscription,
                "webhook_id": each.webhook_id,
                "seq": each.seq,
                "body": each.body,
                "reason": each.reason,
                "at": moment(each.at),
            }
            for each in found[:limit]
        ]
        following = letters[-1]["number"] if len(found) > limit else None
        return answer(LetterPage(dead_letters=letters, next=following))

    async def replay(self, request: Request) -> Response:
        tenant, known = await self._known(request, "write")
        return answer(Replayed(replayed=await self._front.webhooks.replay(tenant, known.id)))

    def _check(self, url: str) -> None:
        try:
            check_url(url, self._front.options.allow_private_webhooks)
        except UrlRefused as error:
            raise ApiError("url_refused", str(error)) from None

    async def _known(self, request: Request, action: Any) -> tuple[str, Target]:
        caller = await self._front.callers.caller(request, action)
        id = request.path_params["id"]
        found = await self._front.in_thread(lambda: self._front.registry.get_target(caller.tenant, id))
        if found is None:
            raise not_found()
        return caller.tenant, found

    async def _update(self, tenant: str, id: str, fields: dict[str, Any]) -> None:
        await self._front.in_thread(lambda: self._front.registry.update_target(tenant, id, **fields))
        self._front.webhooks.changed(tenant, id)

    async def _answered(self, tenant: str, id: str) -> Response:
        found = await self._front.in_thread(lambda: self._front.registry.get_target(tenant, id))
        if found is None:
            raise not_found()
        return answer(await self._shown(found))

    async def _shown(self, each: Target) -> ShownTarget:
        front = self._front
        dead = await front.in_thread(lambda: front.registry.count_dead_letters(each.tenant, each.id))
        return {
            "id": each.id,
            "url": each.url,
            "batch": each.batch,
            "every_seconds": each.every_seconds,
            "format": each.format,
            "state": each.state,
            "pending": front.webhooks.pending(each.tenant, each.id),
            "dead": dead,
            "last_error": each.last_error,
            "created_at": moment(each.created_at),
        }


def _content(each: Target) -> tuple[Any, ...]:
    return each.url, each.batch, each.every_seconds, each.format


def _of_body(body: TargetBody) -> tuple[Any, ...]:
    return body.url, body.batch, body.every_seconds, body.format


def _attempt(each: Attempt) -> ShownAttempt:
    return {
        "at": moment(each.at),
        "status": each.status,
        "error": each.error,
        "webhook_id": each.webhook_id,
        "seconds": round(each.seconds, 6),
    }


def _new_secret() -> str:
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
