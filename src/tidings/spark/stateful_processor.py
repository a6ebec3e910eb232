"""The shard processor: one stateful Spark operator for all stages. It gives a plain Python object durable state.

The object lives in the Python worker between batches. Spark's state store holds what it is restored from: a base (the
object's own dump, in pieces) and a log with one entry per batch. Every entry has a version and a random nonce. The object in
memory keeps those of the last entry applied to it, so a worker can tell whether its object is current, behind (it replays
the missing entries) or from an attempt that failed (it is restored from the base).
"""

from __future__ import annotations

import uuid
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import pandas as pd
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from tidings.model.blob import pack, unpack
from tidings.spark.envelope import METRICS, Envelope

_PIECE_BYTES = 4 * 2**20
_FRAME_BYTES = 4 * 2**20
_FOLD_BYTES_MIN = 1 * 2**20
_FOLD_ENTRIES = 64
_ENTRIES_KEPT = 16
"""Log entries kept when a new base is written, so that a worker a few batches behind can still catch up."""


Handling = Generator[Envelope, None, Any]
"""Yields envelopes for the next stage; returns the log entry."""


class Shard(Protocol):
    """The object that a processor gives durable state to.

    `handle` returns a log entry; `replay` of the entry repeats its effect on state. `load` restores what `dump` gave.
    """

    def handle(self, inputs: list[Envelope]) -> Handling: ...
    def replay(self, entry: Any) -> None: ...
    def dump(self) -> bytes: ...
    def load(self, blob: bytes) -> None: ...


class Stage(Protocol):
    """Makes the shards of one stage. Pickled into the job."""

    @property
    def name(self) -> str: ...
    @property
    def job(self) -> str: ...

    def owns(self, key: str) -> bool:
        """Whether the stage handles envelopes with this key; others are passed on unchanged to a later stage."""
        ...

    def shard(self, key: str) -> Shard: ...


@dataclass
class _Held:
    """A shard in the worker's memory, with version and nonce of the last log entry applied to it."""

    shard: Shard
    version: int
    nonce: str


_held: dict[tuple[str, str, str], _Held] = {}


class ShardProcessor(StatefulProcessor):  # type: ignore[misc]
    """Runs one stage's shards as a Spark stateful operator."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._stamp = handle.getValueState(
            "stamp", "version long, nonce string, base long, pieces int, base_bytes long, log_bytes long, oldest long"
        )
        self._blobs = handle.getMapState("blobs", "name string", "nonce string, blob binary")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        name = key[0]
        inputs = [
            Envelope(name, kind, blob)
            for frame in rows
            for kind, blob in zip(frame["kind"].tolist(), frame["blob"].tolist(), strict=True)
        ]
        if not self._stage.owns(name):
            yield _frame(inputs)
            return
        stamp = _Stamp(*self._stamp.get()) if self._stamp.exists() else _Stamp()
        held, how = self._current(name, stamp)
        outputs = _Outputs()
        entry = yield from outputs.frames(held.shard.handle(inputs))
        self._log(held, stamp, pack(entry))
        # Entered only after success: an object that failed half-way must not be used again.
        _held[self._stage.job, self._stage.name, name] = held
        metrics = {"stage": self._stage.name, how: 1}
        yield _frame([*outputs.waiting, Envelope(outputs.key or name, METRICS, pack(metrics))])

    def close(self) -> None:
        pass

    def _current(self, name: str, stamp: _Stamp) -> tuple[_Held, str]:
        """Returns the shard as of the stamp, and the metric to count: whether it was in memory, caught up or was restored."""
        held = _held.pop((self._stage.job, self._stage.name, name), None)
        if held is not None and (held.version, held.nonce) == (stamp.version, stamp.nonce):
            return held, "cache_hits"
        if held is not None and held.version < stamp.version and self._nonce(held.version, stamp) == held.nonce:
            self._play(held, stamp)
            return held, "cache_catch_ups"
        held = _Held(self._stage.shard(name), stamp.base, "")
        if stamp.pieces:
            held.shard.load(b"".join(self._blob(f"base/{i}")[1] for i in range(stamp.pieces)))
        self._play(held, stamp)
        return held, "cache_rebuilds"

    def _play(self, held: _Held, stamp: _Stamp) -> None:
        for version in range(held.version + 1, stamp.version + 1):
            held.nonce, entry = self._blob(f"log/{version}")
            held.shard.replay(unpack(entry))
        held.version = stamp.version

    def _nonce(self, version: int, stamp: _Stamp) -> str | None:
        return self._blob(f"log/{version}")[0] if version >= stamp.oldest > 0 else None

    def _blob(self, name: str) -> tuple[str, bytes]:
        nonce, blob = self._blobs.getValue((name,))
        return nonce, bytes(blob)

    def _log(self, held: _Held, stamp: _Stamp, entry: bytes) -> None:
        """Writes the batch's log entry, and a new base if the log is longer than _FOLD_ENTRIES or larger than the base."""
        held.version, held.nonce = stamp.version + 1, uuid.uuid4().hex
        stamp.version, stamp.nonce = held.version, held.nonce
        stamp.oldest = stamp.oldest or held.version
        stamp.log_bytes += len(entry)
        is_long = stamp.version - stamp.base >= _FOLD_ENTRIES
        is_folded = is_long or stamp.log_bytes > max(_FOLD_BYTES_MIN, stamp.base_bytes)
        # No worker can be behind the first entry: if a base is written with it, the entry's contents are not stored twice.
        is_bare = is_folded and held.version == 1
        self._blobs.updateValue((f"log/{held.version}",), (held.nonce, b"" if is_bare else entry))
        if is_folded:
            self._fold(held, stamp)
        self._stamp.update(
            (stamp.version, stamp.nonce, stamp.base, stamp.pieces, stamp.base_bytes, stamp.log_bytes, stamp.oldest)
        )

    def _fold(self, held: _Held, stamp: _Stamp) -> None:
        blob = held.shard.dump()
        pieces = [blob[at : at + _PIECE_BYTES] for at in range(0, len(blob), _PIECE_BYTES)]
        for i, piece in enumerate(pieces):
            self._blobs.updateValue((f"base/{i}",), ("", piece))
        for i in range(len(pieces), stamp.pieces):
            self._blobs.removeKey((f"base/{i}",))
        keep_from = max(stamp.oldest, stamp.version - _ENTRIES_KEPT + 1)
        for version in range(stamp.oldest, keep_from):
            self._blobs.removeKey((f"log/{version}",))
        stamp.base, stamp.pieces, stamp.base_bytes = stamp.version, len(pieces), len(blob)
        stamp.log_bytes, stamp.oldest = 0, keep_from


@dataclass
class _Stamp:
    """Version of the durable state.

    version, nonce: of the last log entry. base: version of the base, in `pieces` pieces. log_bytes: of entries since the base.
    oldest: version of the first log entry still kept.
    """

    version: int = 0
    nonce: str = ""
    base: int = 0
    pieces: int = 0
    base_bytes: int = 0
    log_bytes: int = 0
    oldest: int = 0


class _Outputs:
    """Collects envelopes into frames of about _FRAME_BYTES. `waiting` holds those not yet yielded, `key` the first key."""

    def __init__(self) -> None:
        self.waiting: list[Envelope] = []
        self.key = ""

    def frames(self, handling: Handling) -> Generator[pd.DataFrame, None, Any]:
        size = 0
        while True:
            try:
                envelope = next(handling)
            except StopIteration as end:
                return end.value
            self.key = self.key or envelope.key
            self.waiting.append(envelope)
            size += len(envelope.blob)
            if size > _FRAME_BYTES:
                yield _frame(self.waiting)
                self.waiting, size = [], 0


def _frame(envelopes: list[Envelope]) -> pd.DataFrame:
    return pd.DataFrame(envelopes, columns=["key", "kind", "blob"])
