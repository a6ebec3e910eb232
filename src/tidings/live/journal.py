"""What an inline engine was fed, on disk: a base, which is the engine's dump, and a journal of the micro-batches since.

A micro-batch is in the journal, synced, before anybody is told of it. So nothing is told that is not kept, and an engine that
starts again gets from base and journal to where it was. `base-N` is the state after micro-batch N, `journal-N` has those
behind it. A frame is a length, a checksum, and msgpack: a micro-batch, or the number of one of which the sink has everything.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tidings.files import write_bytes
from tidings.live.job import NOT_WHOLE
from tidings.model.errors import RunError, UsageError

_HEAD = struct.Struct("<II")
_FOLD_BYTES_MIN = 4 * 2**20
_ENTRY_BYTES_MIN = 4 * 2**10
"""A micro-batch counts at least so much: to replay one takes time, however short it is."""


class Entry(msgspec.Struct, array_like=True):
    """A micro-batch. offsets: where each source stands behind it, by name. changes, events: blocks of lines."""

    batch: int
    offsets: dict[str, Any]
    changes: list[bytes]
    events: list[bytes]


_decoder = msgspec.msgpack.Decoder(Entry | int)
_encode = msgspec.msgpack.Encoder().encode


class Journal:
    """The newest base of a folder, and the journal behind it. Whoever opens it must be the only one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.base = max((int(path.name.partition("-")[2]) for path in folder.glob("base-*[0-9]")), default=0)
        """Number of the micro-batch after which the base was written; 0: there is none."""
        self.told = self.base
        """The sink has everything up to this micro-batch."""
        self.last = self.base
        """Number of the last micro-batch."""
        self._base_bytes = self._base_path.stat().st_size if self.base else 0
        self._path = folder / f"journal-{self.base}"
        self._weight = 0
        self._size = self._scan()
        self._file = os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        _sync_folder(folder)
        self._remove_others()

    @property
    def _base_path(self) -> Path:
        return self._folder / f"base-{self.base}"

    def base_state(self) -> bytes | None:
        """The engine's dump; None if there is no base."""
        return self._base_path.read_bytes() if self.base else None

    def _frames(self) -> Iterator[tuple[int, Entry | int]]:
        """(end of the frame, what it holds) of all that are whole."""
        if not self._path.exists():
            return
        with self._path.open("rb") as source:
            end = 0
            while len(head := source.read(_HEAD.size)) == _HEAD.size:
                length, checksum = _HEAD.unpack(head)
                data = source.read(length)
                if len(data) < length or zlib.crc32(data) != checksum:
                    return
                end += _HEAD.size + length
                yield end, _decoder.decode(data)

    def _scan(self) -> int:
        """Bytes of whole frames. What is behind them was being written when the engine was killed, and told to nobody."""
        size = 0
        for end, frame in self._frames():
            size = end
            if isinstance(frame, int):
                self.told = frame
            elif frame.batch != self.last + 1:
                raise UsageError(
                    f"{self._path} has no micro-batch {self.last + 1}, so {self._folder.parent} {NOT_WHOLE}"
                )
            else:
                # Each is handed to the sink before the next one is written.
                self.last, self.told = frame.batch, frame.batch - 1
                self._weigh(frame)
        if self._path.exists() and self._path.stat().st_size > size:
            os.truncate(self._path, size)
        return size

    def entries(self) -> Iterator[Entry]:
        """The micro-batches behind the base."""
        return (frame for _, frame in self._frames() if isinstance(frame, Entry))

    def append(self, entry: Entry) -> None:
        """Adds a micro-batch. It is there for good when this returns; if it raises, it is not there."""
        self._write(_encode(entry), is_synced=True)
        self.last = entry.batch
        self._weigh(entry)

    def mark(self, batch: int) -> None:
        """Notes that the sink has everything of a micro-batch. After a loss of power that may be forgotten."""
        self._write(_encode(batch), is_synced=False)
        self.told = batch

    def _weigh(self, entry: Entry) -> None:
        size = sum(map(len, entry.changes)) + sum(map(len, entry.events))
        self._weight += max(size, _ENTRY_BYTES_MIN)

    def _write(self, data: bytes, *, is_synced: bool) -> None:
        frame = _HEAD.pack(len(data), zlib.crc32(data)) + data
        try:
            at = 0
            while at < len(frame):
                at += os.write(self._file, memoryview(frame)[at:])
            if is_synced:
                os.fdatasync(self._file)
        except OSError as error:
            os.ftruncate(self._file, self._size)
            raise RunError(
                f"cannot write {self._path}: {error.strerror}. Make room, then give the same command again: it goes on where "
                "it stopped"
            ) from error
        self._size += len(frame)

    @property
    def weight(self) -> float:
        """How long the journal is; above 1 it takes longer to repeat it than to load the base, and it is time for `fold`."""
        return self._weight / max(_FOLD_BYTES_MIN, self._base_bytes)

    def fold(self, pieces: Sequence[bytes]) -> None:
        """Makes the engine's state, as of the last micro-batch, the base."""
        assert self.told == self.last, "the sink lacks something of what would be folded"
        write_bytes(self._folder / f"base-{self.last}", pieces)
        os.close(self._file)
        self.base, self._base_bytes, self._weight, self._size = self.last, sum(map(len, pieces)), 0, 0
        self._path = self._folder / f"journal-{self.base}"
        self._file = os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        _sync_folder(self._folder)
        self._remove_others()

    def _remove_others(self) -> None:
        kept = {self._base_path, self._path}
        for path in (*self._folder.glob("base-*"), *self._folder.glob("journal-*")):
            if path not in kept:
                path.unlink()

    def close(self) -> None:
        os.close(self._file)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
