"""The engine process of a service on Spark: it runs the job of `tidings run` between two folders and the notice log.

    requests -> changes/, events/ -> the job on Spark -> parts/ -> notice log, and an answer to each event

A request is acknowledged when it is a file that the job will read: it is applied whatever happens. What the job writes for a
micro-batch is deleted when the log has it, for good. The job's checkpoint and the log count the same micro-batches, so one that
Spark runs again after a crash is told once.
"""

from __future__ import annotations

import hashlib
import re
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import msgspec

from tidings.endpoint import Endpoint
from tidings.files import write_bytes
from tidings.live.progress import Batch
from tidings.model.errors import RunError, UsageError
from tidings.model.quarantine import Quarantined
from tidings.pipeline.live import ANSWERS, REFUSED
from tidings.pipeline.registrar import Answer
from tidings.pipeline.warm import STEPS
from tidings.server.engine.connection import Sender, main
from tidings.server.engine.frames import Changes, Events, Result, Settings, Step, Stored
from tidings.server.engine.inbox import Inbox
from tidings.server.engine.telling import Teller, answers_by_place, ended_by, expelled
from tidings.server.log.files import sync_folder
from tidings.signals import Stop
from tidings.sinks.parts import PartsSink
from tidings.spark.run import Run, check, run
from tidings.terminal import compile_kernels

_POLL_SECONDS = 0.02
_NAME_MAX = 150
_PROBE = b'{"id": "-", "drop": true}'
"""A subscription event that changes nothing: its answer shows that the job works, from end to end."""


def _serve(settings: Settings, inbox: Inbox, send: Sender) -> None:
    folder = Path(settings.data) / "spark"
    requests = _Requests(folder)
    job = _job(settings, folder, requests)
    check(job)
    compile_kernels(STEPS, lambda text: send(Step(text)))
    stop = Stop()
    with closing(Teller(settings, send)) as teller:
        tail = _Tail(folder / "parts", teller, requests, send)
        threads = [
            threading.Thread(target=work, args=(stop,), daemon=True)
            for work in (lambda stop: _take(inbox, requests, send, stop), tail.run)
        ]
        for thread in threads:
            thread.start()
        try:
            run(job, stop, tail.count, lambda text: send(Step(text)))
        finally:
            stop.asked.set()
            threads[1].join()
        if tail.failure is not None:
            raise tail.failure


def _job(settings: Settings, folder: Path, requests: _Requests) -> Run:
    if settings.sources:
        source = Endpoint.parse(settings.sources[0], settings.source_options)
    else:
        source = Endpoint("files", str(requests.changes), {"partitions": "name", "cleanSource": "delete"})
    return Run(
        settings.catalog_sql,
        source,
        Endpoint("files", str(requests.events), {"cleanSource": "delete"}),
        Endpoint("files", str(folder / "parts"), {"format": "columns"}),
        folder / "checkpoint",
        load=Path(settings.load) if settings.load else None,
        master=settings.master,
        shards=settings.shards,
    )


class _Requests:
    """Requests as files, named in the order in which they came. Events wait for their answers."""

    def __init__(self, folder: Path) -> None:
        self.changes, self.events = folder / "changes", folder / "events"
        self._number = 0
        for each in (self.changes, self.events):
            each.mkdir(parents=True, exist_ok=True)
            for path in each.glob("*.partial"):
                path.unlink()
            # Those of the life before may not have been read yet; the clock may have been set back since.
            names = [int(found[0]) for path in each.iterdir() if (found := re.match(r"\d{19}", path.name))]
            self._number = max([self._number, *names])
        self._lock = threading.Lock()
        self._waiting: dict[str, tuple[int, int]] = {}
        """(token, number of events) of requests, by the names of their files."""

    def store(self, request: Changes | Events) -> None:
        """Makes a request a file that outlasts a loss of power. OSError or UsageError: it is none."""
        name = self._name()
        if isinstance(request, Events):
            with self._lock:
                self._waiting[name] = (request.token, len(request.lines))
            self._write(self.events, name, b"\n".join(request.lines))
        else:
            self._write(self.changes, f"{name}~{_file_name(request.producer)}", request.text)

    def probe(self) -> str:
        """Stores an event that changes nothing. Gives the name of its file."""
        name = self._name()
        self._write(self.events, name, _PROBE)
        return name

    def answered(self, answers: dict[str, list[tuple[int | None, str]]]) -> list[Result]:
        """Results of the requests whose events have been answered."""
        found = []
        with self._lock:
            for name in answers.keys() & self._waiting.keys():
                token, count = self._waiting.pop(name)
                assert len(answers[name]) == count
                found.append(Result(token, answers=answers[name]))
        return found

    def _name(self) -> str:
        self._number = max(self._number + 1, time.time_ns())
        return f"{self._number:019d}"

    def _write(self, folder: Path, name: str, text: bytes) -> None:
        try:
            write_bytes(folder / name, [text])
            sync_folder(folder)
        except (OSError, UsageError):
            with self._lock:
                self._waiting.pop(name, None)
            raise


def _file_name(producer: str) -> str:
    """A producer as the end of the name of a file that is neither passed over nor taken for a compressed one."""
    name = quote(producer, safe="").replace(".", "%2E")
    return name if len(name) <= _NAME_MAX else hashlib.sha256(producer.encode()).hexdigest()


def _take(inbox: Inbox, requests: _Requests, send: Sender, stop: Stop) -> None:
    """Stores requests until the front closes the connection; then the job stops."""
    while not inbox.is_closed:
        inbox.wait(None)
        results = []
        taken = inbox.take()
        for request, lines in zip(taken.requests, taken.lines, strict=True):
            try:
                requests.store(request)
            except (OSError, UsageError) as error:
                results.append(Result(request.token, failed=f"the request cannot be kept: {error}. Make room"))
            else:
                if isinstance(request, Changes):
                    results.append(Result(request.token, lines))
        if results:
            send(Stored(results))
    stop.asked.set()


class _Tail:
    """Puts what the job has written into the log, micro-batch by micro-batch."""

    def __init__(self, parts: Path, teller: Teller, requests: _Requests, send: Sender) -> None:
        self._sink = PartsSink(parts)
        self._sink.remove_unnamed()
        self._teller = teller
        self._requests = requests
        self._send = send
        self._probe = requests.probe()
        self._is_ready = False
        self.failure: Exception | None = None

    def run(self, stop: Stop) -> None:
        """Works until asked to stop, and then puts away what is left."""
        try:
            while True:
                is_over = stop.asked.wait(_POLL_SECONDS)
                while self._next():
                    pass
                if is_over:
                    return
                self._teller.retain()
        except Exception as error:
            self.failure = error
            stop.asked.set()

    def count(self, batch: Batch) -> None:
        """Passes on the figures of a micro-batch, which Spark reports when it is done."""
        if self._is_ready:
            self._send(self._teller.done([], dict(batch.counts), batch.seconds, []))

    def _next(self) -> bool:
        """Stores the next micro-batch, if it is complete. The log counts from 1 on, Spark from 0 on."""
        number, sink, teller = self._teller.batch, self._sink, self._teller
        if not sink.is_complete(number):
            if any(other > number for other in sink.batches()):
                raise RunError(
                    f"micro-batch {number} is neither in the log nor among the parts of the job: the data folder is not whole. "
                    "Restore it, or begin with a new one"
                )
            return False
        answers = sorted(
            (msgspec.json.decode(line, type=Answer) for line in self._lines(number, ANSWERS)),
            key=lambda answer: (answer.partition, answer.offset),
        )
        refused = [_refused(line) for line in self._lines(number, REFUSED)]
        passed = max(teller.passed, sink.metrics_of(number).get("passed", 0))
        teller.tell(number + 1, passed, sink.columns(number), ended_by(answers, passed), refused)
        teller.sync()
        by_place = answers_by_place(answers)
        results = self._requests.answered(by_place)
        self._is_ready = self._is_ready or self._probe in by_place
        if self._is_ready:
            self._send(teller.done(results, {}, 0.0, expelled(answers)))
        for stored in sink.batches():
            # Earlier ones are those that Spark ran again.
            if stored <= number:
                sink.remove(stored)
        return True

    def _lines(self, number: int, kind: str) -> list[bytes]:
        return [line for part in self._sink.parts(number, kind) for line in part.read_bytes().splitlines()]


class _Refused(msgspec.Struct):
    """A line of `Quarantined.line`."""

    seq: int | None
    reason: str
    raw: str
    source: str
    partition: str | None = None
    offset: int = 0
    line: int = 0


def _refused(line: bytes) -> Quarantined:
    each = msgspec.json.decode(line, type=_Refused)
    position = each.offset if each.partition is not None else each.line - 1
    return Quarantined(each.source, position, each.seq, each.reason, each.raw, each.partition)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), _serve))
