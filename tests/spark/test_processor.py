"""The shard processor keeps an object's state: in memory, through its log, through folds, and after failed attempts."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pandas as pd
import pytest
from pyspark.sql.streaming.tws_tester import TwsTester

from tidings.model.blob import unpack
from tidings.model.errors import UsageError
from tidings.spark import shard_state
from tidings.spark import stateful_processor as module
from tidings.spark.envelope import METRICS, Envelope
from tidings.spark.stateful_processor import Handling, ShardProcessor, _Held

KEY = "table/0#0"


class _Sum:
    """Adds up numbers, times a factor that is the plan; a large filler makes its log outgrow the base."""

    needs_base = False

    def __init__(self, factor: int) -> None:
        self.total, self.factor = 0, factor

    def handle(self, inputs: list[Envelope]) -> Handling:
        if any(envelope.blob == b"fail" for envelope in inputs):
            self.total += 1000
            raise RuntimeError("half-way")
        added = sum(int(envelope.blob) for envelope in inputs)
        self.total += self.factor * added
        yield Envelope("zone/0", "total", str(self.total).encode())
        return str(added).ljust(300_000)

    def replay(self, entry: str) -> None:
        self.total += self.factor * int(entry)

    def dump(self) -> bytes:
        return str(self.total).encode().ljust(2_000_000)

    def load(self, blob: bytes) -> None:
        self.total = int(blob)

    @property
    def nbytes(self) -> int:
        return 1000


@dataclass(frozen=True)
class _SumPlan:
    job: str
    text: str = "1"

    def formerly(self, text: str) -> _SumPlan:
        if int(text) > int(self.text):
            raise UsageError("the plan is older than the state")
        return _SumPlan(self.job, text)

    def shard(self, key: str) -> _Sum:
        return _Sum(int(self.text))


class _Worker:
    """A Python worker: its memory comes and goes, the state stays with the tester."""

    def __init__(self, tester: TwsTester) -> None:
        self._tester = tester
        self._memory: dict[tuple[str, str], module._Held] = {}

    def add(self, *blobs: bytes) -> tuple[int, str]:
        module._held.clear()
        module._held.update(self._memory)
        frame = pd.DataFrame({"key": [KEY] * len(blobs), "kind": ["number"] * len(blobs), "blob": list(blobs)})
        try:
            out = self._tester.testInPandas(KEY, frame)
        finally:
            self._memory = dict(module._held)
        metrics = unpack(out[out["kind"] == METRICS]["blob"].iloc[0])
        how = next(name for name in metrics if name.startswith("cache"))
        return int(out[out["kind"] == "total"]["blob"].iloc[0]), how


@pytest.fixture(autouse=True)
def clean_memory() -> None:
    module._held.clear()


def test_total_is_right_whichever_worker_gets_the_shard() -> None:
    rng = random.Random(3)
    tester = TwsTester(ShardProcessor(_SumPlan("a")))
    workers = [_Worker(tester) for _ in range(3)]
    total, ways = 0, set()
    for step in range(120):
        if step % 37 == 36:
            workers[rng.randrange(3)] = _Worker(tester)
        numbers = [rng.randrange(100) for _ in range(rng.randrange(1, 4))]
        total += sum(numbers)
        seen, how = workers[0 if step % 41 else rng.randrange(3)].add(*(str(n).encode() for n in numbers))
        assert seen == total
        ways.add(how)
    assert ways == {"cache_hits", "cache_catch_ups", "cache_rebuilds"}


def test_a_failed_attempt_leaves_no_trace() -> None:
    tester = TwsTester(ShardProcessor(_SumPlan("b")))
    worker = _Worker(tester)
    assert worker.add(b"5") == (5, "cache_rebuilds")
    with pytest.raises(RuntimeError, match="half-way"):
        worker.add(b"fail")
    assert worker.add(b"2") == (7, "cache_rebuilds")


def test_an_object_of_an_attempt_that_was_not_committed_is_not_used() -> None:
    tester, other = TwsTester(ShardProcessor(_SumPlan("c"))), TwsTester(ShardProcessor(_SumPlan("c")))
    worker = _Worker(tester)
    worker.add(b"5")
    # The same worker went on to a version that the durable state never saw.
    ahead = _Worker(other)
    ahead.add(b"5")
    ahead.add(b"90")
    worker._memory = ahead._memory
    assert worker.add(b"2") == (7, "cache_rebuilds")


def test_the_log_is_folded_and_kept_short() -> None:
    tester = TwsTester(ShardProcessor(_SumPlan("d")))
    worker = _Worker(tester)
    for _ in range(100):
        worker.add(b"1")
    names = [name for (name,) in tester.peekMapState("blobs", KEY)]
    assert any(name.startswith("base/") for name in names)
    assert len({name.partition("/")[2] for name in names if name.startswith("base/")}) == 1
    assert sum(name.startswith("log/") for name in names) <= 40
    assert _Worker(tester).add(b"1") == (101, "cache_rebuilds")


def test_a_large_first_batch_is_kept_once() -> None:
    tester = TwsTester(ShardProcessor(_SumPlan("f")))
    limit, shard_state._FOLD_BYTES_MIN = shard_state._FOLD_BYTES_MIN, 1
    try:
        first, second = _Worker(tester), _Worker(tester)
        assert first.add(b"4") == (4, "cache_rebuilds")
        assert not [name for (name,) in tester.peekMapState("blobs", KEY) if name.startswith("log/1/")]
        assert first.add(b"1") == (5, "cache_hits")
        assert second.add(b"1") == (6, "cache_rebuilds")
        assert first.add(b"1") == (7, "cache_catch_ups")
    finally:
        shard_state._FOLD_BYTES_MIN = limit


def test_a_long_entry_is_kept_in_pieces() -> None:
    tester = TwsTester(ShardProcessor(_SumPlan("g")))
    limit, shard_state._PIECE_BYTES = shard_state._PIECE_BYTES, 70_000
    try:
        _Worker(tester).add(b"4")
        assert _Worker(tester).add(b"1") == (5, "cache_rebuilds")
    finally:
        shard_state._PIECE_BYTES = limit
    assert sum(name.startswith("log/1/") for (name,) in tester.peekMapState("blobs", KEY)) == 5


def test_state_of_an_earlier_plan_is_brought_over() -> None:
    """What was logged under the earlier plan counts as it did then, also when it is restored once more."""
    tester = TwsTester(ShardProcessor(_SumPlan("h")))
    _Worker(tester).add(b"5")
    assert _Worker(tester).add(b"6") == (11, "cache_rebuilds")
    tester.processor._plan = _SumPlan("h", text="2")
    worker = _Worker(tester)
    assert worker.add(b"1") == (13, "cache_rebuilds")
    assert worker.add(b"1") == (15, "cache_hits")
    assert _Worker(tester).add(b"1") == (17, "cache_rebuilds")
    tester.processor._plan = _SumPlan("h", text="1")
    with pytest.raises(UsageError, match="older than the state"):
        _Worker(tester).add(b"1")


def test_memory_holds_the_shards_used_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(module.CACHE_VARIABLE, "2500")
    tester = TwsTester(ShardProcessor(_SumPlan("i")))
    held = _Held(_Sum(1))
    module._held.update({("x", "old"): held, ("y", "older"): held})
    module._held.move_to_end(("x", "old"))
    frame = pd.DataFrame({"key": [KEY], "kind": ["number"], "blob": [b"1"]})
    tester.testInPandas(KEY, frame)
    assert list(module._held) == [("x", "old"), ("i", KEY)]
    # The shard at work stays, however large it is.
    monkeypatch.setenv(module.CACHE_VARIABLE, "1")
    tester.testInPandas(KEY, frame)
    assert list(module._held) == [("i", KEY)]


def test_shards_fold_at_different_times() -> None:
    stamps = [shard_state._fold_bytes(f"replica/{number}", shard_state.Stamp()) for number in range(20)]
    assert len(set(stamps)) == 20
    assert all(shard_state._FOLD_BYTES_MIN <= size <= 2 * shard_state._FOLD_BYTES_MIN for size in stamps)
