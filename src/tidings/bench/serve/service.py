"""A real `tidings serve` on loopback, its HTTP routes, and what its processes use of the machine."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from tidings.model.errors import RunError

NDJSON = "application/x-ndjson"
_START_SECONDS = 300.0
_CALL_SECONDS = 300.0
_TICKS = os.sysconf("SC_CLK_TCK")


class Service:
    """A running service. pid: of the front; engine_pid: of its engine."""

    def __init__(self, url: str, pid: int, engine_pid: int) -> None:
        self.host, _, port = url.removeprefix("http://").rpartition(":")
        self.port = int(port)
        self.pid, self.engine_pid = pid, engine_pid
        self._connection = http.client.HTTPConnection(self.host, self.port, timeout=_CALL_SECONDS)

    def call(self, method: str, path: str, body: bytes | None = None, media: str = "application/json") -> bytes:
        """The body of an answer; RunError if it is an error."""
        headers = {} if body is None else {"content-type": media}
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        data = answer.read()
        if answer.status >= 300:
            raise RunError(f"{method} {path} was answered with {answer.status}: {data[:500].decode()}")
        return data

    def post_changes(self, lines: Sequence[bytes]) -> int:
        """Returns the last seq when they are durable and applied."""
        found = json.loads(self.call("POST", "/v1/changes", b"\n".join(lines), NDJSON))
        if found["refused"]:
            raise RunError(f"the service refused changes: {found['refused'][:3]}")
        return int(found["seq"])

    def bulk(self, subscriptions: Sequence[tuple[str, str]]) -> None:
        """Creates subscriptions, given as (id, SQL)."""
        body = b"\n".join(msgspec.json.encode({"id": id, "sql": sql}) for id, sql in subscriptions)
        for line in self.call("POST", "/v1/bulk", body, NDJSON).splitlines():
            if json.loads(line)["status"] != 201:
                raise RunError(f"a subscription was not created: {line.decode()}")

    def create(self, id: str, sql: str) -> None:
        self.call("POST", "/v1/subscriptions", msgspec.json.encode({"id": id, "sql": sql}))

    def seqs_since(self, id: str, seq: int, epoch: str) -> list[int]:
        """Seqs of all notifications of a subscription behind a seq, by polls."""
        found: list[int] = []
        position, is_whole = f"{epoch}-{seq}", False
        while not is_whole:
            path = f"/v1/subscriptions/{id}/changes?after={position}&limit=10000&wait_seconds=0"
            page = msgspec.json.decode(self.call("GET", path), type=_Page)
            found += [each.seq for each in page.notifications]
            position, is_whole = page.position, page.up_to_date
        return found

    def ready(self) -> dict[str, Any]:
        return dict(json.loads(self.call("GET", "/readyz")))


class _Notification(msgspec.Struct):
    seq: int


class _Page(msgspec.Struct):
    position: str
    up_to_date: bool
    notifications: list[_Notification]


@contextmanager
def running(folder: Path, catalog_sql: str) -> Iterator[Service]:
    """A service with an engine of its own, whose files are all in a folder. Ends with the block."""
    (folder / "catalog.sql").write_text(catalog_sql)
    words = ["--catalog", "catalog.sql", "--data", "data", "--listen", "127.0.0.1:0", "--no-auth"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tidings.cli.main", "serve", *words, "--ready-file", "ready.json"],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not (folder / "ready.json").exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RunError(f"the service did not start: {(folder / 'log').read_text()[-2000:]}")
            time.sleep(0.05)
        found = json.loads((folder / "ready.json").read_text())
        yield Service(found["url"], found["pid"], found["engine_pid"])
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def memory_bytes(pid: int) -> int:
    """Resident memory of a process without mapped files: segments of the log, which it maps, are the system's to drop."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
