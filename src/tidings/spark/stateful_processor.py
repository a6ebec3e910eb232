"""The shard processor: a stateful Spark operator. It gives a plain Python object durable state.

The object lives in the Python worker between micro-batches. Spark's state store holds what it is restored from
(`shard_state.py`). Every log entry has a version and a random nonce. The object in memory keeps those of the last entry
applied to it, so a worker can tell whether its object is current, behind (it replays the missing entries) or from an attempt
that failed (it is restored).
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from tidings.model.blob import pack
from tidings.spark.counters import counted
from tidings.spark.envelope import METRICS, Envelope
from tidings.spark.shard_state import ShardState, Stamp

if TYPE_CHECKING:
    import pandas as pd

_FRAME_BYTES = 4 * 2**20
CACHE_VARIABLE = "TIDINGS_CACHE_BYTES"
"""Environment variable: how many bytes of shards a Python worker keeps in memory."""


Handling = Generator[Envelope, None, Any]
"""Yields envelopes; returns the log entry."""


class Shard(Protocol):
    """The object that a processor gives durable state to.

    `handle` returns a log entry; `replay` of the entry repeats its effect on state. `load` restores what `dump` gave, also
    if the shard that gave it had an earlier plan. nbytes: about how much memory it takes. needs_base: its state cannot be
    found again from the log: a base is to be written with the next entry. `dump` clears it.
    """

    @property
    def needs_base(self) -> bool: ...
    @property
    def nbytes(self) -> int: ...
    def handle(self, inputs: list[Envelope]) -> Handling: ...
    def replay(self, entry: Any) -> None: ...
    def dump(self) -> bytes: ...
    def load(self, blob: bytes) -> None: ...


class ShardPlan(Protocol):
    """Makes the shards of a job (`Plan`). Pickled into the job."""

    @property
    def job(self) -> str: ...
    @property
    def text(self) -> str:
        """What state depends on."""
        ...

    def formerly(self, text: str) -> ShardPlan:
        """The plan that state was written for. UsageError if this one cannot go on with it."""
        ...

    def shard(self, key: str) -> Shard: ...


@dataclass
class _Held:
    """A shard in the worker's memory, with version and nonce of the last log entry applied to it."""

    shard: Shard
    version: int = 0
    nonce: str = ""
    needs_base: bool = False
    """Its durable state is still that of an earlier plan: the next micro-batch writes a new base."""


_held: OrderedDict[tuple[str, str], _Held] = OrderedDict()
"""Shards in memory, by job and key: the one used last stands last."""


class ShardProcessor(StatefulProcessor):  # type: ignore[misc]
    """Runs the shards of a plan as a Spark stateful operator."""

    def __init__(self, plan: ShardPlan) -> None:
        self._plan = plan

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = ShardState(handle)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        name = key[0]
        inputs = [
            Envelope(name, kind, blob)
            for frame in rows
            for kind, blob in zip(frame["kind"].tolist(), frame["blob"].tolist(), strict=True)
        ]
        stamp = self._state.stamp()
        held, how = self._current(name, stamp)
        outputs = _Outputs()
        entry = yield from outputs.frames(held.shard.handle(inputs))
        stamp.plan = self._plan.text
        is_folded = self._state.write(
            name, stamp, entry, held.shard.dump, is_folded=held.needs_base or held.shard.needs_base
        )
        held.version, held.nonce, held.needs_base = stamp.version, stamp.nonce, False
        # Entered only after success: an object that failed half-way must not be used again.
        _held[self._plan.job, name] = held
        _make_room()
        state_bytes = stamp.base_bytes + sum(entry.bytes for entry in stamp.entries)
        counts = {how: 1, "folds": int(is_folded), "state_bytes": state_bytes, "memory_bytes": held.shard.nbytes}
        metrics = Envelope(outputs.key or name, METRICS, pack({how: 1}), counted(counts))
        yield _frame([*outputs.waiting, metrics])

    def close(self) -> None:
        pass

    def _current(self, name: str, stamp: Stamp) -> tuple[_Held, str]:
        """Returns the shard as of the stamp, and the metric to count: whether it was in memory, caught up or was restored."""
        held = _held.pop((self._plan.job, name), None)
        if held is not None and (held.version, held.nonce) == (stamp.version, stamp.nonce):
            return held, "cache_hits"
        if held is not None and (held.version, held.nonce) in {(e.version, e.nonce) for e in stamp.entries}:
            self._play(held, stamp)
            return held, "cache_catch_ups"
        return self._restored(name, stamp), "cache_rebuilds"

    def _restored(self, name: str, stamp: Stamp) -> _Held:
        plan = self._plan if stamp.plan in ("", self._plan.text) else self._plan.formerly(stamp.plan)
        held = _Held(plan.shard(name), stamp.base)
        if stamp.base:
            held.shard.load(self._state.base(stamp))
        self._play(held, stamp)
        if plan is not self._plan:
            # What was logged under the earlier plan had to be replayed under it.
            former, held.shard = held.shard, self._plan.shard(name)
            held.shard.load(former.dump())
            held.needs_base = True
        return held

    def _play(self, held: _Held, stamp: Stamp) -> None:
        for contents in self._state.entries(stamp, held.version):
            held.shard.replay(contents)
        held.version, held.nonce = stamp.version, stamp.nonce


def _make_room() -> None:
    """Forgets the shards that were used longest ago, but never the last one, while all together take too much memory."""
    limit = _cache_bytes()
    sizes = {key: held.shard.nbytes for key, held in _held.items()}
    total = sum(sizes.values())
    for key in list(_held)[:-1]:
        if total <= limit:
            break
        del _held[key]
        total -= sizes[key]


def _cache_bytes() -> int:
    """The limit that the environment sets, or a worker's part of half the machine's memory."""
    wanted = os.environ.get(CACHE_VARIABLE, "")
    if wanted.isdigit():
        return int(wanted)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return memory // (2 * (os.cpu_count() or 1))


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
    # Workers have it loaded. The driver, which needs no frames, would spend a second on it.
    import pandas as pd

    return pd.DataFrame(envelopes, columns=list(Envelope._fields))
