"""Durable state of a shard in Spark's state store: a base (the shard's own dump), a log of what came since, and a stamp.

Bases and log entries are kept in pieces of a few megabytes, under names with their version, so that attempts which differ
never share a name. The stamp says which of them count, and for which plan they were written. All of it is written in one
micro-batch, and Spark's state store commits it with the micro-batch, or not at all.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Iterator
from typing import Any

import msgspec
from pyspark.sql.streaming import StatefulProcessorHandle

from tidings.model.blob import pack, unpack

STATE_FORMAT = 2
"""Format of the state. Raised when a change of it makes older state unreadable."""
_PIECE_BYTES = 4 * 2**20
_FOLD_BYTES_MIN = 1 * 2**20
_ENTRY_BYTES_MIN = 16 * 2**10
_ENTRIES_PER_BASE = 1000
"""A log entry counts at least _ENTRY_BYTES_MIN, and this part of the base: to replay one takes time, however short it is."""
_ENTRIES_KEPT = 16
"""Log entries kept when a new base is written, so that a worker a few micro-batches behind can still catch up."""


class Entry(msgspec.Struct, array_like=True, frozen=True):
    """A log entry: its version, the nonce of the attempt that wrote it, the number of its pieces, its bytes."""

    version: int
    nonce: str
    pieces: int
    bytes: int


class Stamp(msgspec.Struct):
    """Where the state stands. version, nonce: of the last entry. base: version of the base, 0 if there is none.

    plan: text of the plan for which the state was written. entries: those still kept, oldest first.
    """

    plan: str = ""
    version: int = 0
    nonce: str = ""
    base: int = 0
    base_pieces: int = 0
    base_bytes: int = 0
    entries: list[Entry] = []


class ShardState:
    """State of one shard within one micro-batch: what was stored before, and `write` for what is stored now."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        # One column of bytes each, so that Spark never sees another schema.
        self._stamps = handle.getValueState("stamp", "blob binary")
        self._blobs = handle.getMapState("blobs", "name string", "blob binary")

    def stamp(self) -> Stamp:
        if not self._stamps.exists():
            return Stamp()
        return msgspec.msgpack.decode(bytes(self._stamps.get()[0]), type=Stamp)

    def base(self, stamp: Stamp) -> bytes:
        return self._read(f"base/{stamp.base}", stamp.base_pieces)

    def entries(self, stamp: Stamp, after: int) -> Iterator[Any]:
        """Contents of the log entries with versions above `after`, in order."""
        for entry in stamp.entries:
            if entry.version > after:
                yield unpack(self._read(f"log/{entry.version}", entry.pieces))

    def write(self, name: str, stamp: Stamp, entry: Any, dump: Any, *, is_folded: bool) -> bool:
        """Stores a micro-batch and moves the stamp on. Returns whether a new base was written.

        name: of the shard. dump: gives the shard's state after the micro-batch; called if a base is written. That is done
        when the log has outgrown the base, at another moment in each shard, or if `is_folded`.
        """
        blob = pack(entry)
        stamp.version, stamp.nonce = stamp.version + 1, uuid.uuid4().hex
        least = max(_ENTRY_BYTES_MIN, stamp.base_bytes // _ENTRIES_PER_BASE)
        logged = sum(max(known.bytes, least) for known in stamp.entries if known.version > stamp.base)
        is_folded = is_folded or logged + max(len(blob), least) > _fold_bytes(name, stamp)
        # No worker can be behind the first entry: if a base is written with it, its contents are not stored twice.
        if is_folded and stamp.version == 1:
            blob = b""
        pieces = self._write(f"log/{stamp.version}", blob)
        stamp.entries.append(Entry(stamp.version, stamp.nonce, pieces, len(blob)))
        if is_folded:
            self._fold(stamp, dump())
        self._stamps.update((msgspec.msgpack.encode(stamp),))
        return is_folded

    def _fold(self, stamp: Stamp, blob: bytes) -> None:
        self._remove(f"base/{stamp.base}", stamp.base_pieces)
        stamp.base, stamp.base_bytes = stamp.version, len(blob)
        stamp.base_pieces = self._write(f"base/{stamp.base}", blob)
        kept = stamp.entries[-_ENTRIES_KEPT:]
        while len(kept) > 1 and sum(entry.bytes for entry in kept) > max(_FOLD_BYTES_MIN, stamp.base_bytes):
            kept = kept[1:]
        for entry in stamp.entries[: len(stamp.entries) - len(kept)]:
            self._remove(f"log/{entry.version}", entry.pieces)
        stamp.entries = kept

    def _write(self, name: str, blob: bytes) -> int:
        starts = range(0, len(blob), _PIECE_BYTES)
        for piece, start in enumerate(starts):
            self._blobs.updateValue((f"{name}/{piece}",), (blob[start : start + _PIECE_BYTES],))
        return len(starts)

    def _read(self, name: str, pieces: int) -> bytes:
        return b"".join(bytes(self._blobs.getValue((f"{name}/{piece}",))[0]) for piece in range(pieces))

    def _remove(self, name: str, pieces: int) -> None:
        for piece in range(pieces):
            self._blobs.removeKey((f"{name}/{piece}",))


def _fold_bytes(name: str, stamp: Stamp) -> int:
    """How long the log of a shard may become: one to two times the base, by chance, so that shards fold at different times."""
    chance = zlib.crc32(f"{name} {stamp.base}".encode()) / 2**32
    return int(max(_FOLD_BYTES_MIN, stamp.base_bytes) * (1 + chance))
