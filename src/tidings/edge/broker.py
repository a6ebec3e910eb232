"""A broker as a process: parcels in from above, parcels out to the nodes below it, and requests of these up.

Every parcel is written below before the next base of the broker's own state. After a crash those behind the base are read and
written again: they have the same numbers, so what is there stays, and what comes twice is passed over.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from tidings.edge import ParcelReader, ParcelWriter, open_reader, open_writer, requests_endpoint
from tidings.edge.gateway import DurableGateway
from tidings.endpoint import Endpoint
from tidings.files import write_text
from tidings.model.errors import UsageError
from tidings.pipeline.edge.broker import Broker
from tidings.pipeline.edge.wire import Parcel
from tidings.signals import Stop
from tidings.sources import Offset, open_source

_WAIT_SECONDS = 0.02
"""So long requests wait for parcels, and parcels for nobody."""
_REQUESTS_SECONDS = 0.05
_RETRY_SECONDS, _MINUTE = 1.0, 60.0


def run(
    feed: Endpoint,
    place: str,
    sink: Endpoint | None,
    data: Path,
    stop: Stop,
    on_step: Callable[[str], object],
    on_ready: Callable[[str], object],
) -> None:
    """Runs until asked to stop. sink: where nodes below read; None: in the folder, or behind the prefix, of the feed.

    on_step: called with what happens, in words. on_ready: once, when it is known which gateways there are, with that.
    """
    # A stream that is named may be one of this place's parcels alone.
    options = {name: text for name, text in feed.options.items() if name.lower() != "stream"}
    beside = Endpoint(feed.format, feed.path, options)
    with ExitStack() as stack:
        reader = stack.enter_context(closing(open_reader(feed, place)))
        stack.enter_context(reader.alone())
        writer = stack.enter_context(closing(open_writer(sink or beside, None)))
        requests = None if sink is None else requests_endpoint(sink)
        host = _Host(reader, writer, requests, place, data, stop, on_step, on_ready)
        stack.callback(host.close)
        stop.finish_first()
        while not stop.asked.is_set():
            host.step()


class _Host:
    def __init__(
        self,
        reader: ParcelReader,
        writer: ParcelWriter,
        requests_of: Endpoint | None,
        place: str,
        data: Path,
        stop: Stop,
        on_step: Callable[[str], object],
        on_ready: Callable[[str], object],
    ) -> None:
        """requests_of: where nodes below ask for something; None: where the job, or the broker above, reads it itself."""
        self._reader, self._writer, self._stop, self._on_step = reader, writer, stop, on_step
        self._broker = Broker()
        self._held = DurableGateway(data, place, lambda: None, self._broker)
        self._place, self._data, self._requests_of = place, data, requests_of
        self._requests: _Requests | None = None
        self._complained_at = -_MINUTE
        self._on_ready: Callable[[str], object] | None = on_ready
        if self._held.position is None:
            on_step(f"waiting for the job to send to the place {place!r}")
            self._held.seek(reader)
        elif self._broker.run:
            self._prepare()

    def close(self) -> None:
        if self._requests is not None:
            self._requests.close()

    def step(self) -> None:
        arrived = self._reader.read(self._held.position, _WAIT_SECONDS)
        parcels: list[Parcel] = []
        for each in arrived:
            _, taken = self._held.take(each, 0)
            if taken is not None:
                parcels += taken.parcels
                if taken.is_whole:
                    self._prepare()
        if not self._write(parcels):
            return
        if self._broker.needs_base and not arrived:
            self._held.ask_for_base(self._reader, self._on_step)
        if self._requests is not None:
            self._requests.pass_on(self._reader, self._on_step)
        self._held.settle(is_idle=not arrived)

    def _prepare(self) -> None:
        self._writer.prepare(self._broker.run, self._stop.asked)
        if self._requests is None and self._requests_of is not None:
            self._requests = _Requests(self._requests_of, self._data)
        broker = self._broker
        kind = f"{broker.rows:,} rows" if broker.has_rows else "notices"
        self._on_step(f"{self._place}: {len(broker.queries):,} subscriptions, {kind}")
        if self._on_ready is not None:
            self._on_ready(f"sending to {', '.join(broker.names)}")
            self._on_ready = None

    def _write(self, parcels: Sequence[Parcel]) -> bool:
        """Whether they are stored; False if the broker is asked to stop before."""
        while not self._stop.asked.is_set():
            try:
                self._writer.write(parcels)
                return True
            except (UsageError, OSError) as error:
                if time.monotonic() - self._complained_at >= _MINUTE:
                    self._complained_at = time.monotonic()
                    self._on_step(f"cannot send, and tries again: {error}")
                self._stop.asked.wait(_RETRY_SECONDS)
        return False


class _Requests:
    """What nodes below ask for: subscriptions to be created and dropped, and their own states. The job answers."""

    def __init__(self, endpoint: Endpoint, data: Path) -> None:
        """Called when there is something that requests can be written to."""
        is_folder = endpoint.format == "files"
        # A folder has what was not passed on; a stream keeps what was, and a broker without state does not know how far.
        self._source = open_source(
            endpoint.with_defaults(spool=str(data / "requests")) if is_folder else endpoint,
            "" if is_folder else "latest",
        )
        self._path = data / "requests.json"
        self._at: Offset = json.loads(self._path.read_text()) if self._path.exists() else self._source.first()
        self._look_at = 0.0

    def pass_on(self, reader: ParcelReader, on_step: Callable[[str], object]) -> None:
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + _REQUESTS_SECONDS
        try:
            latest = self._source.latest(self._at)
            if latest == self._at:
                return
            for record in self._source.records(self._at, latest):
                reader.ask(record.value.splitlines())
        except UsageError as error:
            # They are there still. Some may be passed on twice, of which the second time changes nothing.
            on_step(f"passing on what gateways ask for: {error}")
            self._look_at = time.monotonic() + _RETRY_SECONDS
            return
        write_text(self._path, json.dumps(latest))
        self._at = latest
        self._source.commit(latest)

    def close(self) -> None:
        self._source.close()
