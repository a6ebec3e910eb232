"""A real service in a process group of its own, for tests: started, called, killed and started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

CATALOG = """
CREATE TABLE stocks (symbol TEXT PRIMARY KEY, sector TEXT, per DOUBLE, risk DOUBLE, price DOUBLE);
CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol TEXT, rating DOUBLE, report TEXT);
"""
NDJSON = {"content-type": "application/x-ndjson"}
_START_SECONDS = 120.0


class Service:
    """`tidings serve` on a free port. With keys: `key` is an operator's."""

    def __init__(self, folder: Path, *options: str, catalog: str = CATALOG, has_keys: bool = False) -> None:
        self.folder = folder
        self.data = folder / "data"
        (folder / "catalog.sql").write_text(catalog)
        self._options = [*options, *([] if has_keys else ["--no-auth"])]
        self.engine = "spark" if "spark" in options else "inline"
        self.key = self.create_key("default", "operator") if has_keys else None
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""
        self.engine_pid = 0
        self.port = 0

    def create_key(self, tenant: str, role: str) -> str:
        words = ["key", "create", "--data", str(self.data), "--tenant", tenant, "--role", role]
        self.data.mkdir(exist_ok=True)
        done = subprocess.run(_command(*words), capture_output=True, text=True, check=True)
        return done.stdout.strip()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def _words(self) -> list[str]:
        return ["serve", "--catalog", "catalog.sql", "--data", "data"]

    def start(self) -> Service:
        """Returns when the service is ready. Started again, it listens where it did before."""
        ready = self.folder / "ready.json"
        ready.unlink(missing_ok=True)
        words = [*self._words(), "--listen", f"127.0.0.1:{self.port}"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                _command(*words, "--ready-file", "ready.json", *self._options),
                cwd=self.folder,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        # The line on stdout comes before the file.
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode()
        assert line.startswith("serving http://"), self.log()
        self._until(ready.exists)
        found = json.loads(ready.read_text())
        self.url, self.engine_pid = found["url"], found["engine_pid"]
        self.port = int(self.url.rpartition(":")[2])
        assert line == f"serving {self.url}\n"
        return self

    def _until(self, condition: Any) -> None:
        waited = threading.Event()
        for _ in range(int(_START_SECONDS / 0.02)):
            if condition():
                return
            waited.wait(0.02)
        raise AssertionError(self.log())

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def client(self, key: str | None = None, **options: Any) -> httpx2.Client:
        found = key or self.key
        headers = {} if found is None else {"authorization": f"Bearer {found}"}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=60.0, trust_env=False, **options)

    def kill(self) -> None:
        """Kills the front; its engine ends by itself."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def wait_for_the_end_of(self, pid: int) -> None:
        self._until(lambda: not Path(f"/proc/{pid}").exists())

    def kill_engine(self) -> None:
        """Kills the engine, and returns when the service is ready again."""
        with self.client() as client:
            os.kill(self.engine_pid, signal.SIGKILL)
            self._until(lambda: client.get("/readyz").status_code == 503 or self._child() != self.engine_pid)
            self._until(lambda: client.get("/readyz").status_code == 200)
        self.engine_pid = self._child()

    def _child(self) -> int:
        found = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return int(found[0]) if found else 0

    def stop(self) -> int:
        """The exit code after SIGTERM."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(30)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code

    def __enter__(self) -> Service:
        return self.start()

    def __exit__(self, *error: object) -> None:
        assert self._process is not None
        if self._process.poll() is None:
            self.stop()


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "tidings.cli.main", *words]


def ndjson(records: Iterable[Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def change(op: str, table: str = "stocks", **row: Any) -> dict[str, Any]:
    return {"table": table, "op": op, "row": row}


def stock(symbol: str, price: float, **more: Any) -> dict[str, Any]:
    """An upsert of a stock."""
    row = {"symbol": symbol, "sector": "tech", "per": 50.0, "risk": 3.0, "price": price}
    return change("upsert", **{**row, **more})


def create(client: httpx2.Client, id: str, sql: str, **more: Any) -> dict[str, Any]:
    done = client.post("/v1/subscriptions", json={"id": id, "sql": sql, **more})
    assert done.status_code in (200, 201), done.text
    return dict(done.json())


def post(client: httpx2.Client, records: Iterable[Any], **params: str) -> dict[str, Any]:
    """Posts changes, and waits until they are applied. The answer says as of which seq."""
    done = client.post("/v1/changes", content=ndjson(records), headers=NDJSON, params=params)
    if done.status_code == 202:
        settle(client)
        return dict(client.get("/readyz").json())
    assert done.status_code == 200, done.text
    return dict(done.json())


def settle(client: httpx2.Client) -> None:
    """Returns when everything that was stored before is applied.

    On Spark a micro-batch looks for changes first, then for events: it may miss changes that were stored before its events. One
    with events that were stored after those has been answered does not.
    """
    create(client, "settled", "SELECT symbol FROM stocks WHERE symbol = 'settled'")
    assert client.delete("/v1/subscriptions/settled").status_code == 200


@contextmanager
def events(client: httpx2.Client, *ids: str, **params: Any) -> Iterator[Iterator[dict[str, Any]]]:
    """Events of a stream as dicts: event, id if there is one, data."""
    query = [*(("subscription", id) for id in ids), *params.items()]
    with client.stream("GET", "/v1/stream", params=query) as stream:
        assert stream.status_code == 200, stream.read()
        yield _events(stream.iter_lines())


def _events(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    event: dict[str, Any] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        if line:
            event[name] = json.loads(value) if name == "data" else value
            if name == "data":
                event["line"] = value
        elif "event" in event:
            yield event
            event = {}
        else:
            event = {}
