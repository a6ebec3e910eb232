"""The process that starts workers, publishes documents and gathers what subscribers are told.

    documents -> NatsRelay --feed-> stream -> workers --view-> stream -> workers .. --view-> stream -> NatsRelay -> rows

The stream keeps messages until their document is finished, so a worker that dies loses nothing: its views go to the others, or
to a new worker if there is none, and hear again what they need. Workers are told of a new plan before the first document that
runs by it is published.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar
from uuid import uuid4

import msgspec

from tidings.relay.files import View
from tidings.relay.message import Parts, ViewMessage, decode_message, encode_message
from tidings.relay.pattern import Row
from tidings.relay.plan import PUBLISHER, RelayPlan, site_of
from tidings.relay.runtime.epochs import Epoch, Recipe, Timeline, queries_of
from tidings.relay.runtime.ledger import Ledger, Result
from tidings.relay.runtime.matching import match_together
from tidings.relay.runtime.nats.connection import Connection, Heard, Listener, RelayError
from tidings.relay.runtime.nats.wire import Host, Hosted, Setup, Step, all_subjects, subject
from tidings.relay.runtime.network import WINDOW
from tidings.relay.runtime.node import told
from tidings.relay.runtime.publisher import Publisher
from tidings.relay.runtime.query import Matching, Query
from tidings.relay.runtime.run import Item, Quarantine, Switch, readable, with_rows

T = TypeVar("T")

_Said = tuple[str, str, tuple[Query, Parts]]
"""View, document, and what is to be told."""
_LOST_MAX = 10
"""Workers that may die before the next document is finished: more, and there is something wrong with the work."""
_END_SECONDS = 10.0
_SAID_BYTES = 2000


def run_relay_nats(
    plan: RelayPlan,
    views: Sequence[View],
    documents: Iterable[Item],
    url: str,
    *,
    quarantine: Quarantine,
    processes: int = 2,
    matching: Matching = match_together,
) -> Iterator[tuple[str, str, list[Row]]]:
    """As `run_relay`, in several processes. UsageError if no NATS server answers, RelayError if the run cannot go on."""
    with NatsRelay(plan, views, url, processes=processes, matching=matching) as relay:
        yield from relay.run(documents, quarantine)


class _Worker:
    """A process that hosts views. said: the end of what it wrote to its standard error."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.views: set[str] = set()
        self.said = b""

    async def listen(self) -> None:
        assert self.process.stderr is not None
        while data := await self.process.stderr.read(_SAID_BYTES):
            self.said = (self.said + data)[-_SAID_BYTES:]

    async def tell(self, command: Setup | Host) -> None:
        assert self.process.stdin is not None
        data = msgspec.msgpack.encode(command)
        with suppress(ConnectionError):  # it has died, which is noticed elsewhere
            self.process.stdin.write(len(data).to_bytes(4, "big") + data)
            await self.process.stdin.drain()

    async def answer(self) -> None:
        """Returns when the worker has answered, or has died."""
        assert self.process.stdout is not None
        await self.process.stdout.readline()


class NatsRelay:
    """A context: entering it starts the workers, leaving it ends them and removes the stream. `run` is called once in it."""

    def __init__(
        self,
        plan: RelayPlan,
        views: Sequence[View],
        url: str,
        *,
        processes: int = 2,
        matching: Matching = match_together,
        window: int = WINDOW,
    ) -> None:
        self._timeline = Timeline(Epoch(1, 1, plan, queries_of(views)))
        self._sites = {view.id: site_of(view) for view in views}
        self._url, self._processes, self._window = url, processes, window
        self._publisher = Publisher(matching)
        self._ledger: Ledger[tuple[Query, Parts]] = Ledger()
        self._workers: list[_Worker] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._numbers: dict[str, int] = {}
        self._starts: dict[int, int] = {}
        self._moved: dict[str, tuple[int, int]] = {}
        """Views of whose new host we have not heard: the command by which they moved, the document at which they begin."""
        self._last = self._purged = self._lost = self._commands = 0
        self._failure: BaseException | None = None
        self._is_closing = False

    @property
    def pids(self) -> list[int]:
        """Of the workers."""
        return [worker.process.pid for worker in self._workers]

    def run(self, items: Iterable[Item], quarantine: Quarantine) -> Iterator[tuple[str, str, list[Row]]]:
        """(view, document, rows) where there are rows: in the order of documents, then of view ids."""
        for item in readable(items, quarantine):
            if isinstance(item, Switch):
                self._call(self._switch(*item))
                continue
            name, document = item
            feeds = list(self._publisher.feeds(self._timeline.current, document))
            yield from with_rows(_results(self._call(self._publish(name, feeds))), quarantine)
        yield from with_rows(_results(self._call(self._finish())), quarantine)

    def __enter__(self) -> NatsRelay:
        # The connection and the workers are looked after while the caller does something else.
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="relay", daemon=True)
        self._thread.start()
        try:
            self._call(self._open())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end(self) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _open(self) -> None:
        self._progress = asyncio.Event()
        self._hosting = asyncio.Lock()
        self._connection: Connection | None = None
        self._listener: Listener | None = None
        stream = uuid4().hex
        self._connection = connection = await Connection.open(self._url, stream, self._listen_again)
        await connection.create(all_subjects(stream))
        await self._listen()
        async with self._hosting:
            for _ in range(self._processes):
                await self._start_worker()
            self._place(self._timeline.current.plan.order)
            await self._host(self._workers)

    async def _close(self) -> None:
        self._is_closing = True
        for worker in self._workers:
            assert worker.process.stdin is not None
            worker.process.stdin.close()
        for worker in self._workers:
            try:
                await asyncio.wait_for(worker.process.wait(), _END_SECONDS)
            except TimeoutError:
                worker.process.kill()
                await worker.process.wait()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._connection is not None:
            await self._connection.remove()
            await self._connection.close()

    async def _start_worker(self) -> None:
        command = [sys.executable, "-m", "tidings.relay.runtime.nats.worker"]
        worker = _Worker(await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE))
        self._workers.append(worker)
        self._keep(worker.listen())
        self._keep(self._watch(worker))
        await worker.tell(Setup(self._url, self._stream.stream))

    @property
    def _stream(self) -> Connection:
        assert self._connection is not None
        return self._connection

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watch(self, worker: _Worker) -> None:
        code = await worker.process.wait()
        if self._is_closing:
            return
        try:
            async with self._hosting:
                await self._replace(worker, code)
        except Exception as error:
            self._failure = error
        self._progress.set()

    async def _replace(self, lost: _Worker, code: int) -> None:
        """The views of a worker that has died go elsewhere."""
        self._workers.remove(lost)
        self._lost += 1
        if code >= 0 or self._lost > _LOST_MAX:
            said = lost.said.decode(errors="replace").strip().rpartition("\n")[2]
            raise RelayError(f"a worker of the relay ended with code {code}: {said}")
        if not self._workers:
            await self._start_worker()
        await self._host(self._place(sorted(lost.views)))
        if self._listener is not None and self._listener.has_pieces:
            await self._listen()  # without pieces of messages that will never be complete

    def _place(self, views: Iterable[str]) -> list[_Worker]:
        """Views of one site on one worker, otherwise where there are fewest; returns the workers with something new."""
        homes = {self._sites[view]: worker for worker in self._workers for view in worker.views if view in self._sites}
        found = []
        for view in views:
            site = self._sites.get(view, view)
            worker = homes.setdefault(site, min(self._workers, key=lambda each: len(each.views)))
            worker.views.add(view)
            if worker not in found:
                found.append(worker)
        return found

    async def _host(self, workers: Iterable[_Worker]) -> None:
        """Tells workers what they host; returns when they do."""
        self._timeline.forget(self._ledger.first)
        start = self._starts.get(self._ledger.first, self._last + 1)
        views = self._timeline.views()
        workers = list(workers)
        self._commands += 1
        for worker in workers:
            worker.views &= views
            hosted = [self._hosted(view) for view in sorted(worker.views)]
            self._moved |= {each.view: (self._commands, each.next) for each in hosted}
            inputs = {source for each in hosted for step in each.steps for source in step.inputs} - {PUBLISHER}
            await worker.tell(Host(self._commands, start, hosted, {view: self._number(view) for view in inputs}))
        for worker in workers:
            await worker.answer()

    def _hosted(self, view: str) -> Hosted:
        steps = [_step(first, recipe) for first, recipe in self._timeline.schedule(view)]
        return Hosted(view, self._number(view), self._ledger.missing(view), steps)

    def _number(self, view: str) -> int:
        return self._numbers.setdefault(view, len(self._numbers))

    async def _switch(self, plan: RelayPlan, views: Sequence[View]) -> None:
        async with self._hosting:
            self._timeline.switch(self._ledger.next, plan, queries_of(views))
            self._sites = {view.id: site_of(view) for view in views}
            hosted = {view for worker in self._workers for view in worker.views}
            self._place(view for view in plan.order if view not in hosted)
            await self._host(self._workers)
            self._publisher.forget(self._timeline)

    async def _publish(self, name: str, feeds: list[tuple[str, Parts]]) -> list[_Said]:
        await self._until(lambda: self._ledger.next - self._ledger.first < self._window)
        await self._purge()
        epoch = self._timeline.current
        seq = self._ledger.open(name, len(epoch.recipes))
        self._starts[seq] = self._last + 1
        messages = []
        for view, parts in feeds:
            number = self._number(view)
            data = encode_message(ViewMessage(epoch.number, seq, name, view, parts))
            messages.append((subject(self._stream.stream, "feed", number), f"feed.{number}.{seq}", data))
        self._last = max([self._last, *await self._stream.store(messages)])
        return list(self._ledger.finished())

    async def _finish(self) -> list[_Said]:
        await self._until(lambda: self._ledger.first == self._ledger.next)
        return list(self._ledger.finished())

    async def _until(self, is_so: Callable[[], bool]) -> None:
        while True:
            if self._failure is not None:
                raise self._failure
            if is_so():
                return
            self._progress.clear()
            await self._progress.wait()

    async def _purge(self) -> None:
        """Removes messages of finished documents now and then.

        Not while workers find out where to begin, nor what they may be reading for a view that has moved: its old host may
        have had its say in its last moment, and the new one does not know.
        """
        first = min([self._ledger.first, *(next for _, next in self._moved.values())])
        if first - self._purged < self._window:
            return
        self._purged = first
        self._starts = {seq: start for seq, start in self._starts.items() if seq >= first}
        async with self._hosting:
            await self._stream.purge(self._starts.get(first, self._last + 1))

    async def _listen_again(self) -> None:
        try:
            await self._listen()
        except Exception as error:
            self._failure = error
            self._progress.set()

    async def _listen(self) -> None:
        """From the first unfinished document on."""
        if self._listener is not None:
            await self._listener.stop()
        start = self._starts.get(self._ledger.first, self._last + 1)
        self._listener = await self._stream.listen([subject(self._stream.stream, "view", "*")], start, self._hear)

    async def _hear(self, heard: Heard) -> None:
        message = decode_message(heard.data)
        if self._moved.get(message.view, (0, 0))[0] == heard.sender:
            del self._moved[message.view]
        if message.seq < self._ledger.first:
            return
        query = self._timeline.at(message.seq).queries[message.view]
        if self._ledger.enter(message.seq, message.view, (query, message.parts)):
            self._lost = 0
            self._progress.set()


def _results(said: Iterable[_Said]) -> Iterator[Result]:
    for view, document, (query, parts) in said:
        yield Result(view, document, told(query, parts))


def _step(first: int, recipe: Recipe | None) -> Step:
    if recipe is None:
        return Step(first, 0, None, [], [])
    sources = [query.described for query in recipe.sources]
    return Step(first, recipe.epoch, recipe.query.described, list(recipe.inputs), sources)
