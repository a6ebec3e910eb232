"""Envelopes: the rows that go into and come out of the shards of the Spark job. Few and large: each carries a batch.

`key` names the shard an envelope is for, `kind` what it holds, `blob` the packed batch; `counts` are counters of a live job
(`counters.py`).
"""

from __future__ import annotations

from itertools import count
from typing import NamedTuple

from tidings.pipeline.live import ANSWERS as ANSWERS
from tidings.pipeline.live import NOTIFICATIONS as NOTIFICATIONS
from tidings.pipeline.live import REFUSED as REFUSED
from tidings.pipeline.live import WARNINGS as WARNINGS

SCHEMA = "key string, kind string, blob binary, counts array<bigint>"

LINES, POINTS, END, RECORDED, EVENTS = "lines", "points", "end", "recorded", "events"
METRICS, PART, NOTES, PARCEL = "metrics", "part", "notes", "parcel"


class Envelope(NamedTuple):
    key: str
    kind: str
    blob: bytes
    counts: list[int] | None = None


def replica_keys(shards: int) -> tuple[str, ...]:
    """Keys of all replicas, each in a partition of its own if there are as many partitions.

    The first one is the same for every number of shards: its state is found after the number was changed, and tells.
    """
    first = "replica/0"
    keys = {spark_hash(first) % shards: first}
    for salt in count():
        if len(keys) == shards:
            break
        name = f"replica/{len(keys)}#{salt}"
        keys.setdefault(spark_hash(name) % shards, name)
    return (first, *(name for name in keys.values() if name != first))


def spark_hash(text: str) -> int:
    """Spark's hash of a string (Murmur3 over whole words, then over single bytes), by which it picks a partition."""
    data = text.encode()
    state = 42
    whole = len(data) - len(data) % 4
    for at in range(0, whole, 4):
        state = _mix_state(state, _mix_word(int.from_bytes(data[at : at + 4], "little")))
    for byte in data[whole:]:
        state = _mix_state(state, _mix_word(byte if byte < 128 else byte - 256 + 2**32))
    state ^= len(data)
    state = (state ^ (state >> 16)) * 0x85EBCA6B % 2**32
    state = (state ^ (state >> 13)) * 0xC2B2AE35 % 2**32
    state ^= state >> 16
    return state if state < 2**31 else state - 2**32


def _mix_word(word: int) -> int:
    word = word * 0xCC9E2D51 % 2**32
    word = (word << 15 | word >> 17) % 2**32
    return word * 0x1B873593 % 2**32


def _mix_state(state: int, word: int) -> int:
    state ^= word
    state = (state << 13 | state >> 19) % 2**32
    return (state * 5 + 0xE6546B64) % 2**32
