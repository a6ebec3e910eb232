"""The engine process: requests and sources in, micro-batches into journal and notice log, one report for each.

It ends when its front closes the connection. A front that starts it again gets it back as it was.
"""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from tidings.endpoint import Endpoint
from tidings.live import engine
from tidings.live.counters import figures
from tidings.live.engine import DurableEngine
from tidings.live.job import changes_endpoint
from tidings.model.errors import RunError
from tidings.pipeline.live import Output
from tidings.pipeline.warm import STEPS, warm
from tidings.server.engine.connection import Sender, main
from tidings.server.engine.frames import Events, Refused, Result, Settings, Stalled, Step
from tidings.server.engine.inbox import NOTHING, Inbox, Taken, place_name
from tidings.server.engine.telling import RETAIN_SECONDS, STALLED_SECONDS, Teller, answers_by_place, ended_by, expelled
from tidings.server.garbage import Collector
from tidings.sources import begun, open_source
from tidings.sources import check as check_source
from tidings.sources.feed import Feed
from tidings.terminal import compile_kernels

_IDLE_SECONDS = 0.01
"""So often sources are looked at when they have nothing."""


def _serve(settings: Settings, inbox: Inbox, send: Sender) -> None:
    data = Path(settings.data)
    folder = data / "engine"
    send(Step("restoring the state" if engine.check(folder, settings.catalog_sql) else "making the state"))
    endpoints = {
        text: changes_endpoint(
            Endpoint.parse(text, settings.source_options), settings.catalog_sql, folder / f"source-{number}"
        )
        for number, text in enumerate(settings.sources)
    }
    for endpoint in endpoints.values():
        check_source(endpoint)
    compile_kernels(STEPS, lambda text: send(Step(text)))
    with ExitStack() as stack:
        with ExitStack() as beginning:
            for endpoint in endpoints.values():
                beginning.enter_context(begun(endpoint))
            host = _Host(settings, send)
            stack.callback(host.close)
            feeds = {
                text: Feed(stack.enter_context(closing(open_source(endpoint))), host.offsets.get(text), None)
                for text, endpoint in endpoints.items()
            }
        # Kernels are loaded now, rather than while the first caller waits; and one micro-batch shows that all is in place.
        warm()
        host.run(inbox.take(), [], {})
        garbage = Collector()
        while not inbox.is_closed:
            if inbox.wait(_IDLE_SECONDS if feeds else RETAIN_SECONDS) or feeds:
                if inbox.is_closed:
                    break
                host.step(inbox, feeds)
            host.rest()
            garbage.tick(time.monotonic())


class _Host:
    """The engine, its log, and its quarantine."""

    def __init__(self, settings: Settings, send: Sender) -> None:
        data = Path(settings.data)
        self._send = send
        self._teller = Teller(settings, send)
        load = Path(settings.load) if settings.load else None
        self._engine = DurableEngine(data / "engine", settings.catalog_sql, load=load, before_fold=self._teller.sync)
        self._engine.restore(self._tell, self._teller.batch)

    @property
    def offsets(self) -> dict[str, Any]:
        return self._engine.offsets

    def close(self) -> None:
        self._engine.close()
        self._teller.close()

    def step(self, inbox: Inbox, feeds: dict[str, Feed]) -> None:
        found = {text: blocks for text, feed in feeds.items() if (blocks := feed.next()) is not None}
        taken = inbox.take()
        if taken.requests or found:
            changes = [block for blocks in found.values() for block in blocks]
            offsets = {text: feeds[text].place for text in found}
            self.run(taken, changes, offsets)
            for text in found:
                feeds[text].commit()

    def rest(self) -> None:
        """When there is nothing else to do, or it is time."""
        self._teller.retain()
        self._engine.rest()

    def run(self, taken: Taken, changes: list[bytes], offsets: dict[str, Any]) -> None:
        """A micro-batch of requests, and of changes that sources had up to `offsets`."""
        began = time.monotonic()
        while True:
            try:
                found = self._engine.run([*changes, *taken.changes], taken.events, offsets)
                break
            except RunError as error:
                # Nothing was taken. Whoever called may call again; what sources have is tried again.
                self._send(Stalled(str(error)))
                self._report([Result(request.token, failed=str(error)) for request in taken.requests], {}, began, [])
                if not offsets:
                    return
                taken = NOTHING
                time.sleep(STALLED_SECONDS)
        self._tell(self._engine.batch, found)
        self._settle()
        _, counts = figures(self._engine.replica, self._engine.before, found, time.time())
        self._report(_results(taken, found), counts, began, expelled(found.answers))

    def _settle(self) -> None:
        try:
            self._engine.settle()
        except RunError as error:
            # A base or a mark that could not be written is written later: the journal has everything.
            self._send(Stalled(str(error)))

    def _report(
        self, results: list[Result], counts: dict[str, int], began: float, expelled: list[tuple[str, str]]
    ) -> None:
        self._send(self._teller.done(results, counts, time.monotonic() - began, expelled))

    def _tell(self, batch: int, found: Output) -> None:
        passed = self._engine.replica.passed
        self._teller.tell(batch, passed, found.told, ended_by(found.answers, passed), found.refused)


def _results(taken: Taken, found: Output) -> list[Result]:
    """What became of each request. A place's label ends with the name of the request's place."""
    refused: dict[str, list[Refused]] = {}
    for entry in found.refused:
        name = (entry.partition or "").rpartition(":")[2]
        refused.setdefault(name, []).append(Refused(entry.position + 1, entry.reason))
    answers = answers_by_place(found.answers)
    results = []
    for request, lines in zip(taken.requests, taken.lines, strict=True):
        name = place_name(request.token)
        if isinstance(request, Events):
            results.append(Result(request.token, answers=answers.get(name, [])))
        else:
            own = refused.get(name, [])
            results.append(Result(request.token, lines - len(own), own))
    return results


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), _serve))
