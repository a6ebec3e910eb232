"""Parcels in a folder that job and gateways share: `place/NODE/BATCH-KIND`, and requests as files in `requests/`."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tidings.durations import seconds_of
from tidings.edge import Arrived, Position
from tidings.endpoint import Endpoint
from tidings.files import only_one, write_bytes
from tidings.model.errors import UsageError
from tidings.pipeline.edge.wire import Kind, Parcel, encode
from tidings.sinks.parts import PartsSink, check_folder, claim_folder

_KEEP = "24h"
_REMOVE_SECONDS = 60.0
_LOOK_SECONDS = 0.01
_READ_AT_A_TIME = 100
_PARCELS = "[0-9]" * 12 + "-[01]"
"""Names of parcels in the folder of a node, where the folders of nodes below it are too."""


def open_writer(endpoint: Endpoint, run: str | None) -> FolderWriter:
    return FolderWriter(endpoint, run)


def open_reader(endpoint: Endpoint, node: str) -> FolderReader:
    _check(endpoint, ())
    return FolderReader(Path(endpoint.required_path("folder")), node)


def requests_endpoint(endpoint: Endpoint) -> Endpoint:
    return Endpoint("files", str(_requests(endpoint)), {"cleanSource": "delete"})


def _requests(endpoint: Endpoint) -> Path:
    return Path(endpoint.required_path("folder")) / "requests"


def _check(endpoint: Endpoint, options: Sequence[str]) -> None:
    unknown = next((name for name in endpoint.options if name not in options), None)
    if unknown is not None:
        known = f"it has {', '.join(options)}" if options else "it has none"
        raise UsageError(f"a folder of parcels has no option {unknown!r}; {known}")


def _folder_of(folder: Path, node: str) -> Path:
    return folder / "place" / node


class FolderWriter:
    """With the option `keep`, parcels are removed when they are so old; a gateway that comes later asks for a base."""

    def __init__(self, endpoint: Endpoint, run: str | None) -> None:
        _check(endpoint, ("keep",))
        path = endpoint.required_path("folder")
        self._folder = Path(path) if run is None else check_folder(path, run)
        self._requests = _requests(endpoint)
        self._keep_seconds = seconds_of(endpoint.options.get("keep", _KEEP))
        self._removed_at = 0.0
        self._written: set[Path] = set()
        """Folders of nodes that were written to: others are those of other writers."""
        self._run = ""

    def prepare(self, run: str, asked: threading.Event) -> None:
        self._run = run
        claim_folder(str(self._folder), run)
        self._requests.mkdir(exist_ok=True)

    def write(self, parcels: Sequence[Parcel]) -> None:
        for parcel in parcels:
            folder = _folder_of(self._folder, parcel.node)
            folder.mkdir(parents=True, exist_ok=True)
            self._written.add(folder)
            # A base stands behind the rows of its micro-batch.
            path = folder / f"{parcel.batch:012d}-{int(parcel.kind is Kind.BASE)}"
            if not path.exists():
                write_bytes(path, [encode(parcel, self._run)])
        if time.monotonic() - self._removed_at > _REMOVE_SECONDS:
            self._removed_at = time.monotonic()
            self._remove(time.time() - self._keep_seconds)

    def report(self, batch: int, reports: Mapping[str, bytes], metrics: Mapping[str, Any]) -> None:
        PartsSink(self._folder).write(batch, {kind: [data] for kind, data in reports.items()}, metrics)

    def _remove(self, oldest: float) -> None:
        for path in (path for folder in self._written for path in folder.glob(_PARCELS)):
            if path.stat().st_mtime < oldest:
                path.unlink()

    def close(self) -> None:
        """There is nothing to be closed."""


class FolderReader:
    def __init__(self, folder: Path, node: str) -> None:
        self._base, self._node = folder, node
        self._folder = _folder_of(folder, node)

    def alone(self) -> AbstractContextManager[None]:
        return only_one(self._folder / "reader")

    def read(self, after: Position | None, wait_seconds: float) -> Sequence[Arrived]:
        last = "" if after is None else after["name"]
        until = time.monotonic() + wait_seconds
        while True:
            names = sorted(path.name for path in self._folder.glob(_PARCELS) if path.name > last)
            found = []
            for name in names[:_READ_AT_A_TIME]:
                try:
                    found.append(Arrived({"name": name}, (self._folder / name).read_bytes()))
                except FileNotFoundError:
                    # It was removed as too old; the numbers in what follows tell.
                    continue
            left = until - time.monotonic()
            if found or left <= 0:
                return found
            time.sleep(min(left, _LOOK_SECONDS))

    def ask(self, lines: Sequence[bytes]) -> None:
        folder = self._base / "requests"
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{time.time_ns():019d}-{self._node.replace('/', '-')}-{secrets.token_hex(4)}.jsonl"
        write_bytes(folder / name, [line + b"\n" for line in lines])

    def close(self) -> None:
        """There is nothing to be closed."""
