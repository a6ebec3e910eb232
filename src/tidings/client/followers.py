"""Followed subscriptions as callers hold them: iterators of `Change` that keep views, and views that keep themselves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from types import TracebackType
from typing import NamedTuple

import httpx2

from tidings.client.errors import ServiceError
from tidings.client.following import Following, Told
from tidings.client.streaming import Streaming
from tidings.client.streaming_async import AsyncStreaming
from tidings.client.views import FollowedView, change_of
from tidings.embedded import Change
from tidings.model.errors import UsageError


class _Followed:
    """What followers of both kinds know: their subscriptions, and the views of these."""

    def __init__(self, views: list[FollowedView], after: str | None) -> None:
        self._is_partial = after is not None
        self._follow(views, after)

    def _follow(self, views: list[FollowedView], after: str | None) -> None:
        self.following = Following([view.id for view in views], after)
        self._views = {view.id: view for view in views}

    @property
    def ids(self) -> list[str]:
        """The followed subscriptions."""
        return list(self._views)

    @property
    def ended(self) -> dict[str, str]:
        """Subscriptions that have ended, and why: dropped or revoked."""
        return dict(self.following.ended)

    @property
    def views(self) -> Mapping[str, FollowedView]:
        """The answers as of the last change given out, by id."""
        if self._is_partial:
            raise UsageError(
                "what comes after a position is not the whole answer; follow without after=, or use view(id)"
            )
        return self._views

    @property
    def view(self) -> FollowedView:
        """The answer as of the last change given out, if only one subscription is followed."""
        if not self._views:
            raise UsageError("nothing is followed yet: use `async with`, or take the first change")
        if len(self._views) != 1:
            raise UsageError("several subscriptions are followed: use views[id]")
        (found,) = self.views.values()
        return found

    def _take(self, told: Told) -> Change:
        if not self._is_partial:
            self._views[told.subscription].fold(told)
        return change_of(told)

    def _pass_to(self, seq: int) -> None:
        for id, view in self._views.items():
            view.pass_to(seq)
            if id in self.following.ended:
                view.stop(ended=self.following.ended[id])


class Follower(_Followed, Iterator[Change]):
    """Changes of one or more subscriptions, as they happen. An iterator, and a context manager that closes it.

    A broken connection is made again, and goes on where it was: each change is given out once, in order. Raises
    `ServiceError` if the service refuses. Ends when all subscriptions have ended, or when `close` is called, by any thread.
    """

    def __init__(
        self, http: httpx2.Client, views: list[FollowedView], after: str | None, on_close: Callable[[], object] | None
    ) -> None:
        super().__init__(views, after)
        self._stream = Streaming(http, self.following, self._pass_to)
        self._on_close = on_close

    @property
    def position(self) -> str | None:
        """Where to go on later: `subscribe(id, after=position)`. Store it with what you have made of the changes."""
        return self._stream.position

    def __next__(self) -> Change:
        return self._take(next(self._stream))

    def close(self) -> None:
        """Ends the stream. A subscription that was made for it alone is dropped."""
        self._stream.close()
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            on_close()

    def __enter__(self) -> Follower:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Begun(NamedTuple):
    """Subscriptions that are there to be followed. drop: removes the one that was made for the follower alone."""

    views: list[FollowedView]
    drop: Callable[[], Awaitable[object]] | None = None


class AsyncFollower(_Followed, AsyncIterator[Change]):
    """As `Follower`, for asyncio. Nothing is asked of the service before `async with` is entered or the first change taken.

    One task takes the changes. `async with` closes it at the end; a plain `async for` is enough for subscriptions that stay.
    """

    def __init__(
        self, http: httpx2.AsyncClient, begin: Callable[[], Awaitable[Begun]], after: str | None = None
    ) -> None:
        """begin: finds the subscriptions, or makes one."""
        super().__init__([], after)
        self._http = http
        self._begin = begin
        self._after = after
        self._stream: AsyncStreaming | None = None
        self._drop: Callable[[], Awaitable[object]] | None = None
        self._is_closed = False

    @property
    def position(self) -> str | None:
        """Where to go on later: `subscribe(id, after=position)`. Store it with what you have made of the changes."""
        return self._after if self._stream is None else self._stream.position

    async def _opened(self) -> AsyncStreaming:
        if self._stream is None:
            views, self._drop = await self._begin()
            self._follow(views, self._after)
            self._stream = AsyncStreaming(self._http, self.following, self._pass_to)
        return self._stream

    async def __anext__(self) -> Change:
        if self._is_closed:
            raise StopAsyncIteration
        return self._take(await anext(await self._opened()))

    async def close(self) -> None:
        """Ends the stream. A subscription that was made for it alone is dropped."""
        self._is_closed = True
        if self._stream is not None:
            await self._stream.close()
        drop, self._drop = self._drop, None
        if drop is not None:
            await drop()

    async def __aenter__(self) -> AsyncFollower:
        await self._opened()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class LiveView(FollowedView):
    """The answer of a subscription, kept up to date by a thread of its own. Close it when it is no longer needed."""

    def follow(self, http: httpx2.Client) -> LiveView:
        """Starts the thread, and waits for the first answer."""
        self._follower = Follower(http, [self], None, None)
        self._thread = threading.Thread(target=self._run, name=f"tidings view {self.id}", daemon=True)
        self._thread.start()
        try:
            self.wait_for()
        except ServiceError:
            self.close()
            raise
        return self

    def _run(self) -> None:
        try:
            for _ in self._follower:
                pass
        except Exception as error:
            self.stop(error=error)

    def close(self) -> None:
        """Follows no longer; the last rows stay."""
        self._follower.close()
        self._thread.join()

    def __enter__(self) -> LiveView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncLiveView(FollowedView):
    """The answer of a subscription, kept up to date by a task of its own. `await until(seq)` instead of `wait_for`."""

    async def follow(self, http: httpx2.AsyncClient) -> AsyncLiveView:
        """Starts the task, and waits for the first answer."""
        self._follower = AsyncFollower(http, self._as_begun)
        self._heard = asyncio.Event()
        self._task = asyncio.create_task(self._run())
        try:
            await self.until()
        except BaseException:
            await self.close()
            raise
        return self

    async def _as_begun(self) -> Begun:
        return Begun([self])

    async def _run(self) -> None:
        try:
            async for _ in self._follower:
                pass
        except Exception as error:
            self.stop(error=error)

    def fold(self, told: Told) -> None:
        super().fold(told)
        self._heard.set()

    def pass_to(self, seq: int) -> None:
        super().pass_to(seq)
        self._heard.set()

    def stop(self, *, ended: str | None = None, error: Exception | None = None) -> None:
        super().stop(ended=ended, error=error)
        self._heard.set()

    async def until(self, seq: int = 0, timeout_seconds: float = 30.0) -> None:
        """Waits until the answer includes everything up to this seq."""
        try:
            async with asyncio.timeout(timeout_seconds):
                while not self.has_passed(seq):
                    self._heard.clear()
                    await self._heard.wait()
        except TimeoutError:
            what = f"view {self.id!r} has not reached seq {seq} in {timeout_seconds:g} s"
            raise ServiceError(0, "timeout", what) from None

    async def close(self) -> None:
        """Follows no longer; the last rows stay."""
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._follower.close()

    async def __aenter__(self) -> AsyncLiveView:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
