"""The front: everything that one service has, put together. Requests reach it through `api`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tidings.model.catalog import Catalog
from tidings.server.api.errors import ApiError
from tidings.server.api.http import Callers
from tidings.server.auth import Authenticator
from tidings.server.engine.frames import Done, Settings
from tidings.server.engine.spawn import Spawned
from tidings.server.gateway.hub import Hub
from tidings.server.jwt_settings import JwtSettings
from tidings.server.limits import Limiter, Quotas
from tidings.server.link import EngineLink
from tidings.server.metrics import Metrics
from tidings.server.mirror import Mirror
from tidings.server.queries import Queries
from tidings.server.registry import Registry
from tidings.server.subscriptions import Subscriptions
from tidings.server.webhooks.delivery import Webhooks
from tidings.sql import parse_catalog
from tidings.terminal import say

T = TypeVar("T")
_IDLE_TICK_SECONDS = 1.0


@dataclass(frozen=True)
class ServiceOptions:
    """What `tidings serve` was told. quotas: None without authentication."""

    settings: Settings
    catalog: Catalog
    registry_url: str
    quotas: Quotas
    jwt: JwtSettings | None = None
    no_auth: bool = False
    allow_private_webhooks: bool = False
    hosts: Sequence[str] = field(default=())
    """Names by which the service may be called, beside those of this machine; empty: all, which needs authentication."""

    @property
    def engine(self) -> str:
        """inline, spark or gateway."""
        return self.settings.engine


class Front:
    """Made within a running event loop; `start` before anybody is served, `close` at the end."""

    def __init__(self, options: ServiceOptions, spawned: Spawned | None = None) -> None:
        self.options = options
        self.data = Path(options.settings.data)
        self._threads = ThreadPoolExecutor(1, "registry")
        self.registry = Registry.open(options.registry_url)
        self.limiter = Limiter(Quotas.none() if options.no_auth else options.quotas)
        self.callers = Callers(Authenticator(self.registry, options.jwt, options.no_auth), self.in_thread)
        self.queries = Queries(options.catalog)
        self._mirror = Mirror(self.registry, options.settings.place)
        self.metrics = Metrics()
        self.link = EngineLink(options.settings, self._on_done, spawned)
        self._hub: Hub | None = None
        self._webhooks: Webhooks | None = None
        place = options.settings.place or None
        self.subscriptions = Subscriptions(
            self.link, self.registry, self.queries, self.in_thread, self._on_targets, place
        )
        self.subscriptions.on_drop.append(self._on_drop)
        self.subscriptions.on_active.append(self.used)
        self._tasks: list[asyncio.Task[None]] = []
        self._used: dict[tuple[str, str], tuple[float, float]] = {}
        """(idle seconds, when it was last read) of subscriptions that end when nobody reads them."""
        self._starts = 0
        self.is_ending = False
        self.lag_seconds = 0.0

    @property
    def hub(self) -> Hub:
        if self._hub is None:
            raise ApiError("not_ready", "the service is starting", headers={"retry-after": "1"})
        return self._hub

    @property
    def webhooks(self) -> Webhooks:
        if self._webhooks is None:
            raise ApiError("not_ready", "the service is starting", headers={"retry-after": "1"})
        return self._webhooks

    @property
    def is_ready(self) -> bool:
        return self._webhooks is not None and self.link.is_ready and not self.is_ending

    async def in_thread(self, call: Callable[[], T]) -> T:
        """Runs a call of the registry, which blocks. One at a time."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    async def start(self) -> None:
        """Returns when the engine has run a micro-batch, and what had no answer has one."""
        await self.link.start()
        hub = self.hub
        for tenant in await self.in_thread(self.registry.list_tenants):
            self.limiter.set_tenant(tenant.id, tenant.quota)
        await self.subscriptions.settle()
        now = time.monotonic()
        for owner, id, idle in await self.in_thread(self.registry.with_idle):
            self._used[owner, id] = (idle, now)
        self._webhooks = Webhooks(
            hub,
            self.registry,
            allow_private=self.options.allow_private_webhooks,
            registry_call=self.in_thread,
        )
        self._tasks = [
            asyncio.create_task(hub.run()),
            asyncio.create_task(self._webhooks.run()),
            asyncio.create_task(self._drop_unread()),
        ]
        for task in self._tasks:
            task.add_done_callback(_report)

    def _on_done(self, done: Done) -> None:
        """A micro-batch is in the log: whoever listens is woken before whoever asked is answered."""
        if self._hub is None:
            self._hub = Hub(self.data / "log")
        self._hub.refresh(done.end)
        if done.mirrored is not None:
            if done.mirrored.catalog_sql:
                self.queries.use(parse_catalog(done.mirrored.catalog_sql))
            self._threads.submit(self._mirror.take, done.mirrored).add_done_callback(_report_mirror)
        self.lag_seconds = done.seconds
        self.metrics.add(done)
        for id, reason in done.expelled:
            tenant, _, name = id.partition("/")
            say(f"a subscription of {tenant} could not be evaluated and was dropped: {reason}")
            self._threads.submit(self.registry.set_states, [(tenant, name, "refused", None)])
        if self._starts != self.link.starts:
            if self._starts:
                asyncio.get_running_loop().call_soon(lambda: asyncio.ensure_future(self._settle_again()))
            self._starts = self.link.starts

    async def _settle_again(self) -> None:
        """The engine was started anew: those that wait for its answer are asked again."""
        try:
            await self.subscriptions.settle()
        except ApiError:
            # It has ended again; its next start settles them.
            return

    def _on_targets(self, tenant: str, targets: Sequence[str]) -> None:
        if self._webhooks is not None:
            for target in targets:
                self._webhooks.changed(tenant, target)

    def _on_drop(self, tenant: str, id: str) -> None:
        self._used.pop((tenant, id), None)

    def used(self, tenant: str, id: str, idle_seconds: float | None) -> None:
        """Notes that somebody reads a subscription, which ends if nobody does for so long; None: it stays."""
        if idle_seconds is None:
            self._used.pop((tenant, id), None)
        else:
            self._used[tenant, id] = (idle_seconds, time.monotonic())

    async def _drop_unread(self) -> None:
        while True:
            await asyncio.sleep(_IDLE_TICK_SECONDS)
            now = time.monotonic()
            for (tenant, id), (idle, last) in list(self._used.items()):
                number = self.hub.log.number(f"{tenant}/{id}")
                if number is not None and self.hub.is_watched(number):
                    self._used[tenant, id] = (idle, now)
                elif now - last > idle:
                    self._used.pop((tenant, id), None)
                    try:
                        await self.subscriptions.drop(tenant, id)
                    except ApiError as error:
                        if error.error != "not_found":
                            self._used[tenant, id] = (idle, now)

    def end_streams(self) -> None:
        """Tells all who listen that the service stops."""
        self.is_ending = True
        if self._hub is not None:
            for connection in list(self._hub.connections):
                connection.end("restart")

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.link.close()
        self._threads.shutdown()
        self.registry.close()


def _report_mirror(work: Future[None]) -> None:
    if not work.cancelled() and (error := work.exception()) is not None:
        say(f"subscriptions of the job could not be put into the registry: {type(error).__name__}: {error}")


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        say(f"a part of the service has failed: {type(error).__name__}: {error}")
