"""All webhook targets of the service: which have something to deliver, and a task for each of these."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar

from aiohttp.abc import AbstractResolver

from tidings.model.codes import Int64Array
from tidings.model.errors import UsageError
from tidings.server.gateway.hub import Hub
from tidings.server.registry import Attempt, Registry, RegistryError, Target
from tidings.server.webhooks.messages import Outgoing, trial
from tidings.server.webhooks.sending import Sender
from tidings.server.webhooks.target import SCHEDULE, Delivery, RegistryCall

_EPOCH = "webhooks_epoch"
_LETTERS = 100
_PAUSE_SECONDS = 5.0
_say = logging.getLogger("tidings.webhooks")

T = TypeVar("T")
Name = tuple[str, str]
"""Tenant and id of a target."""


class _Stored(NamedTuple):
    """What the registry says of a target. ending: subscriptions that are gone, of which the target must still hear the end."""

    target: Target
    linked: list[str]
    held: set[str]
    ending: list[str]


class Webhooks:
    """Delivers to all targets while `run` runs. All methods belong to one event loop, that of the hub.

    allow_private: also http, and addresses that are not on the internet. schedule: delays in seconds before further tries.
    resolver: asked for addresses instead of the system. An idle target has no task; a failing one has one that waits.
    """

    def __init__(
        self,
        hub: Hub,
        registry: Registry,
        *,
        allow_private: bool,
        registry_call: RegistryCall | None = None,
        clock: Callable[[], float] = time.time,
        schedule: Sequence[float] = SCHEDULE,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._hub, self._registry = hub, registry
        self._allow_private, self._resolver = allow_private, resolver
        self._call: RegistryCall = registry_call or _one_at_a_time()
        self._clock, self._schedule = clock, schedule
        self._sender: Sender | None = None
        self._deliveries: dict[Name, Delivery] = {}
        self._linked: dict[int, set[Delivery]] = defaultdict(set)
        self._unborn: dict[str, set[Delivery]] = defaultdict(set)
        """By engine id: who waits for a subscription that is not in the log yet."""
        self._stale: dict[Name, None] = {}
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Delivers until it is cancelled; then stores how far everybody has got."""
        async with Sender(allow_private=self._allow_private, resolver=self._resolver) as sender:
            self._sender = sender
            self._hub.on_news.append(self._news)
            try:
                await self._follow_epoch()
                for target in await self._call(self._registry.list_targets):
                    self._stale[target.tenant, target.id] = None
                while True:
                    self._wake.clear()
                    while self._stale:
                        await self._load(next(iter(self._stale)))
                    await self._wake.wait()
            finally:
                self._hub.on_news.remove(self._news)
                await self._stop()
                self._sender = None

    def changed(self, tenant: str, target: str, subscriptions: Iterable[str] | None = None) -> None:
        """To be called after a target was created, edited, paused, resumed or removed, and after subscriptions began or ceased
        to name it. subscriptions: if only these were added; saves reading all others."""
        known = self._deliveries.get((tenant, target))
        if subscriptions is None or known is None:
            self._stale[tenant, target] = None
            self._wake.set()
            return
        for each in subscriptions:
            self._attach(known, each, is_owed=True)
        self._start(known)

    def pending(self, tenant: str, target: str) -> int:
        """How many subscriptions have something that the target was not sent yet."""
        known = self._deliveries.get((tenant, target))
        return 0 if known is None else len(known.dirty | known.owed)

    async def test(self, tenant: str, target: str) -> Attempt:
        """Sends a message that says nothing. UsageError if there is no such target."""
        known = await self._known(tenant, target)
        await known.send(trial(self._hub.log.epoch, known.target, secrets.token_hex(8), self._clock()))
        attempt = known.last_attempt
        await known.save()
        return attempt

    async def replay(self, tenant: str, target: str) -> int:
        """Sends dead letters again, as they were, until one is not accepted. Those accepted are removed; says how many."""
        known = await self._known(tenant, target)
        count = 0
        await known.save()
        while letters := await self._call(lambda: self._registry.page_dead_letters(tenant, target, _LETTERS)):
            accepted: list[int] = []
            for letter in letters:
                if not (await known.send(Outgoing(letter.webhook_id, letter.body.encode()))).is_accepted:
                    break
                accepted.append(letter.number)
            await self._call(lambda done=accepted: self._registry.remove_dead_letters(tenant, target, done))  # type: ignore[misc]
            await known.save()
            count += len(accepted)
            if len(accepted) < len(letters):
                break
        return count

    async def _known(self, tenant: str, target: str) -> Delivery:
        if (tenant, target) not in self._deliveries:
            await self._load((tenant, target))
        known = self._deliveries.get((tenant, target))
        if known is None:
            raise UsageError(f"there is no target {target!r}")
        return known

    # What the registry says

    async def _follow_epoch(self) -> None:
        """Seqs of another log mean nothing in this one."""
        log, registry = self._hub.log, self._registry
        stored = await self._call(lambda: registry.get_setting(_EPOCH))
        if stored != log.epoch:
            passed = log.passed
            if stored is not None:
                await self._call(lambda: registry.begin_epoch(passed))
            await self._call(lambda: registry.put_setting(_EPOCH, log.epoch))

    async def _load(self, name: Name) -> None:
        self._stale.pop(name, None)
        try:
            stored = await self._call(lambda: _stored(self._registry, name))
        except RegistryError as error:
            _say.warning("targets cannot be read: %s", error)
            self._stale[name] = None
            await asyncio.sleep(_PAUSE_SECONDS)
            return
        known = self._deliveries.get(name)
        if stored is None:
            if known is not None:
                self._forget(known)
            return
        if known is None:
            if self._sender is None:
                raise RuntimeError("webhooks are sent while `run` runs")
            known = self._deliveries[name] = Delivery(
                self._hub.log,
                self._registry,
                self._call,
                self._sender,
                stored.target,
                clock=self._clock,
                schedule=self._schedule,
            )
        else:
            known.replace(stored.target)
        self._relink(known, stored)
        self._start(known)

    def _relink(self, known: Delivery, stored: _Stored) -> None:
        log, tenant = self._hub.log, stored.target.tenant
        ids = {f"{tenant}/{each}" for each in (*stored.linked, *stored.ending)}
        for number in list(known.numbers):
            with suppress(KeyError):
                if log.name(number) in ids:
                    continue
            known.unlink(number)
            self._linked[number].discard(known)
        for each in stored.linked:
            self._attach(known, each, is_owed=each not in stored.held)
        for each in stored.ending:
            self._attach(known, each, is_owed=False)

    def _attach(self, known: Delivery, subscription: str, *, is_owed: bool) -> None:
        log = self._hub.log
        id = f"{known.target.tenant}/{subscription}"
        number = log.number(id)
        if number is None or log.is_ended(number):
            self._unborn[id].add(known)
        if number is not None and number not in known.numbers:
            known.link(number, is_owed=is_owed)
            self._linked[number].add(known)

    def _forget(self, known: Delivery) -> None:
        known.is_removed = True
        known.kick.set()
        for number in known.numbers:
            self._linked[number].discard(known)
        del self._deliveries[known.target.tenant, known.target.id]

    # What the log says

    def _news(self, numbers: Int64Array) -> None:
        woken: set[Delivery] = set()
        for number in numbers.tolist():
            if self._unborn:
                self._bear(number)
            for known in self._linked.get(number, ()):
                if number in known.numbers:
                    known.dirty.add(number)
                    woken.add(known)
        for known in woken:
            self._start(known)

    def _bear(self, number: int) -> None:
        """Links a subscription that is new in the log to those who wait for it."""
        log = self._hub.log
        with suppress(KeyError):
            if not log.is_ended(number):
                for known in self._unborn.pop(log.name(number), ()):
                    if number not in known.numbers and not known.is_removed:
                        known.link(number, is_owed=True)
                        self._linked[number].add(known)

    # Tasks

    def _start(self, known: Delivery) -> None:
        if known.has_work and known.task is None and self._sender is not None:
            known.task = asyncio.create_task(self._deliver(known))

    async def _deliver(self, known: Delivery) -> None:
        try:
            while known.has_work:
                try:
                    await known.run()
                except Exception as error:
                    # Neither a full disk nor a mistake of ours may end deliveries for good.
                    _say.warning("a delivery was interrupted: %s", error, exc_info=not isinstance(error, RegistryError))
                    await asyncio.sleep(_PAUSE_SECONDS)
        finally:
            known.task = None

    async def _stop(self) -> None:
        tasks = [known.task for known in self._deliveries.values() if known.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for known in self._deliveries.values():
            with suppress(RegistryError):
                await known.save()
        self._deliveries.clear()
        self._linked.clear()
        self._unborn.clear()


def _stored(registry: Registry, name: Name) -> _Stored | None:
    """Blocks. Subscriptions that no longer name the target are forgotten: if they name it again, they begin anew."""
    tenant, id = name
    target = registry.get_target(tenant, id)
    if target is None:
        return None
    linked, held = registry.by_target(tenant, id), registry.held_views(tenant, id)
    unlinked = sorted(held - set(linked))
    rows = registry.get_many(tenant, unlinked)
    detached = [each for each in unlinked if each in rows and rows[each].state not in ("dropping", "dropped")]
    if detached:
        registry.settle_target(tenant, id, {}, lost=detached)
    return _Stored(target, linked, held, [each for each in unlinked if each not in set(detached)])


def _one_at_a_time() -> RegistryCall:
    lock = asyncio.Lock()

    async def call(work: Callable[[], T]) -> T:
        async with lock:
            return await asyncio.to_thread(work)

    def run(work: Callable[[], T], /) -> Awaitable[T]:
        return call(work)

    return run
