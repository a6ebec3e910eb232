"""The quarantine of a service: a file of records that were refused."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from tidings.model.errors import RunError

QUARANTINE = "quarantine.jsonl"


class Quarantine(msgspec.Struct):
    """A line of the quarantine: a record that was refused, of micro-batch `batch`, at `time` in microseconds."""

    batch: int
    seq: int | None
    reason: str
    raw: str
    source: str
    time: int


class QuarantineFile:
    """Refused records as lines. Those of a micro-batch that is repeated are not written again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._batch = 0
        size = 0
        if path.exists():
            batch = start = 0
            with path.open("rb") as lines:
                for line in lines:
                    if not line.endswith(b"\n"):
                        # Killed while it was written: the whole micro-batch comes again.
                        size, self._batch = start, batch
                        break
                    own = msgspec.json.decode(line, type=Quarantine).batch
                    if own != self._batch:
                        batch, start = self._batch, size
                        self._batch = own
                    size += len(line)
            os.truncate(path, size)
        self._size = size
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    def add(self, records: list[Quarantine]) -> None:
        if not records or records[0].batch <= self._batch:
            return
        data = b"".join(msgspec.json.encode(record) + b"\n" for record in records)
        try:
            at = 0
            while at < len(data):
                at += os.write(self._file, memoryview(data)[at:])
        except OSError as error:
            os.ftruncate(self._file, self._size)
            raise RunError(f"cannot write {self._path}: {error.strerror}. Make room: it goes on by itself") from error
        self._size += len(data)
        self._batch = records[0].batch

    def close(self) -> None:
        os.close(self._file)
