"""Subscriptions of the service: into the registry, to the engine, and its answer back into the registry.

The registry is written first, as `pending`: whatever dies in between, `settle` sends again what has no answer. Creating a query
that the engine has already changes nothing there.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from tidings.model.errors import TidingsError
from tidings.server.api.bodies import BulkLine, SubscriptionBody
from tidings.server.api.errors import ApiError, not_found, refused_query
from tidings.server.link import EVENTS_MAX, EngineLink, NotReady
from tidings.server.queries import Queries
from tidings.server.registry import Registry, State, Subscription

T = TypeVar("T")
ANSWER_SECONDS = 10.0
"""So long a client waits for the engine's answer; then it is told that it is pending."""
_decode_line = msgspec.json.Decoder(BulkLine).decode


class Subscriptions:
    """in_thread: runs a call of the registry, which blocks, in its thread. on_targets: called with (tenant, targets) that may
    have more to deliver."""

    def __init__(
        self,
        link: EngineLink,
        registry: Registry,
        queries: Queries,
        in_thread: Callable[[Callable[[], Any]], Awaitable[Any]],
        on_targets: Callable[[str, Sequence[str]], object],
        place: str | None = None,
    ) -> None:
        """place: of a gateway, where all of its subscriptions are."""
        self._place = place
        self._link = link
        self._registry = registry
        self._queries = queries
        self._in_thread = in_thread
        self._on_targets = on_targets
        self._locks: dict[tuple[str, str], asyncio.Lock] = {}
        self.on_drop: list[Callable[[str, str], object]] = []
        self.on_active: list[Callable[[str, str, float | None], object]] = []
        """Called with tenant, id and idle seconds of those that the engine has answered."""
        self._tasks: set[asyncio.Task[Any]] = set()

    @asynccontextmanager
    async def _alone(self, tenant: str, id: str) -> AsyncIterator[None]:
        """Whoever changes a subscription does it alone."""
        lock = self._locks.setdefault((tenant, id), asyncio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked() and not getattr(lock, "_waiters", None):
                self._locks.pop((tenant, id), None)

    async def get(self, tenant: str, id: str) -> Subscription:
        found: Subscription | None = await self._in_thread(lambda: self._registry.get(tenant, id))
        if found is None:
            raise not_found()
        return found

    async def create(self, tenant: str, body: SubscriptionBody) -> tuple[Subscription, int]:
        """The subscription, and a status: 201, 200 if it was there already, 202 if the engine has not answered."""
        id = body.id or secrets.token_hex(8)
        return await self._finished(self._create(tenant, id, body, None, is_edit=False), tenant, id)

    async def edit(self, tenant: str, id: str, body: SubscriptionBody, version: int | None) -> tuple[Subscription, int]:
        """As `create`, in place of what is there. version: of what is there, if the client knows one."""
        if body.id not in (None, id):
            raise ApiError("bad_request", "the id in the body is not that of the path")
        return await self._finished(self._create(tenant, id, body, version, is_edit=True), tenant, id)

    def _begun(self, work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """What has begun is finished, also if the client leaves."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return asyncio.shield(task)

    async def _finished(
        self, work: Coroutine[Any, Any, tuple[Subscription, int]], tenant: str, id: str
    ) -> tuple[Subscription, int]:
        task = self._begun(work)
        done, _ = await asyncio.wait([task], timeout=ANSWER_SECONDS)
        if not done:
            return await self.get(tenant, id), 202
        return task.result()

    async def _create(
        self, tenant: str, id: str, body: SubscriptionBody, version: int | None, *, is_edit: bool
    ) -> tuple[Subscription, int]:
        async with self._alone(tenant, id):
            known: Subscription | None = await self._in_thread(lambda: self._registry.get(tenant, id))
            if known is not None and known.state in ("dropping", "dropped"):
                await self._send([known])
                known = None
            if version is not None and (known is None or known.version != version):
                raise ApiError("version_mismatch", "the subscription has been edited since, or is not there")
            wanted = self._described(tenant, id, body)
            await self._check_targets(tenant, body.targets)
            if known is not None and known.state == "active" and _content(known) == _content(wanted):
                return known, 200
            is_same = known is not None and _content(known) == _content(wanted)
            if known is not None and not is_edit and not is_same:
                raise ApiError(
                    "id_taken", f"the id {id} is taken by another subscription", hint="use PUT to replace it"
                )
            if known is not None and known.state != "refused":
                number = known.version + (not is_same)
                wanted = replace(wanted, version=number, created_at=known.created_at)
            if known is not None and (known.sql, known.params, known.state) == (wanted.sql, wanted.params, "active"):
                # The engine has nothing to do with the rest.
                wanted = replace(wanted, state="active", seq=known.seq)
                await self._in_thread(lambda: self._registry.put([wanted]))
            else:
                await self._in_thread(lambda: self._registry.put([wanted]))
                (wanted,) = await self._send([wanted])
            self._on_targets(tenant, [*wanted.targets, *(known.targets if known is not None else ())])
            return wanted, 200 if known is not None and known.state != "pending" else 201

    def _described(self, tenant: str, id: str, body: SubscriptionBody) -> Subscription:
        assert body.sql is not None
        if self._place is not None and body.place not in (None, self._place):
            raise ApiError("bad_request", f"this gateway has the place {self._place!r}, not {body.place!r}")
        try:
            found = self._queries.describe(body.sql, body.params, f"{tenant}/{id}")
        except TidingsError as error:
            raise refused_query(error) from None
        except RecursionError:
            raise ApiError("sql_refused", "the query is nested too deeply") from None
        return Subscription(
            tenant,
            id,
            body.sql,
            body.params,
            found.family,
            found.columns,
            found.key,
            found.order,
            "pending",
            1,
            None,
            list(dict.fromkeys(body.targets)),
            body.every_seconds,
            body.idle_seconds,
            body.place or self._place,
            body.metadata,
            time.time(),
        )

    async def _check_targets(self, tenant: str, targets: Sequence[str]) -> None:
        if not targets:
            return
        known = {target.id for target in await self._in_thread(lambda: self._registry.list_targets(tenant))}
        if missing := [target for target in targets if target not in known]:
            raise _no_target(missing[0])

    async def drop(self, tenant: str, id: str) -> int:
        """The last seq that the subscription is told of."""

        async def work() -> tuple[Subscription, int]:
            async with self._alone(tenant, id):
                known = await self.get(tenant, id)
                dropping: State = "dropping"
                await self._in_thread(lambda: self._registry.set_states([(tenant, id, dropping, None)]))
                (done,) = await self._send([replace(known, state=dropping)])
                self._on_targets(tenant, known.targets)
                return done, 200

        found, status = await self._finished(work(), tenant, id)
        if status == 202:
            raise ApiError("not_ready", "the engine has not answered yet; the subscription will be dropped")
        return found.seq or 0

    async def _send(self, subscriptions: Sequence[Subscription]) -> list[Subscription]:
        """Asks the engine, and stores its answers. At most EVENTS_MAX of them. Refused ones raise if there is only one."""
        lines = [self._event(each) for each in subscriptions]
        try:
            result = await self._link.events(lines)
        except NotReady as error:
            raise ApiError("not_ready", str(error), headers={"retry-after": "1"}) from None
        found: list[Subscription] = []
        removed: list[tuple[str, str]] = []
        for each, (seq, refused) in zip(subscriptions, result.answers, strict=True):
            if each.state == "dropping":
                removed.append((each.tenant, each.id))
                found.append(replace(each, state="dropped", seq=seq))
            elif seq is None:
                found.append(replace(each, state="refused", metadata={**each.metadata, "refused": refused}))
            else:
                found.append(replace(each, state="active", seq=seq))
        states: list[tuple[str, str, State, int | None]] = [
            (each.tenant, each.id, each.state, each.seq) for each in found if each.state != "dropped"
        ]
        await self._in_thread(lambda: self._stored(states, removed))
        for tenant, id in removed:
            for call in self.on_drop:
                call(tenant, id)
        for each in found:
            if each.state == "active":
                for told in self.on_active:
                    told(each.tenant, each.id, each.idle_seconds)
        if len(found) == 1 and found[0].state == "refused":
            raise ApiError("sql_refused", str(found[0].metadata["refused"]))
        return found

    def _stored(self, states: list[tuple[str, str, State, int | None]], removed: list[tuple[str, str]]) -> None:
        if states:
            self._registry.set_states(states)
        if removed:
            self._registry.remove(removed)

    def _event(self, each: Subscription) -> bytes:
        id = f"{each.tenant}/{each.id}"
        if each.state == "dropping":
            return msgspec.json.encode({"id": id, "drop": True})
        text = self._queries.bound(each.sql, each.params)
        return msgspec.json.encode({"id": id, "sql": text, "replace": True})

    async def settle(self) -> int:
        """Sends everything again that has no answer. Gives how many there were."""
        waiting: list[Subscription] = await self._in_thread(self._registry.unsettled)
        for start in range(0, len(waiting), EVENTS_MAX):
            part = waiting[start : start + EVENTS_MAX]
            try:
                await self._send(part)
            except ApiError as error:
                if error.error != "sql_refused":
                    raise
        return len(waiting)

    async def bulk(self, tenant: str, lines: Sequence[bytes], first: int, room: int | None) -> list[dict[str, Any]]:
        """Handles up to EVENTS_MAX lines; gives an answer to each. first: number of the first line. room: how many more
        subscriptions the tenant may have."""
        answers: list[dict[str, Any]] = [{} for _ in lines]
        wanted: dict[str, tuple[int, BulkLine]] = {}
        for at, line in enumerate(lines):
            answers[at] = {"line": first + at, "id": None}
            try:
                body = _decode_line(line)
                if body.id is None and not body.drop:
                    body.id = secrets.token_hex(8)
                answers[at]["id"] = body.id
                if body.id is None or (body.drop == (body.sql is not None)):
                    raise ApiError("bad_request", "a line has an 'id' with 'sql', or with \"drop\": true")
                if body.id in wanted:
                    # In order: what stands before it happens before it.
                    room = await self._begun(self._bulk_alone(tenant, wanted, answers, room))
                    wanted = {}
                wanted[body.id] = (at, body)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                _failed(answers[at], ApiError("bad_request", f"not a usable line: {error}"))
            except ApiError as error:
                _failed(answers[at], error)
        await self._begun(self._bulk_alone(tenant, wanted, answers, room))
        return answers

    async def _bulk_alone(
        self, tenant: str, wanted: dict[str, tuple[int, BulkLine]], answers: list[dict[str, Any]], room: int | None
    ) -> int | None:
        """As `_bulk`, while nobody else changes these subscriptions. Gives the room that is left."""
        locks = [self._alone(tenant, id) for id in sorted(wanted)]
        for lock in locks:
            await lock.__aenter__()
        try:
            return await self._bulk(tenant, wanted, answers, room)
        finally:
            for lock in locks:
                await lock.__aexit__(None, None, None)

    async def _bulk(
        self, tenant: str, wanted: dict[str, tuple[int, BulkLine]], answers: list[dict[str, Any]], room: int | None
    ) -> int | None:
        ids = list(wanted)
        known: dict[str, Subscription] = await self._in_thread(lambda: self._registry.get_many(tenant, ids))
        targets = {target.id for target in await self._in_thread(lambda: self._registry.list_targets(tenant))}
        new: list[Subscription] = []
        sent: list[tuple[int, Subscription]] = []
        for count, (id, (at, body)) in enumerate(wanted.items()):
            if count % 100 == 99:
                await asyncio.sleep(0)
            former = known.get(id)
            try:
                if body.drop:
                    if former is None:
                        raise not_found()
                    each = replace(former, state="dropping")
                else:
                    each = self._described(tenant, id, body)
                    if missing := [target for target in body.targets if target not in targets]:
                        raise _no_target(missing[0])
                    if former is not None and former.state in ("active", "pending"):
                        if _content(former) != _content(each):
                            raise ApiError("id_taken", f"the id {id} is taken by another subscription")
                        if former.state == "active":
                            answers[at] |= {"status": 200, "seq": former.seq}
                            continue
                    elif room is not None:
                        if room <= 0:
                            raise ApiError("quota", "there are as many subscriptions as the quota allows")
                        room -= 1
                new.append(each)
                sent.append((at, each))
            except ApiError as error:
                _failed(answers[at], error)
        if not sent:
            return room
        await self._in_thread(lambda: self._registry.put(new))
        try:
            done = await self._send([each for _, each in sent])
        except ApiError as error:
            if error.error == "sql_refused":
                _failed(answers[sent[0][0]], error)
                return room
            for at, _ in sent:
                answers[at] |= {"status": 202, "seq": None}
            return room
        for (at, _), each in zip(sent, done, strict=True):
            if each.state == "refused":
                _failed(answers[at], ApiError("sql_refused", str(each.metadata["refused"])))
            else:
                answers[at] |= {"status": 200 if each.state == "dropped" else 201, "seq": each.seq}
        self._on_targets(tenant, sorted({target for each in done for target in each.targets}))
        return None if room is None else room + sum(each.state == "dropped" for each in done)


def _no_target(id: str) -> ApiError:
    return ApiError("not_found", f"there is no target {id!r}", hint="create it first: POST /v1/targets")


def _failed(answer: dict[str, Any], error: ApiError) -> None:
    answer |= {"status": error.status, "error": {k: v for k, v in error.body("").items() if k != "request_id"}}


def _content(each: Subscription) -> tuple[Any, ...]:
    """What a client says of a subscription."""
    return (
        each.sql,
        each.params,
        sorted(each.targets),
        each.every_seconds,
        each.idle_seconds,
        each.place,
        each.metadata,
    )
