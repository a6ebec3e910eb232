"""A job with gateways as processes, for tests: `tidings run` with the sink places:, `tidings gateway` and `tidings broker`."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from live_job import LiveJob
from nats_server import NatsServer
from service_process import Service

_SECONDS = 60.0


def until(condition: Callable[[], Any], what: Callable[[], str]) -> Any:
    """What the condition gives when it is true."""
    pause, deadline = threading.Event(), time.monotonic() + _SECONDS
    while not (found := condition()):
        assert time.monotonic() < deadline, what()
        pause.wait(0.05)
    return found


class GatewayProcess(Service):
    """`tidings gateway` in a folder of its own."""

    def __init__(self, folder: Path, feed: str, place: str, *options: str) -> None:
        folder.mkdir(exist_ok=True)
        super().__init__(folder, *options)
        self.engine = "gateway"
        self.place = place
        self._feed = feed

    def _words(self) -> list[str]:
        return ["gateway", "--feed", self._feed, "--place", self.place, "--data", "data"]

    def rows(self, id: str) -> list[dict[str, Any]] | None:
        with self.client() as client:
            found = client.get(f"/v1/subscriptions/{id}/rows")
        return None if found.status_code == 404 else list(found.json()["rows"])

    def told(self, id: str, after: str = "") -> list[dict[str, Any]]:
        """Everything that the gateway has told of a subscription, its first snapshot included."""
        with self.client() as client:
            position = after or f"{client.get('/readyz').json()['epoch']}-0"
            found: list[dict[str, Any]] = []
            while True:
                page = client.get(f"/v1/subscriptions/{id}/changes", params={"after": position, "wait_seconds": 0})
                assert page.status_code == 200, page.text
                found += page.json()["notifications"]
                position = page.json()["position"]
                if page.json()["up_to_date"]:
                    return found

    def passed(self) -> int:
        with self.client() as client:
            return int(client.get("/readyz").json()["seq"] or 0)


class BrokerProcess:
    """`tidings broker` in a folder of its own."""

    def __init__(self, folder: Path, feed: str, place: str, *options: str) -> None:
        folder.mkdir(exist_ok=True)
        self.data, self._log = folder / "data", folder / "log"
        words = ["broker", "--feed", feed, "--place", place, "--data", "data", *options]
        self._command = [sys.executable, "-m", "tidings.cli.main", *words]
        self._process: subprocess.Popen[bytes] | None = None

    def log(self) -> str:
        return self._log.read_text()

    def start(self) -> BrokerProcess:
        """Returns when it knows its places."""
        seen = self.log().count(" subscriptions, ") if self._log.exists() else 0
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, cwd=self._log.parent, stdout=log, stderr=log)
        until(lambda: self.log().count(" subscriptions, ") > seen, self.log)
        return self

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        assert self._process.wait(30) == 0, self.log()

    def __enter__(self) -> BrokerProcess:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()


class PlacesJob:
    """`tidings run` on a NATS server: streams CHANGES, EVENTS and TIDINGS, or folders for the last one."""

    def __init__(self, folder: Path, catalog: str, server: NatsServer, sink: list[str], engine: str = "inline") -> None:
        folder.mkdir(exist_ok=True)
        server.add_stream("CHANGES", "changes")
        server.add_stream("EVENTS", "events")
        option = f"servers={server.url}"
        sources = ["--source", "nats:CHANGES", "--source-option", option]
        sources += ["--subscriptions", "nats:EVENTS", "--subscriptions-option", option]
        self.job = LiveJob(folder, catalog, *sources, *sink, engine=engine)
        self._server = server
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> PlacesJob:
        seen = self.job.errors.count("waiting for changes") if self._process is not None else 0
        self._process = self.job.start()
        until(lambda: self.job.errors.count("waiting for changes") > seen or self._is_over(), lambda: self.job.errors)
        assert not self._is_over(), self.job.errors
        return self

    def _is_over(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def send(self, subject: str, records: Iterable[dict[str, Any]]) -> None:
        self._server.publish(subject, b"\n".join(json.dumps(record).encode() for record in records))

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        if self._process is not None and not self._is_over():
            self._process.terminate()
            assert self._process.wait(30) == 0, self.job.errors

    def __enter__(self) -> PlacesJob:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()
